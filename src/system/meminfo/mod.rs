//! `meminfo`: how the memory of processes divides, as `dumpsys meminfo` tells it; asked of a
//! phone or read from what was saved, and two of them compared.
//!
//! | module | owns |
//! |---|---|
//! | `ask` | the questions to the phone, and what they cost |
//! | `file` | saved texts and documents |
//! | `document` | the document that is shown |
//! | `whole` | of it the whole phone |
//! | `diff` | what changed between two |

mod ask;
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
