//! `heaptap archive`: recordings into a Parquet dataset of many.

mod args;
pub mod run;
mod view;

pub use args::Args;
pub use view::run;
