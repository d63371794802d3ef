//! Programs of this host: heapprofd's preload library for glibc, loaded into a local program, with
//! a tracing service of its own. Owns finding the Perfetto build, the checks before anything
//! starts, and the processes of a recording; does not read traces.
//!
//! ```text
//! Request ─► find ─► Tools ─┐
//!        └─► check (ELF) ───┴► Checked ─► Tracing ─► Program
//!                              traced, perfetto ─► trace file
//! ```
//!
//! Each profiled process forks its own heapprofd, which connects to `traced` and matches itself.
//! The library waits at its start until a session matches, so nothing starts before the session
//! is active, and the session matches every process.

mod check;
mod elf;
mod error;
mod find;
mod os;
mod request;
mod tree;

#[cfg(not(target_os = "linux"))]
mod elsewhere;
#[cfg(target_os = "linux")]
mod linux;

#[cfg(not(target_os = "linux"))]
pub use elsewhere::{Program, Signals, Tracing};
#[cfg(target_os = "linux")]
pub use linux::{Program, Signals, Tracing};

use heaptap_base::error::Failure;

pub use check::{Caution, Checked, check, program_name};
pub use find::Tools;
pub use request::Request;
pub use tree::Processes;

/// Returns whether this system can profile its own programs.
///
/// # Errors
/// Returns an error on systems other than Linux: the preload library exists only for glibc.
pub fn supported() -> Result<(), Failure> {
    match cfg!(target_os = "linux") {
        true => Ok(()),
        false => Err(unsupported()),
    }
}

fn unsupported() -> Failure {
    error::unsupported(std::env::consts::OS)
}

/// Sender of a signal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// The terminal, which signals all processes of the foreground group.
    Terminal,
    /// A process, which signals heaptap alone.
    Process,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProgramEnd {
    /// It exited with this status.
    Exited(u8),
    /// A signal ended it.
    Signaled(u8),
}

impl ProgramEnd {
    /// Returns the status as a shell reports it: 128 and the signal's number after a signal.
    pub fn status(self) -> u8 {
        match self {
            ProgramEnd::Exited(status) => status,
            ProgramEnd::Signaled(signal) => signal.saturating_add(128),
        }
    }
}

impl std::fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            ProgramEnd::Exited(status) => write!(f, "status {status}"),
            ProgramEnd::Signaled(signal) => write!(f, "signal {signal}"),
        }
    }
}

/// End of the perfetto of a session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionEnd {
    /// It wrote its trace and exited.
    Complete,
    /// It exited before it was asked to, or failed.
    Early,
    /// It was killed, because it did not end in time or the user did not want to wait.
    Killed,
}

#[cfg(test)]
mod tests;
