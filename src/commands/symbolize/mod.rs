//! `heaptap symbolize`.

mod args;
mod output;
mod view;

pub use args::Args;
pub use view::run;
