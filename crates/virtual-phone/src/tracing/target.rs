//! A profiled process: its allocations so far, as they happened and as the sampler saw them, and
//! its dumps.

use std::sync::Arc;

use super::dump::{DumpWriter, HeapDump};
use super::sampler::Sampler;
use crate::clock::{BootNs, MILLI};
use crate::faults::FaultKind;
use crate::kernel::Kernel;
use crate::process::{Pid, Process};
use crate::traced::{DumpTruth, SiteTruth};
use crate::workload::{Allocation, Due, TICK, Workload};
use heaptap_proto::perfetto as pb;
use heaptap_proto::perfetto::profile_packet::process_heap_samples::ClientError;
use heaptap_proto::perfetto::profile_packet::{
    HeapSample, Histogram, ProcessHeapSamples, ProcessStats,
};

/// Reason why profiling of a process ends before the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ending {
    /// The process ended.
    Dies,
    /// lmkd killed it.
    LowMemory,
    /// The shared buffer overran.
    Overrun,
    /// Like `Overrun`, detected by a client that waited.
    Timeout,
    BadStack,
    Corrupt,
    Guardrail,
}

/// Counts of one site.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    bytes: u64,
    n: u64,
}

impl Counts {
    fn add(&mut self, bytes: u64) {
        self.bytes += bytes;
        self.n += 1;
    }

    fn minus(self, other: Counts) -> Counts {
        Counts {
            bytes: self.bytes - other.bytes,
            n: self.n - other.n,
        }
    }
}

/// State of one site since the attach.
#[derive(Debug, Clone, Default)]
struct Tally {
    allocated: Counts,
    freed: Counts,
    sampled: Counts,
    sampled_freed: Counts,
    /// Value of `sampled` when heapprofd last dropped the callstack.
    forgotten: Counts,
    /// heapprofd's number of the callstack; `None` if it does not know the callstack.
    callstack: Option<u64>,
    written: bool,
    changed: bool,
    /// dump_at_max: unreleased allocations at the maximum, and the number of that maximum.
    at_max: Counts,
    epoch: u64,
}

impl Tally {
    fn held(&self) -> Counts {
        self.sampled.minus(self.sampled_freed)
    }
}

struct Heap {
    /// Index in the workload.
    place: usize,
    sampler: Sampler,
    due: Due,
    tallies: Vec<Tally>,
    held: u64,
    max: u64,
    max_at: BootNs,
    epoch: u64,
    samples: u64,
    /// When it was dumped last.
    dumped: Option<BootNs>,
}

pub(super) struct Target {
    process: Process,
    workload: Arc<Workload>,
    heaps: Vec<Heap>,
    attached: BootNs,
    from_startup: bool,
    next_tick: u64,
    /// Number of counted activities that replaced others.
    activities: u64,
    pub(super) asleep: bool,
    at_max: bool,
    skip: Vec<String>,
    ending: Option<(BootNs, Ending)>,
    ended: Option<Ending>,
}

/// Returns the heaps that a config selects, with their intervals.
fn heaps(kernel: &Kernel, config: &pb::HeapprofdConfig, workload: &Workload) -> Vec<(usize, u64)> {
    let default = config.sampling_interval_bytes();
    // Before Android 12, malloc is the only heap.
    if kernel.spec.android < 12 || (config.heaps.is_empty() && !config.all_heaps()) {
        return vec![(0, default)];
    }
    workload
        .heaps
        .iter()
        .enumerate()
        .filter_map(|(i, heap)| {
            if let Some(at) = config.heaps.iter().position(|h| h == heap.name) {
                let own = config.heap_sampling_intervals.get(at);
                return Some((i, own.copied().unwrap_or(default)));
            }
            let excluded = config.exclude_heaps.iter().any(|h| h == heap.name);
            (config.all_heaps() && !excluded).then_some((i, default))
        })
        .collect()
}

impl Target {
    /// Attaches to a process at `at`.
    pub(super) fn attach(
        kernel: &Kernel,
        config: &pb::HeapprofdConfig,
        process: Process,
        at: BootNs,
        from_startup: bool,
    ) -> Target {
        let workload = {
            let package = kernel.state().package_of(&process).cloned();
            Arc::new(Workload::build(
                &kernel.spec,
                package,
                &process,
                kernel.clock.appeared(),
            ))
        };
        let heaps = heaps(kernel, config, &workload)
            .into_iter()
            .map(|(place, interval)| Heap {
                place,
                sampler: Sampler::new(interval, kernel.spec.seed),
                due: Due::default(),
                tallies: vec![Tally::default(); workload.heaps[place].sites.len()],
                held: 0,
                max: 0,
                max_at: at,
                epoch: 0,
                samples: 0,
                dumped: None,
            })
            .collect();
        let endings = [
            (FaultKind::TargetDies, 0, Ending::Dies),
            (FaultKind::LowMemoryKill, 0, Ending::LowMemory),
            (FaultKind::Overrun, 0, Ending::Overrun),
            (FaultKind::ClientTimeout, 0, Ending::Timeout),
            (FaultKind::BadStack, 0, Ending::BadStack),
            (FaultKind::Corrupt, 0, Ending::Corrupt),
            (FaultKind::Guardrail, 30_000, Ending::Guardrail),
        ];
        let ending = endings.into_iter().find_map(|(kind, default, ending)| {
            let ms = kernel.faults.value(kind, default)?;
            Some((at + ms * MILLI, ending))
        });
        let before = kernel.state().screen.deeds.destroyed(process.pid, at);
        Target {
            activities: before,
            process,
            workload,
            heaps,
            attached: at,
            from_startup,
            next_tick: at.div_ceil(TICK),
            asleep: false,
            at_max: config.dump_at_max() && kernel.spec.android >= 11,
            skip: config.skip_symbol_prefix.clone(),
            ending,
            ended: None,
        }
    }

    pub(super) fn pid(&self) -> Pid {
        self.process.pid
    }

    /// Returns when profiling ends by itself.
    pub(super) fn ends_at(&self) -> Option<BootNs> {
        self.ending.map(|(at, _)| at)
    }

    pub(super) fn ending(&self) -> Option<Ending> {
        self.ending.map(|(_, why)| why)
    }

    pub(super) fn died(&mut self) {
        self.ended = Some(Ending::Dies);
    }

    /// Simulates the process's allocations and frees up to `now`.
    pub(super) fn advance(&mut self, kernel: &Kernel, now: BootNs) {
        if self.ended.is_none() {
            let until = self.ending.map_or(now, |(at, _)| at.min(now));
            self.create_activities(kernel, until);
        }
        self.allocate(now);
    }

    /// Adds the allocations of activities that replaced others up to `until`.
    fn create_activities(&mut self, kernel: &Kernel, until: BootNs) {
        let pid = self.process.pid;
        let all = kernel.state().screen.deeds.destroyed(pid, until);
        let new = all.saturating_sub(self.activities);
        self.activities = self.activities.max(all);
        for heap in &mut self.heaps {
            for (site, blocks, size) in self.workload.of_an_activity(heap.place) {
                for _ in 0..blocks.saturating_mul(new) {
                    let sampled = heap.sampler.sample(size);
                    heap.allocate(site, size, sampled, until, self.at_max);
                }
            }
        }
    }

    fn allocate(&mut self, now: BootNs) {
        let mut until = now;
        if let Some((at, why)) = self.ending
            && at <= now
        {
            until = at;
            self.ended = Some(why);
        }
        let last = until / TICK;
        let first = self.next_tick;
        if first > last {
            return;
        }
        self.next_tick = last + 1;
        if self.asleep {
            return;
        }
        let mut allocations: Vec<Allocation> = Vec::new();
        for heap in &mut self.heaps {
            for tick in first..=last {
                for (site, size, sampled) in heap.due.take(tick) {
                    heap.free(site, size, sampled, self.at_max);
                }
                let started = self.process.started;
                self.workload
                    .allocations(heap.place, tick, started, &mut allocations);
                for a in &allocations {
                    let sampled = heap.sampler.sample(a.size);
                    heap.allocate(a.site, a.size, sampled, tick * TICK, self.at_max);
                    if let Some(at) = a.freed_at {
                        heap.due.add(at, a.site, a.size, sampled);
                    }
                }
            }
        }
    }

    /// Writes a dump of every heap.
    pub(super) fn dump(
        &mut self,
        kernel: &Kernel,
        now: BootNs,
        writer: &mut DumpWriter,
        out: &mut Vec<pb::TracePacket>,
        truth: &mut Vec<DumpTruth>,
    ) {
        let moment = match self.ending {
            Some((at, _)) if self.ended.is_some() => at.min(now),
            _ => now,
        };
        let workload = self.filtered();
        for i in 0..self.heaps.len() {
            let header = self.header(kernel, &self.heaps[i], moment);
            truth.push(self.truth(&self.heaps[i], moment));
            let at_max = self.at_max;
            let heap = &mut self.heaps[i];
            heap.dumped = Some(if at_max { heap.max_at } else { moment });
            let place = heap.place;
            let art = workload.heaps[place].name == "com.android.art";
            let mut samples = Vec::new();
            let (mut fresh, mut all) = (Vec::new(), Vec::new());
            for (site, tally) in workload.heaps[place].sites.iter().zip(&mut heap.tallies) {
                if tally.sampled.n == tally.forgotten.n {
                    continue;
                }
                // If nothing is held and nothing is new since the last dump, heapprofd drops the
                // callstack.
                if !tally.changed && tally.held().n == 0 && tally.callstack.is_some() {
                    tally.callstack = None;
                    tally.forgotten = tally.sampled;
                    tally.written = false;
                    continue;
                }
                tally.changed = false;
                let id = *tally
                    .callstack
                    .get_or_insert_with(|| writer.callstack_id(site.frames.len()));
                all.push((id, site.frames.as_slice()));
                if !tally.written {
                    tally.written = true;
                    fresh.push((id, site.frames.as_slice()));
                }
                samples.push(tally.sample(id, at_max, heap.epoch, art));
            }
            let dump = HeapDump {
                header,
                samples,
                fresh,
                all,
                workload: &workload,
            };
            out.extend(writer.write(kernel.clock.at(now), dump));
        }
    }

    /// Returns the workload without the names that the config hides.
    fn filtered(&self) -> Arc<Workload> {
        if self.skip.is_empty() {
            return self.workload.clone();
        }
        let mut workload = (*self.workload).clone();
        for frame in &mut workload.frames {
            let hidden = |prefix: &String| frame.function.starts_with(prefix.as_str());
            if self.skip.iter().any(hidden) {
                frame.function = "FILTERED".into();
            }
        }
        Arc::new(workload)
    }

    fn header(&self, kernel: &Kernel, heap: &Heap, moment: BootNs) -> ProcessHeapSamples {
        let android = kernel.spec.android;
        let time = if self.at_max { heap.max_at } else { moment };
        let name = self.workload.heaps[heap.place].name;
        let interval = heap.sampler.interval();
        let ended = |which: &[Ending]| self.ended.is_some_and(|e| which.contains(&e));
        let error = match self.ended {
            Some(Ending::Timeout) => ClientError::HitTimeout,
            Some(Ending::BadStack) => ClientError::InvalidStackBounds,
            _ => ClientError::None,
        };
        let gone = self.ended.is_some() && !ended(&[Ending::Guardrail]);
        ProcessHeapSamples {
            pid: Some(u64::from(self.pid())),
            from_startup: Some(self.from_startup),
            stats: Some(self.stats(heap)),
            disconnected: Some(gone),
            buffer_overran: Some(ended(&[Ending::Overrun, Ending::Timeout])),
            buffer_corrupted: Some(ended(&[Ending::Corrupt])),
            timestamp: Some(kernel.clock.at(time).monotonic_coarse),
            hit_guardrail: Some(ended(&[Ending::Guardrail])),
            heap_name: (android >= 12).then(|| name.to_owned()),
            sampling_interval_bytes: (android >= 12).then_some(interval),
            orig_sampling_interval_bytes: (android >= 12).then_some(interval),
            client_error: (android >= 13).then_some(error as i32),
            start_timestamp: (kernel.spec.perfetto_version() >= 56)
                .then(|| heap.dumped.unwrap_or(self.attached))
                .map(|start| kernel.clock.at(start).monotonic_coarse),
            ..Default::default()
        }
    }

    fn stats(&self, heap: &Heap) -> ProcessStats {
        // Unwinding takes about 40 µs per stack: a bell curve over the powers of two.
        let share = [0, 0, 0, 1, 6, 40, 34, 14, 4, 1];
        let buckets = (0..20u32)
            .map(|i| pb::profile_packet::histogram::Bucket {
                upper_limit: (i < 19).then_some(1 << i),
                max_bucket: (i == 19).then_some(true),
                count: Some(heap.samples * share.get(i as usize).copied().unwrap_or(0) / 100),
            })
            .collect();
        let name = "unwinding failed";
        let sites = self.workload.heaps[heap.place].sites.iter();
        let errors = sites.zip(&heap.tallies).filter(|(s, _)| &*s.name == name);
        ProcessStats {
            unwinding_errors: Some(errors.map(|(_, t)| t.sampled.n).sum()),
            heap_samples: Some(heap.samples),
            map_reparses: Some(0),
            unwinding_time_us: Some(Histogram { buckets }),
            total_unwinding_time_us: Some(heap.samples * 41),
            client_spinlock_blocked_us: Some(0),
        }
    }

    fn truth(&self, heap: &Heap, moment: BootNs) -> DumpTruth {
        let def = &self.workload.heaps[heap.place];
        let sites = def.sites.iter().zip(&heap.tallies);
        let used = sites.filter(|(_, t)| t.allocated.n > 0);
        DumpTruth {
            pid: self.pid(),
            process: self.process.name().to_owned(),
            heap: def.name.to_owned(),
            boot_ns: moment,
            interval: heap.sampler.interval(),
            from_startup: self.from_startup,
            sites: used
                .map(|(site, t)| SiteTruth {
                    name: site.name.clone(),
                    stack: site.stack.clone(),
                    allocated: t.allocated.bytes,
                    alloc_count: t.allocated.n,
                    freed: t.freed.bytes,
                    free_count: t.freed.n,
                    sampled_allocated: t.sampled.bytes,
                    sampled_freed: t.sampled_freed.bytes,
                    sampled_alloc_count: t.sampled.n,
                    sampled_free_count: t.sampled_freed.n,
                })
                .collect(),
        }
    }
}

impl Tally {
    fn sample(&self, id: u64, at_max: bool, epoch: u64, art: bool) -> HeapSample {
        let mut sample = HeapSample {
            callstack_id: Some(id),
            ..Default::default()
        };
        if at_max {
            let max = match self.epoch == epoch {
                true => self.at_max,
                false => self.held(),
            };
            sample.self_max = Some(max.bytes);
            sample.self_max_count = Some(max.n);
            return sample;
        }
        let allocated = self.sampled.minus(self.forgotten);
        // ART reports frees that it did not make.
        let freed = if art {
            Counts {
                bytes: allocated.bytes / 3,
                n: allocated.n / 3,
            }
        } else {
            self.sampled_freed.minus(self.forgotten)
        };
        sample.self_allocated = Some(allocated.bytes);
        sample.self_freed = Some(freed.bytes);
        sample.alloc_count = Some(allocated.n);
        sample.free_count = Some(freed.n);
        sample
    }
}

impl Heap {
    /// Stores the allocations that a site held at the last maximum, before they change.
    fn remember(tally: &mut Tally, epoch: u64) {
        if tally.epoch != epoch {
            tally.at_max = tally.held();
            tally.epoch = epoch;
        }
    }

    fn allocate(&mut self, site: usize, size: u64, sampled: u64, now: BootNs, at_max: bool) {
        let tally = &mut self.tallies[site];
        tally.allocated.add(size);
        if sampled == 0 {
            return;
        }
        if at_max {
            Self::remember(tally, self.epoch);
        }
        tally.sampled.add(sampled);
        tally.changed = true;
        self.samples += 1;
        self.held += sampled;
        if at_max && self.held > self.max {
            self.max = self.held;
            self.max_at = now;
            self.epoch += 1;
        }
    }

    fn free(&mut self, site: usize, size: u64, sampled: u64, at_max: bool) {
        let tally = &mut self.tallies[site];
        tally.freed.add(size);
        if sampled == 0 {
            return;
        }
        if at_max {
            Self::remember(tally, self.epoch);
        }
        tally.sampled_freed.add(sampled);
        tally.changed = true;
        self.held -= sampled;
    }
}
