//! A look into each file once it is there: how large the heap is, who keeps most of it, and
//! what is to be known of a file that breaks off or cannot be read.

use std::path::Path;

use crate::conversion::java_summary::{self, JavaSummary};
use crate::error::{Classified, ErrorClass};
use crate::heaps::java::{JavaError, JavaFile, JavaOptions, OpenedJava, ProgressReporter};
use crate::naming::names::NameOptions;
use crate::naming::r8_mappings::UsedMap;
use crate::results::findings::{self, Finding};
use crate::results::manifest::JavaDump;
use crate::session::{self, Controls};

/// What a look into a file came to.
pub(super) enum Looked {
    /// It was read.
    Read(Box<Read>),
    /// It cannot be read.
    Unread(JavaError),
    /// The user did not want to wait, or there is no HPROF.
    NotWaitedFor,
}

/// What a file holds.
pub(super) struct Read {
    pub(super) summary: JavaSummary,
    /// What is to be known of it.
    pub(super) findings: Vec<Finding>,
    /// The mapping files for it.
    pub(super) maps: Vec<UsedMap>,
}

/// A look into each file: how large the heap is, and who keeps most of it.
pub(super) async fn look(
    dumps: &[JavaDump],
    folder: &Path,
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
        let (dump, path, names) = (dump.clone(), folder.join(file), names.clone());
        let reading = tokio::task::spawn_blocking(move || look_into(dump, &path, names));
        tokio::select! {
            read = reading => looked.push(match read {
                Ok(Ok(read)) => Looked::Read(Box::new(read)),
                Ok(Err(error)) => Looked::Unread(error),
                Err(panic) => std::panic::resume_unwind(panic.into_panic()),
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

/// What was found in a file. That one breaks off is told with its cause (`heap-file-cut`), and
/// what the cut spoiled is missing from the recording rather than damaged here.
pub(super) fn of_cut(mut findings: Vec<Finding>, cut: bool) -> Vec<Finding> {
    if cut {
        findings.retain(|f| !CONSEQUENCES.contains(&f.kind));
        for finding in &mut findings {
            if finding.class == Some(ErrorClass::BadInput) && !findings::is_of_names(finding.kind) {
                finding.class = Some(ErrorClass::Incomplete);
            }
        }
    }
    findings
}

/// Kinds that a file has which breaks off.
const CONSEQUENCES: [&str; 3] = ["hprof-truncated", "heap-damaged", "roots-missing"];

pub(super) fn unreadable(error: &JavaError, dump: &JavaDump) -> Finding {
    let of_file = matches!(error, JavaError::Import(_) | JavaError::Hprof { .. });
    let facts = error.facts();
    Finding {
        kind: facts.kind,
        // What the app did not write to its end need not be readable.
        class: Some(match of_file && dump.flags.truncated {
            true => ErrorClass::Incomplete,
            false => facts.class,
        }),
        message: format!(
            "{}: {error}; the device's copy was left where it is",
            dump.process
        ),
        help: facts.help,
        pid: Some(dump.pid),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::results::manifest::{JAVA_HEAP, JavaFlags, JavaKind};

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
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("app.hprof"), "JAVA PROFILE 1.0.3\0\0").unwrap();
        let (_sender, mut controls) = tokio::sync::mpsc::unbounded_channel();
        let names = NameOptions::default();
        let looked = look(&[dump(false)], folder.path(), &names, &mut controls).await;
        let [Looked::Unread(error)] = looked.as_slice() else {
            panic!("it was read");
        };
        let whole = unreadable(error, &dump(false));
        assert_eq!(whole.class, Some(ErrorClass::BadInput), "{error}");
        let cut = unreadable(error, &dump(true));
        assert_eq!(cut.class, Some(ErrorClass::Incomplete), "{error}");
    }
}
