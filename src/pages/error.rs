//! Why there is no page.

use std::io;
use std::path::PathBuf;

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::input::LookError;
use crate::heaps::java::JavaError;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The input holds no native heap, or can't be read.
    #[error(transparent)]
    Look(#[from] LookError),
    /// The input holds no Java heap, or can't be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// Something else would be overwritten.
    #[error("{} holds something that is no report of heaptap", .0.display())]
    Taken(PathBuf),
    /// The page can't be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Classified for ReportError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ReportError::Look(error) => error.facts(),
            ReportError::Java(error) => error.facts(),
            ReportError::Taken(_) => ErrorFacts::new(ErrorClass::Usage, "output-taken")
                .with_help("name another file, or --force to overwrite it"),
            ReportError::Write { source, .. } => {
                let help = match source.kind() {
                    io::ErrorKind::NotFound => {
                        "there is no such folder: make it, or name another file with -o"
                    }
                    io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                        "name a file with -o that you may write"
                    }
                    io::ErrorKind::IsADirectory => "it is a folder: name a file in it with -o",
                    _ => "make room there, or name another file with -o",
                };
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable").with_help(help)
            }
        }
    }
}
