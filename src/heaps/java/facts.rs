//! What a Java heap is and how it was looked at, as documents and headings tell it.

use crate::heap_graph::AllocationSite;
use serde::Serialize;
use time::OffsetDateTime;

use super::heap::JavaHeap;
use crate::analyze::histogram::Sums;
use crate::heap_graph::{DumpSource, Follow, SizeModel};
use crate::results::findings::{Finding, SAME_MOMENT};

/// Where a heap came from and how it was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeapFacts {
    /// The file or folder as it was typed.
    pub path: String,
    /// Which Java heap of its process it is, from 1: `N` of `PATH@N`.
    pub number: u32,
    /// How many dumps of its process there are to choose from.
    pub dumps: usize,
    /// The label of its snapshot.
    pub label: Option<String>,
    /// `heap-graph` or `hprof`.
    pub source: &'static str,
    /// `JAVA PROFILE 1.0.3`, of an HPROF.
    pub version: Option<String>,
    /// Process name.
    pub process: Option<String>,
    /// Process id.
    pub pid: Option<u64>,
    /// Trace time of a heap graph, ns.
    pub time_ns: Option<u64>,
    /// When an HPROF was made.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// Why it was dumped, such as `OOME`.
    pub reason: Option<String>,
    /// How shallow sizes came about: `dump`, `mat`, `art`, `hotspot`.
    pub sizes: &'static str,
    /// Kinds of `java.lang.ref.Reference` that keep nothing alive here.
    pub excluded: Vec<&'static str>,
    /// What the user should know.
    pub warnings: Vec<Warning>,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Warning {
    /// A stable word.
    pub kind: &'static str,
    /// What it is.
    pub message: String,
    /// What to do about it.
    pub help: Option<String>,
}

impl Warning {
    /// Of a comparison of a dump with itself.
    pub fn same_moment() -> Warning {
        Warning {
            kind: SAME_MOMENT,
            message: "both sides are the same moment, so nothing can differ".to_owned(),
            help: Some("name two: INPUT@LABEL, INPUT@N, INPUT@last".to_owned()),
        }
    }
}

impl From<&Finding> for Warning {
    fn from(finding: &Finding) -> Warning {
        Warning {
            kind: finding.kind,
            message: finding.message.clone(),
            help: finding.help.clone(),
        }
    }
}

/// The word for a size model.
pub fn sizes_word(sizes: SizeModel) -> &'static str {
    match sizes {
        SizeModel::Dump => "dump",
        SizeModel::Mat => "mat",
        SizeModel::Art => "art",
        SizeModel::Hotspot => "hotspot",
    }
}

/// The kinds of reference that are not followed.
pub fn excluded(follow: Follow) -> Vec<&'static str> {
    let all = [
        (follow.soft, "soft"),
        (follow.weak, "weak"),
        (follow.finalizer, "finalizer"),
        (follow.phantom, "phantom"),
    ];
    let not_followed = all.into_iter().filter(|(followed, _)| !followed);
    not_followed.map(|(_, word)| word).collect()
}

impl HeapFacts {
    /// Those of a heap.
    pub fn of(heap: &JavaHeap) -> HeapFacts {
        let facts = &heap.graph.facts;
        let (source, version) = match &facts.source {
            DumpSource::HeapGraph => ("heap-graph", None),
            DumpSource::Hprof { version, .. } => ("hprof", Some(version.clone())),
        };
        let is_trace = facts.source == DumpSource::HeapGraph;
        HeapFacts {
            path: heap.path.display().to_string(),
            number: heap.number,
            dumps: heap.among,
            label: heap.label.clone(),
            source,
            version,
            process: (!facts.process.is_empty()).then(|| facts.process.clone()),
            pid: facts.pid,
            time_ns: is_trace.then_some(facts.time_ns),
            time: (!is_trace && facts.time_ns > 0)
                .then(|| OffsetDateTime::from_unix_timestamp_nanos(facts.time_ns.into()).ok())
                .flatten(),
            reason: facts.reason.clone(),
            sizes: sizes_word(facts.sizes),
            excluded: excluded(heap.follow),
            warnings: heap.findings.iter().map(Warning::from).collect(),
        }
    }
}

/// Sums over objects, as documents have them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Figures {
    /// Number of objects.
    pub count: u64,
    /// Their own sizes.
    pub shallow_bytes: u64,
    /// Native bytes they own.
    pub native_bytes: u64,
    /// Objects that would be free without them.
    pub retained_count: Option<u64>,
    /// Sizes of those.
    pub retained_bytes: Option<u64>,
    /// Native bytes of those.
    pub retained_native_bytes: Option<u64>,
}

impl Figures {
    /// With what they retain.
    pub fn with_retained(sums: &Sums) -> Figures {
        Figures {
            retained_count: Some(sums.retained.count),
            retained_bytes: Some(sums.retained.bytes),
            retained_native_bytes: Some(sums.retained.native_bytes),
            ..Figures::own(sums)
        }
    }

    /// Where what they retain is not known.
    pub fn own(sums: &Sums) -> Figures {
        Figures {
            count: sums.count,
            shallow_bytes: sums.shallow_bytes,
            native_bytes: sums.native_bytes,
            ..Figures::default()
        }
    }

    /// Java and native bytes that they retain; 0 where that is not known.
    pub fn retained_total(&self) -> u64 {
        let bytes = self.retained_bytes.unwrap_or(0);
        bytes.saturating_add(self.retained_native_bytes.unwrap_or(0))
    }
}

/// A stack at which objects were allocated.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Site {
    /// The thread.
    pub thread: String,
    /// Frames, the allocating one first.
    pub frames: Vec<String>,
}

impl From<AllocationSite> for Site {
    fn from(site: AllocationSite) -> Site {
        Site {
            thread: site.thread,
            frames: site.frames,
        }
    }
}
