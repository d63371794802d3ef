//! User stories: the real binary against the virtual phone, over a real socket. Recordings are
//! compared with the actual allocations on the phone.
#![allow(missing_docs, clippy::unwrap_used)]

#[cfg(unix)]
#[path = "../common/judge.rs"]
mod judge;
#[path = "../common/program.rs"]
mod program;

mod lab;
mod libraries;

mod archive;
#[cfg(unix)]
mod beside;
#[cfg(unix)]
mod builds;
#[cfg(unix)]
mod ci_formats;
#[cfg(unix)]
mod claims;
#[cfg(unix)]
mod conditions;
mod documents;
mod dump;
#[cfg(unix)]
mod fault_table;
#[cfg(unix)]
mod faults;
mod foreign;
mod gc;
#[cfg(unix)]
mod guides;
mod java_beside;
mod java_tracking;
mod java_ways;
#[cfg(unix)]
mod killed;
#[cfg(unix)]
mod leaks;
#[cfg(unix)]
mod live;
mod meminfo;
#[cfg(unix)]
mod minified;
mod moments;
mod night;
mod old;
#[cfg(unix)]
mod provoke;
mod queried;
mod record;
#[cfg(unix)]
mod run;
#[cfg(unix)]
mod run_ended;
#[cfg(unix)]
mod run_killed;
#[cfg(unix)]
mod sessions;
#[cfg(unix)]
mod smaps;
#[cfg(unix)]
mod snapshots;
#[cfg(unix)]
mod storm;
mod symbols;
#[cfg(unix)]
mod triggers;
#[cfg(unix)]
mod whole_picture;
