//! `heaptap explore`.

mod api;
mod args;
pub mod run;
mod state;
mod view;

pub use args::Args;
pub use view::run;
