//! Opening files that are files. A pipe or a device in a folder of symbols is never opened so
//! that it could block or do something.

use super::why_not::WhyNot;
use heaptap_model::bytes;
use std::fs::{File, Metadata};
use std::io;
use std::path::Path;

/// Facts of the file at `path`, links followed, if it is a regular one.
///
/// # Errors
/// [`WhyNot::NotThere`], [`WhyNot::NotAFile`], or what the system says.
pub(super) fn stat(path: &Path) -> Result<Metadata, WhyNot> {
    let metadata = std::fs::metadata(path).map_err(|error| why_not(&error))?;
    match metadata.is_file() {
        true => Ok(metadata),
        false => Err(WhyNot::NotAFile),
    }
}

/// Opens the file at `path` for reading, if it is a regular one.
///
/// # Errors
/// As [`stat`].
pub(super) fn open(path: &Path) -> Result<(File, Metadata), WhyNot> {
    // Opening some devices has effects, so look first.
    stat(path)?;
    let file = bytes::open_without_waiting(path).map_err(|error| why_not(&error))?;
    let metadata = file.metadata().map_err(|error| why_not(&error))?;
    match metadata.is_file() {
        true => Ok((file, metadata)),
        false => Err(WhyNot::NotAFile),
    }
}

/// What an error of the system means for a search.
pub(super) fn why_not(error: &io::Error) -> WhyNot {
    match error.kind() {
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory | io::ErrorKind::InvalidFilename => {
            WhyNot::NotThere
        }
        kind => WhyNot::Unreadable(kind),
    }
}
