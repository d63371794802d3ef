//! A Java heap of a trace as an HPROF, for tools that read only those.

use super::error::{none_selected, several_dumps};
use super::goal::{OutputDestination, Sink};
use super::request::{ExportRequest, Exported, File};
use crate::heaps::java::{self, JavaOptions, OpenedJava, ProgressReporter};
use crate::heaps::selector::JavaInput;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_model::heap_graph::DumpSource;
use heaptap_results::findings::Finding;
use heaptap_results::manifest::JAVA_HEAP;
use std::io::Write;

/// Writes the selected Java heap, otherwise the default one.
pub(super) fn export(
    request: &ExportRequest,
    goal: &OutputDestination,
    stdout: &mut (dyn Write + Send),
    progress: &ProgressReporter,
) -> Result<Exported, Failure> {
    let heaps = &request.selection.heaps;
    if !heaps.is_empty() && !heaps.iter().any(|heap| heap == JAVA_HEAP) {
        return Err(none_selected("Java heaps (`--heap java`)"));
    }
    let which = match &request.chosen[..] {
        [] => None,
        [one] => Some(one.clone()),
        several => {
            let there: Vec<String> = several.iter().map(|which| format!("@{which}")).collect();
            return Err(several_dumps(&there.join(", ")));
        }
    };
    let input = JavaInput {
        path: request.input.clone(),
        which,
    };
    let options = JavaOptions {
        processes: request.selection.processes.clone(),
        ..request.java.clone()
    };
    let heap = java::open(&input, OpenedJava::Unread, options, progress)?;
    if heap.graph.facts.source != DumpSource::HeapGraph {
        let name = request.input.display();
        let message = format!("the dump is already in an HPROF: {name}");
        return Err(
            Failure::new(ErrorClass::Usage, "bad-value", message).with_help(
                "copy the file, or write Java SE's dialect with `heaptap hprof conv` or a copy \
             without contents with `heaptap hprof strip`",
            ),
        );
    }
    progress.begin("writing");
    let mut sink = Sink::new(goal, stdout, &request.look.control);
    let mut unwritten = android_hprof::Unwritten::default();
    let (path, bytes) = sink.write(&format!("{}.hprof", request.name), |out| {
        // The clock of a trace is not that of an HPROF.
        unwritten = android_hprof::write(&heap.graph, 0, out)?;
        Ok(())
    })?;
    let pid = heap.graph.facts.pid;
    let class = heap.class();
    let mut findings = heap.findings;
    let message = "the HPROF has zeros for primitive fields, and for the contents of strings and \
                   arrays: a heap graph does not have them";
    let about = Finding::new("hprof-without-values", None, message).with_pid(pid);
    findings.push(about.with_help("dump with `heaptap dump --hprof` to have them"));
    if unwritten.beyond_limits > 0 {
        let message = format!(
            "left out {} references or shortened arrays that no heap of ART can have",
            unwritten.beyond_limits
        );
        findings.push(Finding::new("hprof-limits", None, message).with_pid(pid));
    }
    let file = File {
        path,
        dump: Some(heap.number),
        view: None,
        bytes,
    };
    Ok(Exported {
        files: vec![file],
        dumps: 1,
        findings,
        class,
    })
}
