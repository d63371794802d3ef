//! Adds recordings to an archive. `heaptap_archive` defines the dataset.

mod error;
mod read;
mod sources;

use std::path::PathBuf;

use heaptap_archive::{Compacted, Store};

use crate::error::{Classified as _, ErrorClass};
use crate::heaps::java::ProgressReporter;
use crate::results::findings::Finding;

pub use error::ArchiveError;
use sources::Source;

/// Recordings, and the archive that they are added to.
#[derive(Debug, Clone)]
pub struct ArchiveRequest {
    /// Directories of recordings, or outputs of `heaptap run`.
    pub inputs: Vec<PathBuf>,
    pub store: PathBuf,
    /// Build of the app; it replaces that of the results of a scenario.
    pub build: Option<String>,
    /// Merge small files at the end.
    pub compact: bool,
}

/// A recording of the archive.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub path: PathBuf,
    pub sha256: String,
}

/// What changed.
#[derive(Debug)]
pub struct Archived {
    pub added: Vec<Entry>,
    /// Recordings that the archive had already.
    pub known: Vec<Entry>,
    /// Number of recordings in the archive.
    pub recordings: usize,
    pub compacted: Option<Compacted>,
    pub findings: Vec<Finding>,
    /// Class of the exit code.
    pub class: Option<ErrorClass>,
}

/// Adds recordings one after the other. One that cannot be read is reported, and the others are
/// added.
///
/// # Errors
/// Returns an error if the archive cannot be written, or if the only recording cannot be read.
pub fn archive(
    request: &ArchiveRequest,
    progress: &ProgressReporter,
) -> Result<Archived, ArchiveError> {
    let mut archived = Archived {
        added: Vec::new(),
        known: Vec::new(),
        recordings: 0,
        compacted: None,
        findings: Vec::new(),
        class: None,
    };
    let mut classes = Vec::new();
    for input in &request.inputs {
        let sources = match sources::of(input, request.build.as_deref()) {
            Ok(found) => {
                archived.findings.extend(found.findings);
                found.sources
            }
            Err(error) if request.inputs.len() == 1 => return Err(error),
            Err(error) => {
                classes.push(error.facts().class);
                archived.findings.push(finding(&error));
                continue;
            }
        };
        let is_only = request.inputs.len() == 1 && sources.len() == 1;
        for source in sources {
            match add(&source, request, &mut archived, progress) {
                Ok(class) => classes.extend(class),
                Err(error @ ArchiveError::Store(_)) => return Err(error),
                Err(error) if is_only => return Err(error),
                Err(error) => {
                    classes.push(error.facts().class);
                    archived.findings.push(finding(&error));
                }
            }
        }
    }
    progress.begin("writing the archive");
    let mut store = Store::open(&request.store)?;
    if request.compact {
        archived.compacted = Some(store.compact()?);
    }
    archived.recordings = store.len();
    archived.class = ErrorClass::first_of(classes);
    Ok(archived)
}

/// Adds a recording. The archive is locked only for its rows, because reading takes longer.
fn add(
    source: &Source,
    request: &ArchiveRequest,
    archived: &mut Archived,
    progress: &ProgressReporter,
) -> Result<Option<ErrorClass>, ArchiveError> {
    let entry = Entry {
        path: source.folder.clone(),
        sha256: source.recording.sha256.clone(),
    };
    if Store::open(&request.store)?.contains(&entry.sha256) {
        archived.known.push(entry);
        return Ok(None);
    }
    let read = read::read(source, progress)?;
    archived.findings.extend(read.findings);
    progress.begin("writing the archive");
    match Store::open(&request.store)?.append(&read.recording)? {
        true => archived.added.push(entry),
        false => archived.known.push(entry),
    }
    Ok(read.class)
}

fn finding(error: &ArchiveError) -> Finding {
    let facts = error.facts();
    Finding {
        kind: facts.kind,
        class: Some(facts.class),
        message: error.to_string(),
        help: facts.help,
        pid: None,
    }
}
