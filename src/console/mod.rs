//! The console: its text, its flags, and how commands end.

pub mod columns;
pub mod exit;
pub mod fail_checks;
pub mod flags;
pub mod keys;
mod output;
mod redraw;
pub mod render;
pub mod save_file;
pub mod signals;
pub mod sparkline;
pub mod table;
pub mod wrap;

pub(crate) use self::output::visible;
pub use self::output::{Console, ConsoleWriter, Style};
