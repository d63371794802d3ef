//! The virtual phone, held to what real ones do: by a real `adb`, by a table of permissions,
//! by scripts, by recordings whose truth is known, and by Perfetto's own protos.

mod access;
mod adb;
mod client;
mod faults;
mod java;
mod java_decode;
mod java_faults;
mod java_planted;
#[path = "../common/judge.rs"]
mod judge;
mod libraries;
mod memory;
mod python;
mod recordings;
mod screen;
mod scripts;
mod shapes;
mod tracking;
