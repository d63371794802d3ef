//! `heaptap open`.

mod args;
pub mod run;
pub(crate) mod view;

pub use args::Args;
pub use view::run;
