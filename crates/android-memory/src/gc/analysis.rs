//! Summary of the collections of a process: number per group, pauses, and live bytes afterwards.
//! `diagnosis` finds the problems in them.

use std::collections::BTreeMap;

use super::diagnosis::{diagnose, growth};
use super::event::{Runtime, is_whole};
use super::log::{MAX_SILENCE_NS, Name, ProcessLog};
use super::observed::{Observed, ObservedBy};
use super::report::{Coverage, Error, Figures, Group, LimitFrom, Live, MinorEvents, ProcessReport};

/// Maximum number of groups; the rest is combined in one group.
const MAX_GROUPS: usize = 64;
/// Maximum number of different errors.
const MAX_ERRORS: usize = 20;

/// Facts from sources other than the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct GcContext {
    /// True if all collections are known, whatever their source.
    pub every: bool,
    /// Heap growth limit of the device, bytes; a limit in the log takes precedence.
    pub limit: Option<u64>,
    /// Heap limit for apps with `android:largeHeap`, bytes.
    pub large_limit: Option<u64>,
    /// True if the app has `android:largeHeap`. If unknown, a heap larger than `limit` counts as
    /// large.
    pub is_large: Option<bool>,
    /// Observation time. If unknown, the time from the first to the last collection is used.
    pub observed: Option<Observed>,
}

/// Summarizes the collections of a process.
pub fn analyze(process: &ProcessLog, context: GcContext) -> ProcessReport {
    let runtime = process.runtime();
    let every = context.every || runtime == Some(Runtime::Dalvik);
    let coverage = match every {
        true => Coverage::Every,
        false => Coverage::Logged,
    };
    let own: Vec<_> = process
        .collections
        .iter()
        .filter(|c| !c.logged.collection.ours)
        .collect();
    let times: Vec<i64> = own.iter().filter_map(|c| c.at).collect();
    let span_ns = match (times.iter().min(), times.iter().max()) {
        (Some(first), Some(last)) if times.len() > 1 => last.checked_sub(*first),
        _ => None,
    }
    .and_then(|ns| u64::try_from(ns).ok());
    let between = span_ns.map(|ns| Observed {
        ns,
        by: ObservedBy::Collections,
    });
    // An observation time shorter than the time between its collections is invalid, unless a clock
    // was set in between.
    let set = MAX_SILENCE_NS.unsigned_abs();
    let watched = context.observed.filter(|of| {
        let beyond = span_ns.unwrap_or(0).saturating_sub(of.ns);
        beyond == 0 || beyond > set
    });
    let observed = watched.filter(|of| of.ns > 0).or(between);
    let per_minute = observed.filter(|of| every && of.ns > 0).map(|of| {
        let count = match of.by {
            ObservedBy::Collections => times.len() - 1,
            _ => own.len(),
        };
        count as f64 * 60e9 / of.ns as f64
    });
    let of = |value: fn(&super::log::Timed) -> Option<u64>| {
        Figures::from_values(own.iter().copied().filter_map(value).collect())
    };
    let live: Vec<Live> = process
        .collections
        .iter()
        .filter_map(|timed| {
            let collection = &timed.logged.collection;
            Some(Live {
                at: timed.at,
                bytes: collection.live?,
                total: collection.total,
                step: timed.logged.steps.live,
                whole: is_whole(&collection.collector),
                ours: collection.ours,
            })
        })
        .collect();
    let largest = live.iter().filter_map(|l| l.total).max().unwrap_or(0);
    let is_large = context
        .is_large
        .unwrap_or_else(|| context.limit.is_some_and(|limit| largest > limit));
    let of_log = process.limit.map(|limit| (limit, LimitFrom::Log));
    let of_phone = match (is_large, context.large_limit) {
        (true, Some(limit)) => Some((limit, LimitFrom::HeapSize)),
        _ => context
            .limit
            .map(|limit| (limit, LimitFrom::HeapGrowthLimit)),
    };
    let (limit, limit_from) = of_log.or(of_phone).unzip();
    let mut total = Freed::default();
    own.iter().for_each(|timed| total.add(timed));
    let mut report = ProcessReport {
        pid: process.pid,
        name: process.name.as_ref().map(|name| name.text.clone()),
        name_is_cut: process.name.as_ref().is_some_and(Name::may_be_cut),
        runtime,
        coverage,
        collections: own.len() as u64,
        ours: (process.collections.len() - own.len()) as u64,
        span_ns,
        observed_ns: observed.map(|of| of.ns),
        observed_by: observed.map(|of| of.by),
        per_minute,
        groups: groups(&own),
        freed_bytes: total.bytes(),
        frees_known: total.told,
        pauses: Figures::from_values(
            own.iter()
                .flat_map(|c| c.logged.collection.pauses.iter().copied())
                .collect(),
        ),
        durations: of(|c| c.logged.collection.duration),
        waits: Figures::from_values(process.blocked.iter().map(|b| b.ns).collect()),
        growth: growth(&live),
        live,
        limit,
        limit_from,
        out_of_memory: errors(process),
        minor: MinorEvents {
            clamps: process.clamps,
            grown: process.grown,
            soft_references: process.soft,
            signals: process.signals,
            unknown: process.unknown.0,
            unknown_examples: process.unknown.1.clone(),
            dropped: process.dropped,
        },
        diagnoses: Vec::new(),
    };
    report.diagnoses = diagnose(&report, process);
    report
}

/// Sum of the bytes freed by the collections that report them.
#[derive(Default)]
struct Freed {
    sum: i64,
    told: u64,
}

impl Freed {
    fn add(&mut self, timed: &super::log::Timed) {
        if let Some(bytes) = timed.logged.collection.freed() {
            self.sum = self.sum.saturating_add(bytes);
            self.told += 1;
        }
    }

    fn bytes(&self) -> Option<i64> {
        (self.told > 0).then_some(self.sum)
    }
}

fn groups(own: &[&super::log::Timed]) -> Vec<Group> {
    #[derive(Default)]
    struct Sum {
        count: u64,
        freed: Freed,
        total: u64,
        pauses: Vec<u64>,
    }
    let mut sums: BTreeMap<(&str, &str), Sum> = BTreeMap::new();
    for timed in own {
        let collection = &timed.logged.collection;
        let kind = (collection.reason.as_str(), collection.collector.as_str());
        let kind = match sums.len() < MAX_GROUPS || sums.contains_key(&kind) {
            true => kind,
            false => ("(others)", ""),
        };
        let sum = sums.entry(kind).or_default();
        sum.count += 1;
        sum.freed.add(timed);
        sum.total = sum.total.saturating_add(collection.duration.unwrap_or(0));
        sum.pauses.extend(&collection.pauses);
    }
    let mut groups: Vec<Group> = sums
        .into_iter()
        .map(|((reason, collector), sum)| Group {
            reason: reason.to_owned(),
            collector: collector.to_owned(),
            count: sum.count,
            freed_bytes: sum.freed.bytes(),
            frees_known: sum.freed.told,
            pauses: Figures::from_values(sum.pauses),
            total_ns: sum.total,
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

/// Returns each error text once, because a stack trace repeats the runtime's announcement.
fn errors(process: &ProcessLog) -> Vec<Error> {
    let mut found: Vec<Error> = Vec::new();
    for (at, error) in &process.out_of_memory {
        let known = found.iter().position(|e| e.error.text == error.text);
        let Some(place) = known.or_else(|| (found.len() < MAX_ERRORS).then_some(found.len()))
        else {
            continue;
        };
        if place == found.len() {
            found.push(Error {
                at: *at,
                thrown: 0,
                reported: 0,
                error: error.clone(),
            });
        }
        let entry = &mut found[place];
        match error.thrown {
            true => entry.thrown += 1,
            false => entry.reported += 1,
        }
        entry.error.virtual_bytes = entry.error.virtual_bytes.or(error.virtual_bytes);
    }
    found
}
