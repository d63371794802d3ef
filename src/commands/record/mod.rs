//! `heaptap record`.

mod view;

pub use view::{Args, run};
