//! One phone: its state behind one lock, and the waiting of its commands. Owns starting, signalling
//! and ending of processes; their behavior is in other modules.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use super::access::Cred;
use super::clock::{BootNs, Clock, MILLI, Now};
use super::events::{Events, lock};
use super::faults::{FaultKind, Faults};
use super::history::Event;
use super::memory::{self, Ledger, Memory};
use super::process::{Delivered, Pid, Process, Role, SIGTERM, Stop, signal_number};
use super::spec::PhoneSpec;
use super::state::State;
use super::{foreground, init};

/// Maximum number of threads that run commands of one phone at once.
const MAX_COMMANDS: u32 = 400;

/// Maximum number of stored requests.
const MAX_REQUESTS: usize = 10_000;

pub(crate) struct Kernel {
    pub(crate) spec: PhoneSpec,
    pub(crate) serial: String,
    pub(crate) clock: Arc<Clock>,
    pub(crate) events: Arc<Events>,
    pub(crate) faults: Arc<Faults>,
    pub(crate) memory: Memory,
    state: Mutex<State>,
    requests: Mutex<Vec<String>>,
    commands: AtomicU32,
    off: AtomicBool,
    /// Boot clock when Android's services are up.
    up: AtomicU64,
}

impl Kernel {
    /// Creates a booted phone with these programs in `/system/bin`.
    pub(crate) fn new(
        spec: PhoneSpec,
        serial: String,
        faults: Arc<Faults>,
        programs: &[&str],
    ) -> Arc<Kernel> {
        let clock = Arc::new(Clock::new(spec.speed));
        let state = super::population::boot(&spec, &serial, &clock, &faults, programs);
        Arc::new(Kernel {
            serial,
            memory: Memory::new(spec.clone(), clock.clone()),
            clock,
            events: Arc::default(),
            faults,
            state: Mutex::new(state),
            requests: Mutex::default(),
            commands: AtomicU32::new(0),
            off: AtomicBool::new(false),
            up: AtomicU64::new(0),
            spec,
        })
    }

    pub(crate) fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.state)
    }

    /// Changes the state now, and wakes those who wait for a change.
    pub(crate) fn change<T>(&self, act: impl FnOnce(&mut State, Now) -> T) -> T {
        let now = self.clock.now();
        let result = act(&mut self.state(), now);
        self.events.notify();
        result
    }

    /// Ends a process by a signal that did not come from the system.
    pub(crate) fn killed(&self, pid: Pid, signal: u8) {
        self.change(|state, now| {
            if let Some(process) = state.processes.get(pid).cloned() {
                foreground::died(state, &process, signal, now);
            }
        });
    }

    /// Stores a request to the phone; only the first [`MAX_REQUESTS`] are stored.
    pub(crate) fn note_request(&self, service: &str, argument: &str) {
        let mut requests = lock(&self.requests);
        if requests.len() < MAX_REQUESTS {
            requests.push(format!("{service}:{argument}"));
        }
    }

    /// Returns the requests to the phone so far.
    pub(crate) fn requests(&self) -> Vec<String> {
        lock(&self.requests).clone()
    }

    /// Returns whether the phone is switched off.
    pub(crate) fn is_off(&self) -> bool {
        self.off.load(Ordering::SeqCst)
    }

    /// Ends all commands.
    pub(crate) fn switch_off(&self) {
        self.off.store(true, Ordering::SeqCst);
        self.state().processes.clear();
        self.events.notify();
    }

    /// Returns whether Android's services are up.
    pub(crate) fn is_up(&self) -> bool {
        self.clock.boot() >= self.up.load(Ordering::SeqCst)
    }

    /// Restarts: processes, sessions and the log are gone, files stay, the boot ID changes.
    pub(crate) fn reboot(&self) {
        let mut state = self.state();
        self.clock.reboot();
        let late = self.faults.value(FaultKind::LateBoot, 15_000).unwrap_or(0);
        self.up
            .store(self.clock.boot() + late * MILLI, Ordering::SeqCst);
        self.memory.clear();
        let (spec, serial) = (&self.spec, &self.serial);
        super::population::reboot(&mut state, spec, serial, &self.clock, &self.faults);
        drop(state);
        self.events.notify();
    }

    /// Blocks the process `pid` until `ready` returns a value; `None` once the boot clock reaches
    /// `deadline`.
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

    /// Blocks the process `pid` until the boot clock reaches `until`.
    pub(crate) fn sleep(&self, pid: Pid, until: BootNs) -> Result<(), Stop> {
        self.block(pid, Some(until), || None::<()>).map(|_| ())
    }

    /// Checks that `pid` can continue: it is alive and has no pending caught signal.
    pub(crate) fn check(&self, pid: Pid) -> Result<(), Stop> {
        loop {
            let seen = self.events.seen();
            let state = self.state();
            match state.processes.get(pid) {
                None => {
                    let status = state.processes.status(pid).unwrap_or(137);
                    return Err(Stop::Killed(status.saturating_sub(128)));
                }
                Some(&Process {
                    fatal: Some(signal),
                    ..
                }) => return Err(Stop::Killed(signal)),
                Some(p) if p.stopped => {}
                Some(p) if !p.pending.is_empty() => return Err(Stop::Signal),
                Some(_) => return Ok(()),
            }
            drop(state);
            self.events.wait(seen, None);
        }
    }

    /// Takes the pending signals of `pid`.
    pub(crate) fn take_signals(&self, pid: Pid) -> Vec<u8> {
        let mut state = self.state();
        let process = state.processes.get_mut(pid);
        process.map_or_else(Vec::new, |p| std::mem::take(&mut p.pending))
    }

    /// Starts a process for a command; `None` if the phone runs too many.
    pub(crate) fn spawn_process(&self, ppid: Pid, cred: &Cred, argv: &[String]) -> Option<Pid> {
        if self.commands.fetch_add(1, Ordering::SeqCst) >= MAX_COMMANDS || self.is_off() {
            self.commands.fetch_sub(1, Ordering::SeqCst);
            return None;
        }
        let started = self.clock.boot();
        let mut state = self.state();
        let pid = state.processes.allocate();
        let ignored = match state.processes.get(ppid) {
            Some(parent) if parent.role == Role::Command => parent.ignored.clone(),
            _ => Default::default(),
        };
        let (role, argv) = (Role::Command, argv.to_vec());
        let own = Process::new((pid, ppid), cred.uid, argv, cred.domain, role, started);
        state.processes.insert(Process {
            idle: true,
            oom_score_adj: -950,
            ignored,
            ..own
        });
        Some(pid)
    }

    /// Ends a command's process when it returns or its thread notices that it was killed. Returns
    /// its status: that of the signal if a signal came first.
    pub(crate) fn end_process(&self, pid: Pid, status: u8) -> u8 {
        self.commands.fetch_sub(1, Ordering::SeqCst);
        self.change(|state, _| {
            state.processes.end(pid, status);
            state.processes.status(pid).unwrap_or(status)
        })
    }

    /// Sends a signal; init restarts a daemon that ends.
    pub(crate) fn signal(&self, cred: &Cred, pid: Pid, signal: u8) -> Delivered {
        let mut state = self.state();
        let Some(target) = state.processes.get(pid).cloned() else {
            return Delivered::NoProcess;
        };
        if !super::access::may_signal(cred, &target) {
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
            self.memory.note(&state, &target, now, event);
        }
        let collects = signal == super::process::SIGUSR1 && memory::has_java(&target);
        let delivered = if collects {
            self.memory.on_signal(&mut state, &target, now);
            Delivered::Alive
        } else if target.argv[0].ends_with("/heapprofd") && signal == super::process::SIGUSR1 {
            // Read the clock again: an event in between might have a later time.
            let at = self.clock.boot();
            state.tracing.dump_requests.push(at);
            Delivered::Alive
        } else {
            state.processes.signal(cred.uid, pid, signal)
        };
        if delivered == Delivered::Ended {
            foreground::died(&mut state, &target, signal, self.clock.now());
            init::after_death(&mut state, &target);
        }
        drop(state);
        self.events.notify();
        delivered
    }

    /// Runs `kill [-SIGNAL] PID…`; returns the arguments that failed, each with the reason.
    pub(crate) fn kill(&self, cred: &Cred, args: &[String]) -> Vec<(String, &'static str)> {
        let (signal, targets) = match args.split_first() {
            Some((flag, rest)) if flag.starts_with('-') => match signal_number(&flag[1..]) {
                Some(signal) => (signal, rest),
                None => return vec![(flag.clone(), "bad signal")],
            },
            _ => (SIGTERM, args),
        };
        let refused = |target: &&String| match target.parse() {
            Err(_) => Some("arguments must be jobs or process IDs"),
            Ok(pid) => match self.signal(cred, pid, signal) {
                Delivered::NoProcess => Some("No such process"),
                Delivered::Denied => Some("Operation not permitted"),
                Delivered::Alive | Delivered::Ended => None,
            },
        };
        let missed = targets
            .iter()
            .filter_map(|t| Some((t.clone(), refused(&t)?)));
        missed.collect()
    }

    /// Returns the memory of a process now; `None` for kernel threads and ended processes.
    pub(crate) fn memory_of(&self, pid: Pid) -> Option<Ledger> {
        let state = self.state();
        let process = state.processes.get(pid)?;
        self.memory.ledger(&state, process, self.clock.boot())
    }

    /// Writes a line to the log.
    pub(crate) fn log(&self, pid: Pid, level: char, tag: &str, text: &str) {
        let now = self.clock.now();
        let mut state = self.state();
        let uid = state.processes.get(pid).map_or(1_000, |p| p.uid);
        state.log.add(now, (pid, uid), level, tag, text);
    }
}
