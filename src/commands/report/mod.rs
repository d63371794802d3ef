//! `heaptap report`.

mod view;

pub use view::{Args, run};
