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
mod end;
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
pub use end::{Origin, ProgramEnd, SessionEnd};
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
        false => Err(error::unsupported(std::env::consts::OS)),
    }
}

#[cfg(test)]
mod tests;
