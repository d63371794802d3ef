//! Why nothing is written.

use crate::error::{Classified, ErrorClass};
use crate::heaps::input::LookError;
use crate::heaps::java::JavaError;
use std::io;
use std::path::PathBuf;

/// Why nothing is written.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The input can't be read, or has no heap.
    #[error(transparent)]
    Look(#[from] LookError),
    /// A Java heap of it can't be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// No dump is one that was asked for.
    #[error("no dump of the input is one that was asked for")]
    NoneSelected {
        /// What there is, in words.
        there: String,
    },
    /// One is written, and several are meant.
    #[error("a file of this format holds one dump, and several are meant")]
    SeveralDumps {
        /// Those, in words.
        there: String,
    },
    /// One is written, and several are meant.
    #[error("a file of this format holds one view, and several are meant")]
    SeveralViews,
    /// No column has the name.
    #[error("no dump has a view {view}")]
    NoSuchView {
        /// What was named.
        view: String,
        /// What there is, in words.
        there: String,
    },
    /// Parquet is a folder of tables.
    #[error("Parquet is a folder of tables, and cannot go to a file or to standard output")]
    TablesToFile,
    /// Something else would be overwritten.
    #[error("{} is there already", .0.display())]
    Taken(PathBuf),
    /// The input would be overwritten.
    #[error("{} is the input", .0.display())]
    IsInput(PathBuf),
    /// A file of the recording that is read would be overwritten.
    #[error("{} is a file of the recording itself", .0.display())]
    IsOfInput(PathBuf),
    /// A file can't be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Standard input can't be kept.
    #[error("cannot keep what comes on standard input")]
    Temporary {
        /// What the system says.
        source: io::Error,
    },
}

impl Classified for ExportError {
    fn class(&self) -> ErrorClass {
        match self {
            ExportError::Look(error) => error.class(),
            ExportError::Java(error) => error.class(),
            ExportError::NoneSelected { .. } => ErrorClass::Empty,
            ExportError::SeveralDumps { .. }
            | ExportError::SeveralViews
            | ExportError::NoSuchView { .. }
            | ExportError::TablesToFile
            | ExportError::Taken(_)
            | ExportError::IsInput(_)
            | ExportError::IsOfInput(_) => ErrorClass::Usage,
            ExportError::Write { .. } | ExportError::Temporary { .. } => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ExportError::Look(error) => error.kind(),
            ExportError::Java(error) => error.kind(),
            ExportError::NoneSelected { .. } => "none-selected",
            ExportError::SeveralDumps { .. } => "several-dumps",
            ExportError::SeveralViews => "several-views",
            ExportError::NoSuchView { .. } => "no-such-view",
            ExportError::TablesToFile => "needs-folder",
            ExportError::Taken(_) => "output-taken",
            ExportError::IsInput(_) | ExportError::IsOfInput(_) => "output-is-input",
            ExportError::Write { .. } => "output-unwritable",
            ExportError::Temporary { .. } => "temporary-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            ExportError::Look(error) => return error.help(),
            ExportError::Java(error) => return error.help(),
            ExportError::NoneSelected { there } => format!("it has {there}"),
            ExportError::SeveralDumps { there } => {
                format!("name one with --dump, --pid or --heap, or a folder with -o: {there}")
            }
            ExportError::SeveralViews => "name one with --view, or a folder with -o".to_owned(),
            ExportError::NoSuchView { there, .. } => format!("there are {there}"),
            ExportError::TablesToFile => "name a folder with -o".to_owned(),
            ExportError::Taken(_) => "name another file, or --force to overwrite it".to_owned(),
            ExportError::IsInput(_) | ExportError::IsOfInput(_) => {
                "name another file with -o".to_owned()
            }
            ExportError::Write { .. } => {
                "make room there, or name another place with -o".to_owned()
            }
            ExportError::Temporary { .. } => {
                "make room in the temporary folder, or name another in TMPDIR".to_owned()
            }
        })
    }
}
