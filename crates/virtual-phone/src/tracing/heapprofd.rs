//! heapprofd: the processes that a data source profiles, the time when each is attached, and its
//! dumps.

use std::collections::{BTreeMap, BTreeSet};

use super::dump::DumpWriter;
use super::select::{Conditions, is_named, next_dump, permitted};
use super::target::{Ending, Target};
use crate::clock::{BootNs, MILLI};
use crate::faults::FaultKind;
use crate::kernel::Kernel;
use crate::process::{Pid, Process, Role, SIGSEGV};
use crate::spec::Abi;
use crate::traced::DumpTruth;
use crate::{foreground, packages};
use heaptap_proto::perfetto as pb;

/// Delay in nanoseconds from the signal to the first byte: the target attaches at its next
/// allocation.
const ATTACH_DELAY: u64 = 120 * MILLI;
/// Delay in nanoseconds from a process's start to its first profiled allocation.
const STARTUP_DELAY: u64 = 4 * MILLI;

/// One `android.heapprofd` data source of a session.
pub(super) struct HeapSource {
    config: pb::HeapprofdConfig,
    session: u64,
    pub(super) buffer: usize,
    writer: DumpWriter,
    started: BootNs,
    /// Whether heapprofd refused the source, which then does nothing.
    refused: bool,
    targets: Vec<Target>,
    /// Signalled processes that are not attached yet: the earliest time, and whether they are
    /// profiled from their start.
    waiting: BTreeMap<Pid, (BootNs, bool)>,
    /// Processes already examined.
    known: BTreeSet<Pid>,
    next_dump: Option<BootNs>,
    /// Number of dump requests already handled.
    pub(super) requests: usize,
    dumped: bool,
    /// Whether this phone's heapprofd supports `*` in names as a wildcard.
    globs: bool,
    pub(super) truth: Vec<DumpTruth>,
}

impl HeapSource {
    /// Starts the data source at `now`; it writes to a buffer as one sequence.
    pub(super) fn start(
        kernel: &Kernel,
        now: BootNs,
        session: u64,
        config: pb::HeapprofdConfig,
        (buffer, sequence): (usize, u32),
    ) -> HeapSource {
        let (heapprofd, requests) = {
            let mut state = kernel.state();
            let pid = crate::init::start_heapprofd(&mut state, now);
            (pid, state.tracing.dump_requests.len())
        };
        let mut writer = DumpWriter::new(sequence, heapprofd, kernel.spec.android);
        writer.lossy = kernel.faults.has_struck(FaultKind::LosePackets);
        let why = refusal(kernel, &config);
        if let Some(why) = &why {
            kernel.log(heapprofd, 'E', "perfetto", why);
        }
        let continuous = config.continuous_dump_config.as_ref();
        let next_dump = continuous
            .filter(|c| c.dump_interval_ms() > 0)
            .map(|c| now + u64::from(c.dump_phase_ms()) * MILLI);
        HeapSource {
            config,
            session,
            buffer,
            writer,
            started: now,
            refused: why.is_some() || kernel.faults.has_struck(FaultKind::HeapprofdDead),
            targets: Vec::new(),
            waiting: BTreeMap::new(),
            known: BTreeSet::new(),
            next_dump,
            requests,
            dumped: false,
            globs: kernel.spec.perfetto_version() >= 57,
            truth: Vec::new(),
        }
    }

    /// Returns the time of the next action.
    pub(super) fn next_deadline(&self, kernel: &Kernel) -> Option<BootNs> {
        // Each request is an action of its own: two of them are two dumps.
        let asked = kernel
            .state()
            .tracing
            .dump_requests
            .get(self.requests)
            .copied();
        let attach = self.waiting.values().map(|(at, _)| *at).min();
        let broken = self.targets.iter().filter_map(Target::ends_at).min();
        [attach, broken, self.next_dump, asked]
            .into_iter()
            .flatten()
            .min()
    }

    /// Performs the actions due at `now`; appends packets to `out`.
    pub(super) fn step(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        if self.refused {
            self.next_dump = None;
            self.requests = kernel.state().tracing.dump_requests.len();
            return;
        }
        self.reconcile(kernel, now, out);
        self.attach_due(kernel, now, out);
        let broken: Vec<usize> = (0..self.targets.len())
            .rev()
            .filter(|i| self.targets[*i].ends_at().is_some_and(|at| at <= now))
            .collect();
        for i in broken {
            let mut target = self.targets.remove(i);
            let pid = target.pid();
            match target.ending() {
                Some(Ending::Dies) => kernel.killed(pid, SIGSEGV),
                Some(Ending::LowMemory) => {
                    kernel.change(|state, now| foreground::killed_for_memory(state, pid, now));
                }
                _ => {}
            }
            self.dump(kernel, &mut target, now, out);
            self.release(kernel, target.pid());
        }
        // Each action has its own due time, however late it runs: no dump includes a later request.
        let asked = {
            let state = kernel.state();
            let new = state.tracing.dump_requests.iter().skip(self.requests);
            let seen = new.take_while(|at| **at <= now).count();
            self.requests += seen;
            seen > 0
        };
        let due = self.next_dump.is_some_and(|at| at <= now);
        if asked || due {
            self.dump_all(kernel, now, out);
        }
        if due {
            let period = self.config.continuous_dump_config.as_ref();
            let period = period.map_or(0, |c| c.dump_interval_ms());
            self.next_dump = self.next_dump.map(|at| next_dump(at, now, period));
        }
    }

    /// Writes the final dumps.
    pub(super) fn finish(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        if self.refused {
            return;
        }
        self.reconcile(kernel, now, out);
        self.dump_all(kernel, now, out);
        if !self.dumped && !self.waiting.is_empty() {
            let clock = kernel.clock.at(now);
            out.extend(self.writer.empty(clock));
        }
        for target in std::mem::take(&mut self.targets) {
            self.release(kernel, target.pid());
        }
    }

    fn release(&self, kernel: &Kernel, pid: Pid) {
        kernel.state().tracing.let_go(pid, self.session);
    }

    /// Checks the processes: ended, started or woken ones.
    fn reconcile(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        let (fresh, asleep, gone) = {
            let state = kernel.state();
            let fresh = &state.processes;
            let fresh = fresh.select(|p| !self.known.contains(&p.pid) && self.wants(p));
            let asleep = state.processes.iter();
            let asleep = asleep.filter(|p| p.frozen || p.idle || p.stopped);
            let asleep: BTreeSet<Pid> = asleep.map(|p| p.pid).collect();
            let gone: Vec<usize> = (0..self.targets.len())
                .rev()
                .filter(|i| state.processes.get(self.targets[*i].pid()).is_none())
                .collect();
            self.waiting
                .retain(|pid, _| state.processes.get(*pid).is_some());
            (fresh, asleep, gone)
        };
        for i in gone {
            let mut target = self.targets.remove(i);
            target.died();
            self.dump(kernel, &mut target, now, out);
            self.release(kernel, target.pid());
        }
        for target in &mut self.targets {
            target.advance(kernel, now);
            target.asleep = asleep.contains(&target.pid());
        }
        for process in fresh {
            self.known.insert(process.pid);
            let new = process.started > self.started;
            if (new && self.config.no_startup()) || (!new && self.config.no_running()) {
                continue;
            }
            // A process given by its PID is already running; names also match later ones.
            if new && !self.config.all() && !self.names(&process) {
                continue;
            }
            if !self.allowed(kernel, &process) {
                continue;
            }
            let at = if new {
                process.started + STARTUP_DELAY
            } else {
                self.started + ATTACH_DELAY
            };
            self.waiting.insert(process.pid, (at, new));
        }
        // A sleeping process is attached when it wakes and allocates.
        for (pid, (at, _)) in &mut self.waiting {
            if asleep.contains(pid) {
                *at = BootNs::MAX;
            } else if *at == BootNs::MAX {
                *at = now + ATTACH_DELAY;
            }
        }
    }

    fn attach_due(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        let due: Vec<(Pid, BootNs, bool)> = self
            .waiting
            .iter()
            .filter(|(_, (at, _))| *at <= now)
            .map(|(pid, (at, new))| (*pid, *at, *new))
            .collect();
        for (pid, at, new) in due {
            self.waiting.remove(&pid);
            let (process, held) = {
                let mut state = kernel.state();
                let held = state.tracing.hold(pid, self.session);
                (state.processes.get(pid).cloned(), held)
            };
            let Some(process) = process else { continue };
            if !held || kernel.faults.has_struck(FaultKind::Rejected) {
                self.dumped = true;
                out.extend(self.writer.rejected(kernel.clock.at(now), pid));
                continue;
            }
            // Android 10 and 11 do not refuse an interval of 0, which kills the target.
            if self.config.sampling_interval_bytes() == 0 {
                kernel.killed(pid, SIGSEGV);
                continue;
            }
            let target = Target::attach(kernel, &self.config, process, at, new);
            self.targets.push(target);
        }
    }

    fn dump_all(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        let mut targets = std::mem::take(&mut self.targets);
        for target in &mut targets {
            self.dump(kernel, target, now, out);
        }
        self.targets = targets;
    }

    fn dump(
        &mut self,
        kernel: &Kernel,
        target: &mut Target,
        now: BootNs,
        out: &mut Vec<pb::TracePacket>,
    ) {
        self.dumped = true;
        target.advance(kernel, now);
        target.dump(kernel, now, &mut self.writer, out, &mut self.truth);
    }

    /// Returns whether the config names this process.
    fn wants(&self, process: &Process) -> bool {
        !matches!(process.role, Role::Kernel | Role::Command)
            && (self.config.pid.contains(&u64::from(process.pid))
                || self.config.all()
                || self.names(process))
    }

    fn names(&self, process: &Process) -> bool {
        let is_pattern = |name: &str| self.globs && name.contains('*');
        is_named(&self.config.process_cmdline, process, is_pattern)
    }

    /// Checks all conditions for profiling a process; logs a refusal as heapprofd does.
    fn allowed(&self, kernel: &Kernel, process: &Process) -> bool {
        let spec = &kernel.spec;
        if spec.android == 10 && matches!(spec.abi, Abi::X86 | Abi::X86_64) {
            return false;
        }
        if spec.android <= 11 && process.bits_32 && spec.abi.is_64_bit() {
            return false;
        }
        let state = kernel.state();
        let conditions = Conditions {
            installed_by: &self.config.target_installed_by,
            orphan: None,
            least_kb: match spec.android {
                10 => 0,
                _ => self.config.min_anonymous_memory_kb(),
            },
        };
        if !permitted(kernel, &state, process, &conditions) {
            return false;
        }
        let malloc_debug = state.properties.get("libc.debug.malloc.options");
        if malloc_debug.is_some_and(|v| !v.is_empty()) {
            drop(state);
            let text = "malloc_debug enabled: heapprofd not enabled";
            kernel.log(process.pid, 'W', "libc", text);
            return false;
        }
        let may = packages::can_profile(spec, &state.packages, process.uid);
        drop(state);
        if !may {
            let text = format!("{} ({}) is not profileable.", process.pid, process.name());
            kernel.log(process.pid, 'I', "perfetto", &text);
        }
        may
    }
}

/// Returns heapprofd's reason to refuse a config.
fn refusal(kernel: &Kernel, config: &pb::HeapprofdConfig) -> Option<String> {
    let android = kernel.spec.android;
    if config.sampling_interval_bytes() == 0 && android >= 12 {
        return Some("Failed to configure heapprofd: sampling_interval_bytes is 0".to_owned());
    }
    let shmem = config.shmem_size_bytes();
    if shmem > 0 && (!shmem.is_multiple_of(4096) || !shmem.is_power_of_two() || shmem < 8192) {
        return Some(format!("Failed to create shared memory of {shmem} bytes"));
    }
    let intervals = &config.heap_sampling_intervals;
    if !intervals.is_empty() && (intervals.len() != config.heaps.len() || intervals.contains(&0)) {
        return Some("heap_sampling_intervals length mismatch".to_owned());
    }
    let globs = config.process_cmdline.iter().any(|n| n.contains('*'));
    if globs {
        if kernel.spec.perfetto_version() < 57 {
            return None;
        }
        if !config.no_startup() || config.no_running() {
            return Some("Wildcards need no_startup and running processes".to_owned());
        }
    }
    if config.no_startup() && config.no_running() {
        return Some("no_startup and no_running exclude each other".to_owned());
    }
    None
}
