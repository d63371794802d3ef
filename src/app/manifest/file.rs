//! The file itself: its name in the folder, written whole or not at all, read back, and what
//! can be wrong with it.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use super::{Manifest, Page, SCHEMA_VERSION};
use crate::app::whole_file::unless_link;
use crate::error::{Classified, ErrorClass};

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
        let text = fs::read(&path).map_err(|source| ManifestError::Read {
            path: path.clone(),
            source,
        })?;
        let manifest: Manifest =
            serde_json::from_slice(&text).map_err(|source| ManifestError::Parse {
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

/// How the names of unfinished files in a results folder begin.
pub(in crate::app) const UNFINISHED: &str = ".heaptap-part-";

/// An unfinished file of a results folder.
pub(in crate::app) fn temporary_in(folder: &Path) -> io::Result<tempfile::NamedTempFile> {
    crate::session::unfinished::file_in(folder, UNFINISHED)
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
    fn class(&self) -> ErrorClass {
        match self {
            ManifestError::Write { .. } => ErrorClass::HostWrite,
            _ => ErrorClass::BadInput,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ManifestError::Write { .. } => "host-write",
            ManifestError::Read { .. } => "manifest-unreadable",
            ManifestError::Parse { .. } => "manifest-invalid",
            ManifestError::TooNew { .. } => "manifest-too-new",
        }
    }

    fn help(&self) -> Option<String> {
        Some(
            match self {
                ManifestError::Write { .. } => "free some space or choose another folder with -o",
                ManifestError::Read { .. } => "give the folder that `heaptap record` made",
                ManifestError::Parse { .. } => {
                    "the trace beside it is still good: `heaptap convert FOLDER/raw-trace`"
                }
                ManifestError::TooNew { .. } => "use the version of heaptap that wrote it",
            }
            .to_owned(),
        )
    }
}
