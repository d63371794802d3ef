//! An opened Java heap: the graph, its source, and cached results.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use crate::heaps::selector::DumpSelector;
use crate::names::r8_mappings::UsedMap;
use heaptap_base::error::ErrorClass;
use heaptap_base::units::counted;
use heaptap_model::heap_graph::{
    Dominators, DumpSource, Follow, HeapGraph, Losses, ObjectIndex, OutOfMemory, ShortestPaths,
};
use heaptap_results::findings::{self, BYTES_BEHIND, Finding, SEVERAL_DUMPS};
use heaptap_results::lists::join_list;

/// Callback at the start of each step that can take a while, with a description such as `reading
/// the heap`. Called from any thread; must return immediately.
#[derive(Clone, Default)]
pub struct ProgressReporter(Option<Tell>);

type Tell = Arc<dyn Fn(&str) + Send + Sync>;

impl ProgressReporter {
    /// Creates a reporter that passes each step to `tell`.
    pub fn telling(tell: impl Fn(&str) + Send + Sync + 'static) -> ProgressReporter {
        ProgressReporter(Some(Arc::new(tell)))
    }

    /// Reports the start of a step.
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

/// Remedy for an HPROF whose arrays have no contents.
pub const UNCUT: &str = "restore its layout with KOOM's `koom-fill-crop.jar`, or dump without \
                         stripping; `heaptap hprof strip` leaves a readable file";

pub struct JavaHeap {
    /// Objects, classes, references, roots.
    pub graph: HeapGraph,
    /// File or directory of its source, as typed.
    pub path: PathBuf,
    /// Dump number within its process, from 1.
    pub number: u32,
    /// Number of dumps of its process in that input.
    pub among: usize,
    /// Label of its snapshot.
    pub label: Option<String>,
    /// The OutOfMemoryError that caused the dump.
    pub out_of_memory: Option<OutOfMemory>,
    /// References that [`JavaHeap::paths`] and [`JavaHeap::dominators`] follow.
    pub follow: Follow,
    pub findings: Vec<Finding>,
    /// R8 mappings for a heap outside of a trace.
    pub maps: Vec<UsedMap>,
    progress: ProgressReporter,
    paths: OnceLock<ShortestPaths>,
    dominators: OnceLock<Dominators>,
}

impl JavaHeap {
    /// Creates a heap without cached results. Losses of the dump become its first findings.
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
            out_of_memory: None,
            follow,
            findings,
            maps: Vec::new(),
            progress,
            paths: OnceLock::new(),
            dominators: OnceLock::new(),
        }
    }

    /// Returns the shortest paths from the most informative roots. Computed on first use.
    pub fn paths(&self) -> &ShortestPaths {
        self.paths.get_or_init(|| {
            self.progress.begin("finding the shortest paths");
            ShortestPaths::from_best_roots(&self.graph, self.follow)
        })
    }

    /// Returns the paths to a few objects only, walking no more of the heap than necessary.
    pub fn paths_to(&self, objects: &[ObjectIndex]) -> ShortestPaths {
        ShortestPaths::to(&self.graph, self.follow, objects)
    }

    /// Returns dominators and retained sizes. Computed on first use.
    pub fn dominators(&self) -> &Dominators {
        self.dominators.get_or_init(|| {
            self.progress.begin("computing retained sizes");
            Dominators::compute(&self.graph, self.follow)
        })
    }

    /// Returns the exit code class; `None` if the data are complete.
    pub fn class(&self) -> Option<ErrorClass> {
        match self.graph.is_empty() {
            true => findings::class_of_empty(&self.findings),
            false => findings::class(&self.findings),
        }
    }

    /// Returns the display name: `PATH`, `PATH@LABEL` or, if there are several, `PATH@N`.
    pub fn name(&self) -> String {
        let path = self.path.display();
        match DumpSelector::new(self.label.as_deref(), self.number, self.among) {
            Some(which) => format!("{path}@{which}"),
            None => path.to_string(),
        }
    }
}

/// Returns findings about losses of a dump. A truncated or partly unreadable file is damaged input;
/// packets lost by the device make an incomplete recording. Some dangling references are normal, so
/// they are reported only if there are many.
pub fn of_losses(graph: &HeapGraph) -> Vec<Finding> {
    let Losses {
        truncated,
        rooted_unreachable: roots_missing,
        missing_packets,
        dangling_references,
        unknown_classes,
        malformed,
        missing_supers,
        partial_objects,
        contents_cut,
        bytes_behind,
        another_behind,
        zeros_at_end,
        damage,
        ..
    } = &graph.facts.losses;
    let is_trace = graph.facts.source == DumpSource::HeapGraph;
    // All objects are roots or reachable then.
    let consequence = match *roots_missing {
        true => "objects are missing",
        false => "objects are missing, and objects that they referenced look unreachable",
    };
    let with_consequence = |lost: &str| match graph.is_empty() {
        true => lost.to_owned(),
        false => format!("{lost}; {consequence}"),
    };
    let mut findings = Vec::new();
    let mut add = |finding: Finding| findings.push(finding.with_pid(graph.facts.pid));
    if *roots_missing {
        let message = "the part with the GC roots is missing; all objects are shown as reachable, \
                       including unreachable ones";
        add(Finding::new("roots-missing", None, message));
    }
    if *missing_packets > 0 || *truncated && is_trace {
        let lost = match missing_packets {
            0 => "the heap graph is truncated".to_owned(),
            &n => format!(
                "{} missing",
                counted(
                    n,
                    "packet of the heap graph is",
                    "packets of the heap graph are"
                )
            ),
        };
        let message = with_consequence(&lost);
        let finding = Finding::new("heap-graph-incomplete", ErrorClass::Incomplete, message);
        add(finding.with_help("dump again with a larger buffer (`heaptap dump -b 512mb`)"));
    } else if *contents_cut {
        let message = with_consequence(
            "the contents of arrays were cut out of the HPROF, as KOOM does, so most of it cannot \
             be read",
        );
        add(Finding::new("hprof-truncated", ErrorClass::BadInput, message).with_help(UNCUT));
    } else if *truncated {
        let (lost, help) = match zeros_at_end {
            true => (
                "the end of the HPROF is missing, with zero bytes in its place",
                "copy or dump it again; a disk might have been full, or a copy unfinished",
            ),
            false => (
                "the HPROF is truncated",
                "copy or dump it again; `heaptap hprof info FILE` shows where it ends",
            ),
        };
        let message = with_consequence(lost);
        add(Finding::new("hprof-truncated", ErrorClass::BadInput, message).with_help(help));
    }
    // The classes of a heap graph come last, so they are missing if it is truncated.
    let classes_lost = is_trace && (*truncated || *missing_packets > 0);
    let unreadable =
        *malformed > 0 || (*unknown_classes > 0 && !classes_lost) || !damage.is_empty();
    if !contents_cut && (unreadable || *partial_objects > 0) {
        let mut parts = Vec::new();
        if *partial_objects > 0 {
            parts.push(format!(
                "the superclass {} is missing: {} fields that cannot be read, and objects that \
                 only these refer to look unreachable",
                join_list(missing_supers.iter().cloned()),
                counted(*partial_objects, "object has", "objects have"),
            ));
        }
        if *malformed > 0 {
            parts.push(format!(
                "{} unreadable",
                counted(*malformed, "record is", "records are")
            ));
        }
        if *unknown_classes > 0 {
            parts.push(counted(
                *unknown_classes,
                "object has no class",
                "objects have no class",
            ));
        }
        parts.extend(damage.first().cloned());
        let message = parts.join("; ");
        let help = "copy or dump it again; `heaptap hprof info FILE` shows what it contains";
        add(Finding::new("heap-damaged", ErrorClass::BadInput, message).with_help(help));
    }
    if *bytes_behind > 0 {
        let message = format!(
            "the HPROF is whole; {} behind its end {}",
            counted(*bytes_behind, "byte", "bytes"),
            match (another_behind, bytes_behind) {
                (true, _) => "are another HPROF, which is not read",
                (false, 1) => "is no part of it",
                (false, _) => "are no part of it",
            }
        );
        add(Finding::new(BYTES_BEHIND, None, message));
    }
    let facts = &graph.facts;
    if facts.among > 1 {
        let message = format!(
            "the HPROF has {} dumps, and this is dump {}; `FILE@N` selects one of them",
            facts.among, facts.number,
        );
        add(Finding::new(SEVERAL_DUMPS, None, message));
    }
    // A dump always has some; this many mean that a part of it is missing.
    let many = graph.len() as u64 / 10;
    if *dangling_references > many.max(1000) && !*truncated {
        let message =
            format!("{dangling_references} references point to objects that are not in the dump");
        add(Finding::new("dangling-references", None, message));
    }
    findings
}
