//! Actions as plain values with their parameters.
//!
//! | module | owns |
//! |---|---|
//! | `value` | the actions, and their display |
//! | `parse` | parsing an action as typed, and the errors for invalid text |
//! | `trim` | the levels of trim requests |

mod parse;
mod trim;
mod value;

pub use self::parse::ActionError;
pub use self::trim::{Trim, TrimLevel};
pub use self::value::{Action, Key, Monkey, Point, Swipe};
