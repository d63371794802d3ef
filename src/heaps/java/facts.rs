//! Facts about a Java heap and its analysis options, as used in documents and headings.

use serde::Serialize;
use time::OffsetDateTime;

use super::heap::JavaHeap;
use crate::heaps::selector::DumpSelector;
use heaptap_analyze::histogram::Sums;
use heaptap_model::heap_graph::{DumpSource, Follow, SizeModel};
use heaptap_results::findings::Finding;

/// Source and analysis options of a heap.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HeapFacts {
    /// File or directory as typed.
    pub path: String,
    /// Dump number within its process, from 1: `N` of `PATH@N`.
    pub number: u32,
    /// Number of dumps of its process.
    pub dumps: usize,
    /// Label of its snapshot.
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
    /// Time of an HPROF.
    #[serde(with = "time::serde::rfc3339::option")]
    pub time: Option<OffsetDateTime>,
    /// Reason of the dump, such as `OOME`.
    pub reason: Option<String>,
    /// Model for shallow sizes: `dump`, `mat`, `art`, `hotspot`.
    pub sizes: &'static str,
    /// Kinds of `java.lang.ref.Reference` that are not followed.
    pub excluded: Vec<&'static str>,
    pub warnings: Vec<Finding>,
    /// Whether objects are missing, so that others can look unreachable.
    pub lacks_objects: bool,
}

pub fn sizes_word(sizes: SizeModel) -> &'static str {
    match sizes {
        SizeModel::Dump => "dump",
        SizeModel::Mat => "mat",
        SizeModel::Art => "art",
        SizeModel::Hotspot => "hotspot",
    }
}

/// Returns the kinds of references that are not followed.
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
    /// Returns what selects the dump among those of its process; `None` if it is the only one.
    pub fn which(&self) -> Option<DumpSelector> {
        DumpSelector::new(self.label.as_deref(), self.number, self.dumps)
    }

    /// Returns the display name, as [`JavaHeap::name`].
    pub fn name(&self) -> String {
        match self.which() {
            Some(which) => format!("{}@{which}", self.path),
            None => self.path.clone(),
        }
    }

    /// Returns the facts about a heap.
    pub fn from_heap(heap: &JavaHeap) -> HeapFacts {
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
            warnings: heap.findings.clone(),
            lacks_objects: facts.losses.lacks_objects(),
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
    /// Number of objects freed with them.
    pub retained_count: Option<u64>,
    /// Shallow sizes of the freed objects.
    pub retained_bytes: Option<u64>,
    /// Native bytes of the freed objects.
    pub retained_native_bytes: Option<u64>,
}

impl Figures {
    /// Converts sums including retained bytes.
    pub fn with_retained(sums: &Sums) -> Figures {
        Figures {
            retained_count: Some(sums.retained.count),
            retained_bytes: Some(sums.retained.bytes),
            retained_native_bytes: Some(sums.retained.native_bytes),
            ..Figures::own(sums)
        }
    }

    /// Converts sums without retained bytes.
    pub fn own(sums: &Sums) -> Figures {
        Figures {
            count: sums.count,
            shallow_bytes: sums.shallow_bytes,
            native_bytes: sums.native_bytes,
            ..Figures::default()
        }
    }

    /// Returns the retained bytes, Java and native; 0 if unknown.
    pub fn retained_total(&self) -> u64 {
        let bytes = self.retained_bytes.unwrap_or(0);
        bytes.saturating_add(self.retained_native_bytes.unwrap_or(0))
    }
}
