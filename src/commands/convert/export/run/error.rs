//! Why nothing is written.

use crate::error::{Classified, ErrorClass, ErrorFacts};
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
    fn facts(&self) -> ErrorFacts {
        match self {
            ExportError::Look(error) => error.facts(),
            ExportError::Java(error) => error.facts(),
            ExportError::NoneSelected { there } => {
                ErrorFacts::new(ErrorClass::Empty, "none-selected")
                    .with_help(format!("it has {there}"))
            }
            ExportError::SeveralDumps { there } => {
                ErrorFacts::new(ErrorClass::Usage, "several-dumps").with_help(format!(
                    "name one with --dump, --pid or --heap, or a folder with -o: {there}"
                ))
            }
            ExportError::SeveralViews => ErrorFacts::new(ErrorClass::Usage, "several-views")
                .with_help("name one with --view, or a folder with -o"),
            ExportError::NoSuchView { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-view")
                    .with_help(format!("there are {there}"))
            }
            ExportError::TablesToFile => ErrorFacts::new(ErrorClass::Usage, "needs-folder")
                .with_help("name a folder with -o"),
            ExportError::Taken(_) => ErrorFacts::new(ErrorClass::Usage, "output-taken")
                .with_help("name another file, or --force to overwrite it"),
            ExportError::IsInput(_) | ExportError::IsOfInput(_) => {
                ErrorFacts::new(ErrorClass::Usage, "output-is-input")
                    .with_help("name another file with -o")
            }
            ExportError::Write { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("make room there, or name another place with -o")
            }
            ExportError::Temporary { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "temporary-unwritable")
                    .with_help("make room in the temporary folder, or name another in TMPDIR")
            }
        }
    }
}
