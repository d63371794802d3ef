//! `heaptap convert`.

mod args;
pub mod export;
mod format;
mod view;

pub use args::Args;
pub use view::run;
