//! User stories: the real binary against the virtual phone, over a real socket. Recordings are
//! compared with the actual allocations on the phone.
#![allow(missing_docs, clippy::unwrap_used)]
#![allow(
    clippy::needless_borrows_for_generic_args,
    reason = "arguments are written alike, borrowed or not"
)]

#[cfg(unix)]
#[path = "../common/judge.rs"]
mod judge;
#[path = "../common/program.rs"]
mod program;

mod lab;
mod libraries;

mod archive;
mod baselines;
mod beside;
mod builds;
#[cfg(unix)]
mod ci_formats;
mod claims;
mod conditions;
mod documents;
mod dump;
// Limits the size of files, as a full disk.
#[cfg(target_os = "linux")]
mod fault_table;
mod faults;
mod foreign;
mod gc;
// Their commands are for `sh`.
#[cfg(unix)]
mod guides;
#[cfg(target_os = "linux")]
mod host;
mod java_beside;
mod java_tracking;
mod java_ways;
mod killed;
mod leaks;
mod live;
mod meminfo;
mod minified;
mod moments;
mod night;
mod old;
mod paths;
mod provoke;
mod queried;
mod record;
mod run;
mod run_ended;
mod run_killed;
mod sessions;
mod signals;
mod smaps;
mod snapshots;
mod storm;
mod symbols;
mod tried;
mod triggers;
mod whole_picture;
