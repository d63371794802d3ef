//! The phone's account of memory: for a process and a moment one state, from which everything
//! that tells of memory is made (`dumpsys meminfo`, /proc, `showmap`, the log of collections,
//! `malloc_info`). It follows from the spec's seed, the time, and what happened to the process;
//! what is summed up once is kept. Owns no text: that is the commands' and procfs's.

mod java;
mod log;
mod mappings;
mod native;
mod rows;
mod system;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

pub(crate) use self::java::{Collection, JavaHeapState, Limits};
pub(crate) use self::log::log_tag;
pub(crate) use self::mappings::{Backing, Mapping, Pages};
pub(crate) use self::native::NativeHeap;
pub(crate) use self::rows::{Detail, Graphics, Row, Rows, Sums};
pub(crate) use self::system::{Ram, compressed};
use super::clock::{BootNs, Clock};
use super::events::lock;
use super::history::{Event, History};
use super::java::{Inputs, Life, Model};
use super::packages;
use super::process::{Pid, Process, Role};
use super::spec::PhoneSpec;
use super::state::State;
use super::workload::Flow;
use super::workload::LiveHeaps;
use super::workload::Tracked;

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
pub(crate) struct Memory {
    spec: PhoneSpec,
    clock: Arc<Clock>,
    accounts: Mutex<BTreeMap<(Pid, BootNs), Account>>,
    /// What the whole phone's memory came to, and when that was summed up.
    ram: Mutex<Option<(BootNs, Ram)>>,
}

/// Whether no thread of a process runs.
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

    /// What an app has done up to `moment`.
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

    /// What the Java heap of `process` follows from at `moment`; `None` where it has none.
    pub(crate) fn java_inputs(
        &self,
        state: &State,
        process: &Process,
        moment: BootNs,
    ) -> Option<Inputs> {
        let life = self.life(state, process, moment);
        let (packages, processes) = (&state.packages, &state.processes);
        Inputs::of(&self.spec, packages, processes, process, life, moment)
    }

    /// Forgets all: the phone was restarted.
    pub(crate) fn clear(&self) {
        lock(&self.accounts).clear();
        *lock(&self.ram) = None;
    }

    /// Notes that something happened to a process. To be called before the process's own flags
    /// change, where the event is of sleep.
    pub(crate) fn note(&self, state: &State, process: &Process, at: BootNs, event: Event) {
        if process.role == Role::Kernel {
            return;
        }
        self.with(state, process, |account| {
            account.history.note(at, event);
        });
    }

    fn with<T>(&self, state: &State, process: &Process, act: impl FnOnce(&mut Account) -> T) -> T {
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
            let heaps = LiveHeaps::new(&self.spec, package, process);
            Account {
                history: first_history(&self.clock, process),
                art: heaps.flow("com.android.art", java::LARGE_BYTES),
                heaps: Arc::new(Mutex::new(heaps)),
                model: None,
                logged: process.started.max(self.clock.appeared()),
            }
        });
        // Not everyone who wakes a process or puts it to sleep says so.
        let now = self.clock.boot();
        if account.history.asleep(now) != asleep(process) {
            let event = Event::Asleep(asleep(process));
            account.history.note(now, event);
        }
        act(account)
    }

    /// What the runtime of a process tracked after `since` and up to `until`, the newest first,
    /// and whether it has forgotten some of it.
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
        // The sum takes a while; the phone goes on meanwhile.
        drop(state);
        lock(&heaps).tracked(&history, since, until)
    }

    /// Up to when the log has what ART wrote about a process.
    fn logged(&self, process: &Process) -> Option<BootNs> {
        let accounts = lock(&self.accounts);
        let account = accounts.get(&(process.pid, process.started));
        account.map(|account| account.logged)
    }

    fn set_logged(&self, process: &Process, to: BootNs) {
        if let Some(account) = lock(&self.accounts).get_mut(&(process.pid, process.started)) {
            account.logged = to;
        }
    }

    /// The account of a process with its Java heap, where it has one.
    fn open(&self, state: &State, process: &Process, at: BootNs) -> Opened {
        let (mut history, heaps, art, model) = self.with(state, process, |account| {
            (
                account.history.clone(),
                account.heaps.clone(),
                account.art,
                account.model.clone(),
            )
        });
        history.set_deeds(state.screen.deeds.of(process.pid));
        let model = model.or_else(|| {
            let life = Life::at(&history, at);
            let inputs = Inputs::of(
                &self.spec,
                &state.packages,
                &state.processes,
                process,
                life,
                at,
            )?;
            let model = Model::shared(&inputs);
            self.with(state, process, |account| {
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
            android: Android::of(&self.spec),
            seed: mix(&[self.spec.seed, hash(process.name())]),
        }
    }

    /// Collections of a process with their mark after `from`, up to `to`, in order.
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
        let heap = opened.java();
        heap.map(|heap| heap.collections(from, to))
            .unwrap_or_default()
    }

    /// The Java heap of a process at a moment.
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
}

impl Memory {
    /// The memory of `process` at `at`; `None` of a thread of the kernel. The phone's state is
    /// at hand (its lock may be held: nothing here takes it).
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
        let history = &opened.history;
        let mut heaps = lock(&opened.heaps);
        let inherited = native::inherited(opened.seed, before);
        let native = native::at(&mut heaps, inherited, history, at, opened.seed);
        let arena = heaps.at("com.example.arena", history, at).bytes;
        let code = heaps.code();
        let databases = heaps.flow_of("database");
        drop(heaps);
        let java = opened.java().map(|heap| heap.at(at));
        let package = packages::of_process(&state.packages, process);
        let threads = threads(process);
        let forked = |p: &&Process| has_java(p) || p.role == Role::Zygote;
        let mappings = mappings::of(&mappings::Inputs {
            spec: &self.spec,
            package: package.as_ref(),
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
            && package.as_ref().is_some_and(|p| p.name == state.foreground)
            && !in_back(process);
        Some(Ledger {
            graphics: graphics(
                process,
                java.as_ref(),
                shown,
                history.last_trim(at).is_some(),
            ),
            native,
            java,
            mappings,
            threads,
            awake: history.awake(at),
            databases_kb: databases,
        })
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
    History::new(process.started, clock.appeared(), asleep(process))
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
    pub(crate) native: NativeHeap,
    /// `None` where no Java runs in it.
    pub(crate) java: Option<JavaHeapState>,
    /// By address.
    pub(crate) mappings: Vec<Mapping>,
    pub(crate) graphics: Graphics,
    /// All of its threads.
    pub(crate) threads: u64,
    /// How long it ran since the phone shows it, nanoseconds.
    pub(crate) awake: u64,
    /// What its databases hold in memory.
    pub(crate) databases_kb: u64,
}

impl Ledger {
    /// Pages of all mappings.
    pub(crate) fn pages(&self) -> Pages {
        let mut sum = Pages::default();
        self.mappings.iter().for_each(|m| sum.add(&m.pages));
        sum
    }

    /// VmSize, kB.
    pub(crate) fn size_kb(&self) -> u64 {
        self.mappings.iter().map(Mapping::size_kb).sum()
    }

    /// RssAnon, RssFile and RssShmem, kB.
    pub(crate) fn resident(&self) -> (u64, u64, u64) {
        let anonymous: u64 = self.mappings.iter().map(Mapping::anonymous_kb).sum();
        let shared: u64 = self.mappings.iter().map(Mapping::shmem_kb).sum();
        let all = self.pages().rss();
        (anonymous, all - anonymous - shared, shared)
    }

    /// Buffers of the whole screen that it holds, kB each.
    pub(crate) fn buffers(&self) -> Vec<u64> {
        vec![SCREEN_KB; (self.graphics.egl / SCREEN_KB) as usize]
    }

    /// The rows of `dumpsys meminfo`.
    pub(crate) fn rows(&self) -> Rows {
        Rows::of(&self.mappings, self.graphics)
    }
}

/// Whether a process is one that nobody would miss at once.
fn in_back(process: &Process) -> bool {
    process.oom_score_adj > 200
}

/// Threads of a process, the main one included.
pub(crate) fn threads(process: &Process) -> u64 {
    match process.role {
        Role::App { .. } => 38,
        Role::SystemServer => 212,
        Role::Zygote => 9,
        Role::Native => 4,
        Role::Kernel | Role::Command => 1,
    }
}

/// kB of a buffer of the whole screen.
const SCREEN_KB: u64 = 1_080 * 2_400 * 4 / 1_024;
/// What every app that draws has besides its pictures: glyphs, layers, shaders.
const GPU_KB: u64 = 5_632;

/// What the memtrack HAL tells: buffers of windows while they are on the screen, and textures.
fn graphics(
    process: &Process,
    java: Option<&JavaHeapState>,
    shown: bool,
    trimmed: bool,
) -> Graphics {
    let Some(java) = java else {
        // Who puts the windows together holds the screen's own buffers.
        let composer = process.name().ends_with("/surfaceflinger");
        return Graphics {
            egl: if composer { 3 * SCREEN_KB } else { 0 },
            ..Graphics::default()
        };
    };
    let windows = java.live.instances("android.view.ViewRootImpl");
    if windows == 0 {
        return Graphics::default();
    }
    let pictures = (java.live.native() + java.dropped.native()) >> 10;
    let other = match (shown, trimmed) {
        (true, _) => GPU_KB,
        (false, false) => GPU_KB / 2,
        (false, true) => GPU_KB / 8,
    };
    Graphics {
        egl: if shown { windows * 3 * SCREEN_KB } else { 0 },
        gl: pictures + other,
        other: 0,
    }
}

#[cfg(test)]
impl Memory {
    /// What is summed up of a process's heaps.
    fn heaps_of(&self, process: &Process) -> Option<Arc<Mutex<LiveHeaps>>> {
        let accounts = lock(&self.accounts);
        let account = accounts.get(&(process.pid, process.started))?;
        Some(account.heaps.clone())
    }
}

#[cfg(test)]
mod tests;
