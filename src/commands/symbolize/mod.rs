//! `heaptap symbolize`.

mod view;

pub use view::{Args, run};
