//! A recording from its check to its finished folder, whoever begins it, goes on with it or
//! ends it.

pub(crate) mod advice;
mod attempt;
pub mod blocking;
pub mod capture_kind;
pub mod causes;
pub mod companion;
pub mod companion_options;
pub mod dump;
pub mod events;
pub mod finish;
pub mod heap_files;
pub mod options;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod sessions;
