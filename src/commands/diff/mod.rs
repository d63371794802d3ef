//! `heaptap diff`.

pub mod run;
pub(crate) mod view;

pub use view::{Args, run};
