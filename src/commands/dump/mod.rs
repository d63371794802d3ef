//! `heaptap dump`.

mod view;

pub use view::{Args, run};
