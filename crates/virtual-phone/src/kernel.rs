//! One phone: its state behind one lock, and the waiting of its commands. Owns starting,
//! signalling and ending of processes; what they do is elsewhere.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::clock::{BootNs, Clock};
use super::events::{Events, lock};
use super::faults::{FaultKind, Faults};
use super::fs::{FileData, Tree};
use super::io::{Stop, WriteError};
use super::logcat::Log;
use super::memory::{self, Event, Memory};
use super::packages::Package;
use super::process::{Delivered, Pid, Process, Processes, Role, SHELL};
use super::screen::Screen;
use super::spec::PhoneSpec;
use super::tracing::Tracing;

/// Everything on the phone that changes.
pub(crate) struct State {
    pub(crate) processes: Processes,
    pub(crate) tree: Tree,
    pub(crate) properties: BTreeMap<String, String>,
    pub(crate) packages: Vec<Package>,
    pub(crate) enforcing: bool,
    pub(crate) boot_id: String,
    pub(crate) log: Log,
    pub(crate) tracing: Tracing,
    pub(crate) foreground: String,
    pub(crate) screen_on: bool,
    pub(crate) screen: Screen,
}

/// Who acts: uid, groups and SELinux domain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Cred {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    pub(crate) groups: Vec<u32>,
    /// SELinux domain.
    pub(crate) domain: &'static str,
}

/// log, adb, sdcard_rw, sdcard_r, ext_data_rw, ext_obb_rw, net_bt_admin, net_bt, inet,
/// net_bw_stats, readproc, uhid, readtracefs: the groups that adbd gives its shell.
const SHELL_GROUPS: [u32; 14] = [
    1004, 1007, 1011, 1015, 1028, 1078, 1079, 3001, 3002, 3003, 3006, 3009, 3011, 3012,
];

impl Cred {
    /// What adb starts.
    pub(crate) fn shell() -> Cred {
        Cred {
            uid: SHELL,
            gid: SHELL,
            groups: SHELL_GROUPS.to_vec(),
            domain: "shell",
        }
    }

    /// What `su root` starts.
    pub(crate) fn root() -> Cred {
        Cred {
            uid: 0,
            gid: 0,
            groups: vec![0],
            domain: "su",
        }
    }

    pub(crate) fn is_root(&self) -> bool {
        self.uid == 0
    }
}

/// Threads that may run commands of one phone at once.
const MAX_COMMANDS: u32 = 400;

/// Requests that are remembered.
const MAX_REQUESTS: usize = 10_000;

/// One phone.
pub(crate) struct Kernel {
    pub(crate) spec: PhoneSpec,
    pub(crate) serial: String,
    pub(crate) clock: Clock,
    pub(crate) events: Arc<Events>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) memory: Memory,
    state: Mutex<State>,
    requests: Mutex<Vec<String>>,
    commands: AtomicU32,
    off: AtomicBool,
}

impl Kernel {
    pub(crate) fn new(spec: PhoneSpec, serial: String, faults: Arc<Faults>) -> Arc<Kernel> {
        let clock = Clock::new(spec.speed);
        let state = super::population::boot(&spec, &serial, &clock, &faults);
        Arc::new(Kernel {
            serial,
            clock,
            events: Arc::default(),
            faults,
            memory: Memory::default(),
            state: Mutex::new(state),
            requests: Mutex::default(),
            commands: AtomicU32::new(0),
            off: AtomicBool::new(false),
            spec,
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Notes what was asked of the phone, the first [`MAX_REQUESTS`] times.
    pub(crate) fn note_request(&self, service: &str, argument: &str) {
        let mut requests = lock(&self.requests);
        if requests.len() < MAX_REQUESTS {
            requests.push(format!("{service}:{argument}"));
        }
    }

    /// What was asked of the phone so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }

    /// Whether the phone was switched off.
    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }

    /// Ends everything that runs.
    pub(crate) fn switch_off(&self) {
        self.off.store(true, Ordering::SeqCst);
        self.state().processes.clear();
        self.events.notify();
    }

    /// Restarts: processes, sessions and the log are gone, files stay, the boot id is new.
    pub(crate) fn reboot(&self) {
        let mut state = self.state();
        self.clock.reboot();
        self.memory.clear();
        super::population::reboot(
            &mut state,
            &self.spec,
            &self.serial,
            &self.clock,
            &self.faults,
        );
        drop(state);
        self.events.notify();
    }

    /// Blocks the process `pid` until `ready`, or until the boot clock shows `deadline`:
    /// then `None`.
    pub(crate) fn block<T>(
        &self,
        pid: Pid,
        deadline: Option<BootNs>,
        mut ready: impl FnMut() -> Option<T>,
    ) -> Result<Option<T>, Stop> {
        loop {
            let seen = self.events.seen();
            self.check(pid)?;
            if let Some(value) = ready() {
                return Ok(Some(value));
            }
            let limit = deadline.map(|d| self.clock.until(d));
            if limit.is_some_and(|l| l.is_zero()) {
                return Ok(None);
            }
            self.events.wait(seen, limit);
        }
    }

    /// Whether `pid` may go on: it lives, and no caught signal waits.
    pub(crate) fn check(&self, pid: Pid) -> Result<(), Stop> {
        loop {
            let seen = self.events.seen();
            let state = self.state();
            match state.processes.get(pid) {
                None => {
                    let status = state.processes.status(pid).unwrap_or(137);
                    return Err(Stop::Killed(status.saturating_sub(128)));
                }
                Some(p) if p.stopped => {}
                Some(p) if !p.pending.is_empty() => return Err(Stop::Signal),
                Some(_) => return Ok(()),
            }
            drop(state);
            self.events.wait(seen, None);
        }
    }

    /// The signals that wait for `pid`, taken.
    pub(crate) fn take_signals(&self, pid: Pid) -> Vec<u8> {
        self.state()
            .processes
            .get_mut(pid)
            .map(|p| std::mem::take(&mut p.pending))
            .unwrap_or_default()
    }

    /// Starts a process for a command; `None` where the phone runs too many.
    pub(crate) fn spawn_process(&self, ppid: Pid, cred: &Cred, argv: &[String]) -> Option<Pid> {
        if self.commands.fetch_add(1, Ordering::SeqCst) >= MAX_COMMANDS || self.is_off() {
            self.commands.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let started = self.clock.boot();
        let mut state = self.state();
        let pid = state.processes.allocate();
        let (ignored, group) = match state.processes.get(ppid) {
            Some(parent) if parent.role == Role::Command => (parent.ignored.clone(), parent.group),
            _ => (Default::default(), pid),
        };
        state.processes.insert(Process {
            pid,
            ppid,
            group,
            uid: cred.uid,
            argv: argv.to_vec(),
            domain: cred.domain.to_owned(),
            role: Role::Command,
            started,
            bits_32: false,
            frozen: false,
            idle: true,
            oom_score_adj: -950,
            stopped: false,
            caught: Default::default(),
            one_shot: Default::default(),
            ignored,
            pending: Vec::new(),
        });
        Some(pid)
    }

    /// A command's process ended by itself, or its thread noticed that it was killed.
    /// Returns its status: that of the signal where one came first.
    pub(crate) fn end_process(&self, pid: Pid, status: u8) -> u8 {
        self.commands.fetch_sub(1, Ordering::SeqCst);
        let mut state = self.state();
        state.processes.end(pid, status);
        let status = state.processes.status(pid).unwrap_or(status);
        drop(state);
        self.events.notify();
        status
    }

    /// Sends a signal; a daemon that ends is started again by init.
    pub(crate) fn signal(&self, cred: &Cred, pid: Pid, signal: u8) -> Delivered {
        let mut state = self.state();
        let Some(target) = state.processes.get(pid).cloned() else {
            return Delivered::NoProcess;
        };
        if !super::access::may_signal(&state, cred, &target) {
            return Delivered::Denied;
        }
        let now = self.clock.boot();
        let sleeps = match signal {
            super::process::SIGSTOP => Some(true),
            super::process::SIGCONT => Some(false),
            _ => None,
        };
        if let Some(asleep) = sleeps {
            let event = Event::Asleep(asleep || target.frozen || target.idle);
            self.memory.note(self, &state, &target, now, event);
        }
        let collects = signal == super::process::SIGUSR1 && memory::has_java(&target);
        let delivered = if collects {
            memory::on_signal(self, &mut state, &target, now);
            Delivered::Alive
        } else if target.argv[0].ends_with("/heapprofd") && signal == super::process::SIGUSR1 {
            // The clock again: a step between may have been taken for a later moment.
            let at = self.clock.boot();
            state.tracing.dump_requests.push(at);
            Delivered::Alive
        } else {
            state.processes.signal(cred.uid, pid, signal)
        };
        if delivered == Delivered::Ended {
            super::population::after_death(&mut state, &target, now);
        }
        drop(state);
        self.events.notify();
        delivered
    }

    /// Writes into a file, unless the disk is full.
    pub(crate) fn write_file(
        &self,
        data: &FileData,
        offset: u64,
        bytes: &[u8],
    ) -> Result<(), WriteError> {
        let end = offset + bytes.len() as u64;
        if let Some(limit) = self.faults.value(FaultKind::DiskFull, 0)
            && end > limit
        {
            return Err(WriteError::Full);
        }
        if end > self.spec.space {
            return Err(WriteError::Full);
        }
        data.write_at(
            offset,
            bytes,
            (self.clock.real() / super::clock::SECOND) as i64,
        );
        Ok(())
    }

    /// Writes a line into the log.
    pub(crate) fn log(&self, pid: Pid, level: char, tag: &str, text: &str) {
        let (boot, time) = (self.clock.boot(), self.clock.real());
        let mut state = self.state();
        let uid = state.processes.get(pid).map_or(1_000, |p| p.uid);
        state.log.add((boot, time), (pid, uid), level, tag, text);
    }
}
