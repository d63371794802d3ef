//! First analysis of each heap file: size of the heap, classes that retain most, and findings about
//! truncated or unreadable files.

use std::path::Path;

use crate::heaps::java::{JavaError, JavaFile, JavaOptions, OpenedJava, ProgressReporter};
use crate::names::options::NameOptions;
use crate::names::r8_mappings::UsedMap;
use crate::recording::blocking::blocking;
use crate::recording::conversion::java_summary::{self, JavaSummary};
use heaptap_base::error::ErrorClass;
use heaptap_capture::session::{self, Controls};
use heaptap_results::findings::Finding;
use heaptap_results::manifest::JavaDump;

/// Result of analyzing a file.
pub(super) enum Looked {
    Read(Box<Read>),
    Unread(JavaError),
    /// The user skipped it, or there is no HPROF.
    NotWaitedFor,
}

/// Contents of a file.
pub(super) struct Read {
    pub(super) summary: JavaSummary,
    /// Findings about the file.
    pub(super) findings: Vec<Finding>,
    /// R8 mappings for the file.
    pub(super) maps: Vec<UsedMap>,
}

/// Analyzes each file: size of the heap, and classes that retain most.
pub(super) async fn look(
    dumps: &[JavaDump],
    directory: &Path,
    names: &NameOptions,
    controls: &mut Controls,
) -> Vec<Looked> {
    let mut looked = Vec::new();
    let mut waits = true;
    for dump in dumps {
        let Some(file) = dump.file.as_ref().filter(|_| waits) else {
            looked.push(Looked::NotWaitedFor);
            continue;
        };
        let (dump, path, names) = (dump.clone(), directory.join(file), names.clone());
        let reading = blocking(move || look_into(dump, &path, names));
        tokio::select! {
            read = reading => looked.push(match read {
                Ok(read) => Looked::Read(Box::new(read)),
                Err(error) => Looked::Unread(error),
            }),
            () = session::stop_asked(controls) => {
                waits = false;
                looked.push(Looked::NotWaitedFor);
            }
        }
    }
    looked
}

fn look_into(mut dump: JavaDump, path: &Path, names: NameOptions) -> Result<Read, JavaError> {
    let options = JavaOptions {
        names,
        ..JavaOptions::default()
    };
    let mut file = JavaFile::open(
        path,
        OpenedJava::Unread,
        options,
        &ProgressReporter::default(),
    )?;
    let heap = file.read(0)?;
    let dominators = heap.dominators();
    let reached = heap.paths().order().iter().copied();
    dump.totals = Some(java_summary::totals(&heap.graph, reached));
    let summary = java_summary::summarize(&dump, &heap.graph, dominators);
    Ok(Read {
        summary,
        findings: heap.findings,
        maps: heap.maps,
    })
}

/// Returns the findings of a file. Truncation is reported with its cause (`heap-file-cut`), not with
/// its consequences.
pub(super) fn of_cut(mut findings: Vec<Finding>, cut: bool) -> Vec<Finding> {
    findings.retain(|f| !cut || !CONSEQUENCES.contains(&f.kind));
    findings
}

/// Kinds of findings about a truncated file.
const CONSEQUENCES: [&str; 3] = ["hprof-truncated", "heap-damaged", "roots-missing"];

pub(super) fn unreadable(error: &JavaError, dump: &JavaDump) -> Finding {
    let of_file = matches!(error, JavaError::Import(_) | JavaError::Hprof { .. });
    let mut finding = Finding::from_error(error).with_pid(dump.pid);
    // Data that the app did not write completely need not be readable.
    if of_file && dump.flags.truncated {
        finding.class = Some(ErrorClass::Incomplete);
    }
    finding.message = format!("{}: {error}; the copy on the device was kept", dump.process);
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_results::manifest::{JAVA_HEAP, JavaFlags, JavaKind};

    fn dump(truncated: bool) -> JavaDump {
        JavaDump {
            kind: JavaKind::Hprof,
            number: 1,
            label: None,
            time_ns: None,
            time: None,
            pid: 7,
            process: "com.example.app".to_owned(),
            heap: JAVA_HEAP.to_owned(),
            file: Some("app.hprof".to_owned()),
            dominators: None,
            malloc_info: None,
            original: None,
            reason: None,
            totals: None,
            flags: JavaFlags {
                truncated,
                missing_packets: 0,
            },
            complete: !truncated,
        }
    }

    #[tokio::test]
    async fn a_file_that_cannot_be_read_is_told() {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("app.hprof"), "JAVA PROFILE 1.0.3\0\0").unwrap();
        let (_sender, mut controls) = tokio::sync::mpsc::unbounded_channel();
        let names = NameOptions::default();
        let looked = look(&[dump(false)], directory.path(), &names, &mut controls).await;
        let [Looked::Unread(error)] = looked.as_slice() else {
            panic!("it was read");
        };
        let whole = unreadable(error, &dump(false));
        assert_eq!(whole.class, Some(ErrorClass::BadInput), "{error}");
        let cut = unreadable(error, &dump(true));
        assert_eq!(cut.class, Some(ErrorClass::Incomplete), "{error}");
    }
}
