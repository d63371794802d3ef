//! traced_probes: samples for `linux.process_stats` and `linux.sys_stats`, and runtime events in
//! `linux.ftrace`. The values come from memory accounting and the phone's files; this module only
//! samples and encodes them.

use std::collections::BTreeSet;

use super::packets;
use crate::access::Cred;
use crate::clock::{BootNs, MILLI};
use crate::kernel::Kernel;
use crate::memory::{Collection, has_java};
use crate::process::{Pid, Process, Role};
use heaptap_proto::perfetto as pb;
use heaptap_proto::perfetto::process_stats_config::Quirks;
use pb::ftrace_event_bundle::FtraceClock;

/// Minimum period of the daemon; it uses this instead of shorter ones.
const LEAST_PERIOD: u64 = 100 * MILLI;
/// Interval in which it reads the kernel's ring buffers.
const DRAIN: u64 = 250 * MILLI;
/// Lag of reading: a collection is written to the ring as it happens, but memory accounting reports
/// it at its mark, which can be its end.
const LAG: u64 = 2_000 * MILLI;
/// Interval in which a heap in use allocates a new buffer for a thread and reports its size.
const SAYS_SIZE: u64 = 500 * MILLI;
/// Number of periods after which a late sample is dropped.
const LATEST: u64 = 5;
/// Number of the phone's processors.
const CPUS: usize = 8;
/// Difference between an app's PID and the thread that collects its heap.
const HEAP_TASK_DAEMON: u32 = 100_000;

/// Destination of a source: its buffer and its sequence.
type Goal = (usize, u32);

/// Packets with their buffers.
pub(super) type Written = Vec<(usize, pb::TracePacket)>;

/// The sources of traced_probes in one session.
#[derive(Default)]
pub(super) struct Probes {
    processes: Vec<Processes>,
    system: Vec<System>,
    ftrace: Vec<Ftrace>,
}

struct Processes {
    goal: Goal,
    period: u64,
    next: BootNs,
    named: BTreeSet<Pid>,
}

struct System {
    goal: Goal,
    period: u64,
    next: BootNs,
    counters: Vec<pb::MeminfoCounters>,
}

struct Ftrace {
    goal: Goal,
    next: BootNs,
    /// Events up to this time have been requested.
    asked: BootNs,
    /// Events that have not been read yet.
    pending: Vec<Printed>,
    /// Time of the next size report.
    next_size: BootNs,
    said: Vec<(Pid, u64)>,
}

/// An event in the kernel's ring.
struct Printed {
    at: BootNs,
    thread: u32,
    cpu: usize,
    text: String,
}

impl Probes {
    /// Starts `linux.process_stats`.
    pub(super) fn start_processes(
        &mut self,
        kernel: &Kernel,
        now: BootNs,
        config: &pb::ProcessStatsConfig,
        goal: Goal,
    ) -> Written {
        let mut named = BTreeSet::new();
        let mut out = Vec::new();
        if config.quirks().all(|q| q != Quirks::DisableInitialDump) {
            let tree = packets::process_tree(kernel, goal.1, |_| true);
            named.extend(pids_of(&tree));
            out.push((goal.0, tree));
        }
        if config.proc_stats_poll_ms() > 0 {
            let period = (u64::from(config.proc_stats_poll_ms()) * MILLI).max(LEAST_PERIOD);
            self.processes.push(Processes {
                goal,
                period,
                next: now,
                named,
            });
        }
        out
    }

    /// Starts `linux.sys_stats`.
    pub(super) fn start_system(&mut self, now: BootNs, config: &pb::SysStatsConfig, goal: Goal) {
        // The daemon ignores polling periods below 10 ms.
        if config.meminfo_period_ms() >= 10 {
            self.system.push(System {
                goal,
                period: u64::from(config.meminfo_period_ms()) * MILLI,
                next: now,
                counters: config.meminfo_counters().collect(),
            });
        }
    }

    /// Starts `linux.ftrace`, as far as it has events that this phone prints.
    pub(super) fn start_ftrace(&mut self, now: BootNs, config: &pb::FtraceConfig, goal: Goal) {
        let mut categories = config.atrace_categories.iter();
        if categories.any(|c| c == "dalvik" || c == "*") {
            self.ftrace.push(Ftrace {
                goal,
                next: now + DRAIN,
                asked: now,
                pending: Vec::new(),
                next_size: now,
                said: Vec::new(),
            });
        }
    }

    pub(super) fn next_deadline(&self) -> Option<BootNs> {
        let processes = self.processes.iter().map(|p| p.next);
        let system = self.system.iter().map(|s| s.next);
        let ftrace = self.ftrace.iter().map(|f| f.next);
        processes.chain(system).chain(ftrace).min()
    }

    /// Performs the due actions; the `last` step reads everything in the rings.
    pub(super) fn step(&mut self, kernel: &Kernel, now: BootNs, last: bool) -> Written {
        let mut out = Vec::new();
        for source in self.processes.iter_mut().filter(|s| s.next <= now) {
            let at = source.next;
            source.next += source.period;
            source.poll(kernel, at, &mut out);
        }
        for source in self.system.iter_mut().filter(|s| s.next <= now) {
            let at = source.next;
            source.next += source.period;
            let packet = source.poll(kernel, at);
            out.extend(packet.map(|packet| (source.goal.0, packet)));
        }
        for source in &mut self.ftrace {
            if source.next <= now || last {
                source.next = now + DRAIN;
                source.read(kernel, now, last, &mut out);
            }
        }
        out
    }
}

fn pids_of(tree: &pb::TracePacket) -> impl Iterator<Item = Pid> + '_ {
    let processes = tree.process_tree.iter().flat_map(|tree| &tree.processes);
    processes.map(|p| p.pid() as Pid)
}

/// Returns the number in a line such as `VmRSS:     1234 kB`.
fn line(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name))?;
    let mut words = line.strip_prefix(':')?.split_whitespace();
    words.next()?.parse().ok()
}

fn file(kernel: &Kernel, path: &str) -> Option<String> {
    let bytes = kernel.read_all(&Cred::root(), "/", path).ok()?;
    String::from_utf8(bytes).ok()
}

impl Processes {
    /// Samples the memory of each process at `at`, however late the host's thread runs.
    fn poll(&mut self, kernel: &Kernel, at: BootNs, out: &mut Written) {
        // If the daemon is this late, it is overloaded: it drops a sample, as the real one does.
        if at + LATEST * self.period < kernel.clock.boot() {
            return;
        }
        let all: Vec<Pid> = {
            let state = kernel.state();
            let there = |p: &&Process| p.role != Role::Kernel && p.started <= at;
            let there = state.processes.iter().filter(there);
            there.map(|p| p.pid).collect()
        };
        let mut processes = Vec::new();
        for &pid in &all {
            // Other threads can run between two processes.
            let state = kernel.state();
            // The phone restarted: the memory of its new processes at this time is far ahead.
            if kernel.clock.boot() < at {
                return;
            }
            let Some(process) = state.processes.get(pid) else {
                continue;
            };
            let Some(ledger) = kernel.memory.ledger(&state, process, at) else {
                continue;
            };
            let pages = ledger.pages();
            let (anon, file, shmem) = ledger.resident();
            processes.push(pb::process_stats::Process {
                pid: Some(pid as i32),
                vm_size_kb: Some(ledger.size_kb()),
                vm_rss_kb: Some(pages.rss()),
                rss_anon_kb: Some(anon),
                rss_file_kb: Some(file),
                rss_shmem_kb: Some(shmem),
                vm_swap_kb: Some(pages.swap),
                vm_locked_kb: Some(0),
                // As in /proc/PID/status.
                vm_hwm_kb: Some(pages.rss() + pages.rss() / 20),
                oom_score_adj: Some(i64::from(process.oom_score_adj)),
            });
        }
        let stats = pb::ProcessStats {
            processes,
            collection_end_timestamp: Some(at + MILLI),
        };
        let packet = pb::TracePacket {
            timestamp: Some(at),
            process_stats: Some(stats),
            ..packets::of_producer(self.goal.1)
        };
        out.push((self.goal.0, packet));
        if all.iter().any(|pid| !self.named.contains(pid)) {
            let named = &self.named;
            let tree = packets::process_tree(kernel, self.goal.1, |pid| !named.contains(&pid));
            let new: Vec<Pid> = pids_of(&tree).collect();
            self.named.extend(new);
            out.push((self.goal.0, tree));
        }
    }
}

impl System {
    fn poll(&mut self, kernel: &Kernel, at: BootNs) -> Option<pb::TracePacket> {
        use pb::MeminfoCounters as Counter;
        const NAMES: [(Counter, &str); 7] = [
            (Counter::MeminfoMemTotal, "MemTotal"),
            (Counter::MeminfoMemFree, "MemFree"),
            (Counter::MeminfoMemAvailable, "MemAvailable"),
            (Counter::MeminfoBuffers, "Buffers"),
            (Counter::MeminfoCached, "Cached"),
            (Counter::MeminfoSwapTotal, "SwapTotal"),
            (Counter::MeminfoSwapFree, "SwapFree"),
        ];
        if at + LATEST * self.period < kernel.clock.boot() {
            return None;
        }
        let text = file(kernel, "/proc/meminfo")?;
        let wanted = |counter| self.counters.is_empty() || self.counters.contains(&counter);
        let values = NAMES.iter().filter(|(counter, _)| wanted(*counter));
        let meminfo = values
            .filter_map(|(counter, name)| {
                Some(pb::sys_stats::MeminfoValue {
                    key: Some(*counter as i32),
                    value: Some(line(&text, name)?),
                })
            })
            .collect();
        Some(pb::TracePacket {
            timestamp: Some(at),
            sys_stats: Some(pb::SysStats {
                meminfo,
                collection_end_timestamp: Some(at + MILLI),
            }),
            ..packets::of_producer(self.goal.1)
        })
    }
}

impl Ftrace {
    fn read(&mut self, kernel: &Kernel, now: BootNs, last: bool, out: &mut Written) {
        let apps: Vec<Pid> = {
            let state = kernel.state();
            let apps = state.processes.iter().filter(|p| has_java(p));
            apps.map(|p| p.pid).collect()
        };
        let first = self.next_size;
        while self.next_size <= now {
            self.next_size += SAYS_SIZE;
        }
        for pid in apps {
            // Other threads can run between two processes.
            let state = kernel.state();
            // As above: the phone restarted.
            if kernel.clock.boot() < now {
                return;
            }
            let Some(process) = state.processes.get(pid) else {
                continue;
            };
            let over = (self.asked, now);
            for collection in kernel.memory.collections(&state, process, over) {
                self.print(pid, &collection);
            }
            let mut at = first;
            while at <= now {
                let heap = kernel.memory.java(&state, process, at.max(process.started));
                if let Some(heap) = heap {
                    self.say_size(at, pid, heap.allocated() / 1024);
                }
                at += SAYS_SIZE;
            }
        }
        self.asked = now;
        let until = if last { now } else { now.saturating_sub(LAG) };
        let (mut ready, rest): (Vec<Printed>, _) = std::mem::take(&mut self.pending)
            .into_iter()
            .partition(|event| event.at <= until);
        self.pending = rest;
        ready.sort_by_key(|event| event.at);
        for cpu in 0..CPUS {
            let events: Vec<pb::FtraceEvent> = ready
                .iter()
                .filter(|event| event.cpu == cpu)
                .map(|event| pb::FtraceEvent {
                    timestamp: Some(event.at),
                    pid: Some(event.thread),
                    print: Some(pb::PrintFtraceEvent {
                        ip: Some(0xffff_ffc0_0812_3456),
                        buf: Some(event.text.clone()),
                    }),
                    common_flags: None,
                })
                .collect();
            if events.is_empty() {
                continue;
            }
            // Kernels with a BOOTTIME clock do not specify their clock.
            let old = kernel.spec.android <= 10;
            let bundle = pb::FtraceEventBundle {
                cpu: Some(cpu as u32),
                event: events,
                ftrace_clock: old.then_some(FtraceClock::Global as i32),
                ftrace_timestamp: old.then_some(now as i64),
                boot_timestamp: old.then_some(now as i64),
                ..Default::default()
            };
            let packet = pb::TracePacket {
                ftrace_events: Some(bundle),
                ..packets::of_producer(self.goal.1)
            };
            out.push((self.goal.0, packet));
        }
    }

    /// Prints a heap's size, unless it is unchanged: then the heap allocates no new buffer.
    fn say_size(&mut self, at: BootNs, pid: Pid, size: u64) {
        match self.said.iter_mut().find(|said| said.0 == pid) {
            Some((_, said)) if *said == size => return,
            Some((_, said)) => *said = size,
            None => self.said.push((pid, size)),
        }
        let text = format!("C|{pid}|Heap size (KB)|{size}\n");
        self.pending.push(Printed::new(at, pid, 3, text));
    }

    /// Prints the runtime's events of a collection.
    fn print(&mut self, pid: Pid, c: &Collection) {
        let thread = match c.cause {
            "Background" => pid + HEAP_TASK_DAEMON,
            // The thread that requests a collection runs it.
            _ => pid,
        };
        let compacts = c.collector.contains("compact");
        let (phase, pause) = match compacts {
            true => ("MarkingPhase", "(Paused)MarkingPause"),
            false => ("FlipThreadRoots", "(Paused)FlipCallback"),
        };
        let begins = c.begins;
        let (first, second) = ((pid as usize) % CPUS, (pid as usize + 3) % CPUS);
        let mut say = |at: BootNs, cpu: usize, text: String| {
            self.pending.push(Printed::new(at, thread, cpu, text));
        };
        let size = |bytes: u64| format!("C|{pid}|Heap size (KB)|{}\n", bytes / 1024);
        say(begins.saturating_sub(MILLI), first, size(c.before));
        let named = format!("B|{pid}|{} {} GC\n", c.cause, c.collector);
        say(begins, first, named);
        say(begins + 1, first, format!("B|{pid}|InitializePhase\n"));
        say(begins + 2, first, format!("E|{pid}\n"));
        // Pauses are spread evenly over it.
        let gap = c.duration() / (c.pauses.len() as u64 + 1);
        for (nth, length) in c.pauses.iter().enumerate() {
            let at = (begins + gap * (nth as u64 + 1)).min(c.ends.saturating_sub(length + 4));
            let at = at.max(begins + 3);
            say(at, first, format!("B|{pid}|{phase}\n"));
            say(at + 1, first, format!("B|{pid}|{pause}\n"));
            // The thread is moved to another processor while the app is paused.
            say(at + 1 + length, second, format!("E|{pid}\n"));
            say(at + 2 + length, second, format!("E|{pid}\n"));
        }
        say(c.ends, second, format!("E|{pid}\n"));
        say(c.ends + MILLI / 10, second, size(c.live));
    }
}

impl Printed {
    fn new(at: BootNs, thread: u32, cpu: usize, text: String) -> Printed {
        Printed {
            at,
            thread,
            cpu,
            text,
        }
    }
}
