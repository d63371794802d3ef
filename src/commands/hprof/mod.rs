//! `heaptap hprof`.

mod args;
pub mod run;
mod view;

pub use args::Args;
pub use view::run;
