//! `heaptap man`.

mod args;
mod pages;
mod view;

pub use args::Args;
pub use view::run;
