//! The file itself: its name in the folder, written whole or not at all, read back, and what
//! can be wrong with it.

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

/// The name of the file in a recording's folder.
pub const FILE_NAME: &str = "manifest.json";

impl Manifest {
    /// Writes the manifest into `folder`, whole or not at all: a temporary file beside the
    /// goal, synced and renamed. To be called last, so that its presence says that the other
    /// files are there.
    ///
    /// # Errors
    /// Where the folder cannot be written.
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
    /// Where it is missing, cannot be read, is no manifest, or is of a later schema.
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

    /// Notes the page `file` in the manifest of `folder`, where that is a recording's.
    ///
    /// # Errors
    /// Where its manifest can't be read or written.
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

/// A manifest of any version so far.
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

/// Turns a manifest of an earlier version into one of this version. Before version 3, the dumps of
/// all processes and heaps had one index, from 0, that labels and warnings named.
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
    // It is written again under the version of the form that it now has.
    if let Some(manifest) = manifest.as_object_mut() {
        manifest.insert("schema_version".to_owned(), SCHEMA_VERSION.into());
    }
    manifest
}

/// Why a manifest could not be written or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ManifestError {
    /// It could not be written.
    #[error("could not write {}", path.display())]
    Write {
        /// The goal.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It could not be read.
    #[error("could not read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        source: io::Error,
    },
    /// It is no manifest.
    #[error("{} is not a manifest of heaptap", path.display())]
    Parse {
        /// The file.
        path: PathBuf,
        /// Where and why.
        #[source]
        source: serde_json::Error,
    },
    /// It is of a later version.
    #[error("{} has schema version {found}, this heaptap knows {SCHEMA_VERSION}", path.display())]
    TooNew {
        /// The file.
        path: PathBuf,
        /// Its version.
        found: u32,
    },
}

impl Classified for ManifestError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ManifestError::Write { .. } => ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                .with_help("free some space or choose another folder with -o"),
            ManifestError::Read { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "manifest-unreadable")
                    .with_help("give the folder that `heaptap record` made")
            }
            ManifestError::Parse { path, .. } => {
                let trace = path.with_file_name(RAW_TRACE);
                let help = match trace.is_file() {
                    true => format!(
                        "the trace beside it can still be read: heaptap convert {} -o DIR",
                        quoted_path(&trace)
                    ),
                    false => "copy the folder again from where it came".to_owned(),
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
