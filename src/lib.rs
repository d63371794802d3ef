//! heaptap: memory profiling of Android phones from the host.
//!
//! Data flows one way; every stage hands a plain type to the next and knows nothing of the
//! one after:
//!
//! ```text
//! cli -> app -> config  -> session (device) -> raw-trace
//!               raw-trace -> trace -> profile -> export (pprof), report
//! ```
//!
//! `docs/architecture.md` shows the same on one page, with the table of who may import whom.

pub mod analyze;
pub mod app;
pub mod bytes;
pub mod cli;
pub mod config;
pub mod deobfuscate;
pub mod device;
pub mod eligibility;
pub mod error;
pub mod export;
pub mod heap_graph;
pub mod hprof;
pub mod import;
pub mod jdwp;
pub mod memory;
pub mod names;
pub mod net;
pub mod observe;
pub mod phone;
pub mod profile;
pub mod proto;
pub mod provoke;
pub mod query;
pub mod report;
pub mod session;
pub mod stacks;
pub mod symbolize;
pub mod trace;
pub mod units;
pub mod untrusted;
