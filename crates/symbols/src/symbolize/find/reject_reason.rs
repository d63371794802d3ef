//! Reasons why a file or place was not used, as messages.

use crate::symbolize::file::FileError;
use heaptap_base::units::{BuildId, ByteSize};
use std::io;

/// Reason why a file or place was not used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RejectReason {
    /// No file with this name or build ID.
    #[error("not found")]
    NotThere,
    /// The place itself does not exist.
    #[error("does not exist")]
    NoSuchPlace,
    /// It is another build of the library.
    #[error("has another build ID: {0}")]
    OtherBuildId(BuildId),
    /// The file does not have a build ID, and matching by name was not requested.
    #[error("does not have a build ID")]
    NoBuildId,
    /// The recording does not have a build ID of the library, so files cannot be compared with it.
    #[error("cannot be compared: the recording does not have a build ID of this library")]
    NothingToCompare,
    /// It is neither ELF nor Breakpad symbols nor an archive.
    #[error("is not an ELF file")]
    NotElf,
    /// It is compressed, or an archive that is not read.
    #[error("is packed, and heaptap reads only ZIP: unpack it")]
    Packed,
    /// It is a directory, a pipe or a device.
    #[error("is not a regular file")]
    NotAFile,
    /// The system does not allow reading it.
    #[error("cannot be read: {0}")]
    Unreadable(io::ErrorKind),
    /// It cannot be parsed.
    #[error("is damaged: {0}")]
    Damaged(String),
    /// It is larger than the limit for decompression or fetching.
    #[error("is too large ({0})")]
    TooLarge(ByteSize),
    /// The tree has more than this number of files, and the rest of it was not searched.
    #[error("has more than {0} files; the rest was not searched")]
    TooManyFiles(usize),
    /// It changed since it was found.
    #[error("changed since it was found")]
    Changed,
    /// The server did not respond, or returned an error.
    #[error("{0}")]
    Server(String),
    /// Fetching it would exceed the budget for unrequested fetches.
    #[error("{0}")]
    OverBudget(String),
    /// The device is disconnected, refused, or was not queried.
    #[error("{0}")]
    Device(String),
    /// Number of further files in this place that were not used.
    #[error("and {0} more")]
    AndMore(usize),
}

impl RejectReason {
    /// Returns the stable word for scripts.
    pub fn word(&self) -> &'static str {
        match self {
            RejectReason::NotThere => "not-there",
            RejectReason::NoSuchPlace => "no-such-place",
            RejectReason::OtherBuildId(_) => "other-build-id",
            RejectReason::NoBuildId => "no-build-id",
            RejectReason::NothingToCompare => "nothing-to-compare",
            RejectReason::NotElf => "not-elf",
            RejectReason::Packed => "packed",
            RejectReason::NotAFile => "not-a-file",
            RejectReason::Unreadable(_) => "unreadable",
            RejectReason::Damaged(_) => "damaged",
            RejectReason::TooLarge(_) => "too-large",
            RejectReason::TooManyFiles(_) => "too-many-files",
            RejectReason::Changed => "changed",
            RejectReason::Server(_) => "server",
            RejectReason::OverBudget(_) => "over-budget",
            RejectReason::Device(_) => "device",
            RejectReason::AndMore(_) => "more",
        }
    }
}

impl From<FileError> for RejectReason {
    fn from(error: FileError) -> RejectReason {
        match error {
            FileError::Unknown => RejectReason::NotElf,
            FileError::Unsupported(what) => RejectReason::Damaged(what.to_owned()),
            FileError::Damaged(what) => RejectReason::Damaged(what),
        }
    }
}
