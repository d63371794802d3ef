//! The manifest file: its name, atomic writing, reading, and errors.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Manifest, Page, SCHEMA_VERSION};
use crate::bytes::open_regular;
use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::folder::RAW_TRACE;
use crate::profile::DumpNumbers;
use crate::results::whole_file::{temporary_in, unless_link};
use crate::stacks::TRACKED_HEAP;
use crate::untrusted::shell::quoted_path;

/// Name of the manifest in a recording directory.
pub const FILE_NAME: &str = "manifest.json";

impl Manifest {
    /// Writes the manifest into `folder` atomically: a temporary file in the same directory is
    /// synced and renamed. Call this last, so that the manifest implies that the other files exist.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn write(&self, folder: &Path) -> Result<PathBuf, ManifestError> {
        let goal = folder.join(FILE_NAME);
        let written = || -> io::Result<()> {
            let mut file = temporary_in(folder)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.as_file().sync_all()?;
            file.persist(&goal)?;
            Ok(())
        };
        match written() {
            Ok(()) => Ok(goal),
            Err(source) => Err(ManifestError::Write { path: goal, source }),
        }
    }

    /// Reads the manifest of `folder`.
    ///
    /// # Errors
    /// Returns an error if the manifest is missing, unreadable, malformed, or of a later schema.
    pub fn read(folder: &Path) -> Result<Manifest, ManifestError> {
        let path = folder.join(FILE_NAME);
        let mut text = Vec::new();
        let read = open_regular(&path).and_then(|mut file| file.read_to_end(&mut text));
        read.map_err(|source| ManifestError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest = parse(&text).map_err(|source| ManifestError::Parse {
            path: path.clone(),
            source,
        })?;
        if manifest.schema_version > SCHEMA_VERSION {
            return Err(ManifestError::TooNew {
                path,
                found: manifest.schema_version,
            });
        }
        Ok(manifest)
    }

    /// Adds the page `file` to the manifest of `folder`, if it is a recording directory.
    ///
    /// # Errors
    /// Returns an error if its manifest cannot be read or written.
    pub fn note_page(folder: &Path, file: &str, sha256: &str) -> Result<(), ManifestError> {
        let path = folder.join(FILE_NAME);
        if fs::symlink_metadata(&path).is_err() {
            return Ok(());
        }
        unless_link(&path).map_err(|source| ManifestError::Read { path, source })?;
        let mut manifest = match Manifest::read(folder) {
            // Other programs have a file of this name, too.
            Err(ManifestError::Parse { .. }) => return Ok(()),
            read => read?,
        };
        manifest.page = Some(Page {
            file: file.to_owned(),
            sha256: sha256.to_owned(),
        });
        manifest.write(folder).map(drop)
    }
}

/// Parses a manifest of any supported version.
fn parse(text: &[u8]) -> serde_json::Result<Manifest> {
    #[derive(serde::Deserialize)]
    struct Version {
        #[serde(default)]
        schema_version: Option<u64>,
    }
    let version: Version = serde_json::from_slice(text)?;
    match version.schema_version {
        Some(..3) => serde_json::from_value(numbered(serde_json::from_slice(text)?)),
        _ => serde_json::from_slice(text),
    }
}

/// Converts a manifest of an earlier version to this version. Before version 3, the dumps of all
/// processes and heaps shared one index, from 0, which labels and warnings referred to.
fn numbered(mut manifest: Value) -> Value {
    fn each<'a>(value: &'a mut Value, list: &str) -> impl Iterator<Item = &'a mut Value> {
        let list = value.pointer_mut(list).and_then(Value::as_array_mut);
        list.into_iter().flatten()
    }
    let mut numbers = DumpNumbers::default();
    let mut ids: Vec<Map<String, Value>> = Vec::new();
    for dump in each(&mut manifest, "/dumps").filter_map(Value::as_object_mut) {
        let pid = dump.get("pid").and_then(Value::as_u64).unwrap_or_default();
        let heap = dump.get("heap").and_then(Value::as_str).unwrap_or_default();
        let number = numbers.next(pid, heap);
        let id = [
            ("pid".to_owned(), pid.into()),
            ("heap".to_owned(), heap.into()),
            ("number".to_owned(), number.into()),
        ];
        dump.insert("number".to_owned(), number.into());
        ids.push(id.into_iter().collect());
    }
    let id = |index: Option<&Value>| ids.get(usize::try_from(index?.as_u64()?).ok()?).cloned();
    for label in each(&mut manifest, "/labels") {
        for bound in each(label, "/dumps").filter_map(Value::as_object_mut) {
            let id = id(bound.get("index")).unwrap_or_default();
            bound.extend(id);
        }
    }
    for warning in each(&mut manifest, "/warnings") {
        for dump in each(warning, "/dumps") {
            *dump = id(Some(dump)).map_or(Value::Null, Value::Object);
        }
    }
    for list in each(&mut manifest, "/java_allocations/dumps").filter_map(Value::as_object_mut) {
        let pid = list.get("pid").and_then(Value::as_u64).unwrap_or_default();
        let number = numbers.next(pid, TRACKED_HEAP);
        list.insert("number".to_owned(), number.into());
    }
    // It will be written with the version of its new form.
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
    }
    manifest
}

/// Error of writing or reading a manifest.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// The file could not be written.
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file could not be read.
    #[error("cannot read {}", path.display())]
    Read {
        path: PathBuf,
        #[source]
        source: io::Error,
    },
    /// The file is not a manifest.
    #[error("{} is not a heaptap manifest", path.display())]
    Parse {
        path: PathBuf,
        #[source]
        source: serde_json::Error,
    },
    /// The schema is of a later version.
    #[error(
        "{} has schema version {found}, but this heaptap supports \
         {SCHEMA_VERSION}", path.display())]
    TooNew {
        path: PathBuf,
        /// Schema version of the file.
        found: u32,
    },
}

impl Classified for ManifestError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ManifestError::Write { .. } => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help("free some space or choose another directory with `-o`"),
            ManifestError::Read { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "manifest-unreadable")
                    .with_help("use the directory that `heaptap record` created")
            }
            ManifestError::Parse { path, .. } => {
                let trace = path.with_file_name(RAW_TRACE);
                let help = match trace.is_file() {
                    true => format!(
                        "the trace next to it is readable; run `heaptap convert {} -o DIR`",
                        quoted_path(&trace)
                    ),
                    false => "copy the directory again from its source".to_owned(),
                };
                ErrorFacts::new(ErrorClass::BadInput, "manifest-invalid").with_help(help)
            }
            ManifestError::TooNew { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "manifest-too-new")
                    .with_help("use the version of heaptap that wrote it")
            }
        }
    }
}
