//! A recording from its check to its finished folder, whoever begins it, goes on with it or
//! ends it.
//!
//! | module | owns |
//! |---|---|
//! | `capture_kind`, `companion_options`, `options` | what is to be recorded, and how |
//! | `plan` | what the journal keeps for whoever finishes it |
//! | `events`, `outcome` | what is told meanwhile, and what there is at the end |
//! | `companion` | what is recorded beside a heap |
//! | `finish`, `causes`, `advice` | from a session that has ended to its folder |
//! | `sessions` | sessions that another process began |
//! | `attempt` | one recording from its check to its folder |
//! | `record`, `dump`, `heap_files` | the commands: as many attempts as it takes |

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
