//! `heaptap run`.

mod args;
mod devices;
mod dry_run;
mod prepare;
mod view;

pub use args::Args;
pub use prepare::with_actions;
pub use view::run;
