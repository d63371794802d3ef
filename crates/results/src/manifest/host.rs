//! A recorded program of this host.

use serde::{Deserialize, Serialize};

/// The program, its end, and the Perfetto build that recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HostProgram {
    /// The program and its arguments, as typed.
    pub command: Vec<String>,
    /// Process ID.
    pub pid: u32,
    /// Exit status as a shell reports it: 128 and the signal's number after a signal.
    pub status: u8,
    /// Signal that ended it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<u8>,
    /// The preload library.
    pub library: String,
    /// The executable of `traced`.
    pub traced: String,
}
