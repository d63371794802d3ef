//! `heaptap explore`.

mod args;
pub mod run;
mod shown;
mod view;

pub use args::Args;
pub use view::run;
