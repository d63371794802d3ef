//! The virtual phone, held to what real ones do: by a real `adb`, by a table of permissions,
//! by scripts, by recordings whose truth is known, and by Perfetto's own protos; and what heaptap
//! does with devices, on it.

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
