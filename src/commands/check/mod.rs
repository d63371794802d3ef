//! `heaptap check`.

mod args;
mod view;

pub use args::Args;
pub use view::run;
