//! `heaptap check`.

pub mod run;
mod view;

pub use view::{Args, run};
