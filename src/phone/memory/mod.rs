//! The phone's account of memory: for a process and a moment one state, from which everything
//! that tells of memory is made (`dumpsys meminfo`, /proc, `showmap`, the log of collections,
//! `malloc_info`). It follows from the spec's seed, the time, and what happened to the process;
//! what is summed up once is kept. Owns no text: that is the commands' and procfs's.

mod history;
mod java;
mod native;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

pub(crate) use self::history::{Event, History, Request};
pub(crate) use self::java::{Collection, JavaHeapState, Limits, Passing};
pub(crate) use self::native::NativeHeap;
use super::clock::{BootNs, Clock, SECOND};
use super::events::lock;
use super::java::{Inputs, Life, Model};
use super::kernel::{Kernel, State};
use super::packages;
use super::process::{Pid, Process, Role};
use super::spec::PhoneSpec;
use super::tracing::{Flow, LiveHeaps};

/// A process that runs collects by itself after so long.
pub(crate) const COLLECTION_EVERY: u64 = 10 * SECOND;

/// What a process that the zygote forked begins with on its native heap, and any other.
const FROM_ZYGOTE: u64 = 3 << 20;
const FROM_LINKER: u64 = 640 << 10;

/// A well-mixed number from several.
fn mix(parts: &[u64]) -> u64 {
    parts.iter().fold(0x2545_f491_4f6c_dd1d, |h, p| {
        let mut z = (h ^ p).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^= z >> 29;
        z = z.wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 32
    })
}

fn hash(text: &str) -> u64 {
    let bytes = text.bytes().map(u64::from);
    bytes.fold(7, |h, b| mix(&[h, b]))
}

/// Which collector ART has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Android {
    /// To 13: concurrent copying, by generations.
    Copying,
    /// 14 and 15: concurrent mark compact.
    Compacting,
    /// 16: by generations.
    YoungCompacting,
}

impl Android {
    fn of(spec: &PhoneSpec) -> Android {
        match spec.android {
            ..=13 => Android::Copying,
            14 | 15 => Android::Compacting,
            _ => Android::YoungCompacting,
        }
    }
}

/// What is kept of a process.
struct Account {
    history: History,
    heaps: Arc<Mutex<LiveHeaps>>,
    art: Flow,
    /// Of its Java heap, once it was needed.
    model: Option<Arc<Model>>,
    /// Collections up to here are in the log.
    logged: BootNs,
}

/// The accounts of a phone's processes.
#[derive(Default)]
pub(crate) struct Memory {
    accounts: Mutex<BTreeMap<(Pid, BootNs), Account>>,
}

/// Whether no thread of a process runs.
fn asleep(process: &Process) -> bool {
    process.frozen || process.idle || process.stopped
}

impl Memory {
    fn history(&self, clock: &Clock, process: &Process) -> History {
        let accounts = lock(&self.accounts);
        match accounts.get(&(process.pid, process.started)) {
            Some(account) => account.history.clone(),
            None => first_history(clock, process),
        }
    }

    /// What an app has done up to `moment`.
    pub(crate) fn life(&self, clock: &Clock, process: &Process, moment: BootNs) -> Life {
        Life::at(&self.history(clock, process), moment)
    }

    /// Forgets all: the phone was restarted.
    pub(crate) fn clear(&self) {
        lock(&self.accounts).clear();
    }

    /// Notes that something happened to a process. To be called before the process's own flags
    /// change, where the event is of sleep.
    pub(crate) fn note(
        &self,
        kernel: &Kernel,
        state: &State,
        process: &Process,
        at: BootNs,
        event: Event,
    ) {
        if process.role == Role::Kernel {
            return;
        }
        self.with(kernel, state, process, |account| {
            account.history.note(at, event);
        });
    }

    fn with<T>(
        &self,
        kernel: &Kernel,
        state: &State,
        process: &Process,
        act: impl FnOnce(&mut Account) -> T,
    ) -> T {
        let mut accounts = lock(&self.accounts);
        // Those that are gone never come back.
        if accounts.len() > 2 * state.processes.iter().count() + 64 {
            accounts.retain(|(pid, started), _| {
                let process = state.processes.get(*pid);
                process.is_some_and(|p| p.started == *started)
            });
        }
        let key = (process.pid, process.started);
        let account = accounts.entry(key).or_insert_with(|| {
            let package = packages::of_process(&state.packages, process);
            let heaps = LiveHeaps::new(&kernel.spec, package, process);
            Account {
                history: first_history(&kernel.clock, process),
                art: heaps.flow("com.android.art", java::LARGE_BYTES),
                heaps: Arc::new(Mutex::new(heaps)),
                model: None,
                logged: process.started.max(kernel.clock.appeared()),
            }
        });
        act(account)
    }

    /// The account of a process with its Java heap, where it has one.
    fn open(&self, kernel: &Kernel, state: &State, process: &Process, at: BootNs) -> Opened {
        let (history, heaps, art, model) = self.with(kernel, state, process, |account| {
            (
                account.history.clone(),
                account.heaps.clone(),
                account.art,
                account.model.clone(),
            )
        });
        let model = model.or_else(|| {
            let life = Life::at(&history, at);
            let inputs = Inputs::within(&kernel.spec, state, process, life, at)?;
            let model = Arc::new(Model::of(&inputs));
            self.with(kernel, state, process, |account| {
                account.model = Some(model.clone());
            });
            Some(model)
        });
        Opened {
            history,
            heaps,
            art,
            model,
            limits: limits(state),
            android: Android::of(&kernel.spec),
            seed: mix(&[kernel.spec.seed, hash(process.name())]),
        }
    }

    /// Collections of a process that ended after `from`, up to `to`, in order.
    pub(crate) fn collections(
        &self,
        kernel: &Kernel,
        state: &State,
        process: &Process,
        (from, to): (BootNs, BootNs),
    ) -> Vec<Collection> {
        if !has_java(process) {
            return Vec::new();
        }
        let opened = self.open(kernel, state, process, to);
        let heap = opened.java();
        heap.map(|heap| heap.collections(from, to))
            .unwrap_or_default()
    }

    /// The Java heap of a process at a moment.
    pub(crate) fn java(
        &self,
        kernel: &Kernel,
        state: &State,
        process: &Process,
        at: BootNs,
    ) -> Option<JavaHeapState> {
        if !has_java(process) {
            return None;
        }
        let opened = self.open(kernel, state, process, at);
        Some(opened.java()?.at(at))
    }
}

/// A process's account, taken out of the table.
struct Opened {
    history: History,
    heaps: Arc<Mutex<LiveHeaps>>,
    art: Flow,
    model: Option<Arc<Model>>,
    limits: Limits,
    android: Android,
    seed: u64,
}

impl Opened {
    fn java(&self) -> Option<java::JavaHeap<'_>> {
        Some(java::JavaHeap {
            model: self.model.as_deref()?,
            flow: self.art,
            history: &self.history,
            limits: self.limits,
            android: self.android,
            seed: self.seed,
        })
    }
}

fn first_history(clock: &Clock, process: &Process) -> History {
    let hidden = process.oom_score_adj > 200;
    History::new(process.started, clock.appeared(), asleep(process), hidden)
}

/// Whether a runtime for Java runs in it.
pub(crate) fn has_java(process: &Process) -> bool {
    matches!(process.role, Role::App { .. } | Role::SystemServer)
}

/// `256m`, `512k`, bytes.
fn size_property(state: &State, name: &str, otherwise: u64) -> u64 {
    let Some(text) = state.properties.get(name) else {
        return otherwise;
    };
    let (digits, factor) = match text.char_indices().last() {
        Some((i, 'k')) => (&text[..i], 1 << 10),
        Some((i, 'm')) => (&text[..i], 1 << 20),
        _ => (text.as_str(), 1),
    };
    digits
        .parse::<u64>()
        .map_or(otherwise, |n| n.saturating_mul(factor))
}

/// Limits of Java heaps on this phone.
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

/// The memory of one process at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Ledger {
    pub(crate) pid: Pid,
    pub(crate) at: BootNs,
    pub(crate) native: NativeHeap,
    /// `None` where no Java runs in it.
    pub(crate) java: Option<JavaHeapState>,
}

impl Ledger {
    /// The memory of `process` at `at`; `None` of a thread of the kernel. The phone's state is
    /// at hand (its lock may be held: nothing here takes it).
    pub(crate) fn of(
        kernel: &Kernel,
        state: &State,
        process: &Process,
        at: BootNs,
    ) -> Option<Ledger> {
        if process.role == Role::Kernel {
            return None;
        }
        let opened = kernel.memory.open(kernel, state, process, at);
        let before = match has_java(process) || process.role == Role::Zygote {
            true => FROM_ZYGOTE,
            false => FROM_LINKER,
        };
        let inherited = native::inherited(opened.seed, before);
        let native = native::at(
            &mut lock(&opened.heaps),
            inherited,
            &opened.history,
            at,
            opened.seed,
        );
        let java = opened.java().map(|heap| heap.at(at));
        Some(Ledger {
            pid: process.pid,
            at,
            native,
            java,
        })
    }

    /// As [`Ledger::of`], of a process by its pid, now.
    pub(crate) fn now(kernel: &Kernel, pid: Pid) -> Option<Ledger> {
        let state = kernel.state();
        let process = state.processes.get(pid)?;
        Ledger::of(kernel, &state, process, kernel.clock.boot())
    }
}
