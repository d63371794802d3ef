//! `heaptap gc`.

pub mod run;
mod view;

pub use view::{Args, run};
