//! The Java heap of a process over time: live objects, objects dropped since the last collection,
//! and the collections themselves. Computed from the same activity as heap graphs, and from the
//! allocations of ART's own heap in the workload.

use super::numbers::mix;
use crate::clock::{BootNs, MILLI, SECOND};
use crate::history::{COLLECTION_EVERY, History, Request};
use crate::java::{Life, Model, Sizes};
use crate::process::{Process, Role};
use crate::spec::PhoneSpec;
use crate::workload::Flow;

/// Time in nanoseconds until a young process holds its steady amount of temporary objects.
const RAMP: u64 = 2 * SECOND;
/// Minimum size in bytes of objects in the large object space.
pub(super) const LARGE_BYTES: u64 = 12 << 10;
/// Minimum total time and minimum pause of a collection that ART logs because a user might notice
/// it.
const LONG_COLLECTION: u64 = 100 * MILLI;
const LONG_PAUSE: u64 = 5 * MILLI;

/// Returns whether the process has a Java runtime.
pub(crate) fn has_java(process: &Process) -> bool {
    matches!(process.role, Role::App { .. } | Role::SystemServer)
}

/// Garbage collector of ART.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Android {
    /// Up to Android 13: concurrent copying, with generations.
    Copying,
    /// Android 14 and 15: concurrent mark compact.
    Compacting,
    /// Android 16: concurrent mark compact with generations.
    YoungCompacting,
}

impl Android {
    pub(super) fn from_spec(spec: &PhoneSpec) -> Android {
        match spec.android {
            ..=13 => Android::Copying,
            14 | 15 => Android::Compacting,
            _ => Android::YoungCompacting,
        }
    }
}

/// Limits of a heap from the properties.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Limits {
    /// Size at which an OutOfMemoryError is thrown.
    pub(crate) growth: u64,
    pub(crate) min_free: u64,
    pub(crate) max_free: u64,
    /// Percentage of the heap that should be in use after a collection.
    pub(crate) utilization: u64,
}

/// The Java heap at one time, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct JavaHeapState {
    /// Reachable objects: those of a heap graph without the dropped ones.
    pub(crate) live: Sizes,
    /// Objects of a heap graph that were dropped and not collected yet.
    pub(crate) dropped: Sizes,
    /// Temporary objects: held for a short time, or dropped since the last collection.
    pub(crate) passing: Passing,
    /// Size that ART allocates before it collects.
    pub(crate) footprint: u64,
    pub(crate) limits: Limits,
}

/// Temporary objects, which are not in a heap graph.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Passing {
    pub(crate) small: u64,
    pub(crate) small_objects: u64,
    pub(crate) large: u64,
    pub(crate) large_objects: u64,
}

impl Collection {
    /// Returns the duration in nanoseconds.
    pub(crate) fn duration(&self) -> u64 {
        self.ends - self.begins
    }
}

impl JavaHeapState {
    /// Returns `Runtime.totalMemory() - freeMemory()`: the allocated bytes, including the zygote's.
    pub(crate) fn allocated(&self) -> u64 {
        self.live.zygote() + self.small() + self.large()
    }

    /// Returns the bytes outside the large object space, after the fork.
    pub(crate) fn small(&self) -> u64 {
        self.live.small() + self.dropped.small() + self.passing.small
    }

    /// Returns the bytes in the large object space.
    pub(crate) fn large(&self) -> u64 {
        self.live.large() + self.dropped.large() + self.passing.large
    }

    /// Returns `Runtime.totalMemory()`.
    pub(crate) fn total(&self) -> u64 {
        self.footprint.max(self.allocated())
    }
}

/// A collection. The log and traces both use its times.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Collection {
    /// Start; a requested collection starts with the request.
    pub(crate) begins: BootNs,
    /// Time from which memory accounting excludes the freed objects, between begin and end. It is
    /// the end of an automatic collection and the begin of a requested one.
    pub(crate) marks: BootNs,
    /// End, at which ART writes its log line.
    pub(crate) ends: BootNs,
    pub(crate) pauses: Vec<u64>,
    /// Cause: `Background`, `Explicit` …
    pub(crate) cause: &'static str,
    /// Collector: `concurrent copying` …
    pub(crate) collector: &'static str,
    pub(crate) freed_objects: u64,
    pub(crate) freed_bytes: u64,
    pub(crate) freed_large_objects: u64,
    pub(crate) freed_large_bytes: u64,
    /// Allocated bytes before and after, and the heap's size after it.
    pub(crate) before: u64,
    pub(crate) live: u64,
    pub(crate) total: u64,
    /// Whether ART logs it because a user might notice the pause.
    pub(crate) long: bool,
}

/// Inputs of the Java heap of one process.
pub(super) struct JavaHeap<'a> {
    pub(super) model: &'a Model,
    pub(super) flow: Flow,
    pub(super) history: &'a History,
    pub(super) limits: Limits,
    pub(super) android: Android,
    /// Seed of the phone and the process.
    pub(super) seed: u64,
}

/// Reason for a future or past collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Why {
    /// The n-th automatic collection of the runtime.
    Natural(u64),
    Asked(Request),
}

impl JavaHeap<'_> {
    /// Returns the heap at `moment`.
    pub(super) fn at(&self, moment: BootNs) -> JavaHeapState {
        let life = Life::at(self.history, moment);
        let (live, dropped) = self.model.at(&life);
        let awake = self.history.awake(moment);
        let since = self.collected_at(moment, awake);
        let passing = self.passing(since, awake - since);
        let mut state = JavaHeapState {
            live,
            dropped,
            passing,
            footprint: 0,
            limits: self.limits,
        };
        state.footprint = self.footprint(moment, since, awake);
        state
    }

    /// Returns the running time of the process at its last collection.
    fn collected_at(&self, moment: BootNs, awake: u64) -> u64 {
        let natural = awake / COLLECTION_EVERY * COLLECTION_EVERY;
        let asked = self.history.last_request(moment);
        asked.map_or(natural, |at| natural.max(self.history.awake(at)))
    }

    /// Returns the temporary objects: held at the last collection, and allocated since.
    fn passing(&self, collected: u64, since: u64) -> Passing {
        let ramp = collected.min(RAMP) as f64 / RAMP as f64;
        let seconds = since as f64 / SECOND as f64;
        let sum = |held: f64, rate: f64| (held * ramp + rate * seconds) as u64;
        let flow = &self.flow;
        Passing {
            small: sum(flow.held_small.1, flow.small.1) & !7,
            small_objects: sum(flow.held_small.0, flow.small.0),
            large: sum(flow.held_large.1, flow.large.1) & !0xfff,
            large_objects: sum(flow.held_large.0, flow.large.0),
        }
    }

    /// Returns the size to which ART lets the heap grow, as set at the last collection.
    fn footprint(&self, moment: BootNs, collected: u64, awake: u64) -> u64 {
        let at = match collected == awake {
            true => moment,
            false => self.history.moment(collected, moment).unwrap_or(moment),
        };
        let mut life = Life::at(self.history, at);
        if self.history.last_request(moment).is_none_or(|t| t < at) {
            life = life.swept();
        }
        let (live, dropped) = self.model.at(&life);
        let held = self.passing(collected, 0);
        let live = live.zygote() + live.own() + dropped.own() + held.small + held.large;
        let Limits {
            growth,
            min_free,
            max_free,
            utilization,
        } = self.limits;
        // Apps on the screen get twice as much. The limit always covers the allocations until the
        // next automatic collection.
        let room = (live * 100 / utilization.max(1)).saturating_sub(live);
        let room = room.clamp(min_free, max_free.max(min_free)) * 2;
        let soon = (self.flow.small.1 + self.flow.large.1) * COLLECTION_EVERY as f64;
        let soon = soon * 1.1 / SECOND as f64;
        let target = (live + room.max(soon as u64)).next_multiple_of(4096);
        target.min(growth).max(live)
    }

    /// Returns the collections with their mark after `from`, up to `to`, in order.
    pub(super) fn collections(&self, from: BootNs, to: BootNs) -> Vec<Collection> {
        let due = self.due(from, to);
        due.into_iter()
            .map(|(at, why)| self.collection(at, why))
            .collect()
    }

    fn due(&self, from: BootNs, to: BootNs) -> Vec<(BootNs, Why)> {
        let numbers = |at| self.history.awake(at) / COLLECTION_EVERY;
        let mut due: Vec<(BootNs, Why)> = (numbers(from) + 1..=numbers(to))
            .filter_map(|n| {
                let at = self.history.moment(n * COLLECTION_EVERY, to)?;
                Some((at, Why::Natural(n)))
            })
            .collect();
        let asked = self.history.requests().iter();
        let asked = asked.filter(|(at, _)| (from + 1..=to).contains(at));
        due.extend(asked.map(|(at, request)| (*at, Why::Asked(*request))));
        due.sort_by_key(|(at, _)| *at);
        due
    }

    /// Returns the collections like [`JavaHeap::collections`], but only those that ART logs.
    pub(super) fn logged(&self, from: BootNs, to: BootNs, noticed: bool) -> Vec<Collection> {
        let due = self.due(from, to).into_iter();
        let due = due.filter(|(at, why)| {
            matches!(why, Why::Asked(Request::Explicit)) || (noticed && self.timing(*at, *why).long)
        });
        due.map(|(at, why)| self.collection(at, why)).collect()
    }

    fn timing(&self, at: BootNs, why: Why) -> Timing {
        let number = match why {
            Why::Natural(n) => n,
            Why::Asked(_) => at,
        };
        let random = mix(&[self.seed, number, 0x6763]);
        let young = match (why, self.android) {
            // Before Android 16, the compacting collector does not have generations.
            (Why::Asked(_), _) | (_, Android::Compacting) => false,
            (Why::Natural(n), _) => n % 4 != 0,
        };
        let spread = |low: u64, high: u64, shift: u32| {
            // Most values are short, few are long.
            let part = (random >> shift & 0xff) * (random >> shift >> 8 & 0xff);
            low + (high - low) * part / (255 * 255)
        };
        let (duration, pauses) = match (self.android, young) {
            (Android::Copying, true) => (
                spread(18 * MILLI, 120 * MILLI, 0),
                vec![spread(40_000, 260_000, 16), spread(30_000, 400_000, 24)],
            ),
            (Android::Copying, false) => (
                spread(62 * MILLI, 260 * MILLI, 0),
                vec![spread(60_000, 420_000, 16), spread(40_000, 600_000, 24)],
            ),
            (_, true) => (
                spread(12 * MILLI, 110 * MILLI, 0),
                vec![spread(60_000, 400_000, 16), spread(700_000, 8 * MILLI, 24)],
            ),
            (_, false) => (
                spread(48 * MILLI, 320 * MILLI, 0),
                vec![spread(120_000, 900_000, 16), spread(900_000, 9 * MILLI, 24)],
            ),
        };
        let cause = match why {
            Why::Asked(Request::Explicit) => "Explicit",
            Why::Asked(Request::Alloc) => "Alloc",
            Why::Natural(n) if n % 7 == 5 => "NativeAlloc",
            Why::Natural(_) => "Background",
        };
        let collector = match (self.android, young) {
            (Android::Copying, true) => "young concurrent copying",
            (Android::Copying, false) => "concurrent copying",
            (_, true) => "young concurrent mark compact",
            (_, false) => "concurrent mark compact",
        };
        let long = duration > LONG_COLLECTION
            || (cause == "Alloc" && duration > LONG_PAUSE)
            || pauses.iter().any(|p| *p >= LONG_PAUSE);
        Timing {
            duration,
            pauses,
            cause,
            collector,
            long,
        }
    }

    fn collection(&self, at: BootNs, why: Why) -> Collection {
        let timing = self.timing(at, why);
        let (before, after) = (self.at(at.saturating_sub(1)), self.at(at));
        let objects = |state: &JavaHeapState, large: bool| {
            if large {
                state.live.large_objects()
                    + state.dropped.large_objects()
                    + state.passing.large_objects
            } else {
                state.live.small_objects()
                    + state.dropped.small_objects()
                    + state.passing.small_objects
            }
        };
        let freed = |large| objects(&before, large).saturating_sub(objects(&after, large));
        let (begins, ends) = match why {
            Why::Natural(_) => (at.saturating_sub(timing.duration), at),
            Why::Asked(_) => (at, at + timing.duration),
        };
        Collection {
            begins,
            marks: at,
            ends,
            pauses: timing.pauses,
            cause: timing.cause,
            collector: timing.collector,
            freed_objects: freed(false),
            freed_bytes: before.small().saturating_sub(after.small()),
            freed_large_objects: freed(true),
            freed_large_bytes: before.large().saturating_sub(after.large()),
            before: before.allocated(),
            live: after.allocated(),
            total: after.total(),
            long: timing.long,
        }
    }
}

/// Properties of a collection that do not depend on the heap.
struct Timing {
    duration: u64,
    pauses: Vec<u64>,
    cause: &'static str,
    collector: &'static str,
    long: bool,
}
