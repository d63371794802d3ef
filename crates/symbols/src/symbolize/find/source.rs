//! Sources of a candidate's bytes: opened late, and checked again when opened.

use super::content::Step;
use super::reject_reason::RejectReason;
use super::{archive, regular};
use crate::symbolize::file::{self, Bytes};
use heaptap_base::units::BuildId;
use sha2::{Digest as _, Sha256};
use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{SystemTime, UNIX_EPOCH};

/// Size and time of a file, which identify the version that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, serde::Serialize, serde::Deserialize)]
pub(super) struct Stamp {
    /// Size in bytes.
    pub size: u64,
    /// Nanoseconds since 1970; 0 if the file system does not have times.
    pub mtime_ns: i64,
}

impl Stamp {
    pub(super) fn from_metadata(metadata: &Metadata) -> Self {
        Stamp {
            size: metadata.len(),
            mtime_ns: metadata.modified().map_or(0, Self::time_ns),
        }
    }

    /// Returns a time in nanoseconds since 1970.
    pub(super) fn time_ns(time: SystemTime) -> i64 {
        match time.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_nanos()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_nanos()).map_or(i64::MIN, |n| -n),
        }
    }
}

/// Source of a candidate's bytes.
#[derive(Debug, Clone)]
pub(super) enum Source {
    /// A file on this host.
    File { path: PathBuf, stamp: Stamp },
    /// A member of a ZIP archive.
    Member {
        archive: PathBuf,
        stamp: Stamp,
        name: String,
        steps: Vec<Step>,
        /// Its bytes, if the search had to decompress them.
        unpacked: Arc<OnceLock<Bytes>>,
    },
    /// A file in the cache: it never changes, and its name identifies it.
    Kept { path: PathBuf },
}

impl Source {
    /// Reads it and checks its build ID, if there is one to check.
    ///
    /// # Errors
    /// Returns [`RejectReason::Changed`] if it is another file by now, or the error of reading it.
    pub(super) fn open(&self, build_id: Option<&BuildId>) -> Result<Bytes, RejectReason> {
        let bytes = match self {
            Source::File { path, stamp } => map(path, Some(*stamp))?.0,
            Source::Kept { path } => map(path, None)?.0,
            Source::Member {
                archive,
                stamp,
                steps,
                unpacked,
                ..
            } => match unpacked.get() {
                Some(bytes) => bytes.clone(),
                None => archive::open(&map(archive, Some(*stamp))?.0, steps)?,
            },
        };
        let facts = file::identify(&bytes)?;
        match build_id.is_none_or(|build_id| facts.is_build(build_id)) {
            true => Ok(bytes),
            false => Err(RejectReason::Changed),
        }
    }

    /// Caches the bytes of a compressed member for the next call.
    pub(super) fn keep(&self, bytes: Bytes) {
        if let Source::Member { unpacked, .. } = self {
            // Another thread might have decompressed the same bytes.
            let _ = unpacked.set(bytes);
        }
    }

    /// Returns its path, if it is a file on this host.
    pub(super) fn path(&self) -> Option<PathBuf> {
        match self {
            Source::File { path, .. } | Source::Kept { path } => Some(path.clone()),
            Source::Member { .. } => None,
        }
    }

    /// Returns a digest that identifies it.
    pub(super) fn identity(&self) -> [u8; 32] {
        let mut digest = Sha256::new();
        match self {
            Source::File { path, stamp } => add(&mut digest, path, *stamp),
            Source::Member {
                archive,
                stamp,
                name,
                ..
            } => {
                add(&mut digest, archive, *stamp);
                digest.update(name.as_bytes());
            }
            Source::Kept { path } => {
                // Each use changes the time of the file.
                let stamp = Stamp {
                    size: 0,
                    mtime_ns: 0,
                };
                add(&mut digest, path, stamp);
            }
        }
        digest.finalize().into()
    }
}

fn add(digest: &mut Sha256, path: &Path, stamp: Stamp) {
    let path = path.as_os_str().as_encoded_bytes();
    digest.update((path.len() as u64).to_le_bytes());
    digest.update(path);
    digest.update(stamp.size.to_le_bytes());
    digest.update(stamp.mtime_ns.to_le_bytes());
}

/// Maps the file at `path`.
///
/// # Errors
/// Returns an error if it is missing, not regular, unreadable, or no longer has the `expected`
/// stamp.
pub(super) fn map(path: &Path, expected: Option<Stamp>) -> Result<(Bytes, Stamp), RejectReason> {
    let (file, metadata) = regular::open(path)?;
    let stamp = Stamp::from_metadata(&metadata);
    if expected.is_some_and(|expected| expected != stamp) {
        return Err(RejectReason::Changed);
    }
    let bytes = Bytes::from_file(&file, path).map_err(|error| regular::why_not(&error))?;
    Ok((bytes, stamp))
}
