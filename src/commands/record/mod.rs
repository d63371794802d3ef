//! `heaptap record`.

mod args;
mod host;
mod view;

pub use args::Args;
pub use view::run;
