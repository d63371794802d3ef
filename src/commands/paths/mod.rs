//! `heaptap paths`.

mod view;

pub use view::{Args, run};
