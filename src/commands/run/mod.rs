//! `heaptap run`.

mod args;
mod devices;
mod prepare;
mod view;

pub use args::Args;
pub use view::run;
