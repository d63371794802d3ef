//! Leaks and waste of Java heaps: selects dumps, analyzes the last one, and compares it with the
//! first. Builds the document for `--json` and the terminal.

pub(crate) mod document;

use std::collections::{BTreeMap, BTreeSet};

pub use document::{LeaksDocument, LeaksRows};

use crate::heaps::NOT_IN_ORDER;
use crate::heaps::java::facts::HeapFacts;
use crate::heaps::java::{
    JavaError, JavaFile, JavaHeap, JavaOptions, OpenedJava, ProgressReporter,
};
use crate::heaps::selector::JavaInput;
use crate::names::r8_mappings::MAPPING_MISSING;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::growth::{self, Growth, Snapshot};
use heaptap_analyze::leaks::{self, Certainty, Leaks};
use heaptap_analyze::waste;
use heaptap_base::error::ErrorClass;
use heaptap_base::units::counted;
use heaptap_base::untrusted::sanitize;
use heaptap_model::heap_graph::Reachable;
use heaptap_results::findings::{self, Finding, other_process};

#[derive(Debug, Clone)]
pub struct LeaksRequest {
    /// Dumps, oldest first. A single input selects all its dumps.
    pub inputs: Vec<JavaInput>,
    /// Options for opening them.
    pub options: JavaOptions,
    /// If true, search for leaks.
    pub leaks: bool,
    /// If true, search for waste.
    pub waste: bool,
    /// Maximum number of entries per list.
    pub limit: usize,
    pub classes: Filter,
    /// Minimum growth in objects: the repetitions of the scenario between two dumps.
    pub loops: u64,
}

/// The result.
#[derive(Debug, Clone)]
pub struct LeaksReport {
    /// The document for `--json`.
    pub document: LeaksDocument,
    /// Exit code class of incomplete inputs.
    pub class: Option<ErrorClass>,
    /// True if the filters match any class of any dump.
    pub matches: bool,
    /// Why the last dump can have leaks that were not found.
    pub hidden: Option<HiddenLeaks>,
}

/// Why a dump can have leaks that the rules do not find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HiddenLeaks {
    /// The rules cover none of its classes.
    NotCovered,
    /// The same, because the heap is not of Android.
    JavaSe,
    /// Names of classes that they cover are minified.
    Minified,
}

impl HiddenLeaks {
    /// Returns the reason, if there is one. Where classes of AndroidX have names, R8 did not rename
    /// the app: minified classes are of a library that is distributed so.
    pub fn new(heap: &JavaHeap, found: &Leaks) -> Option<HiddenLeaks> {
        let is_minified = || heap.findings.iter().any(|f| f.kind == MAPPING_MISSING);
        let is_named = || {
            let mut classes = heap.graph.classes().iter();
            classes.any(|class| class.shown().starts_with("androidx."))
        };
        match found.is_covered {
            false if heap.graph.is_of_java_se() => Some(HiddenLeaks::JavaSe),
            false => Some(HiddenLeaks::NotCovered),
            true if is_minified() && !is_named() => Some(HiddenLeaks::Minified),
            true => None,
        }
    }
}

/// Note about dumps of different kinds, of one heap or of two.
const KINDS_DIFFER: &str = "a heap graph and an HPROF have different roots and sizes, so growth is \
                            not compared; compare the numbers of their objects with `heaptap diff \
                            A B --by class`, or take two dumps of one kind";

/// Maximum number of entries of a waste list without a limit: a heap has millions of strings.
const MAX_LISTED: usize = 10_000;

impl LeaksReport {
    /// Returns whether there are confirmed or likely leaks; known leaks, which are not the app's,
    /// count only `with_known`.
    pub fn found(&self, with_known: bool) -> bool {
        let groups = self.document.leaks.iter().flat_map(|leaks| &leaks.groups);
        groups
            .filter(|group| with_known || group.library.is_none())
            .any(|group| group.certainty != Certainty::Possible)
    }
}

/// Data of the earlier dumps of a series.
#[derive(Default)]
struct Earlier {
    heaps: Vec<HeapFacts>,
    snapshots: Vec<Snapshot>,
    /// Names of those that are not compared, and whether they lack all objects.
    lacking: Vec<(String, bool)>,
    /// Number of occurrences of each leak in the first dump.
    first: Option<BTreeMap<(String, String), u64>>,
    class: Vec<ErrorClass>,
    /// True if the filters match anything in them.
    matches: bool,
}

/// Searches for leaks. Only one dump is in memory at a time. The first input can be `opened`
/// already.
///
/// # Errors
/// Returns an error if an input cannot be opened, or contains no Java heap, or if the last dump
/// contains no objects.
pub fn leaks(
    request: &LeaksRequest,
    mut opened: OpenedJava,
    progress: &ProgressReporter,
) -> Result<LeaksReport, JavaError> {
    let mut earlier = Earlier::default();
    let mut notes = Vec::new();
    let mut last = None;
    let mut missing: Vec<Vec<Finding>> = Vec::new();
    let mut each = |heap: JavaHeap, is_last: bool| {
        if is_last {
            last = Some(heap);
        } else {
            earlier.take(&heap, request, progress);
        }
    };
    match request.inputs.as_slice() {
        [only] if only.which.is_none() => {
            let mut file = JavaFile::open(&only.path, opened, request.options.clone(), progress)?;
            missing.push(std::mem::take(&mut file.missing));
            file.list_all_of_hprof();
            let series = series(&file, &mut notes)?;
            for (at, &dump) in series.iter().enumerate() {
                each(file.read(dump)?, at + 1 == series.len());
            }
        }
        all => {
            for (at, input) in all.iter().enumerate() {
                let opened = std::mem::take(&mut opened);
                let mut file =
                    JavaFile::open(&input.path, opened, request.options.clone(), progress)?;
                missing.push(std::mem::take(&mut file.missing));
                file.list_dumps_of_hprof(&input.which);
                let dump = file.choose(input.which.as_ref())?;
                each(file.read(dump)?, at + 1 == all.len());
            }
        }
    }
    let Some(mut heap) = last else {
        return Err(JavaError::NoHeap {
            name: String::new(),
        });
    };
    let mut everywhere = missing.first().cloned().unwrap_or_default();
    findings::keep_missing_everywhere(&mut everywhere, missing.iter().map(Vec::as_slice));
    heap.findings.append(&mut everywhere);
    if heap.graph.is_empty() {
        return Err(JavaError::no_objects(&heap));
    }
    Ok(earlier.report(&heap, request, progress, notes))
}

/// Returns the dumps of an input that belong together: of one run of one process; if several have
/// labels, those and the newest.
fn series(file: &JavaFile, notes: &mut Vec<String>) -> Result<Vec<usize>, JavaError> {
    let dumps = file.dumps();
    let names: BTreeSet<&str> = dumps.iter().map(|dump| dump.process.as_str()).collect();
    if names.iter().filter(|name| !name.is_empty()).count() > 1 {
        // The error lists the processes.
        file.choose(None)?;
    }
    let pid = dumps.iter().rev().find_map(|dump| dump.pid);
    let of_life: Vec<usize> = (0..dumps.len())
        .filter(|&at| dumps[at].pid == pid || dumps[at].pid.is_none())
        .collect();
    if of_life.len() < dumps.len() {
        // An earlier run of an app, or the process of another user.
        let others = dumps.len() - of_life.len();
        notes.push(format!(
            "analyzed the process that was dumped last{}; {} of that name {} left out (`-p PID`)",
            pid.map_or_else(String::new, |pid| format!(", {pid}")),
            counted(
                others as u64,
                "dump of another process",
                "dumps of other processes"
            ),
            if others == 1 { "is" } else { "are" },
        ));
    }
    // Data missing from a truncated dump have not shrunk.
    let whole: Vec<usize> = of_life
        .iter()
        .copied()
        .filter(|&at| !file.is_open(at))
        .collect();
    let of_life = match (whole.len(), of_life.len() - whole.len()) {
        (0, _) | (_, 0) => of_life,
        (_, open) => {
            notes.push(counted(
                open as u64,
                "dump is left out because its end is not in the trace",
                "dumps are left out because their ends are not in the trace",
            ));
            whole
        }
    };
    // A heap graph and an HPROF of the same heap differ, which is not growth.
    let form = |at: usize| file.hprof(at).is_some();
    let of_form: Vec<usize> = match of_life.last() {
        Some(&last) => of_life
            .iter()
            .copied()
            .filter(|&at| form(at) == form(last))
            .collect(),
        None => Vec::new(),
    };
    if of_form.len() < of_life.len() {
        let (kept, left) = match of_life.last().is_some_and(|&last| form(last)) {
            true => ("HPROFs", "heap graphs"),
            false => ("heap graphs", "HPROFs"),
        };
        notes.push(format!("analyzed its {kept}; select its {left} with @N"));
    }
    let of_life = of_form;
    let labelled: Vec<usize> = of_life
        .iter()
        .copied()
        .filter(|&at| dumps[at].label.is_some())
        .collect();
    if labelled.len() < 2 {
        return Ok(of_life);
    }
    // Findings are about the newest dump, with or without a label.
    let newest = of_life.last().filter(|&at| !labelled.contains(at));
    let series: Vec<usize> = labelled.iter().chain(newest).copied().collect();
    let left_out = of_life.len() - series.len();
    if left_out > 0 {
        notes.push(format!(
            "{} left out; select them with @N",
            counted(
                left_out as u64,
                "dump without a label is",
                "dumps without labels are",
            )
        ));
    }
    Ok(series)
}

impl Earlier {
    fn take(&mut self, heap: &JavaHeap, request: &LeaksRequest, progress: &ProgressReporter) {
        progress.begin(&format!("reading {}", heap.name()));
        let mut facts = HeapFacts::from_heap(heap);
        facts.lacks_objects |= heap.graph.is_empty();
        let lacks_objects = facts.lacks_objects;
        self.heaps.push(facts);
        self.class.extend(heap.class());
        self.matches |= request.classes.matches(&heap.graph);
        // Objects that are missing did not come later.
        if lacks_objects {
            self.lacking.push((heap.name(), heap.graph.is_empty()));
            return;
        }
        if request.leaks && self.heaps.len() == 1 {
            self.first = Some(counts(&leaks::find(&heap.graph)));
        }
        self.snapshots.push(Snapshot::from_graph(&heap.graph));
    }

    fn report(
        mut self,
        heap: &JavaHeap,
        request: &LeaksRequest,
        progress: &ProgressReporter,
        mut notes: Vec<String>,
    ) -> LeaksReport {
        let mut facts = HeapFacts::from_heap(heap);
        if let Some(first) = self.heaps.first() {
            let [one, other] = [first, &facts].map(|heap| heap.process.as_deref());
            let others = other_process(one.unwrap_or_default(), other.unwrap_or_default());
            facts.warnings.extend(others);
        }
        if self.heaps.iter().any(|heap| heap.source != facts.source) {
            self.snapshots.clear();
            self.first = None;
            notes.push(KINDS_DIFFER.to_owned());
        }
        self.heaps.push(facts);
        self.class.extend(heap.class());
        let times: Option<Vec<_>> = self.heaps.iter().map(|heap| heap.time).collect();
        if times.is_some_and(|times| !times.is_sorted()) {
            notes.push(NOT_IN_ORDER.to_owned());
        }
        let graph = &heap.graph;
        let mut document = LeaksDocument {
            heaps: self.heaps,
            notes,
            leaks: None,
            waste: None,
            growth: None,
        };
        let limit = request.limit;
        let mut hidden = None;
        if request.leaks {
            progress.begin("looking for leaks");
            let mut found = leaks::find(graph);
            hidden = HiddenLeaks::new(heap, &found);
            let all = found.groups.len();
            found
                .groups
                .retain(|group| request.classes.takes(&group.class));
            let others = all - found.groups.len();
            if others > 0 {
                document.notes.push(format!(
                    "{others} of {all} leak groups are hidden; the filter applies to the leaking \
                     class"
                ));
            }
            found
                .unheld
                .retain(|unheld| request.classes.takes(&unheld.class));
            let dominators = (!found.groups.is_empty()).then(|| heap.dominators());
            let earlier = self.first.as_ref();
            if hidden == Some(HiddenLeaks::JavaSe) && document.heaps.len() == 1 {
                found.untold.push(
                    "growth, which needs two dumps: `heaptap leaks A B` or `heaptap diff A B`"
                        .into(),
                );
            }
            document.leaks = Some(document::leaks(&found, others, dominators, earlier, limit));
        }
        if graph.facts.losses.lacks_objects() && document.heaps.len() > 1 {
            self.snapshots.clear();
            self.lacking.push((heap.name(), false));
        }
        document
            .notes
            .extend(self.lacking.iter().map(|(name, is_empty)| {
                let why = match is_empty {
                    true => "contains no objects",
                    false => "lacks objects",
                };
                let name = sanitize(name);
                format!("{name} is not compared with other dumps because it {why}")
            }));
        if !self.snapshots.is_empty() {
            progress.begin("comparing dumps");
            self.snapshots.push(Snapshot::from_graph(graph));
            let mut growth: Growth = growth::compare(&self.snapshots, graph, request.loops);
            growth.keep(|class| request.classes.takes(class));
            growth.cut(limit);
            document.growth = Some(growth);
        }
        if request.waste {
            progress.begin("looking for waste");
            let reachable = Reachable::new(graph, heap.follow);
            let limit = limit.min(MAX_LISTED);
            let takes_all = request.classes.takes_all();
            let most = if takes_all { limit } else { MAX_LISTED };
            let mut found = waste::find(graph, &reachable, most);
            found.keep(|class| request.classes.takes(class));
            found.cut(limit);
            document.waste = Some(found);
        }
        LeaksReport {
            document,
            class: ErrorClass::first_of(self.class),
            matches: self.matches || request.classes.matches(graph),
            hidden,
        }
    }
}

fn counts(found: &Leaks) -> BTreeMap<(String, String), u64> {
    let of = |group: &leaks::LeakGroup| {
        let key = (group.signature.clone(), group.class.clone());
        (key, group.count)
    };
    found.groups.iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::heap_graph::{Class, DumpFacts, Follow, GraphBuilder, NoContents};
    use heaptap_results::findings::Finding;

    #[test]
    fn minified_names_hide_leaks_unless_androidx_has_its_names() {
        let heap = |classes: &[&str], is_minified: bool| {
            let classes = classes.iter().map(|name| Class {
                name: (*name).to_owned(),
                ..Class::default()
            });
            let (builder, facts) = (GraphBuilder::default(), DumpFacts::default());
            let classes = classes.collect();
            let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, false);
            let graph = graph.unwrap();
            let mut heap = JavaHeap::new(
                graph,
                "a.hprof".into(),
                1,
                Follow::STRONG,
                ProgressReporter::default(),
            );
            let finding = Finding::new(MAPPING_MISSING, None, String::new());
            heap.findings.extend(is_minified.then_some(finding));
            HiddenLeaks::new(&heap, &leaks::find(&heap.graph))
        };
        let (activity, view_model) = ("android.app.Activity", "androidx.lifecycle.ViewModel");
        assert_eq!(heap(&["a.b"], false), Some(HiddenLeaks::NotCovered));
        assert_eq!(heap(&[activity], false), None);
        assert_eq!(heap(&[activity, "a.b"], true), Some(HiddenLeaks::Minified));
        assert_eq!(heap(&[activity, view_model, "a.b"], true), None);
    }
}
