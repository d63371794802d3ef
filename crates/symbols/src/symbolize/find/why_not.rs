//! Why a file or place was not used, in words for people.

use crate::symbolize::file::FileError;
use heaptap_model::units::{BuildId, ByteSize};
use std::fmt;
use std::io;

/// Why a file or place was not used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhyNot {
    /// Nothing of this name or build ID there.
    NotThere,
    /// The place itself does not exist.
    NoSuchPlace,
    /// Another build of the library.
    OtherBuildId(BuildId),
    /// The file has no build ID, and to take it by its name was not asked for.
    NoBuildId,
    /// The recording has no build ID of the library: nothing tells whether this file is it.
    NothingToCompare,
    /// Neither ELF nor Breakpad symbols nor an archive.
    NotElf,
    /// A folder, a pipe, a device.
    NotAFile,
    /// The system does not let it be read.
    Unreadable(io::ErrorKind),
    /// It cannot be understood.
    Damaged(String),
    /// Larger than what is unpacked or fetched.
    TooLarge(ByteSize),
    /// Changed since it was found.
    Changed,
    /// The server did not answer, or refused.
    Server(String),
    /// Fetching it would cost more than what is spent without having been asked for.
    OverBudget(String),
    /// The phone is gone, refused, or was not asked.
    Device(String),
    /// So many more files of this place were not used either.
    AndMore(usize),
}

impl WhyNot {
    /// The stable word for it, for scripts.
    pub fn word(&self) -> &'static str {
        match self {
            WhyNot::NotThere => "not-there",
            WhyNot::NoSuchPlace => "no-such-place",
            WhyNot::OtherBuildId(_) => "other-build-id",
            WhyNot::NoBuildId => "no-build-id",
            WhyNot::NothingToCompare => "nothing-to-compare",
            WhyNot::NotElf => "not-elf",
            WhyNot::NotAFile => "not-a-file",
            WhyNot::Unreadable(_) => "unreadable",
            WhyNot::Damaged(_) => "damaged",
            WhyNot::TooLarge(_) => "too-large",
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
            WhyNot::NotThere => f.write_str("not there"),
            WhyNot::NoSuchPlace => f.write_str("does not exist"),
            WhyNot::OtherBuildId(id) => write!(f, "has another build ID, {id}"),
            WhyNot::NoBuildId => f.write_str("has no build ID"),
            WhyNot::NothingToCompare => {
                f.write_str("cannot be compared: the recording has no build ID of this library")
            }
            WhyNot::NotElf => f.write_str("is no ELF file"),
            WhyNot::NotAFile => f.write_str("is no regular file"),
            WhyNot::Unreadable(kind) => write!(f, "cannot be read: {kind}"),
            WhyNot::Damaged(what) => write!(f, "is damaged: {what}"),
            WhyNot::TooLarge(size) => write!(f, "is too large: {size}"),
            WhyNot::Changed => f.write_str("changed while it was read"),
            WhyNot::Server(what) | WhyNot::OverBudget(what) | WhyNot::Device(what) => {
                f.write_str(what)
            }
            WhyNot::AndMore(count) => write!(f, "and {count} more"),
        }
    }
}

/// What an error of reading a file of symbols means for a search.
impl From<FileError> for WhyNot {
    fn from(error: FileError) -> WhyNot {
        match error {
            FileError::Unknown => WhyNot::NotElf,
            FileError::Unsupported(what) => WhyNot::Damaged(what.to_owned()),
            FileError::Damaged(what) => WhyNot::Damaged(what),
        }
    }
}
