//! `dumpsys meminfo`: options, selection of processes, and the time that it takes: a walk of smaps
//! in system_server, a collection in the app. [`table`] and [`system`] own the layouts.

mod observation;
mod system;
mod table;

pub(super) use self::observation::collect;
use self::observation::{Options, Seen, is_native, look, name};
use self::table::Heaps;
use super::{Cmd, Halt};
use crate::clock::{BootNs, MILLI};
use crate::memory::has_java;
use crate::process::{Pid, Process, Role};

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
