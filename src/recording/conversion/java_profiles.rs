//! Java heaps as profiles: merges each by class and writes it, with its entry of the manifest.
//! `convert` and the end of a recording call it once the native heaps of all traces are done.

use std::path::{Path, PathBuf};

use time::OffsetDateTime;

use super::error::ConvertError;
use super::java_summary::{self, JavaSummary};
use crate::heaps::java::{of_losses, root_truncated};
use crate::names::r8_mappings::Renamed;
use heaptap_analyze::class_tree::{ClassTree, Over};
use heaptap_base::error::ErrorClass;
use heaptap_base::parallel;
use heaptap_export::gzip::Gzip;
use heaptap_export::java_pprof::{self, JavaProfile};
use heaptap_export::pprof::SampleNames;
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph, OutOfMemory, Walk};
use heaptap_model::profile::comments::OF_JAVA_HEAP;
use heaptap_results::findings::Finding;
use heaptap_results::manifest::{self, JAVA_HEAP, JavaFlags, JavaKind, JavaTotals};
use heaptap_results::whole_file::write_named;
use perfetto_heap::{JavaDump, Trace};

/// Profile options of Java heaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JavaProfileOptions {
    /// Names of sample types.
    pub sample_names: SampleNames,
    /// If true, write dominator profiles as well.
    pub dominators: bool,
    /// If true, summarize the classes that retain most in each process's last dump.
    pub summary: bool,
}

/// A trace with Java heaps, after its native ones are done.
pub(super) struct Pending {
    pub(super) trace: Trace,
    pub(super) renamed: Renamed,
}

/// Source of a Java heap.
#[derive(Debug, Clone)]
pub(super) struct Source {
    kind: JavaKind,
    pid: u64,
    time_ns: Option<u64>,
    wall_time_ns: Option<u64>,
    out_of_memory: Option<OutOfMemory>,
}

impl Source {
    /// Describes a dump of a trace.
    pub(super) fn of_trace(dump: &JavaDump) -> Source {
        Source {
            kind: JavaKind::HeapGraph,
            pid: dump.pid,
            time_ns: Some(dump.time_ns),
            wall_time_ns: dump.wall_time_ns,
            out_of_memory: dump.out_of_memory.clone(),
        }
    }

    /// Describes an HPROF; its process ID is 0 if unknown.
    pub(super) fn of_hprof(graph: &HeapGraph) -> Source {
        let time = graph.facts.time_ns;
        Source {
            kind: JavaKind::Hprof,
            pid: graph.facts.pid.unwrap_or(0),
            time_ns: None,
            wall_time_ns: (time != 0).then_some(time),
            out_of_memory: None,
        }
    }
}

/// Results for a Java heap.
#[derive(Debug)]
pub(super) struct Written {
    pub(super) dump: manifest::JavaDump,
    pub(super) summary: Option<JavaSummary>,
    pub(super) findings: Vec<Finding>,
}

/// Writes a heap with deobfuscated classes to a directory. Takes it, because a profile can be as
/// large: both are in memory only if dominators are wanted.
pub(super) fn write(
    mut graph: HeapGraph,
    source: &Source,
    number: u32,
    directory: &Path,
    options: JavaProfileOptions,
) -> Result<Written, ConvertError> {
    root_truncated(&mut graph, Follow::default());
    let mut findings = of_losses(&graph);
    let (tree, paths) = ClassTree::with_shortest_paths(&graph, &Walk::default());
    if graph.is_empty() {
        findings.push(nothing_dumped(source));
    } else if paths.reachable().count() == 0 {
        findings.push(nothing_reachable(source));
    }
    // Neither needs the other.
    let (tree, totals) = parallel::both(
        || java_pprof::fitted(tree),
        || java_summary::totals(&graph, paths.reachable().objects().iter()),
    );
    drop(paths);
    let mut entry = entry(source, &graph, totals, number);
    let mut summary = None;
    if !graph.is_empty() {
        let file = format!("java_heap_dump.{number}.{}.pb.gz", source.pid);
        let about = |what: &str| JavaProfile {
            sample_names: options.sample_names,
            wall_time_ns: source.wall_time_ns,
            comments: comments(source, &entry, what, &findings),
        };
        let mut gzip = Gzip::default();
        let by_paths = about("the shortest paths from GC roots, merged by class");
        let wanted = options.dominators || options.summary;
        let graph = wanted.then_some(graph);
        put(tree, by_paths, &mut gzip, directory.join(&file))?;
        if let Some(graph) = graph {
            let dominators = Dominators::compute(&graph, Follow::default());
            if options.summary {
                summary = Some(java_summary::summarize(&entry, &graph, &dominators));
            }
            if options.dominators {
                let tree = java_pprof::tree_for_profile(&graph, Over::Dominators(&dominators));
                drop((graph, dominators));
                let what =
                    "the dominator tree, merged by class: the retained memory of each object";
                let file = format!("java_heap_dump.{number}.{}.dominators.pb.gz", source.pid);
                put(tree, about(what), &mut gzip, directory.join(&file))?;
                entry.dominators = Some(file);
            }
        }
        entry.file = Some(file);
    }
    Ok(Written {
        dump: entry,
        summary,
        findings,
    })
}

fn put(
    (tree, cut): (ClassTree, Option<String>),
    mut about: JavaProfile,
    gzip: &mut Gzip,
    path: PathBuf,
) -> Result<(), ConvertError> {
    about.comments.extend(cut);
    let plain = java_pprof::encode(&tree, &about);
    drop(tree);
    write_named(&path, &gzip.compress(&plain))
        .map_err(|source| ConvertError::Write { path, source })
}

fn entry(
    source: &Source,
    graph: &HeapGraph,
    totals: JavaTotals,
    number: u32,
) -> manifest::JavaDump {
    let losses = &graph.facts.losses;
    let wall = source.wall_time_ns;
    manifest::JavaDump {
        kind: source.kind,
        number,
        label: None,
        time_ns: source.time_ns,
        time: wall.and_then(|ns| OffsetDateTime::from_unix_timestamp_nanos(ns.into()).ok()),
        pid: source.pid,
        process: graph.facts.process.clone(),
        heap: JAVA_HEAP.to_owned(),
        file: None,
        dominators: None,
        malloc_info: None,
        original: None,
        reason: graph.facts.reason.clone(),
        totals: Some(totals),
        flags: JavaFlags {
            truncated: losses.truncated,
            missing_packets: losses.missing_packets,
        },
        complete: !losses.lacks_objects(),
    }
}

/// Returns the comments stored in a profile, for users who open it separately.
fn comments(
    source: &Source,
    entry: &manifest::JavaDump,
    what: &str,
    findings: &[Finding],
) -> Vec<String> {
    let process = match entry.process.as_str() {
        "" => String::new(),
        name => format!(", {name}"),
    };
    let mut comments = vec![format!(
        "heaptap {}{OF_JAVA_HEAP}{}{process}",
        env!("CARGO_PKG_VERSION"),
        source.pid
    )];
    comments.push(what.to_owned());
    if let Some(totals) = &entry.totals {
        let garbage = totals.objects.saturating_sub(totals.reachable.objects);
        comments.push(format!(
            "{} objects of {} bytes are reachable from GC roots and shown; {garbage} are {}",
            totals.reachable.objects,
            totals.reachable.space,
            match entry.complete {
                true => "unreachable and not collected yet",
                false => "unreachable in what was dumped",
            }
        ));
        if totals.reachable.native_space > 0 {
            comments.push("native memory of an object counts as one more object".to_owned());
        }
    }
    if let Some(oom) = &source.out_of_memory {
        comments.push(format!(
            "dumped at an OutOfMemoryError: the app could not allocate {} bytes. {}",
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

fn nothing_dumped(source: &Source) -> Finding {
    let message = "the Java heap dump contains no objects";
    Finding::new("java-heap-dump", ErrorClass::Empty, message)
        .with_help(match source.kind == JavaKind::HeapGraph {
            true => "dump again with a larger buffer: `heaptap dump -b 512mb`",
            false => "dump the heap again",
        })
        .with_pid(source.pid)
}

fn nothing_reachable(source: &Source) -> Finding {
    let message = "the Java heap dump contains no GC roots, so nothing is reachable and its \
                   profile is empty";
    Finding::new("java-heap-without-roots", ErrorClass::Incomplete, message)
        .with_help("the packets with its GC roots were lost; dump again with a larger buffer")
        .with_pid(source.pid)
}
