//! `heaptap explore`.

mod api;
mod args;
mod compare;
pub mod run;
mod sql;
mod state;
mod view;

pub use args::Args;
pub use view::run;
