//! Processes that init and the zygotes start and stop while a phone runs: daemons and apps.

use super::clock::BootNs;
use super::packages::Package;
use super::process::{NOBODY, Pid, Process, Role};
use super::state::State;

pub(crate) const TRACED: &str = "/system/bin/traced";
const TRACED_PROBES: &str = "/system/bin/traced_probes";
const HEAPPROFD: &str = "/system/bin/heapprofd";

/// Creates a process that exists at boot.
pub(crate) fn boot_process(
    pid: Pid,
    ppid: Pid,
    uid: u32,
    argv0: &str,
    domain: &str,
    role: Role,
) -> Process {
    let argv = argv0.split(' ').map(str::to_owned).collect();
    let started = u64::from(pid) * 3_100_000;
    Process::new((pid, ppid), uid, argv, domain, role, started)
}

/// Starts a daemon of perfetto, unless it is running; returns its PID.
fn start(state: &mut State, path: &str, domain: &str, now: Option<BootNs>) -> Pid {
    if let Some(pid) = state.processes.pid_of(path) {
        return pid;
    }
    let pid = state.processes.allocate();
    let daemon = boot_process(pid, 1, NOBODY, path, domain, Role::Native);
    state.processes.insert(Process {
        started: now.unwrap_or(daemon.started),
        idle: true,
        ..daemon
    });
    pid
}

fn stop(state: &mut State, path: &str) {
    if let Some(pid) = state.processes.pid_of(path) {
        state.processes.end(pid, 143);
    }
}

/// Starts traced and traced_probes; heapprofd starts when a session needs it.
pub(crate) fn start_traced(state: &mut State) {
    start(state, TRACED, "traced", None);
    start(state, TRACED_PROBES, "traced_probes", None);
}

/// Stops the daemons, as `persist.traced.enable=0` does.
pub(crate) fn stop_traced(state: &mut State) {
    stop(state, TRACED);
    stop(state, TRACED_PROBES);
    state.tracing.traced_died();
}

/// Starts heapprofd as init does when traced requests it; returns its PID.
pub(crate) fn start_heapprofd(state: &mut State, now: BootNs) -> Pid {
    start(state, HEAPPROFD, "heapprofd", Some(now))
}

/// Stops heapprofd, as init does when no session needs it.
pub(crate) fn stop_heapprofd(state: &mut State) {
    stop(state, HEAPPROFD);
}

/// Applies the consequences of a killed process.
pub(crate) fn after_death(state: &mut State, dead: &Process) {
    match dead.name() {
        TRACED => {
            state.tracing.traced_died();
            start_traced(state);
        }
        TRACED_PROBES => start_traced(state),
        HEAPPROFD => state.tracing.heapprofd_died(),
        _ => {}
    }
}

/// Returns the PID of a package's main process.
pub(crate) fn main_process(state: &State, name: &str, user: u32) -> Option<Pid> {
    state
        .processes
        .iter()
        .find(|p| p.name() == name && p.is_app_of(Some(user)))
        .map(|p| p.pid)
}

/// Starts every process of a package that is not running.
pub(crate) fn start_package(state: &mut State, package: &Package, user: u32, now: BootNs) {
    let has_second = package.bits_32 && state.processes.get(812).is_some();
    let parent = if has_second { 812 } else { 811 };
    for suffix in package.processes {
        let name = format!("{}{suffix}", package.name);
        let isolated = suffix.starts_with(":sandboxed");
        let uid = if isolated {
            user * 100_000 + 90_000 + package.appid % 1000
        } else {
            package.uid(user)
        };
        let is_it = |p: &Process| p.name() == name && p.uid == uid;
        if state.processes.iter().any(is_it) {
            continue;
        }
        let pid = state.processes.allocate();
        let domain = match package.appid {
            1_000 => "system_app",
            1_001 => "radio",
            _ if isolated => "isolated_app",
            _ if package.system => "platform_app",
            _ => "untrusted_app",
        };
        let role = Role::App {
            package: package.name.to_owned(),
            user,
        };
        let own = Process::new((pid, parent), uid, vec![name], domain, role, now);
        state.processes.insert(Process {
            bits_32: package.bits_32,
            oom_score_adj: if package.system { -800 } else { 200 },
            ..own
        });
    }
}
