//! Reasons why a file or place was not used, as messages.

use crate::symbolize::file::FileError;
use heaptap_model::units::{BuildId, ByteSize};
use std::fmt;
use std::io;

/// Reason why a file or place was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// No file with this name or build ID.
    NotThere,
    /// The place itself does not exist.
    NoSuchPlace,
    /// It is another build of the library.
    OtherBuildId(BuildId),
    /// The file does not have a build ID, and matching by name was not requested.
    NoBuildId,
    /// The recording does not have a build ID of the library, so files cannot be compared with it.
    NothingToCompare,
    /// It is neither ELF nor Breakpad symbols nor an archive.
    NotElf,
    /// It is compressed, or an archive that is not read.
    Packed,
    /// It is a directory, a pipe or a device.
    NotAFile,
    /// The system does not allow reading it.
    Unreadable(io::ErrorKind),
    /// It cannot be parsed.
    Damaged(String),
    /// It is larger than the limit for decompression or fetching.
    TooLarge(ByteSize),
    /// The tree has more than this number of files, and the rest of it was not searched.
    TooManyFiles(usize),
    /// It changed since it was found.
    Changed,
    /// The server did not respond, or returned an error.
    Server(String),
    /// Fetching it would exceed the budget for unrequested fetches.
    OverBudget(String),
    /// The device is disconnected, refused, or was not queried.
    Device(String),
    /// Number of further files in this place that were not used.
    AndMore(usize),
}

impl WhyNot {
    /// Returns the stable word for scripts.
    pub fn word(&self) -> &'static str {
        match self {
            WhyNot::NotThere => "not-there",
            WhyNot::NoSuchPlace => "no-such-place",
            WhyNot::OtherBuildId(_) => "other-build-id",
            WhyNot::NoBuildId => "no-build-id",
            WhyNot::NothingToCompare => "nothing-to-compare",
            WhyNot::NotElf => "not-elf",
            WhyNot::Packed => "packed",
            WhyNot::NotAFile => "not-a-file",
            WhyNot::Unreadable(_) => "unreadable",
            WhyNot::Damaged(_) => "damaged",
            WhyNot::TooLarge(_) => "too-large",
            WhyNot::TooManyFiles(_) => "too-many-files",
            WhyNot::Changed => "changed",
            WhyNot::Server(_) => "server",
            WhyNot::OverBudget(_) => "over-budget",
            WhyNot::Device(_) => "device",
            WhyNot::AndMore(_) => "more",
        }
    }
}

impl fmt::Display for WhyNot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            WhyNot::NotThere => f.write_str("not found"),
            WhyNot::NoSuchPlace => f.write_str("does not exist"),
            WhyNot::OtherBuildId(id) => write!(f, "has another build ID: {id}"),
            WhyNot::NoBuildId => f.write_str("does not have a build ID"),
            WhyNot::NothingToCompare => f.write_str(
                "cannot be compared: the recording does not have a build ID of this library",
            ),
            WhyNot::NotElf => f.write_str("is not an ELF file"),
            WhyNot::Packed => f.write_str("is packed, and heaptap reads only ZIP: unpack it"),
            WhyNot::NotAFile => f.write_str("is not a regular file"),
            WhyNot::Unreadable(kind) => write!(f, "cannot be read: {kind}"),
            WhyNot::Damaged(what) => write!(f, "is damaged: {what}"),
            WhyNot::TooLarge(size) => write!(f, "is too large ({size})"),
            WhyNot::TooManyFiles(most) => {
                write!(f, "has more than {most} files; the rest was not searched")
            }
            WhyNot::Changed => f.write_str("changed since it was found"),
            WhyNot::Server(what) | WhyNot::OverBudget(what) | WhyNot::Device(what) => {
                f.write_str(what)
            }
            WhyNot::AndMore(count) => write!(f, "and {count} more"),
        }
    }
}

/// Converts an error of reading a symbol file to a reason for the search.
impl From<FileError> for WhyNot {
    fn from(error: FileError) -> WhyNot {
        match error {
            FileError::Unknown => WhyNot::NotElf,
            FileError::Unsupported(what) => WhyNot::Damaged(what.to_owned()),
            FileError::Damaged(what) => WhyNot::Damaged(what),
        }
    }
}
