//! `heaptap run`.

mod args;
mod prepare;
mod view;

pub use args::Args;
pub use view::run;
