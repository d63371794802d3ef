//! `heaptap completions`.

mod view;

pub use view::{Args, run};
