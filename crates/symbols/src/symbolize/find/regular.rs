//! Opening of regular files. A pipe or a device in a directory of symbols is never opened, because
//! it could block or have effects.

use super::why_not::WhyNot;
use heaptap_model::bytes;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Returns the metadata of the file at `path`, with links followed, if it is a regular file.
///
/// # Errors
/// Returns [`WhyNot::NotThere`], [`WhyNot::NotAFile`], or the system's error.
pub(super) fn stat(path: &Path) -> Result<Metadata, WhyNot> {
    let metadata = std::fs::metadata(path).map_err(|error| why_not(&error))?;
    match metadata.is_file() {
        true => Ok(metadata),
        false => Err(WhyNot::NotAFile),
    }
}

/// Opens the file at `path` for reading, if it is a regular file.
///
/// # Errors
/// Returns the errors of [`stat`].
pub(super) fn open(path: &Path) -> Result<(File, Metadata), WhyNot> {
    // Opening some devices has effects, so check first.
    stat(path)?;
    let file = bytes::open_without_waiting(path).map_err(|error| why_not(&error))?;
    let metadata = file.metadata().map_err(|error| why_not(&error))?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(WhyNot::NotAFile),
    }
}

/// Converts a system error to a reason for the search.
pub(super) fn why_not(error: &io::Error) -> WhyNot {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            WhyNot::NotThere
        }
        kind => WhyNot::Unreadable(kind),
    }
}
