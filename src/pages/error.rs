//! Why there is no page.

use std::io;
use std::path::PathBuf;

use crate::error::{Classified, ErrorClass};
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
    fn class(&self) -> ErrorClass {
        match self {
            ReportError::Look(error) => error.class(),
            ReportError::Java(error) => error.class(),
            ReportError::Taken(_) => ErrorClass::Usage,
            ReportError::Write { .. } => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ReportError::Look(error) => error.kind(),
            ReportError::Java(error) => error.kind(),
            ReportError::Taken(_) => "output-taken",
            ReportError::Write { .. } => "output-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            ReportError::Look(error) => return error.help(),
            ReportError::Java(error) => return error.help(),
            ReportError::Taken(_) => "name another file, or --force to overwrite it".to_owned(),
            ReportError::Write { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => {
                    "there is no such folder: make it, or name another file with -o".to_owned()
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "name a file with -o that you may write".to_owned()
                }
                io::ErrorKind::IsADirectory => {
                    "it is a folder: name a file in it with -o".to_owned()
                }
                _ => "make room there, or name another file with -o".to_owned(),
            },
        })
    }
}
