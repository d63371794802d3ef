//! Why a file gives no symbols at all. What is wrong with a part of a file is a
//! [`Note`](super::Note): the rest of it is used.

use heaptap_model::error::{Classified, ErrorClass};

/// A file that cannot be used for symbols.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileError {
    /// Neither ELF nor a Breakpad symbol file.
    #[error("it is neither an ELF file nor a Breakpad symbol file")]
    Unknown,
    /// An ELF file that no Android device runs.
    #[error("{0}")]
    Unsupported(&'static str),
    /// Its headers contradict the file or each other.
    #[error("it is damaged: {0}")]
    Damaged(String),
}

impl Classified for FileError {
    fn class(&self) -> ErrorClass {
        ErrorClass::BadInput
    }

    fn kind(&self) -> &'static str {
        match self {
            FileError::Unknown => "symbol-file-unknown",
            FileError::Unsupported(_) => "symbol-file-unsupported",
            FileError::Damaged(_) => "symbol-file-damaged",
        }
    }

    fn help(&self) -> Option<String> {
        let text = match self {
            FileError::Unknown | FileError::Unsupported(_) => {
                "give the unstripped library as the linker wrote it, its .debug file, or a \
                 Breakpad .sym"
            }
            FileError::Damaged(_) => "copy or build the file anew",
        };
        Some(text.to_owned())
    }
}
