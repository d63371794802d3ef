//! What the collections of a process come to: how many of which kind, how long they stopped
//! it, what was live afterwards. Figures of one process; what is wrong with them is said in
//! `diagnosis`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::diagnosis::{Diagnosis, Growth, diagnose, growth};
use super::log::{LONGEST_SILENCE_NS, ProcessLog};
use super::message::Runtime;
use super::oom::OutOfMemory;

/// Kinds of collections that are told apart; the rest come to one.
const MOST_GROUPS: usize = 64;
/// Different errors that are kept.
const MOST_ERRORS: usize = 20;

/// Which of a process's collections are known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Coverage {
    /// All: Dalvik logs each, and so does a trace with ART's own marks.
    Every,
    /// Those that ART logs: slow ones, of an app that the user perceives, and those that were
    /// asked for.
    Logged,
}

impl Coverage {
    /// Why figures are counts and no rates, where they are.
    pub fn caveat(self) -> Option<&'static str> {
        match self {
            Coverage::Every => None,
            Coverage::Logged => Some(
                "ART logs a collection only if it was asked for, or if the user perceives the \
                 app and it took over 100 ms, paused for 5 ms or kept an allocation waiting for \
                 5 ms: how often it collects cannot be told from the log",
            ),
        }
    }
}

/// What is known beside the log.
#[derive(Debug, Clone, Copy, Default)]
pub struct GcContext {
    /// All collections are there, by whatever wrote them.
    pub every: bool,
    /// What the phone lets a heap grow to, bytes; the log's own word goes first.
    pub limit: Option<u64>,
    /// The same for apps with `android:largeHeap`.
    pub large_limit: Option<u64>,
    /// Whether the app has `android:largeHeap`; where that is not known, a heap that is larger
    /// than `limit` already is of one that has.
    pub is_large: Option<bool>,
    /// For how long its collections were watched; from the first to the last of them where that
    /// is not known.
    pub observed: Option<Observed>,
}

/// For how long collections were watched: what a rate is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Observed {
    /// How long.
    pub ns: u64,
    /// What says so.
    pub by: ObservedBy,
}

/// What says for how long collections were watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ObservedBy {
    /// The log's first and last line, within the process's life.
    Log,
    /// The log was followed for so long.
    Followed,
    /// The recording's begin and end, within the process's life.
    Recording,
    /// Nothing but the first and the last collection.
    Collections,
}

/// What says what a heap may grow to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LimitFrom {
    /// The log itself.
    Log,
    /// The phone's `dalvik.vm.heapgrowthlimit`.
    HeapGrowthLimit,
    /// The phone's `dalvik.vm.heapsize`: the app has `android:largeHeap`, or a heap that is larger
    /// than the other limit.
    HeapSize,
}

impl LimitFrom {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            LimitFrom::Log => "as its log says",
            LimitFrom::HeapGrowthLimit => "dalvik.vm.heapgrowthlimit",
            LimitFrom::HeapSize => "dalvik.vm.heapsize, with android:largeHeap",
        }
    }
}

/// What the collections of one process come to.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ProcessReport {
    /// Its number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// Its name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name may be the end of a longer one.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub name_is_cut: bool,
    /// The virtual machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runtime: Option<Runtime>,
    /// Which of its collections are known.
    pub coverage: Coverage,
    /// Collections, those that heaptap caused not counted.
    pub collections: u64,
    /// Those that heaptap caused.
    pub ours: u64,
    /// From the first to the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub span_ns: Option<u64>,
    /// For how long they were watched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_ns: Option<u64>,
    /// What says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_by: Option<ObservedBy>,
    /// How often it collects in that time, where all collections are known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_minute: Option<f64>,
    /// By reason and collector, the most frequent first.
    pub groups: Vec<Group>,
    /// What they freed, bytes, large objects with the others; `None` where none tells. The
    /// system's trace does not.
    pub freed_bytes: Option<i64>,
    /// How many of them tell.
    pub freed_told: u64,
    /// How long the app stood still, each time.
    pub pauses: Figures,
    /// How long collections took from begin to end, most of it beside the app.
    pub durations: Figures,
    /// Threads that waited for a collection.
    pub waits: Figures,
    /// What was live after each, in order.
    pub live: Vec<Live>,
    /// What the heap may grow to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit: Option<u64>,
    /// What says so.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limit_from: Option<LimitFrom>,
    /// `OutOfMemoryError`s, each text once.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub out_of_memory: Vec<Error>,
    /// The lesser lines.
    #[serde(skip_serializing_if = "MinorEvents::is_empty")]
    pub lesser: MinorEvents,
    /// Whether the live set keeps growing.
    pub growth: Growth,
    /// What is wrong.
    pub diagnoses: Vec<Diagnosis>,
}

/// Collections of one reason by one collector.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Group {
    /// Why.
    pub reason: String,
    /// How; empty for Dalvik.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub collector: String,
    /// How many.
    pub count: u64,
    /// What they freed; `None` where none tells.
    pub freed_bytes: Option<i64>,
    /// How many of them tell.
    pub freed_told: u64,
    /// How long they stopped the app.
    pub pauses: Figures,
    /// How long they took in all.
    pub total_ns: u64,
}

/// Durations summed up; percentiles by nearest rank: each is one that occurred.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    /// How many.
    pub count: u64,
    /// Half are no longer, ns.
    pub p50_ns: u64,
    /// Nine of ten are no longer.
    pub p90_ns: u64,
    /// Ninety-nine of a hundred are no longer.
    pub p99_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// All of them.
    pub total_ns: u64,
}

impl Figures {
    /// Sums up.
    pub fn of(mut values: Vec<u64>) -> Figures {
        values.sort_unstable();
        let rank = |percent: usize| {
            let rank = (values.len() * percent).div_ceil(100).max(1);
            values.get(rank - 1).copied().unwrap_or(0)
        };
        Figures {
            count: values.len() as u64,
            p50_ns: rank(50),
            p90_ns: rank(90),
            p99_ns: rank(99),
            max_ns: rank(100),
            total_ns: values.iter().fold(0, |sum, v| sum.saturating_add(*v)),
        }
    }
}

/// What was live after a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Live {
    /// When, on the log's axis, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// Bytes live, at least.
    pub bytes: u64,
    /// The heap's size.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// What the unit hides: it may be less than so much more.
    pub step: u64,
    /// The whole heap was collected: comparable with others of the kind.
    pub whole: bool,
    /// heaptap caused it.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub ours: bool,
}

/// An `OutOfMemoryError`, and how often it came.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Error {
    /// When it came first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<i64>,
    /// How often the runtime threw it.
    pub thrown: u64,
    /// How often somebody reported it.
    pub reported: u64,
    /// What it says.
    #[serde(flatten)]
    pub error: OutOfMemory,
}

/// Lines that say less.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct MinorEvents {
    /// How often the heap wanted to grow over its limit.
    pub clamps: u64,
    /// How often it grew because nothing in it fitted.
    pub grown: u64,
    /// How often it gave up what is softly referenced.
    pub soft_references: u64,
    /// Collections that a signal asked for.
    pub signals: u64,
    /// Lines of the collector in words that are not known.
    pub unknown: u64,
    /// The first of them.
    pub unknown_examples: Vec<String>,
    /// Lines of the process that the phone's log threw away.
    pub dropped: u64,
}

impl MinorEvents {
    fn is_empty(&self) -> bool {
        *self == MinorEvents::default()
    }
}

/// Whether a collector goes over the whole heap: young and sticky ones leave what is old.
pub fn is_whole(collector: &str) -> bool {
    !collector
        .split_whitespace()
        .any(|word| matches!(word, "young" | "sticky"))
}

/// Sums up what is known of a process.
pub fn analyze(process: &ProcessLog, known: GcContext) -> ProcessReport {
    let runtime = process.runtime();
    let every = known.every || runtime == Some(Runtime::Dalvik);
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
    // What is shorter than what happened in it is no measure of it, unless a clock was set in
    // between.
    let set = LONGEST_SILENCE_NS.unsigned_abs();
    let watched = known.observed.filter(|of| {
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
        Figures::of(own.iter().copied().filter_map(value).collect())
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
    let is_large = known
        .is_large
        .unwrap_or_else(|| known.limit.is_some_and(|limit| largest > limit));
    let of_log = process.limit.map(|limit| (limit, LimitFrom::Log));
    let of_phone = match (is_large, known.large_limit) {
        (true, Some(limit)) => Some((limit, LimitFrom::HeapSize)),
        _ => known.limit.map(|limit| (limit, LimitFrom::HeapGrowthLimit)),
    };
    let (limit, limit_from) = of_log.or(of_phone).unzip();
    let mut total = Freed::default();
    own.iter().for_each(|timed| total.add(timed));
    let mut report = ProcessReport {
        pid: process.pid,
        name: process.name.as_ref().map(|name| name.text.clone()),
        name_is_cut: process.name.as_ref().is_some_and(|name| name.from_tag),
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
        freed_told: total.told,
        pauses: Figures::of(
            own.iter()
                .flat_map(|c| c.logged.collection.pauses.iter().copied())
                .collect(),
        ),
        durations: of(|c| c.logged.collection.duration),
        waits: Figures::of(process.blocked.iter().map(|b| b.ns).collect()),
        growth: growth(&live),
        live,
        limit,
        limit_from,
        out_of_memory: errors(process),
        lesser: MinorEvents {
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

/// What collections freed, of those that tell.
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
        let kind = match sums.len() < MOST_GROUPS || sums.contains_key(&kind) {
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
            freed_told: sum.freed.told,
            pauses: Figures::of(sum.pauses),
            total_ns: sum.total,
        })
        .collect();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups
}

/// Each text once: the runtime announces what a stack trace then reports.
fn errors(process: &ProcessLog) -> Vec<Error> {
    let mut found: Vec<Error> = Vec::new();
    for (at, error) in &process.out_of_memory {
        let known = found.iter().position(|e| e.error.text == error.text);
        let Some(place) = known.or_else(|| (found.len() < MOST_ERRORS).then_some(found.len()))
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
