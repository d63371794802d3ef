//! heapprofd: which processes a data source profiles, when each is attached, and its dumps.

use std::collections::{BTreeMap, BTreeSet};

use super::dump::DumpWriter;
use super::target::{Ending, Target};
use crate::clock::{BootNs, MILLI};
use crate::faults::FaultKind;
use crate::foreground;
use crate::kernel::Kernel;
use crate::packages;
use crate::process::{Pid, Process, Role, SIGSEGV};
use crate::shell::pattern;
use crate::spec::Abi;
use crate::traced::DumpTruth;
use heaptap_proto::perfetto as pb;

/// From the signal to the first byte: the target attaches with its next allocation.
const ATTACH_DELAY: u64 = 120 * MILLI;
/// From a process's start to its first profiled allocation.
const STARTUP_DELAY: u64 = 4 * MILLI;

/// One `android.heapprofd` data source of a session.
pub(super) struct HeapSource {
    config: pb::HeapprofdConfig,
    session: u64,
    pub(super) buffer: usize,
    writer: DumpWriter,
    started: BootNs,
    /// Refused by heapprofd: it does nothing.
    refused: bool,
    targets: Vec<Target>,
    /// Signalled, not yet attached: when they may, and whether from their start.
    waiting: BTreeMap<Pid, (BootNs, bool)>,
    /// Looked at already.
    known: BTreeSet<Pid>,
    next_dump: Option<BootNs>,
    /// How many of the requests for dumps were seen.
    requests: usize,
    dumped: bool,
    /// This phone's heapprofd takes `*` in names for more than a letter.
    globs: bool,
    pub(super) truth: Vec<DumpTruth>,
}

/// The part of a command line that names are compared with: argv0, cut at `@`, without its
/// directories.
fn normalized(argv0: &str) -> &str {
    let cut = argv0.split('@').next().unwrap_or(argv0);
    cut.rsplit('/').next().unwrap_or(cut)
}

impl HeapSource {
    /// Starts the data source at `now`, writing into a buffer as a sequence.
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
        writer.lossy = kernel.faults.strikes(FaultKind::LosePackets).is_some();
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
            refused: why.is_some() || kernel.faults.strikes(FaultKind::HeapprofdDead).is_some(),
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

    /// When there is something to do next.
    pub(super) fn next_deadline(&self) -> Option<BootNs> {
        let attach = self.waiting.values().map(|(at, _)| *at).min();
        let broken = self.targets.iter().filter_map(Target::ends_at).min();
        [attach, broken, self.next_dump].into_iter().flatten().min()
    }

    /// How many of the requests for dumps were seen.
    pub(super) fn requests_seen(&self) -> usize {
        self.requests
    }

    /// Does what is due at `now`; packets go into `out`.
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
            if target.ending() == Some(Ending::Dies) {
                foreground::killed(
                    &mut kernel.state(),
                    target.pid(),
                    SIGSEGV,
                    kernel.clock.now(),
                );
                kernel.events.notify();
            }
            self.dump(kernel, &mut target, now, out);
            self.release(kernel, target.pid());
        }
        // What is due is done at its own time, however late: no dump is of a request after that.
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
            let period = period.map_or(0, |c| u64::from(c.dump_interval_ms()) * MILLI);
            // A phone that was stopped skips what it missed.
            let missed = now.saturating_sub(self.next_dump.unwrap_or(now)) / period.max(1);
            self.next_dump = self.next_dump.map(|at| at + (missed + 1) * period);
        }
    }

    /// The final dumps.
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

    /// Looks at the processes: who has gone, who has come, who is awake.
    fn reconcile(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        let (fresh, asleep, gone) = {
            let state = kernel.state();
            let wanted = |p: &&Process| !self.known.contains(&p.pid) && self.wants(p);
            let fresh: Vec<Process> = state.processes.iter().filter(wanted).cloned().collect();
            let asleep: BTreeSet<Pid> = state
                .processes
                .iter()
                .filter(|p| p.frozen || p.idle || p.stopped)
                .map(|p| p.pid)
                .collect();
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
            target.set_asleep(asleep.contains(&target.pid()));
        }
        for process in fresh {
            self.known.insert(process.pid);
            let new = process.started > self.started;
            if (new && self.config.no_startup()) || (!new && self.config.no_running()) {
                continue;
            }
            // A process given by its pid is one that runs; names find later ones, too.
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
        // Whoever sleeps is attached when it wakes and allocates.
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
            if !held || kernel.faults.strikes(FaultKind::Rejected).is_some() {
                self.dumped = true;
                out.extend(self.writer.rejected(kernel.clock.at(now), pid));
                continue;
            }
            // Android 10 and 11 do not refuse an interval of 0: it kills the target.
            if self.config.sampling_interval_bytes() == 0 {
                foreground::killed(&mut kernel.state(), pid, SIGSEGV, kernel.clock.now());
                kernel.events.notify();
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

    /// Whether the config names this process.
    fn wants(&self, process: &Process) -> bool {
        if process.role == Role::Kernel || process.role == Role::Command {
            return false;
        }
        if self.config.pid.contains(&u64::from(process.pid)) {
            return true;
        }
        self.config.all() || self.names(process)
    }

    fn names(&self, process: &Process) -> bool {
        let argv0 = process.name();
        self.config.process_cmdline.iter().any(|name| {
            if self.globs && name.contains('*') {
                let text = if name.starts_with('/') {
                    argv0
                } else {
                    argv0.rsplit('/').next().unwrap_or(argv0)
                };
                let text: Vec<char> = text.chars().collect();
                return pattern::matches(&pattern::unquoted(name), &text);
            }
            normalized(name) == normalized(argv0)
        })
    }

    /// All gates of a process; a refusal is logged as heapprofd does.
    fn allowed(&self, kernel: &Kernel, process: &Process) -> bool {
        let spec = &kernel.spec;
        if spec.android == 10 && matches!(spec.abi, Abi::X86 | Abi::X86_64) {
            return false;
        }
        if spec.android <= 11 && process.bits_32 && spec.abi.is_64_bit() {
            return false;
        }
        if matches!(process.role, Role::Zygote) {
            return false;
        }
        let state = kernel.state();
        if state.enforcing && packages::never_profile(spec.android, &process.domain) {
            return false;
        }
        let malloc_debug = state.properties.get("libc.debug.malloc.options");
        if malloc_debug.is_some_and(|v| !v.is_empty()) {
            drop(state);
            kernel.log(
                process.pid,
                'W',
                "libc",
                "malloc_debug enabled: heapprofd not enabled",
            );
            return false;
        }
        if !self.config.target_installed_by.is_empty() && spec.android >= 12 {
            let by = |p: &packages::Package| {
                let installer = p.installer.unwrap_or("@null");
                self.config
                    .target_installed_by
                    .iter()
                    .any(|i| i == installer)
            };
            let user_build = spec.build == crate::spec::BuildType::User;
            let appid = process.uid % 100_000;
            if user_build && !state.packages.iter().any(|p| p.appid == appid && by(p)) {
                return false;
            }
        }
        if self.config.min_anonymous_memory_kb() > 0
            && spec.android >= 11
            && kernel
                .memory
                .ledger(&state, process, kernel.clock.boot())
                .is_some_and(|l| l.resident().0 < u64::from(self.config.min_anonymous_memory_kb()))
        {
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

/// Why heapprofd refuses a config.
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
