//! A recording from its check to its finished folder, whoever begins it, goes on with it or
//! ends it.

pub(crate) mod advice;
pub mod beside;
pub mod blocking;
pub mod causes;
pub mod choice;
pub mod dump;
pub mod finish;
pub mod heap_files;
pub mod plan;
pub mod record;
pub mod sessions;
pub mod what;
