//! `heaptap reconcile`.

mod view;

pub use view::{Args, run};
