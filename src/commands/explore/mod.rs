//! `heaptap explore`.

mod api;
mod args;
mod compare;
mod offline;
pub mod run;
#[cfg(feature = "sql")]
mod sql;
#[cfg(not(feature = "sql"))]
#[path = "no_sql.rs"]
mod sql;
mod state;
mod view;

pub use args::Args;
pub use view::run;
