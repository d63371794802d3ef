//! Errors of files that cannot be used for symbols. A problem in a part of a file is a
//! [`Note`](super::Note); the rest of the file is used.

use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

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

const SYMBOL_FILES: &str = "pass the unstripped library from the linker, its .debug file, or a \
                            Breakpad .sym file";

impl Classified for FileError {
    fn facts(&self) -> ErrorFacts {
        match self {
            FileError::Unknown => {
                ErrorFacts::new(ErrorClass::BadInput, "symbol-file-unknown").with_help(SYMBOL_FILES)
            }
            FileError::Unsupported(_) => {
                ErrorFacts::new(ErrorClass::BadInput, "symbol-file-unsupported")
                    .with_help(SYMBOL_FILES)
            }
            FileError::Damaged(_) => ErrorFacts::new(ErrorClass::BadInput, "symbol-file-damaged")
                .with_help("copy or build the file again"),
        }
    }
}
