//! Compares the virtual phone with real ones: by a real `adb`, a table of permissions, scripts,
//! recordings with known contents, and Perfetto's own protos. Also tests heaptap's device
//! operations on it.

mod access;
mod adb;
mod adb_server;
mod client;
mod device_libs;
mod device_on_phone;
mod eligibility;
mod faults;
mod java;
mod java_decode;
mod java_faults;
mod java_planted;
#[path = "../common/judge.rs"]
mod judge;
mod libraries;
mod memory;
#[path = "../common/program.rs"]
mod program;
mod python;
mod recordings;
mod screen;
mod scripts;
mod shapes;
mod tracking;
