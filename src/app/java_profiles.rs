//! The Java heaps of a trace as profiles: decodes each dump, names its classes, merges it by
//! class, and writes it. `convert` and the end of a recording call it once the native heaps of
//! all traces are done, since indices of Java dumps go on where those end.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::convert::{ConvertError, Selection, write_whole};
use super::findings::Finding;
use super::java::of_losses;
use super::java_summary::{self, JavaSummary};
use super::manifest::{self, JAVA_HEAP, JavaFlags, JavaKind};
use super::maps::Renamed;
use crate::analyze::class_tree::Over;
use crate::error::ErrorClass;
use crate::export::gzip::Gzip;
use crate::export::java_pprof::{self, JavaProfile};
use crate::export::pprof::SampleNames;
use crate::heap_graph::{Dominators, Follow, HeapGraph, ObjectIndex, ShortestPaths};
use crate::profile::Recording;
use crate::trace::{JavaDump, Trace};

/// How Java heaps become profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JavaProfileOptions {
    /// Names of sample types.
    pub sample_names: SampleNames,
    /// Whether a profile over the dominator tree is written beside.
    pub dominators: bool,
    /// Whether the classes that retain most are told of each process's last dump.
    pub summaries: bool,
}

/// A trace that holds Java heaps, once its native ones are done.
pub(super) struct Pending {
    pub(super) trace: Trace,
    pub(super) renamed: Renamed,
}

/// What the Java heaps of a trace came to.
#[derive(Debug, Default)]
pub(super) struct Written {
    pub(super) dumps: Vec<manifest::JavaDump>,
    pub(super) findings: Vec<Finding>,
    pub(super) summaries: Vec<JavaSummary>,
}

/// Whether a selection takes a Java heap.
pub(super) fn takes(selection: &Selection, dump: &JavaDump) -> bool {
    (selection.pids.is_empty() || selection.pids.contains(&dump.pid))
        && (selection.heaps.is_empty() || selection.heaps.iter().any(|heap| heap == JAVA_HEAP))
        && (selection.timestamps.is_empty() || selection.timestamps.contains(&dump.time_ns))
}

/// Writes one of a trace's Java heaps into a folder.
pub(super) fn write(
    pending: &mut Pending,
    at: usize,
    index: u32,
    process: &str,
    folder: &Path,
    options: JavaProfileOptions,
    written: &mut Written,
) -> Result<(), ConvertError> {
    let dump = pending.trace.java_dumps()[at].clone();
    let mut graph = pending.trace.read_java_dump(at)?;
    graph.facts.process = process.to_owned();
    let recording = pending.trace.recording().clone();
    name(&mut pending.renamed, &mut graph, &recording);
    let mut findings = of_losses(&graph);
    let paths = ShortestPaths::of(&graph, Follow::default());
    if paths.order().is_empty() && !graph.is_empty() {
        findings.push(nothing_reachable(&dump));
    }
    let mut entry = entry(&dump, &graph, paths.order(), index);
    if !graph.is_empty() {
        let file = format!("java_heap_dump.{index}.{}.pb.gz", dump.pid);
        let about = |what: &str| JavaProfile {
            sample_names: options.sample_names,
            wall_time_ns: dump.wall_time_ns,
            comments: comments(&dump, &graph, &entry, what, &findings),
        };
        let mut gzip = Gzip::default();
        let paths = Over::ShortestPaths(&paths);
        let by_paths = about("the shortest paths from roots, merged by class");
        put(&graph, paths, by_paths, &mut gzip, folder.join(&file))?;
        let later = &pending.trace.java_dumps()[at + 1..];
        let summary = options.summaries && later.iter().all(|d| d.pid != dump.pid);
        let dominators =
            (options.dominators || summary).then(|| Dominators::of(&graph, Follow::default()));
        if summary && let Some(dominators) = &dominators {
            written
                .summaries
                .push(java_summary::summarize(&entry, &graph, dominators));
        }
        if options.dominators
            && let Some(dominators) = &dominators
        {
            let over = Over::Dominators(dominators);
            let by_dominators = about("the dominator tree, merged by class: what each keeps alone");
            let file = format!("java_heap_dump.{index}.{}.dominators.pb.gz", dump.pid);
            put(&graph, over, by_dominators, &mut gzip, folder.join(&file))?;
            entry.dominators = Some(file);
        }
        entry.file = Some(file);
    }
    written.findings.extend(findings);
    written.dumps.push(entry);
    Ok(())
}

fn name(renamed: &mut Renamed, graph: &mut HeapGraph, recording: &Recording) {
    renamed.heaps.name(graph, recording);
}

fn put(
    graph: &HeapGraph,
    over: Over<'_>,
    mut about: JavaProfile,
    gzip: &mut Gzip,
    path: PathBuf,
) -> Result<(), ConvertError> {
    let (tree, cut) = java_pprof::tree_for_profile(graph, over);
    about.comments.extend(cut);
    let plain = java_pprof::encode(&tree, &about);
    drop(tree);
    write_whole(&path, &gzip.compress(&plain))
        .map_err(|source| ConvertError::Write { path, source })
}

fn entry(
    dump: &JavaDump,
    graph: &HeapGraph,
    reachable: &[ObjectIndex],
    index: u32,
) -> manifest::JavaDump {
    let losses = &graph.facts.losses;
    let wall = dump.wall_time_ns;
    manifest::JavaDump {
        kind: JavaKind::HeapGraph,
        index,
        label: None,
        time_ns: Some(dump.time_ns),
        time: wall.and_then(|ns| OffsetDateTime::from_unix_timestamp_nanos(ns.into()).ok()),
        pid: dump.pid,
        process: graph.facts.process.clone(),
        heap: JAVA_HEAP.to_owned(),
        file: None,
        dominators: None,
        malloc_info: None,
        original: None,
        reason: graph.facts.reason.clone(),
        totals: Some(java_summary::totals(graph, reachable.iter().copied())),
        flags: JavaFlags {
            truncated: losses.truncated,
            missing_packets: losses.missing_packets,
        },
        complete: !losses.truncated && losses.missing_packets == 0 && losses.malformed == 0,
    }
}

/// What a profile says of itself, for whoever opens it alone.
fn comments(
    dump: &JavaDump,
    graph: &HeapGraph,
    entry: &manifest::JavaDump,
    what: &str,
    findings: &[Finding],
) -> Vec<String> {
    let process = match graph.facts.process.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    let mut comments = vec![format!(
        "heaptap {}: Java heap of pid {}{process}",
        env!("CARGO_PKG_VERSION"),
        dump.pid
    )];
    comments.push(what.to_owned());
    if let Some(totals) = &entry.totals {
        let garbage = totals.objects.saturating_sub(totals.reachable.objects);
        comments.push(format!(
            "{} objects of {} bytes are reachable from roots and shown; {garbage} are garbage \
             not collected yet",
            totals.reachable.objects, totals.reachable.space
        ));
    }
    if let Some(oom) = &dump.out_of_memory {
        comments.push(format!(
            "dumped at an OutOfMemoryError: {} bytes could not be allocated. {}",
            oom.allocation_bytes, oom.message
        ));
        comments.extend(
            oom.stack
                .iter()
                .map(|frame| format!("at {} ({}:{})", frame.method, frame.file, frame.line)),
        );
    }
    comments.extend(findings.iter().map(|finding| finding.message.clone()));
    comments
}

fn nothing_reachable(dump: &JavaDump) -> Finding {
    Finding {
        kind: "java-heap-without-roots",
        class: Some(ErrorClass::Incomplete),
        message: "the Java heap dump names no roots, so that nothing in it is reachable and its \
                  profile is empty"
            .to_owned(),
        help: Some(
            "the packets with its roots were lost: dump again with a larger buffer".to_owned(),
        ),
        pid: Some(dump.pid),
    }
}
