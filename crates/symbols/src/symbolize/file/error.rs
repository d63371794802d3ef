//! Why a file gives no symbols at all. What is wrong with a part of a file is a
//! [`Note`](super::Note): the rest of it is used.

use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};

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

const SYMBOL_FILES: &str = "give the unstripped library as the linker wrote it, its .debug file, or a \
     Breakpad .sym";

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
                .with_help("copy or build the file anew"),
        }
    }
}
