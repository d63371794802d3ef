//! Ends of a program and of its session, and senders of signals that ask for one.

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
