//! `heaptap smaps`.

pub(crate) mod view;

pub use view::{Args, run};
