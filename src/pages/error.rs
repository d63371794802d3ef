//! Errors of writing a page.

use std::io;
use std::path::PathBuf;

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::input::LookError;
use crate::heaps::java::JavaError;
use crate::results::overwrite::OverwriteError;

/// Error of writing a page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The input contains no native heap, or cannot be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The input contains no Java heap, or cannot be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// The output would overwrite a file.
    #[error(transparent)]
    Output(#[from] OverwriteError),
    /// The page cannot be written.
    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },
}

impl Classified for ReportError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ReportError::Look(error) => error.facts(),
            ReportError::Java(error) => error.facts(),
            ReportError::Output(error) => error.facts(),
            ReportError::Write { source, .. } => {
                let help = match source.kind() {
                    io::ErrorKind::NotFound => {
                        "the directory does not exist; create it, or choose another file with `-o`"
                    }
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        "choose a writable file with `-o`"
                    }
                    io::ErrorKind::IsADirectory => {
                        "it is a directory; choose a file in it with `-o`"
                    }
                    _ => "free space there, or choose another file with `-o`",
                };
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable").with_help(help)
            }
        }
    }
}
