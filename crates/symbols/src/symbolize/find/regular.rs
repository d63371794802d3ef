//! Opening of regular files. A pipe or a device in a directory of symbols is never opened, because
//! it could block or have effects.

use super::reject_reason::RejectReason;
use heaptap_base::bytes;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Returns the metadata of the file at `path`, with links followed, if it is a regular file.
///
/// # Errors
/// Returns [`RejectReason::NotThere`], [`RejectReason::NotAFile`], or the system's error.
pub(super) fn stat(path: &Path) -> Result<Metadata, RejectReason> {
    let metadata = std::fs::metadata(path).map_err(|error| why_not(&error))?;
    match metadata.is_file() {
        true => Ok(metadata),
        false => Err(RejectReason::NotAFile),
    }
}

/// Opens the file at `path` for reading, if it is a regular file.
///
/// # Errors
/// Returns the errors of [`stat`].
pub(super) fn open(path: &Path) -> Result<(File, Metadata), RejectReason> {
    // Opening some devices has effects, so check first.
    stat(path)?;
    let file = bytes::open_without_waiting(path).map_err(|error| why_not(&error))?;
    let metadata = file.metadata().map_err(|error| why_not(&error))?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(RejectReason::NotAFile),
    }
}

/// Converts a system error to a reason for the search.
pub(super) fn why_not(error: &io::Error) -> RejectReason {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            RejectReason::NotThere
        }
        kind => RejectReason::Unreadable(kind),
    }
}
