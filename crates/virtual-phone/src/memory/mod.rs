//! Memory accounting of the phone: one state for a process at a time. All memory reports are
//! derived from it (`dumpsys meminfo`, /proc, the log of collections, `malloc_info`). It
//! is computed from the specification's seed, the time, and the process's events; sums are cached.
//! The commands and procfs own the texts.

mod accounts;
mod java;
mod ledger;
mod log;
mod mappings;
mod native;
mod numbers;
mod ram;
mod rows;
mod system;

pub(crate) use self::accounts::{Memory, limits};
pub(crate) use self::java::{Collection, Limits, has_java};
pub(crate) use self::ledger::Ledger;
pub(crate) use self::log::log_tag;
pub(crate) use self::mappings::{Backing, Mapping, Pages};
pub(crate) use self::rows::{Detail, Row, Rows, Sums};

#[cfg(test)]
mod tests;
