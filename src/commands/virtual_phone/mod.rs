//! `heaptap virtual-phone`.

mod view;

pub use view::{Args, run};
