//! `heaptap meminfo`.

pub mod live;
pub(crate) mod view;

pub use view::{Args, run};
