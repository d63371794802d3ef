//! `heaptap doctor`.

mod args;
pub mod run;
mod try_view;
mod view;

pub use args::Args;
pub use view::run;
