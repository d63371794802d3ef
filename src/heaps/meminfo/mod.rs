//! `meminfo`: memory of processes according to `dumpsys meminfo`, queried from a device or read
//! from files, and compared.
//!
//! | module | contents |
//! |---|---|
//! | `ask` | queries to the device, and their cost |
//! | `file` | saved texts and documents |
//! | `document` | the displayed document |
//! | `whole_phone` | its part about the whole device |
//! | `diff` | comparison of two documents |
//! | `error` | errors of reading it |

pub(crate) mod ask;
mod diff;
mod document;
mod error;
mod file;
mod whole_phone;

pub use ask::{Answer, Question, ask};
pub use diff::{Change, Changes, ProcessChanges, UnpairedProcess, diff};
pub use document::{
    Count, DatabaseFacts, Difference, Document, Figure, ProcessFacts, RowFacts, TextFacts,
};
pub use error::MeminfoError;
pub use file::{is_meminfo, read};
pub use whole_phone::{By, ItemFacts, ListFacts, PhoneFacts, RamFacts, Share};

#[cfg(test)]
mod tests;
