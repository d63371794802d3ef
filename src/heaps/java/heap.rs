//! One Java heap, opened: the graph, where it came from, and what is computed of it once.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::error::ErrorClass;
use crate::heap_graph::{
    Dominators, DumpSource, Follow, HeapGraph, Losses, ObjectIndex, ShortestPaths,
};
use crate::naming::r8_mappings::UsedMap;
use crate::results::findings::Finding;

/// Told at the beginning of each step that may take a while, in words for people such as
/// `reading the heap`. Called from any thread; must return at once.
#[derive(Clone, Default)]
pub struct ProgressReporter(Option<Tell>);

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl ProgressReporter {
    /// Tells `tell` of each step.
    pub fn telling(tell: impl Fn(&str) + Send + Sync + 'static) -> ProgressReporter {
        ProgressReporter(Some(Arc::new(tell)))
    }

    /// A step begins.
    pub fn begin(&self, what: &str) {
        if let Some(tell) = &self.0 {
            tell(what);
        }
    }
}

impl std::fmt::Debug for ProgressReporter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ProgressReporter").finish_non_exhaustive()
    }
}

/// A Java heap to look at.
pub struct JavaHeap {
    /// Objects, classes, references, roots.
    pub graph: HeapGraph,
    /// The file or folder it came from, as it was typed.
    pub path: PathBuf,
    /// Which Java heap of its process it is, from 1.
    pub number: u32,
    /// How many dumps of its process that input has to choose from.
    pub among: usize,
    /// The label of its snapshot.
    pub label: Option<String>,
    /// Which referents [`JavaHeap::paths`] and [`JavaHeap::dominators`] follow.
    pub follow: Follow,
    /// What the user should know of it.
    pub findings: Vec<Finding>,
    /// The mapping files for a heap that lies in no trace.
    pub maps: Vec<UsedMap>,
    progress: ProgressReporter,
    paths: OnceLock<ShortestPaths>,
    dominators: OnceLock<Dominators>,
}

impl JavaHeap {
    /// A heap of which nothing is computed yet. What its dump lost becomes its first findings.
    pub fn new(
        graph: HeapGraph,
        path: PathBuf,
        number: u32,
        follow: Follow,
        progress: ProgressReporter,
    ) -> Self {
        let findings = of_losses(&graph);
        JavaHeap {
            graph,
            path,
            number,
            among: 1,
            label: None,
            follow,
            findings,
            maps: Vec::new(),
            progress,
            paths: OnceLock::new(),
            dominators: OnceLock::new(),
        }
    }

    /// The shortest paths from the roots that tell people most. Computed when first asked for.
    pub fn paths(&self) -> &ShortestPaths {
        self.paths.get_or_init(|| {
            self.progress.begin("finding the shortest paths");
            ShortestPaths::from_best_roots(&self.graph, self.follow)
        })
    }

    /// The same for a few objects only: no more of the heap is walked than it takes.
    pub fn paths_to(&self, objects: &[ObjectIndex]) -> ShortestPaths {
        ShortestPaths::to(&self.graph, self.follow, objects)
    }

    /// Dominators and retained sizes. Computed when first asked for.
    pub fn dominators(&self) -> &Dominators {
        self.dominators.get_or_init(|| {
            self.progress.begin("finding who retains what");
            Dominators::compute(&self.graph, self.follow)
        })
    }

    /// What the exit code tells of; `None` where nothing is missing.
    pub fn class(&self) -> Option<ErrorClass> {
        ErrorClass::first_of(self.findings.iter().filter_map(|finding| finding.class))
    }

    /// What it is called beside others: `PATH`, `PATH@LABEL` or, of several, `PATH@N`.
    pub fn name(&self) -> String {
        let path = self.path.display();
        match &self.label {
            Some(label) => format!("{path}@{label}"),
            None if self.among > 1 => format!("{path}@{}", self.number),
            None => path.to_string(),
        }
    }
}

/// What a dump lost, in words. A file that breaks off or holds what cannot be read is damaged
/// input; packets that the device lost are an incomplete recording. References that lead
/// nowhere are normal, and told only where they are many.
pub fn of_losses(graph: &HeapGraph) -> Vec<Finding> {
    let Losses {
        truncated,
        missing_packets,
        dangling_references,
        unknown_classes,
        malformed,
        damage,
        ..
    } = &graph.facts.losses;
    let is_trace = graph.facts.source == DumpSource::HeapGraph;
    let mut findings = Vec::new();
    let mut add = |kind, class, message: String, help: Option<&str>| {
        findings.push(Finding {
            kind,
            class,
            message,
            help: help.map(str::to_owned),
            pid: graph.facts.pid,
        });
    };
    if *missing_packets > 0 || *truncated && is_trace {
        let lost = match missing_packets {
            0 => "the heap graph breaks off".to_owned(),
            n => format!("{n} packets of the heap graph are missing"),
        };
        add(
            "heap-graph-incomplete",
            Some(ErrorClass::Incomplete),
            format!("{lost}: objects are missing, and what they kept looks like garbage"),
            Some("dump again with a larger buffer (`heaptap dump -b 512mb`)"),
        );
    } else if *truncated {
        add(
            "hprof-truncated",
            Some(ErrorClass::BadInput),
            "the HPROF breaks off: objects are missing, and what they kept looks like garbage"
                .to_owned(),
            Some("copy or dump it again; `heaptap hprof info` says where it ends"),
        );
    }
    // The classes of a heap graph come last: where it breaks off, they are what is missing.
    let classes_lost = is_trace && (*truncated || *missing_packets > 0);
    if *malformed > 0 || (*unknown_classes > 0 && !classes_lost) || !damage.is_empty() {
        let mut parts = Vec::new();
        if *malformed > 0 {
            parts.push(format!("{malformed} records could not be read"));
        }
        if *unknown_classes > 0 {
            parts.push(format!("{unknown_classes} objects have no class"));
        }
        parts.extend(damage.first().cloned());
        add(
            "heap-damaged",
            Some(ErrorClass::BadInput),
            parts.join("; "),
            None,
        );
    }
    // A dump always has some; this many say that part of it was left out.
    let many = graph.len() as u64 / 10;
    if *dangling_references > many.max(1000) && !*truncated {
        add(
            "dangling-references",
            None,
            format!("{dangling_references} references lead to objects that the dump leaves out"),
            None,
        );
    }
    findings
}
