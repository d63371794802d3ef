//! A recording from its check to its finished directory, including sessions of other processes.
//!
//! | module | contents |
//! |---|---|
//! | `capture_kind`, `companion_options`, `options` | recorded data, and options |
//! | `plan` | data in the journal for finishing a recording |
//! | `events`, `outcome` | events, and results |
//! | `companion` | companion data |
//! | `finish`, `causes`, `advice` | from an ended session to its directory |
//! | `sessions` | sessions of other processes |
//! | `attempt` | one recording from its check to its directory |
//! | `host` | programs of this host |
//! | `conversion` | traces to profiles and name packets |
//! | `record`, `dump`, `heap_files` | the commands: as many attempts as necessary |
//! | `self_test` | a few seconds of everything, with verdicts |
//! | `blocking` | work on large files, without holding up connections |

pub(crate) mod advice;
pub(crate) mod attempt;
pub mod blocking;
pub mod capture_kind;
pub mod causes;
pub mod companion;
pub mod companion_options;
pub mod conversion;
pub mod dump;
pub mod events;
pub mod finish;
pub mod heap_files;
pub mod host;
pub mod options;
pub mod outcome;
pub mod plan;
pub mod record;
pub mod self_test;
pub mod sessions;
