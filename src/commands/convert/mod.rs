//! `heaptap convert`.

pub mod export;
mod view;

pub use view::{Args, run};
