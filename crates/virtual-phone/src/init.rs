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

/// Starts traced and traced_probes; heapprofd starts when a session needs it.
pub(crate) fn start_traced(state: &mut State) {
    for (path, domain) in [(TRACED, "traced"), (TRACED_PROBES, "traced_probes")] {
        if state.processes.pid_of(path).is_some() {
            continue;
        }
        let pid = state.processes.allocate();
        let mut p = boot_process(pid, 1, NOBODY, path, domain, Role::Native);
        p.idle = true;
        state.processes.insert(p);
    }
}

/// Stops the daemons, as `persist.traced.enable=0` does.
pub(crate) fn stop_traced(state: &mut State) {
    for path in [TRACED, TRACED_PROBES] {
        if let Some(pid) = state.processes.pid_of(path) {
            state.processes.end(pid, 143);
        }
    }
    state.tracing.traced_died();
}

/// Starts heapprofd as init does when traced requests it; returns its PID.
pub(crate) fn start_heapprofd(state: &mut State, now: BootNs) -> Pid {
    if let Some(pid) = state.processes.pid_of(HEAPPROFD) {
        return pid;
    }
    let pid = state.processes.allocate();
    let mut p = boot_process(pid, 1, NOBODY, HEAPPROFD, "heapprofd", Role::Native);
    p.started = now;
    p.idle = true;
    state.processes.insert(p);
    pid
}

/// Stops heapprofd, as init does when no session needs it.
pub(crate) fn stop_heapprofd(state: &mut State) {
    if let Some(pid) = state.processes.pid_of(HEAPPROFD) {
        state.processes.end(pid, 143);
    }
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
    let parent = if package.bits_32 && state.processes.get(812).is_some() {
        812
    } else {
        811
    };
    for suffix in package.processes {
        let name = format!("{}{suffix}", package.name);
        let isolated = suffix.starts_with(":sandboxed");
        let uid = if isolated {
            user * 100_000 + 90_000 + package.appid % 1000
        } else {
            package.uid(user)
        };
        if state
            .processes
            .iter()
            .any(|p| p.name() == name && p.uid == uid)
        {
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
        let mut p = boot_process(
            pid,
            parent,
            uid,
            &name,
            domain,
            Role::App {
                package: package.name.to_owned(),
                user,
            },
        );
        p.argv = vec![name];
        p.started = now;
        p.bits_32 = package.bits_32;
        p.oom_score_adj = if package.system { -800 } else { 200 };
        state.processes.insert(p);
    }
}
