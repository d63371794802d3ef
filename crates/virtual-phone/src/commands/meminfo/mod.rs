//! `dumpsys meminfo`: options, selection of processes, and the time that it takes: a walk of smaps
//! in system_server, a collection in the app. [`table`] and [`system`] own the layouts.

mod system;
mod table;

use self::table::Heaps;
use super::{Cmd, Halt};
use crate::clock::{BootNs, MILLI};
use crate::faults::FaultKind;
use crate::history::Event;
use crate::history::Request;
use crate::memory::{Ledger, has_java};
use crate::process::{Pid, Process, Role, SIGKILL};

/// Timeout of system_server for the app in nanoseconds.
const PATIENCE: u64 = 5_000 * MILLI;

/// Options, as parsed by ActivityManagerService.
#[derive(Debug, Clone)]
struct Options {
    /// `-a`: details of every process, and all columns.
    full: bool,
    dalvik: bool,
    swap: bool,
    local: bool,
}

/// A process when its smaps were read, and the later counts of the app itself.
struct Seen {
    process: Process,
    ledger: Ledger,
    /// Counts of the app after its collection; `None` if it was not asked.
    inside: Option<Ledger>,
}

pub(super) fn meminfo(cmd: &mut Cmd, args: &[String]) -> Result<(), Halt> {
    let args = cmd.options_of(args, "-a -d -S --local")?;
    let full = args.has("-a");
    let options = Options {
        full,
        dalvik: full || args.has("-d"),
        swap: full || args.has("-S"),
        local: args.has("--local"),
    };
    let wanted = args.rest.first();
    let now = cmd.kernel.clock.boot();
    let (found, native) = find(cmd, wanted.map(String::as_str));
    if let Some(name) = wanted
        && found.is_empty()
    {
        return cmd.out(&format!("No process found for: {name}\n"));
    }
    header(cmd, now)?;
    if native {
        return natives(cmd, found, &options);
    }
    let one = wanted.is_some() && found.len() == 1;
    let details = options.full || one;
    let mut seen = Vec::new();
    for process in found {
        // Omit processes that ended after the list was made.
        let Some(this) = look(cmd, process, &options, details)? else {
            continue;
        };
        if details {
            block(cmd, &this, &options)?;
        }
        seen.push(this);
    }
    if one {
        return Ok(());
    }
    let whole = wanted.is_none();
    system::print(cmd, &seen, &options, whole)
}

fn header(cmd: &Cmd, now: BootNs) -> Result<(), Halt> {
    // Uptime excludes the time in sleep, Realtime does not.
    let clock = cmd.kernel.clock.at(now);
    let (uptime, realtime) = (clock.monotonic / MILLI, clock.boot / MILLI);
    cmd.out(&format!(
        "Applications Memory Usage (in Kilobytes):\nUptime: {uptime} Realtime: {realtime}\n"
    ))
}

/// Returns the selected processes, and whether they are native ones.
fn find(cmd: &Cmd, wanted: Option<&str>) -> (Vec<Process>, bool) {
    let state = cmd.kernel.state();
    let Some(wanted) = wanted else {
        return (state.processes.select(has_java), false);
    };
    let pid = wanted.parse::<Pid>().ok();
    let is = |p: &Process| {
        // Within system_server, its process has another name.
        let system = p.role == Role::SystemServer && wanted == "system";
        Some(p.pid) == pid || p.name() == wanted || system
    };
    let found = state.processes.select(|p| has_java(p) && is(p));
    if !found.is_empty() {
        return (found, false);
    }
    let is = |p: &Process| name(p) == wanted || Some(p.pid) == pid;
    (state.processes.select(|p| is_native(p) && is(p)), true)
}

fn is_native(process: &Process) -> bool {
    matches!(process.role, Role::Native | Role::Zygote)
}

/// Returns the duration of system_server's walk through smaps.
fn walk(ledger: &Ledger) -> u64 {
    let mappings = ledger.mappings.len() as u64;
    6 * MILLI + mappings * MILLI / 6 + ledger.pages().rss() * 300
}

/// Reads the memory of a process; `None` if it is already gone.
fn look(
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
        let until = kernel.clock.boot() + PATIENCE;
        kernel.sleep(cmd.pid, until)?;
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
pub(super) fn collect(kernel: &crate::kernel::Kernel, pid: Pid) -> Option<u64> {
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

fn block(cmd: &Cmd, seen: &Seen, options: &Options) -> Result<(), Halt> {
    let android = cmd.kernel.spec.android;
    head(cmd, &seen.process)?;
    let rows = seen.ledger.rows();
    if options.local {
        return cmd.out(&table::table(&rows, Heaps::default(), android, options));
    }
    let Some(inside) = &seen.inside else {
        let gone = cmd.kernel.state().processes.get(seen.process.pid).is_none();
        return cmd.out(match gone {
            true => "Got RemoteException!\n",
            false => "Got IoException! java.io.IOException: Timeout\n",
        });
    };
    let heaps = table::heaps(inside);
    cmd.out(&table::table(&rows, heaps, android, options))?;
    let package = cmd.kernel.state().package_of(&seen.process).cloned();
    cmd.out(&table::objects(inside, package.as_ref(), android))
}

/// Returns system_server's name for a process.
fn name(process: &Process) -> &str {
    match process.role {
        Role::SystemServer => "system",
        Role::App { .. } => process.name(),
        _ => process.base_name(),
    }
}

/// Prints native processes: only the table, heap cells 0.
fn natives(cmd: &Cmd, found: Vec<Process>, options: &Options) -> Result<(), Halt> {
    for process in found {
        let Some(seen) = look(cmd, process, options, false)? else {
            continue;
        };
        if options.full {
            head(cmd, &seen.process)?;
        }
        let (rows, android) = (seen.ledger.rows(), cmd.kernel.spec.android);
        cmd.out(&table::table(&rows, Heaps::default(), android, options))?;
    }
    Ok(())
}

fn head(cmd: &Cmd, process: &Process) -> Result<(), Halt> {
    let (pid, name) = (process.pid, name(process));
    cmd.out(&format!("\n** MEMINFO in pid {pid} [{name}] **\n"))
}
