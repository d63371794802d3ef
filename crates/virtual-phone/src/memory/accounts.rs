//! The accounts of the phone's processes: their histories, heaps and models, and the memory that
//! follows from them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use super::java::{self, Android, Collection, JavaHeapState, Limits, has_java};
use super::ledger::{Ledger, graphics};
use super::numbers::{hash, mix};
use super::ram::Ram;
use super::{mappings, native};
use crate::clock::{BootNs, Clock};
use crate::events::lock;
use crate::history::{Event, History};
use crate::java::{Inputs, Life, Model};
use crate::process::{Pid, Process, Role};
use crate::spec::{PhoneSpec, bytes};
use crate::state::State;
use crate::workload::{Flow, LiveHeaps, Tracked};

/// Initial size in bytes of the native heap of a process that the zygote forked, and of any other.
const FROM_ZYGOTE: u64 = 3 << 20;
const FROM_LINKER: u64 = 640 << 10;

/// Cached data of a process.
#[derive(Clone)]
pub(super) struct Account {
    pub(super) history: History,
    heaps: Arc<Mutex<LiveHeaps>>,
    art: Flow,
    /// Model of its Java heap, once it was needed.
    model: Option<Arc<Model>>,
    /// The log contains collections up to this time.
    logged: BootNs,
}

/// The accounts of a phone's processes.
pub(crate) struct Memory {
    pub(super) spec: PhoneSpec,
    pub(super) clock: Arc<Clock>,
    accounts: Mutex<BTreeMap<(Pid, BootNs), Account>>,
    /// Memory of the whole phone, and the time when it was summed.
    pub(super) ram: Mutex<Option<(BootNs, Ram)>>,
}

/// Returns whether none of the process's threads run.
fn asleep(process: &Process) -> bool {
    process.frozen || process.idle || process.stopped
}

impl Memory {
    pub(crate) fn new(spec: PhoneSpec, clock: Arc<Clock>) -> Memory {
        Memory {
            spec,
            clock,
            accounts: Mutex::default(),
            ram: Mutex::default(),
        }
    }

    /// Returns the activity of an app up to `moment`.
    pub(crate) fn life(&self, state: &State, process: &Process, moment: BootNs) -> Life {
        let mut history = {
            let accounts = lock(&self.accounts);
            let account = accounts.get(&(process.pid, process.started));
            account.map_or_else(
                || first_history(&self.clock, process),
                |account| account.history.clone(),
            )
        };
        history.set_deeds(state.screen.deeds.of(process.pid));
        Life::at(&history, moment)
    }

    /// Returns the inputs of the Java heap of `process` at `moment`; `None` if it has no Java heap.
    pub(crate) fn java_inputs(
        &self,
        state: &State,
        process: &Process,
        moment: BootNs,
    ) -> Option<Inputs> {
        self.inputs(state, process, self.life(state, process, moment), moment)
    }

    fn inputs(&self, state: &State, process: &Process, life: Life, at: BootNs) -> Option<Inputs> {
        let installed = (&*state.packages, &state.processes);
        Inputs::new(&self.spec, installed, process, life, at)
    }

    /// Deletes all accounts after a restart of the phone.
    pub(crate) fn clear(&self) {
        lock(&self.accounts).clear();
        *lock(&self.ram) = None;
    }

    /// Adds an event of a process. For sleep events, call it before the process's own flags change.
    pub(crate) fn note(&self, state: &State, process: &Process, at: BootNs, event: Event) {
        if process.role == Role::Kernel {
            return;
        }
        self.with(state, process, |account| {
            account.history.note(at, event);
        });
    }

    pub(super) fn with<T>(
        &self,
        state: &State,
        process: &Process,
        act: impl FnOnce(&mut Account) -> T,
    ) -> T {
        let mut accounts = lock(&self.accounts);
        // Processes that are gone never return.
        if accounts.len() > 2 * state.processes.iter().count() + 64 {
            accounts.retain(|(pid, started), _| {
                let process = state.processes.get(*pid);
                process.is_some_and(|p| p.started == *started)
            });
        }
        let key = (process.pid, process.started);
        let account = accounts.entry(key).or_insert_with(|| {
            let package = state.package_of(process).cloned();
            let heaps = LiveHeaps::new(&self.spec, package, process, self.clock.appeared());
            Account {
                history: first_history(&self.clock, process),
                art: heaps.flow("com.android.art", java::LARGE_BYTES),
                heaps: Arc::new(Mutex::new(heaps)),
                model: None,
                logged: process.started.max(self.clock.appeared()),
            }
        });
        // Some callers wake a process or put it to sleep without an event.
        let now = self.clock.boot();
        if account.history.asleep(now) != asleep(process) {
            let event = Event::Asleep(asleep(process));
            account.history.note(now, event);
        }
        act(account)
    }

    /// Returns the tracked allocations of a process's runtime after `since` and up to `until`, the
    /// newest first, and whether some of them have been dropped.
    pub(crate) fn tracked(
        &self,
        state: MutexGuard<'_, State>,
        process: &Process,
        since: BootNs,
        until: BootNs,
    ) -> (Vec<Tracked>, bool) {
        let (history, heaps) = self.with(&state, process, |account| {
            (account.history.clone(), account.heaps.clone())
        });
        // The sum takes a while; the phone continues meanwhile.
        drop(state);
        lock(&heaps).tracked(&history, since, until)
    }

    /// Returns the time up to which the log contains ART's lines about a process.
    pub(super) fn logged(&self, process: &Process) -> Option<BootNs> {
        let accounts = lock(&self.accounts);
        let account = accounts.get(&(process.pid, process.started));
        account.map(|account| account.logged)
    }

    pub(super) fn set_logged(&self, process: &Process, to: BootNs) {
        if let Some(account) = lock(&self.accounts).get_mut(&(process.pid, process.started)) {
            account.logged = to;
        }
    }

    /// Returns the account of a process with its Java heap, if any.
    pub(super) fn open(&self, state: &State, process: &Process, at: BootNs) -> Opened {
        let mut account = self.with(state, process, |account| account.clone());
        account
            .history
            .set_deeds(state.screen.deeds.of(process.pid));
        if account.model.is_none() && has_java(process) {
            let life = Life::at(&account.history, at);
            let inputs = self.inputs(state, process, life, at);
            account.model = inputs.map(|inputs| Model::shared(&inputs));
            let model = account.model.clone();
            self.with(state, process, |account| account.model = model);
        }
        Opened {
            account,
            limits: limits(state),
            android: Android::from_spec(&self.spec),
            seed: mix(&[self.spec.seed, hash(process.name())]),
        }
    }

    /// Returns the collections of a process with their mark after `from`, up to `to`, in order.
    pub(crate) fn collections(
        &self,
        state: &State,
        process: &Process,
        (from, to): (BootNs, BootNs),
    ) -> Vec<Collection> {
        if !has_java(process) {
            return Vec::new();
        }
        let opened = self.open(state, process, to);
        let made = opened.java().map(|heap| heap.collections(from, to));
        made.unwrap_or_default()
    }

    /// Returns the Java heap of a process at one time.
    pub(crate) fn java(
        &self,
        state: &State,
        process: &Process,
        at: BootNs,
    ) -> Option<JavaHeapState> {
        if !has_java(process) {
            return None;
        }
        let opened = self.open(state, process, at);
        Some(opened.java()?.at(at))
    }

    /// Returns the memory of `process` at `at`; `None` for a kernel thread. The caller can hold the
    /// lock of the phone's state: this function does not lock it.
    pub(crate) fn ledger(&self, state: &State, process: &Process, at: BootNs) -> Option<Ledger> {
        if process.role == Role::Kernel {
            return None;
        }
        let opened = self.open(state, process, at);
        let zygote = process.role == Role::Zygote;
        let before = match has_java(process) || zygote {
            true => FROM_ZYGOTE,
            false => FROM_LINKER,
        };
        let history = &opened.account.history;
        let mut heaps = lock(&opened.account.heaps);
        let inherited = native::inherited(opened.seed, before);
        let native = native::at(&mut heaps, inherited, history, at, opened.seed);
        let arena = heaps.at("com.example.arena", history, at).bytes;
        let code = heaps.code();
        let databases = heaps.flow_of("database");
        drop(heaps);
        let java = opened.java().map(|heap| heap.at(at));
        let package = state.package_of(process);
        let threads = threads(process);
        let forked = |p: &&Process| has_java(p) || p.role == Role::Zygote;
        let mappings = mappings::of(&mappings::Inputs {
            spec: &self.spec,
            package,
            process,
            history,
            at,
            native: &native,
            java: java.as_ref(),
            arena,
            threads: threads - 1,
            code: &code,
            in_back: in_back(process),
            sharers: state.processes.iter().filter(forked).count() as u64,
            seed: opened.seed,
        });
        let shown = !asleep(process)
            && package.is_some_and(|p| p.name == state.foreground)
            && !in_back(process);
        let trimmed = history.last_trim(at).is_some();
        Some(Ledger {
            graphics: graphics(process, java.as_ref(), shown, trimmed),
            native,
            java,
            mappings,
            threads,
            awake: history.awake(at),
            databases_kb: databases,
        })
    }
}

/// A copy of a process's account.
pub(super) struct Opened {
    account: Account,
    limits: Limits,
    android: Android,
    seed: u64,
}

impl Opened {
    pub(super) fn java(&self) -> Option<java::JavaHeap<'_>> {
        Some(java::JavaHeap {
            model: self.account.model.as_deref()?,
            flow: self.account.art,
            history: &self.account.history,
            limits: self.limits,
            android: self.android,
            seed: self.seed,
        })
    }
}

fn first_history(clock: &Clock, process: &Process) -> History {
    History::new(process.started, clock.appeared(), asleep(process))
}

/// Returns a size property such as `256m`, `512k` or a number of bytes.
fn size_property(state: &State, name: &str, otherwise: u64) -> u64 {
    let text = state.properties.get(name);
    text.and_then(|text| bytes(text)).unwrap_or(otherwise)
}

/// Returns the limits of Java heaps on this phone.
pub(crate) fn limits(state: &State) -> Limits {
    let utilization = state.properties.get("dalvik.vm.heaptargetutilization");
    let utilization = utilization.and_then(|v| v.parse::<f64>().ok());
    Limits {
        growth: size_property(state, "dalvik.vm.heapgrowthlimit", 256 << 20),
        min_free: size_property(state, "dalvik.vm.heapminfree", 512 << 10),
        max_free: size_property(state, "dalvik.vm.heapmaxfree", 8 << 20),
        utilization: (utilization.unwrap_or(0.75).clamp(0.2, 0.95) * 100.0) as u64,
    }
}

/// Returns whether a process is in the background.
fn in_back(process: &Process) -> bool {
    process.oom_score_adj > 200
}

/// Returns the number of threads of a process, including the main one.
fn threads(process: &Process) -> u64 {
    match process.role {
        Role::App { .. } => 38,
        Role::SystemServer => 212,
        Role::Zygote => 9,
        Role::Native => 4,
        Role::Kernel | Role::Command => 1,
    }
}

#[cfg(test)]
impl Memory {
    /// Returns the running sums of a process's heaps.
    pub(super) fn heaps_of(&self, process: &Process) -> Option<Arc<Mutex<LiveHeaps>>> {
        let accounts = lock(&self.accounts);
        let account = accounts.get(&(process.pid, process.started))?;
        Some(account.heaps.clone())
    }
}
