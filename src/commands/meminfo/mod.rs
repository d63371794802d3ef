//! `heaptap meminfo`.

mod args;
pub mod live;
mod view;

pub use args::Args;
pub use view::run;
