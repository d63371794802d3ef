//! `heaptap demo`.

mod view;

pub use view::{Args, run};
