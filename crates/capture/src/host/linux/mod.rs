//! Processes of a recording on Linux: traced, perfetto and the program. Owns their start order,
//! their signals and their end.

mod private;
mod program;
mod service;
mod signals;

pub use program::Program;
pub use service::Tracing;
pub use signals::Signals;

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd, RawFd};

use rustix::process::{Pid, Signal};

/// Makes a child end with heaptap, even if heaptap is killed. `notify` is a descriptor that the
/// child inherits. Only the thread that starts the child counts as its parent, so callers are on the
/// main thread, which lives as long as heaptap.
fn bound(command: &mut tokio::process::Command, signal: Signal, notify: Option<RawFd>) {
    let parent = rustix::process::getpid();
    let setup = move || {
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        // heaptap could have died before the line above.
        if rustix::process::getppid() != Some(parent) {
            return Err(io::Error::from_raw_os_error(
                rustix::io::Errno::SRCH.raw_os_error(),
            ));
        }
        if let Some(fd) = notify {
            // SAFETY: the caller holds the descriptor until the child is started.
            let fd = unsafe { BorrowedFd::borrow_raw(fd) };
            rustix::io::fcntl_setfd(fd, rustix::io::FdFlags::empty())?;
        }
        Ok(())
    };
    // SAFETY: between fork and exec, the closure makes system calls only: it neither allocates nor
    // takes a lock.
    unsafe { command.pre_exec(setup) };
}

/// Sends a signal to a child that was not waited for yet, so its ID is not in use by another.
fn send(child: &tokio::process::Child, signal: Signal) {
    let pid = child.id().and_then(|pid| i32::try_from(pid).ok());
    if let Some(pid) = pid.and_then(Pid::from_raw) {
        // It might have ended meanwhile.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

fn raw(fd: &impl std::os::fd::AsFd) -> RawFd {
    fd.as_fd().as_raw_fd()
}
