//! `heaptap leaks`.

mod view;

pub use view::{Args, run};
