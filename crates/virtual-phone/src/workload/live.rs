//! Contents of a process's heaps at a given time: the sum of the workload that heapprofd samples.
//! Allocations that are never freed are summed once and carried forward; temporary ones are found
//! in the last span of their lifetime.

use std::collections::BTreeMap;

use super::allocations::{Allocation, TICK, Workload};
use super::site::{Life, Site};
use crate::clock::{BootNs, MILLI};
use crate::history::History;
use crate::packages::Package;
use crate::process::Process;
use crate::spec::PhoneSpec;

/// Allocation granularity in bytes: sizes are rounded up to it, as Android's allocators do for
/// small ones.
pub(crate) const GRANULE: u64 = 16;

/// Allocated blocks of a heap.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Blocks {
    /// Requested bytes.
    pub(crate) bytes: u64,
    pub(crate) count: u64,
    /// Number of blocks by rounded size.
    pub(crate) sizes: BTreeMap<u64, u64>,
}

impl Blocks {
    pub(crate) fn add(&mut self, size: u64, count: u64) {
        if count == 0 {
            return;
        }
        self.bytes += size * count;
        self.count += count;
        *self.sizes.entry(rounded(size)).or_insert(0) += count;
    }

    fn join(&mut self, other: &Blocks) {
        self.bytes += other.bytes;
        self.count += other.count;
        for (size, count) in &other.sizes {
            *self.sizes.entry(*size).or_insert(0) += count;
        }
    }

    /// Returns the bytes as allocated by the allocator.
    pub(crate) fn rounded(&self) -> u64 {
        self.sizes.iter().map(|(size, count)| size * count).sum()
    }
}

/// Rounds a size as the allocator does.
pub(crate) fn rounded(size: u64) -> u64 {
    size.max(1).next_multiple_of(GRANULE)
}

/// One heap of a process with its running sums.
#[derive(Debug, Default)]
struct Heap {
    place: usize,
    forever: Blocks,
    /// First tick that is not in `forever`.
    next: u64,
    /// Number of ticks summed so far, for tests.
    summed: u64,
}

/// The heaps of a process.
#[derive(Debug)]
pub(crate) struct LiveHeaps {
    pub(crate) workload: Workload,
    pub(crate) started: BootNs,
    heaps: Vec<Heap>,
}

/// Average allocation rate of a heap.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Flow {
    /// Objects and bytes per second, separate for objects of at least a given size.
    pub(crate) small: (f64, f64),
    pub(crate) large: (f64, f64),
    /// Objects and bytes among them that are held at any time.
    pub(crate) held_small: (f64, f64),
    pub(crate) held_large: (f64, f64),
}

impl LiveHeaps {
    pub(crate) fn new(
        spec: &PhoneSpec,
        package: Option<Package>,
        process: &Process,
        appeared: BootNs,
    ) -> LiveHeaps {
        let workload = Workload::build(spec, package, process, appeared);
        let heaps = (0..workload.heaps.len())
            .map(|place| Heap {
                place,
                ..Heap::default()
            })
            .collect();
        LiveHeaps {
            workload,
            started: process.started,
            heaps,
        }
    }

    /// Returns the contents of a heap at `now`.
    pub(crate) fn at(&mut self, name: &str, history: &History, now: BootNs) -> Blocks {
        let Some(place) = self.workload.heaps.iter().position(|h| h.name == name) else {
            return Blocks::default();
        };
        let spans = history.spans(now);
        // A sleeping process does not free either.
        let last = spans.last().map_or(now, |(_, to)| *to) / TICK;
        let mut heap = Heap {
            place,
            ..Heap::default()
        };
        // A query for an earlier time is rare: it sums from the start and leaves the stored sums
        // unchanged.
        let back = self.heaps[place].next > last + 1;
        if !back {
            std::mem::swap(&mut heap, &mut self.heaps[place]);
        }
        self.advance(&mut heap, &spans, last);
        let mut held = heap.forever.clone();
        held.join(&self.passing(place, &spans, last));
        let activities = history.destroyed(now);
        for (_, blocks, size) in self.workload.of_an_activity(place) {
            held.add(size, blocks.saturating_mul(activities));
        }
        if !back {
            self.heaps[place] = heap;
        }
        held
    }

    /// Sums allocations that are never freed, to the end of tick `last`.
    fn advance(&self, heap: &mut Heap, spans: &[(BootNs, BootNs)], last: u64) {
        let forever = |s: &Site| matches!(s.life, Life::Forever);
        let sites = &self.workload.heaps[heap.place].sites;
        if sites.iter().any(forever) {
            let mut out = Vec::new();
            for tick in ticks(spans, heap.next, last) {
                heap.summed += 1;
                for (index, site) in sites.iter().enumerate().filter(|(_, s)| forever(s)) {
                    let (workload, site) = (&self.workload, (index, site));
                    workload.allocations_at(heap.place, site, tick, self.started, &mut out);
                }
                out.drain(..).for_each(|a| heap.forever.add(a.size, 1));
            }
        }
        heap.next = last + 1;
    }

    /// Returns allocations that will be freed, at the end of tick `last`.
    fn passing(&self, place: usize, spans: &[(BootNs, BootNs)], last: u64) -> Blocks {
        let mut held = Blocks::default();
        let mut out: Vec<Allocation> = Vec::new();
        let def = &self.workload.heaps[place];
        let mut keep = |out: &mut Vec<Allocation>| {
            let live = out
                .drain(..)
                .filter(|a| a.freed_at.is_some_and(|at| at > last));
            live.for_each(|a| held.add(a.size, 1));
        };
        let turns = def.in_turn.map_or(0, |(turns, _)| turns);
        let longest = |sites: &[Site]| {
            let lives = sites.iter().filter_map(|s| match s.life {
                Life::Forever => None,
                Life::Millis(_, to) => Some(to * MILLI / TICK + 2),
            });
            lives.max()
        };
        if let Some(window) = longest(&def.sites[..turns]) {
            for tick in ticks(spans, last.saturating_sub(window), last) {
                self.workload.in_turn(place, tick, self.started, &mut out);
                keep(&mut out);
            }
        }
        for (index, site) in def.sites.iter().enumerate().skip(turns) {
            let Some(window) = longest(std::slice::from_ref(site)) else {
                continue;
            };
            for tick in ticks(spans, last.saturating_sub(window), last) {
                let (workload, site) = (&self.workload, (index, site));
                workload.allocations_at(place, site, tick, self.started, &mut out);
                keep(&mut out);
            }
        }
        held
    }

    /// Returns the number of ticks summed so far.
    #[cfg(test)]
    pub(crate) fn ticks_summed(&self) -> u64 {
        self.heaps.iter().map(|h| h.summed).sum()
    }

    /// Returns the code in its stacks: path, start, end, offset in the file.
    pub(crate) fn code(&self) -> Vec<(String, u64, u64, u64)> {
        let mappings = self.workload.mappings.iter();
        mappings
            .map(|m| (m.path.clone(), m.start, m.end, m.exact_offset))
            .collect()
    }

    /// Returns the average size in kB that one site of malloc's heap holds.
    pub(crate) fn flow_of(&self, name: &str) -> u64 {
        let sites = self.workload.heaps.first().map_or(&[][..], |h| &h.sites);
        let site = sites.iter().find(|s| &*s.name == name);
        site.map_or(0, |site| match site.life {
            Life::Forever => 0,
            Life::Millis(from, to) => {
                let held = site.per_second * (from + to) as f64 / 2_000.0;
                (held * (site.size.0 + site.size.1) as f64 / 2_048.0) as u64
            }
        })
    }

    /// Returns the average allocation rate of a heap, with objects of at least `large` bytes
    /// separate.
    pub(crate) fn flow(&self, name: &str, large: u64) -> Flow {
        let mut flow = Flow::default();
        let heaps = self.workload.heaps.iter().filter(|h| h.name == name);
        for site in heaps.flat_map(|h| &h.sites) {
            let (low, high) = site.size;
            let width = (high - low + 1) as f64;
            let big = (high + 1).saturating_sub(large.max(low)) as f64 / width;
            let (low_to, high_from) = (high.min(large.saturating_sub(1)), low.max(large));
            let mean_small = (low + low_to) as f64 / 2.0;
            let mean_large = (high_from + high) as f64 / 2.0;
            let life = match site.life {
                Life::Forever => 0.0,
                Life::Millis(from, to) => (from + to) as f64 / 2_000.0,
            };
            for (share, mean, rate, held) in [
                (1.0 - big, mean_small, &mut flow.small, &mut flow.held_small),
                (big, mean_large, &mut flow.large, &mut flow.held_large),
            ] {
                if share <= 0.0 {
                    continue;
                }
                let count = site.per_second * share;
                rate.0 += count;
                rate.1 += count * mean;
                held.0 += count * life;
                held.1 += count * mean * life;
            }
        }
        flow
    }
}

/// Returns the ticks from `first` to `last` in which the process ran.
fn ticks(spans: &[(BootNs, BootNs)], first: u64, last: u64) -> impl Iterator<Item = u64> + '_ {
    spans.iter().flat_map(move |(from, to)| {
        let from = from.div_ceil(TICK).max(first);
        from..(to / TICK).min(last) + 1
    })
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::allocations::Due;
    use super::*;
    use crate::clock::SECOND;
    use crate::packages::{self, Package};
    use crate::process::Role;

    /// Returns the phone of a specification, its app, and that app's process since `started`.
    pub fn app(words: &str, started: BootNs) -> (PhoneSpec, Option<Package>, Process) {
        let spec = PhoneSpec::parse(words).unwrap();
        let installed = packages::installed();
        let package = installed.iter().find(|p| p.name == packages::APP).cloned();
        let role = Role::App {
            package: packages::APP.to_owned(),
            user: 0,
        };
        let process = Process::for_tests(packages::APP, role, started);
        (spec, package, process)
    }

    /// Returns the unreleased bytes as counted for a profiled process, from its first tick to the
    /// end of `last`.
    fn counted(workload: &Workload, place: usize, started: BootNs, last: u64) -> (u64, u64) {
        let (mut due, mut out) = (Due::default(), Vec::new());
        let (mut bytes, mut count) = (0, 0);
        for tick in started.div_ceil(TICK)..=last {
            for (_, size, _) in due.take(tick) {
                bytes -= size;
                count -= 1;
            }
            workload.allocations(place, tick, started, &mut out);
            for a in &out {
                bytes += a.size;
                count += 1;
                if let Some(at) = a.freed_at {
                    due.add(at, a.site, a.size, a.size);
                }
            }
        }
        (bytes, count)
    }

    #[test]
    fn activities_that_stay_are_held() {
        let (spec, package, process) = app("android=14", 0);
        let mut heaps = LiveHeaps::new(&spec, package.clone(), &process, 0);
        let mut history = History::for_tests(0);
        let now = 3 * SECOND;
        let before = heaps.at("libc.malloc", &history, now);
        let mut deeds = crate::app_actions::ProcessHistory::default();
        for _ in 0..3 {
            deeds.note(2 * SECOND, crate::app_actions::AppAction::Destroyed);
        }
        history.set_deeds(deeds);
        let after = heaps.at("libc.malloc", &history, now);
        let workload = Workload::build(&spec, package, &process, 0);
        let all = workload.of_an_activity(0);
        let (bytes, count) = all.fold((0, 0), |(bytes, count), (_, blocks, size)| {
            (bytes + 3 * blocks * size, count + 3 * blocks)
        });
        assert!(bytes > 3 * (192 << 10));
        assert_eq!(
            (after.bytes - before.bytes, after.count - before.count),
            (bytes, count)
        );
        // Before their first allocation, these sites hold nothing.
        let early = heaps.at("libc.malloc", &history, SECOND);
        history.set_deeds(crate::app_actions::ProcessHistory::default());
        assert_eq!(heaps.at("libc.malloc", &history, SECOND), early);
    }

    #[test]
    fn what_is_held_is_what_a_profile_of_every_byte_counts() {
        for (words, seconds) in [("android=14", 9), ("android=11,app=heavy,sites=3000", 3)] {
            let started = 77 * SECOND + 3;
            let (spec, package, process) = app(words, started);
            let mut heaps = LiveHeaps::new(&spec, package.clone(), &process, 0);
            let history = History::for_tests(started);
            let workload = Workload::build(&spec, package, &process, 0);
            for (place, heap) in workload.heaps.iter().enumerate() {
                for half in 1..=2 * seconds {
                    let now = started + half * SECOND / 2;
                    let held = heaps.at(heap.name, &history, now);
                    let truth = counted(&workload, place, started, now / TICK);
                    assert_eq!(
                        (held.bytes, held.count),
                        truth,
                        "{words} {} {half}",
                        heap.name
                    );
                }
            }
        }
    }
}
