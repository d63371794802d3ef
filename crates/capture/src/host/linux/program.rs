//! The profiled program: it has heaptap's standard streams, terminal and process group, as if a
//! shell had started it.

use std::os::unix::process::ExitStatusExt as _;

use rustix::process::{Pid, Signal};
use tokio::process::Child;

use super::super::end::ProgramEnd;

/// A running program.
#[derive(Debug)]
pub struct Program {
    child: Child,
    pid: u32,
}

impl Program {
    pub(super) fn new(child: Child) -> Program {
        let pid = child.id().unwrap_or_default();
        Program { child, pid }
    }

    /// Returns the process ID.
    pub fn pid(&self) -> u32 {
        self.pid
    }

    /// Waits for its end; not for the end of its output, which its heapprofd holds open.
    pub async fn wait(&mut self) -> ProgramEnd {
        // Fails only if something else waited for the child, and nothing does.
        let Ok(status) = self.child.wait().await else {
            return ProgramEnd::Exited(u8::MAX);
        };
        match (status.code(), status.signal()) {
            (Some(code), _) => ProgramEnd::Exited(u8::try_from(code).unwrap_or(u8::MAX)),
            (None, signal) => {
                ProgramEnd::Signaled(u8::try_from(signal.unwrap_or_default()).unwrap_or(u8::MAX))
            }
        }
    }

    /// Forwards a signal that heaptap received.
    pub fn signal(&self, signal: i32) {
        if let Some(signal) = Signal::from_named_raw(signal) {
            send(&self.child, signal);
        }
    }
}

/// Sends a signal to a child that was not waited for yet, so its ID is not in use by another.
pub(super) fn send(child: &tokio::process::Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // It might have ended meanwhile.
        let _ = rustix::process::kill_process(pid, signal);
    }
}
