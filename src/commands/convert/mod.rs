//! `heaptap convert`.

pub mod export;
pub(crate) mod view;

pub use view::{Args, run};
