//! Adds recordings to an archive. `heaptap_archive` defines the dataset.

mod error;
mod read;
mod sources;

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use heaptap_archive::{Compacted, Dump, Recording, Store};
use serde::Serialize;

use crate::heaps::java::ProgressReporter;
use heaptap_base::error::{Classified as _, ErrorClass};
use heaptap_results::findings::Finding;

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
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Entry {
    /// A path that is not UTF-8 has replacement characters.
    pub path: String,
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

/// Adds recordings, a batch at a time. One that cannot be read is reported, and the others are
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
    let mut sources = Vec::new();
    let mut errors = Vec::new();
    for input in &request.inputs {
        match sources::of(input, request.build.as_deref()) {
            Ok(found) => {
                archived.findings.extend(found.findings);
                sources.extend(found.sources);
                errors.extend(found.errors);
            }
            Err(error) if request.inputs.len() == 1 => return Err(error),
            Err(error) => errors.push(error),
        }
    }
    let is_only = sources.len() + errors.len() == 1;
    let mut writer = Writer {
        known: Store::open(&request.store)?.into_recordings(),
        batch: Vec::new(),
        rows: 0,
        written: Instant::now(),
        archived,
    };
    for source in sources {
        match writer.add(&source, &request.store, progress) {
            Ok(class) => classes.extend(class),
            Err(error @ ArchiveError::Store(_)) => return Err(error),
            Err(error) if is_only => return Err(error),
            Err(error) => errors.push(error),
        }
    }
    progress.begin("writing the archive");
    let mut store = Store::open(&request.store)?;
    writer.write(&mut store)?;
    let mut archived = writer.archived;
    if request.compact {
        archived.compacted = Some(store.compact()?);
    }
    archived.recordings = store.len();
    classes.extend(errors.iter().map(|error| error.facts().class));
    archived
        .findings
        .extend(errors.iter().map(Finding::from_error));
    archived.class = ErrorClass::first_of(classes);
    Ok(archived)
}

/// Limits of a batch: recordings, their rows and names, and the time to read them. A killed process
/// loses one batch.
const MAX_BATCH: usize = 16;
const MAX_BATCH_ROWS: usize = 250_000;
const MAX_BATCH_TIME: Duration = Duration::from_secs(10);

/// Recordings on their way into the archive. The archive is locked only to write a batch, because
/// reading takes longer; it is not opened for each recording, because it then lists its files.
struct Writer {
    /// SHA-256 of the recordings of the archive and of the batch.
    known: HashSet<String>,
    batch: Vec<(Entry, Recording)>,
    /// Rows and names of the batch.
    rows: usize,
    /// Time of the last batch.
    written: Instant,
    archived: Archived,
}

impl Writer {
    /// Reads a recording, and writes the batch if it is full.
    fn add(
        &mut self,
        source: &Source,
        store: &Path,
        progress: &ProgressReporter,
    ) -> Result<Option<ErrorClass>, ArchiveError> {
        let entry = Entry {
            path: source.directory.to_string_lossy().into_owned(),
            sha256: source.recording.sha256.clone(),
        };
        if self.known.contains(&entry.sha256) {
            self.archived.known.push(entry);
            return Ok(None);
        }
        let read = read::read(source, progress)?;
        self.archived.findings.extend(read.findings);
        self.known.insert(entry.sha256.clone());
        self.rows += rows_of(&read.recording);
        self.batch.push((entry, read.recording));
        let is_full = self.batch.len() >= MAX_BATCH || self.rows >= MAX_BATCH_ROWS;
        if is_full || self.written.elapsed() >= MAX_BATCH_TIME {
            progress.begin("writing the archive");
            self.write(&mut Store::open(store)?)?;
        }
        Ok(read.class)
    }

    fn write(&mut self, store: &mut Store) -> Result<(), ArchiveError> {
        self.rows = 0;
        self.written = Instant::now();
        for (entry, recording) in self.batch.drain(..) {
            match store.append(&recording)? {
                true => self.archived.added.push(entry),
                // Another process added it meanwhile.
                false => self.archived.known.push(entry),
            }
        }
        Ok(())
    }
}

/// Returns the number of rows and names of a recording.
fn rows_of(recording: &Recording) -> usize {
    let rows = |dump: &Dump| dump.samples.len() + dump.classes.len() + dump.leaks.len();
    let names = &recording.names;
    recording.dumps.iter().map(rows).sum::<usize>() + names.callsites.len() + names.classes.len()
}
