//! Errors of files that cannot be used for symbols. A problem in a part of a file is a
//! [`Note`](super::Note); the rest of the file is used.

/// Failure to use a file for symbols.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Neither ELF nor a Breakpad symbol file.
    #[error("neither an ELF file nor a Breakpad symbol file")]
    Unknown,
    /// An ELF file that Android does not support.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Its headers contradict the file or each other.
    #[error("damaged file: {0}")]
    Damaged(String),
}
