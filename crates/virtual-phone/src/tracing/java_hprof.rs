//! `android.java_hprof`: the processes that a data source dumps, the time when each forks, and the
//! path of its packets to the buffer. [`crate::java`] owns their contents.

use std::collections::VecDeque;

use super::packets;
use super::select::{Conditions, is_named, next_dump, permitted};
use crate::clock::{BootNs, MILLI};
use crate::faults::FaultKind;
use crate::java::{self, JavaDumpKind};
use crate::kernel::Kernel;
use crate::packages;
use crate::process::{Pid, Process, Role, SIGSEGV};
use crate::traced::{JavaDump, Oom};
use heaptap_proto::perfetto as pb;

/// Delay in nanoseconds from the signal to the fork: the app's main thread stops and a child of it
/// writes.
const FORK_TAKES: u64 = 60 * MILLI;
/// Number of objects that the child writes per millisecond.
const OBJECTS_PER_MS: u64 = 400;

/// Android release that added ART's metadata of the process.
const METADATA_SINCE: u32 = 16;

/// One `android.java_hprof` data source of a session.
pub(super) struct JavaSource {
    config: pb::JavaHprofConfig,
    pub(super) buffer: usize,
    /// Next packet sequence; each dump has its own.
    next_sequence: u32,
    /// PIDs of the first scan, if later scans are disabled.
    first_scan: Option<Vec<Pid>>,
    next_dump: Option<BootNs>,
    running: Vec<Running>,
    /// Whether heapprofd never sends signals.
    dead: bool,
    lossy: bool,
    written: u64,
    pub(super) dumps: Vec<JavaDump>,
}

/// A child that writes a dump.
struct Running {
    began: BootNs,
    ends: BootNs,
    /// Packets with the share of the time, in 1/1000, after which each one is available.
    packets: VecDeque<(u64, pb::TracePacket)>,
    /// Time at which the app dies.
    dies: Option<BootNs>,
    pid: Pid,
    /// Whether the app dies after writing everything.
    fatal: bool,
}

impl JavaSource {
    /// Starts the data source at `now`: signals every process that it names.
    pub(super) fn start(
        kernel: &Kernel,
        now: BootNs,
        config: pb::JavaHprofConfig,
        (buffer, sequence): (usize, u32),
    ) -> JavaSource {
        crate::init::start_heapprofd(&mut kernel.state(), now);
        let mut source = JavaSource::new(kernel, config, buffer, sequence);
        let continuous = source.config.continuous_dump_config.unwrap_or_default();
        let interval = u64::from(continuous.dump_interval_ms()) * MILLI;
        let phase = u64::from(continuous.dump_phase_ms()) * MILLI;
        let first = if phase > 0 { phase } else { interval };
        source.next_dump = (interval > 0).then_some(now + first);
        // Since Android 13, the processes are searched again for each dump.
        if kernel.spec.android < 13 || continuous.scan_pids_only_on_start() {
            let pids = source.targets(kernel);
            source.first_scan = Some(pids.iter().map(|p| p.pid).collect());
        }
        source.signal_all(kernel, now);
        source
    }

    /// Returns the source of a session started by a process that ran out of memory; that process
    /// dumps itself.
    pub(super) fn start_oom(
        kernel: &Kernel,
        oom: Oom,
        config: pb::JavaHprofConfig,
        (buffer, sequence): (usize, u32),
    ) -> JavaSource {
        let mut source = JavaSource::new(kernel, config, buffer, sequence);
        let process = kernel.state().processes.get(oom.pid).cloned();
        if let Some(process) = process
            && super::oom::wanted(&source.config, &process)
            && super::oom::allowed(kernel, &process)
        {
            source.dump(kernel, &process, oom.at, true);
        }
        source
    }

    fn new(
        kernel: &Kernel,
        config: pb::JavaHprofConfig,
        buffer: usize,
        sequence: u32,
    ) -> JavaSource {
        JavaSource {
            buffer,
            next_sequence: sequence,
            first_scan: None,
            next_dump: None,
            running: Vec::new(),
            dead: kernel.faults.has_struck(FaultKind::HeapprofdDead),
            lossy: kernel.faults.has_struck(FaultKind::LosePackets),
            written: 0,
            dumps: Vec::new(),
            config,
        }
    }

    /// Returns the time of the next action.
    pub(super) fn next_deadline(&self) -> Option<BootNs> {
        let running = self
            .running
            .iter()
            .map(|r| r.ends.min(r.dies.unwrap_or(r.ends)));
        running.chain(self.next_dump).min()
    }

    /// Returns the time when the running dumps are complete.
    pub(super) fn done_at(&self) -> Option<BootNs> {
        self.running.iter().map(|r| r.ends).max()
    }

    /// Performs the actions due at `now`; appends packets to `out`.
    pub(super) fn step(&mut self, kernel: &Kernel, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        if self.next_dump.is_some_and(|at| at <= now) {
            self.signal_all(kernel, now);
            let continuous = self.config.continuous_dump_config.unwrap_or_default();
            let period = continuous.dump_interval_ms();
            self.next_dump = self.next_dump.map(|at| next_dump(at, now, period));
        }
        for running in &mut self.running {
            if let Some(dies) = running.dies.filter(|at| *at <= now) {
                kernel.killed(running.pid, SIGSEGV);
                running.take(dies, out);
                running.packets.clear();
                running.ends = dies;
            }
            running.take(now, out);
            if running.fatal && running.ends <= now {
                let process = kernel.state().processes.get(running.pid).cloned();
                if let Some(process) = process {
                    super::oom::die(kernel, &process);
                }
            }
        }
        self.running.retain(|r| now < r.ends);
        if self.lossy {
            out.retain(|_| {
                self.written += 1;
                self.written % 2 == 1
            });
        }
    }

    /// Starts no more dumps, because the session ends.
    pub(super) fn stop(&mut self) {
        self.next_dump = None;
    }

    fn signal_all(&mut self, kernel: &Kernel, now: BootNs) {
        if self.dead {
            return;
        }
        for process in self.targets(kernel) {
            let known = self.first_scan.as_ref();
            if known.is_some_and(|pids| !pids.contains(&process.pid)) {
                continue;
            }
            if self.allowed(kernel, &process) {
                self.dump(kernel, &process, now, false);
            }
        }
    }

    fn targets(&self, kernel: &Kernel) -> Vec<Process> {
        let has_patterns = kernel.spec.android >= 13;
        let names = &self.config.process_cmdline;
        // The daemon finds every process; only those with a runtime answer.
        kernel.state().processes.select(|p| {
            !matches!(p.role, Role::Kernel | Role::Command)
                && (self.config.pid.contains(&u64::from(p.pid))
                    || is_named(names, p, |_| has_patterns))
        })
    }

    fn allowed(&self, kernel: &Kernel, process: &Process) -> bool {
        let spec = &kernel.spec;
        let state = kernel.state();
        let conditions = Conditions {
            installed_by: &self.config.target_installed_by,
            orphan: Some("@null"),
            least_kb: self.config.min_anonymous_memory_kb(),
        };
        if !permitted(kernel, &state, process, &conditions) {
            return false;
        }
        let may = packages::can_profile(spec, &state.packages, process.uid);
        drop(state);
        if !may {
            let text = format!("{} (UID {}) not profileable.", process.pid, process.uid);
            kernel.log(process.pid, 'E', "perfetto", &text);
        }
        may
    }

    /// Starts a dump: the process forks and its child writes. A process that ran out of memory
    /// writes itself and then dies.
    fn dump(&mut self, kernel: &Kernel, process: &Process, now: BootNs, oom: bool) {
        // A frozen process handles the signal when it thaws.
        if process.frozen || process.stopped {
            return;
        }
        let began = now + FORK_TAKES;
        let Some(inputs) = kernel.memory.java_inputs(&kernel.state(), process, began) else {
            return;
        };
        let messages = java::messages(&inputs, &self.config.ignored_types);
        let objects: u64 = messages.iter().map(|m| m.objects.len() as u64).sum();
        let slow = kernel.faults.value(FaultKind::JavaDumpSlow, 30_000);
        let takes = slow.map_or(objects / OBJECTS_PER_MS + 1, |ms| ms) * MILLI;
        let sequence = self.next_sequence;
        self.next_sequence += 0x100;
        let packet = || pb::TracePacket {
            timestamp: Some(began),
            trusted_uid: Some(process.uid as i32),
            trusted_pid: (kernel.spec.android >= 12).then_some(process.pid as i32),
            trusted_packet_sequence_id: Some(sequence),
            ..Default::default()
        };
        let mut all = Vec::new();
        if kernel.spec.android >= METADATA_SINCE {
            let metadata = super::oom::metadata(kernel, process, &inputs, oom);
            all.push(pb::TracePacket {
                art_process_metadata: Some(metadata),
                ..packet()
            });
        }
        if self.config.dump_smaps() {
            let ledger = kernel.memory.ledger(&kernel.state(), process, began);
            all.push(pb::TracePacket {
                smaps_packet: Some(packets::smaps(process.pid, ledger.as_ref())),
                ..packet()
            });
        }
        all.extend(messages.into_iter().map(|graph| pb::TracePacket {
            heap_graph: Some(graph),
            ..packet()
        }));
        if kernel.faults.has_struck(FaultKind::JavaDumpCut) {
            all.pop();
        }
        let count = all.len() as u64;
        let dies = kernel.faults.value(FaultKind::TargetDies, 0);
        self.running.push(Running {
            began,
            ends: began + takes,
            packets: (1..=count).map(|n| n * 1_000 / count).zip(all).collect(),
            dies: dies.map(|ms| began + ms * MILLI),
            pid: process.pid,
            fatal: oom,
        });
        self.dumps.push(JavaDump {
            inputs,
            kind: JavaDumpKind::HeapGraph,
            path: String::new(),
        });
    }
}

impl Running {
    /// Takes the packets available by `now`.
    fn take(&mut self, now: BootNs, out: &mut Vec<pb::TracePacket>) {
        let whole = (self.ends - self.began).max(1);
        let share = now.saturating_sub(self.began) * 1_000 / whole;
        while self.packets.front().is_some_and(|(at, _)| *at <= share) {
            out.extend(self.packets.pop_front().map(|(_, packet)| packet));
        }
    }
}
