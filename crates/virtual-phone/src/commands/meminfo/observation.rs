//! The memory of a process as system_server reads it, with the later counts of the app itself.

use crate::clock::MILLI;
use crate::faults::FaultKind;
use crate::history::{Event, Request};
use crate::kernel::Kernel;
use crate::memory::Ledger;
use crate::process::{Pid, Process, Role, SIGKILL};
use crate::program::{Cmd, Halt};

/// Timeout of system_server for the app in milliseconds.
const PATIENCE_MS: u64 = 5_000;

/// Options, as parsed by ActivityManagerService.
#[derive(Debug, Clone)]
pub(super) struct Options {
    /// `-a`: details of every process, and all columns.
    pub(super) full: bool,
    pub(super) dalvik: bool,
    pub(super) swap: bool,
    pub(super) local: bool,
}

/// A process when its smaps were read, and the later counts of the app itself.
pub(super) struct Seen {
    pub(super) process: Process,
    pub(super) ledger: Ledger,
    /// Counts of the app after its collection; `None` if it was not asked.
    pub(super) inside: Option<Ledger>,
}

pub(super) fn is_native(process: &Process) -> bool {
    matches!(process.role, Role::Native | Role::Zygote)
}

/// Returns system_server's name for a process.
pub(super) fn name(process: &Process) -> &str {
    match process.role {
        Role::SystemServer => "system",
        Role::App { .. } => process.name(),
        _ => process.base_name(),
    }
}

/// Returns the duration of system_server's walk through smaps.
fn walk(ledger: &Ledger) -> u64 {
    let mappings = ledger.mappings.len() as u64;
    6 * MILLI + mappings * MILLI / 6 + ledger.pages().rss() * 300
}

/// Reads the memory of a process; `None` if it is already gone.
pub(super) fn look(
    cmd: &Cmd,
    process: Process,
    options: &Options,
    details: bool,
) -> Result<Option<Seen>, Halt> {
    let kernel = &cmd.kernel;
    let began = kernel.clock.boot();
    let Some(ledger) = kernel.memory_of(process.pid) else {
        return Ok(None);
    };
    kernel.sleep(cmd.pid, began + walk(&ledger))?;
    let mut seen = Seen {
        process,
        ledger,
        inside: None,
    };
    if !details || options.local {
        return Ok(Some(seen));
    }
    if kernel.faults.has_struck(FaultKind::MeminfoDies) {
        kernel.killed(seen.process.pid, SIGKILL);
        return Ok(Some(seen));
    }
    let now = kernel.state().processes.get(seen.process.pid).cloned();
    if now.is_some_and(|p| p.stopped) {
        cmd.wait(PATIENCE_MS)?;
        return Ok(Some(seen));
    }
    seen.inside = count(cmd, seen.process.pid)?;
    Ok(Some(seen))
}

/// Lets the app collect its garbage and count the remaining objects.
fn count(cmd: &Cmd, pid: Pid) -> Result<Option<Ledger>, Halt> {
    let kernel = &cmd.kernel;
    let Some(took) = collect(kernel, pid) else {
        return Ok(None);
    };
    let inside = kernel.memory_of(pid);
    // Then it walks its heap once for each counted class.
    let objects = inside
        .as_ref()
        .and_then(|l| l.java)
        .map_or(0, |j| j.live.small_objects() + j.passing.small_objects);
    let until = kernel.clock.boot() + took + 40 * MILLI + objects * 1_100;
    kernel.sleep(cmd.pid, until)?;
    Ok(inside)
}

/// Makes a process collect at once, as `System.gc()` does; returns the duration.
pub(in crate::commands) fn collect(kernel: &Kernel, pid: Pid) -> Option<u64> {
    let now = kernel.clock.boot();
    let took = {
        let state = kernel.state();
        let process = state.processes.get(pid)?;
        let event = Event::Collection(Request::Explicit);
        kernel.memory.note(&state, process, now, event);
        let made = kernel
            .memory
            .collections(&state, process, (now.saturating_sub(1), now));
        made.last().map_or(0, |c| c.duration())
    };
    kernel.events.notify();
    Some(took)
}
