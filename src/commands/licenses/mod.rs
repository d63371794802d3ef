//! `heaptap licenses`.

mod args;
mod run;
mod view;

pub use args::Args;
pub use view::run;
