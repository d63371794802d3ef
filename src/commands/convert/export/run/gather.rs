//! Reads an input into one profile: native dumps unchanged, Java heaps as class trees.

use super::error::none_selected;
use super::request::ExportRequest;
use super::tables::Directory;
use crate::heaps::input::{self, DumpScope, InputError, LookOptions, OpenedInput};
use crate::heaps::java::{
    JavaError, JavaFile, JavaHeap, JavaOptions, OpenedJava, ProgressReporter, lying_in,
};
use crate::heaps::selector::{DumpSelector, ProcessFilter};
use crate::recording::conversion::selection::{DumpName, Selection};
use heaptap_analyze::class_tree::Over;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_export::{java_pprof, java_stacks};
use heaptap_model::heap_graph::{DumpSource, Follow, HeapGraph, ShortestPaths};
use heaptap_model::stacks::{Facts, StackProfile};
use heaptap_results::findings::Finding;
use heaptap_results::manifest::JAVA_HEAP;
use std::path::Path;

/// Returns the identifying names of the dumps that are selected by number or label, of any heap, or
/// only of Java heaps.
///
/// # Errors
/// Returns an error if there is no such dump or the input cannot be read.
pub fn names(
    input: &Path,
    dumps: &[DumpSelector],
    java_only: bool,
    look: &LookOptions,
    java: &JavaOptions,
) -> Result<Vec<DumpName>, Failure> {
    let progress = ProgressReporter::default();
    let wanted = DumpScope::These(dumps.to_vec());
    let mut names = Vec::new();
    let mut java_heaps = OpenedJava::Unread;
    let is_separate = java_only && lying_in(input).is_some();
    let opened = (!is_separate).then(|| input::open(input, &wanted, look, &progress));
    let native = match opened.transpose() {
        Ok(None) => Ok(true),
        Ok(Some(OpenedInput::Native(file, read))) => {
            java_heaps = read;
            let dumps = file.profile.dumps.iter();
            names.extend(dumps.map(|dump| DumpName::InTrace {
                pid: dump.facts.pid,
                heap: dump.facts.heap.clone(),
                time_ns: dump.facts.time_ns,
            }));
            Ok(file.java_dumps > 0)
        }
        Ok(Some(OpenedInput::Java(read))) => {
            java_heaps = read;
            Ok(true)
        }
        Err(error @ InputError::NoSuchDump { .. }) => Err(error),
        Err(error) => return Err(error.into()),
    };
    if let Ok(false) = native {
        return Ok(names);
    }
    let mut file = match JavaFile::open(input, java_heaps, java.clone(), &progress) {
        Ok(file) => file,
        Err(error) => return Err(native.err().map_or(error.into(), Failure::from)),
    };
    file.list_dumps_of_hprof(dumps);
    for which in dumps {
        let name = |at: usize| match file.hprof(at) {
            Some(hprof) => DumpName::Hprof(hprof.name.clone()),
            None => DumpName::InTrace {
                pid: file.dumps()[at].pid.unwrap_or(0),
                heap: JAVA_HEAP.to_owned(),
                time_ns: file.dumps()[at].time_ns,
            },
        };
        match (file.choose_all(Some(which)), names.is_empty()) {
            (Ok(found), _) => names.extend(found.into_iter().map(name)),
            (Err(error), is_empty) if is_empty || java_only => return Err(error.into()),
            // It names a native dump.
            (Err(_), _) => {}
        }
    }
    Ok(names)
}

/// Selected dumps of an input.
pub(super) struct Gathered {
    /// Selected dumps, Java heaps last.
    pub profile: StackProfile,
    /// Whether Java heaps are among the dumps.
    pub java: bool,
    /// Findings to report.
    pub findings: Vec<Finding>,
    /// Class of the exit code.
    pub class: Option<ErrorClass>,
    /// Whether dumps were named. If so, all of them are selected.
    pub was_named: bool,
    /// Available dumps, as a text list.
    pub there: String,
}

/// Reads all selected dumps. Writes the tables of Java objects on the way, because each heap stays
/// in memory only until the next one is read.
pub(super) fn gather(
    request: &ExportRequest,
    tables: Option<&mut Directory>,
    progress: &ProgressReporter,
) -> Result<Gathered, Failure> {
    let named = &request.chosen;
    let wanted = match named.is_empty() {
        true => DumpScope::All,
        false => DumpScope::These(named.clone()),
    };
    let mut gathered = Gathered {
        profile: StackProfile::default(),
        java: false,
        findings: Vec::new(),
        class: None,
        was_named: !named.is_empty(),
        there: String::new(),
    };
    let mut there: Vec<String> = Vec::new();
    let mut processes: Vec<(Option<u64>, String)> = Vec::new();
    let mut unmeant = None;
    let mut java = OpenedJava::Unread;
    let mut has_java = true;
    let mut has_native = false;
    let look = LookOptions {
        processes: ProcessFilter::default(),
        heaps: Vec::new(),
        ..request.look.clone()
    };
    let names_java = request.selection.heaps.iter().any(|heap| heap == JAVA_HEAP);
    let is_separate = names_java && lying_in(&request.input).is_some();
    // The trace of the recording has none of the selected heaps.
    let skips_native = is_separate && request.java_only;
    let opened = (!skips_native).then(|| input::open(&request.input, &wanted, &look, progress));
    match opened.transpose() {
        Ok(None) => {}
        Ok(Some(OpenedInput::Native(file, read))) => {
            java = read;
            has_native = true;
            has_java = file.java_dumps > 0 || is_separate;
            gathered.class = file.class();
            there.extend(file.listed.iter().map(|dump| dump.describe()));
            let facts = file.listed.iter().map(|dump| &dump.facts);
            processes.extend(facts.map(|facts| (Some(facts.pid), facts.process.clone())));
            gathered.findings = file.findings;
            gathered.profile = file.profile;
            let dumps = &mut gathered.profile.dumps;
            dumps.retain(|dump| takes(&request.selection, &dump.facts));
        }
        Ok(Some(OpenedInput::Java(read))) => java = read,
        // The named dump might be a Java heap.
        Err(error @ InputError::NoSuchDump { .. }) => unmeant = Some(error),
        Err(error) => return Err(error.into()),
    }
    if has_java {
        match choose_java(request, java, &mut there, &mut processes, progress) {
            Ok(chosen) => add_java(request, chosen, &mut gathered, tables, &mut there)
                .map_err(|error| unmeant.map_or(error, Failure::from))?,
            // The only problem is a missing Java heap or dump.
            Err(
                JavaError::NoHeap { .. }
                | JavaError::Native { .. }
                | JavaError::NoSuchDump { .. }
                | JavaError::NoSuchMoment { .. },
            ) if has_native => {}
            Err(error @ JavaError::Broken { .. }) if has_native => {
                gathered.findings.push(Finding::from_error(&error));
            }
            Err(error) => return Err(unmeant.map_or(error.into(), Failure::from)),
        }
    }
    let processes = processes.iter().map(|(pid, name)| (*pid, name.as_str()));
    let missing = request
        .selection
        .processes
        .missing("a selected dump of", processes);
    gathered.findings.extend(missing);
    gathered.there = there.join(", ");
    if gathered.profile.dumps.is_empty() {
        return Err(none_selected(&gathered.there));
    }
    Ok(gathered)
}

/// Returns whether a selection includes a dump.
fn takes(selection: &Selection, facts: &Facts) -> bool {
    let heap = (&*facts.heap, facts.flags);
    selection.chooses(facts.pid, &facts.process, heap, facts.time_ns)
}

/// Opens the Java heaps, and chooses the named ones; `None` if others are selected.
fn choose_java(
    request: &ExportRequest,
    java: OpenedJava,
    there: &mut Vec<String>,
    processes: &mut Vec<(Option<u64>, String)>,
    progress: &ProgressReporter,
) -> Result<Option<(JavaFile, Vec<usize>)>, JavaError> {
    let heaps = &request.selection.heaps;
    if !heaps.is_empty() && !heaps.iter().any(|heap| heap == JAVA_HEAP) {
        there.push("Java heaps (`--heap java`)".to_owned());
        return Ok(None);
    }
    let mut file = JavaFile::open(&request.input, java, request.java.clone(), progress)?;
    let listed = file.processes();
    processes.extend(listed.map(|(pid, name)| (pid, name.to_owned())));
    let named = &request.chosen;
    file.list_dumps_of_hprof(named);
    let chosen: Vec<usize> = match named.is_empty() {
        true => (0..file.dumps().len()).collect(),
        false => {
            // Some named dumps might be native heaps.
            let (found, missing): (Vec<_>, Vec<_>) = named
                .iter()
                .map(|which| file.choose_all(Some(which)))
                .partition(Result::is_ok);
            let mut missing = missing.into_iter();
            if (found.is_empty() || request.java_only)
                && let Some(Err(error)) = missing.next()
            {
                return Err(error);
            }
            found.into_iter().flatten().flatten().collect()
        }
    };
    Ok(Some((file, chosen)))
}

fn add_java(
    request: &ExportRequest,
    chosen: Option<(JavaFile, Vec<usize>)>,
    gathered: &mut Gathered,
    mut tables: Option<&mut Directory>,
    there: &mut Vec<String>,
) -> Result<(), Failure> {
    let Some((mut file, chosen)) = chosen else {
        return Ok(());
    };
    let mut classes = Vec::from_iter(gathered.class);
    for at in chosen {
        if request.look.control.is_cancelled() {
            return Err(InputError::Interrupted.into());
        }
        let listed = &file.dumps()[at];
        there.push(format!("@{} (Java heap)", listed.number));
        let selected = &request.selection.processes;
        if !selected.takes(listed.pid, &listed.process) {
            continue;
        }
        let heap = file.read(at)?;
        let facts = facts(&heap);
        if !takes(&request.selection, &facts) {
            continue;
        }
        classes.extend(heap.class());
        gathered.findings.extend(heap.findings.iter().cloned());
        gathered.java = true;
        let id = gathered.profile.dumps.len() as u64;
        let cut = add_tree(
            &mut gathered.profile,
            &heap.graph,
            facts,
            request.dominators,
            || heap.dominators(),
        );
        gathered.findings.extend(cut);
        if let Some(tables) = &mut tables {
            tables.add_java(id, &heap.graph, heap.dominators())?;
        }
    }
    gathered.class = ErrorClass::first_of(classes);
    Ok(())
}

/// Returns the facts of a Java heap as those of a profile dump.
fn facts(heap: &JavaHeap) -> Facts {
    let dump = &heap.graph.facts;
    let is_trace = dump.source == DumpSource::HeapGraph;
    let time = Some(dump.time_ns).filter(|&time| time != 0);
    Facts {
        number: heap.number,
        label: heap.label.clone(),
        pid: dump.pid.unwrap_or(0),
        process: dump.process.clone(),
        heap: JAVA_HEAP.to_owned(),
        time_ns: time.filter(|_| is_trace),
        wall_time_ns: time.filter(|_| !is_trace),
        // A Java dump contains all objects, so nothing is sampled.
        sampling_interval_bytes: 1,
        unfinished: dump.losses.lacks_objects(),
        ..Facts::default()
    }
}

fn add_tree<'a>(
    profile: &mut StackProfile,
    graph: &HeapGraph,
    facts: Facts,
    dominators: bool,
    computed: impl FnOnce() -> &'a heaptap_model::heap_graph::Dominators,
) -> Option<Finding> {
    let pid = graph.facts.pid;
    let (tree, cut) = match dominators {
        true => java_pprof::tree_for_profile(graph, Over::Dominators(computed())),
        false => {
            let paths = ShortestPaths::new(graph, Follow::default());
            java_pprof::tree_for_profile(graph, Over::ShortestPaths(&paths))
        }
    };
    java_stacks::add(profile, &tree, facts);
    cut.map(|message| Finding::new("java-tree-cut", None, message).with_pid(pid))
}
