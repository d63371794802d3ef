//! Errors of exports.

use crate::error::{Classified, ErrorClass, ErrorFacts};
use crate::heaps::input::LookError;
use crate::heaps::java::JavaError;
use crate::results::overwrite::OverwriteError;
use std::io;
use std::path::PathBuf;

/// Reason why an export fails.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The input cannot be read or does not contain a heap.
    #[error(transparent)]
    Look(#[from] LookError),
    /// A Java heap of the input cannot be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// No dump matches the selection.
    #[error("no dump of the input matches the selection")]
    NoneSelected {
        /// Available dumps, as a text list.
        there: String,
    },
    /// The format holds one dump, but several are selected.
    #[error("a file of this format holds one dump, but several are selected")]
    SeveralDumps {
        /// Selected dumps, as a text list.
        there: String,
    },
    /// The format holds one view, but several are selected.
    #[error("a file of this format holds one view, but several are selected")]
    SeveralViews,
    /// No dump has the named view.
    #[error("no dump has the view {view}")]
    NoSuchView {
        view: String,
        /// Available views, as a text list.
        there: String,
    },
    /// Parquet output requires a directory.
    #[error("cannot write Parquet to one file or to standard output: it is a directory of tables")]
    TablesToFile,
    /// The selected dump is of an HPROF, which has more than its graph.
    #[error("the dump is already in an HPROF: {name}")]
    AlreadyHprof {
        /// Name of the input.
        name: String,
    },
    /// The output would overwrite a file.
    #[error(transparent)]
    Output(#[from] OverwriteError),
    /// A file cannot be written.
    #[error("cannot write {}", path.display())]
    Write {
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl Classified for ExportError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ExportError::Look(error) => error.facts(),
            ExportError::Java(error) => error.facts(),
            ExportError::NoneSelected { there } => {
                ErrorFacts::new(ErrorClass::Usage, "none-selected")
                    .with_help(format!("choose from: {there}"))
            }
            ExportError::SeveralDumps { there } => {
                ErrorFacts::new(ErrorClass::Usage, "several-dumps").with_help(format!(
                    "select one with `--at`, `-p` or `--heap`, or name a directory with `-o`: \
                     {there}"
                ))
            }
            ExportError::SeveralViews => ErrorFacts::new(ErrorClass::Usage, "several-views")
                .with_help("select one with `--view`, or name a directory with `-o`"),
            ExportError::NoSuchView { there, .. } => {
                ErrorFacts::new(ErrorClass::Usage, "no-such-view")
                    .with_help(format!("choose from: {there}"))
            }
            ExportError::TablesToFile => ErrorFacts::new(ErrorClass::Usage, "needs-directory")
                .with_help("name a directory with `-o`"),
            ExportError::AlreadyHprof { .. } => ErrorFacts::new(ErrorClass::Usage, "bad-value")
                .with_help(
                    "copy the file, or write Java SE's dialect with `heaptap hprof conv` or a copy \
                     without contents with `heaptap hprof strip`",
                ),
            ExportError::Output(error) => error.facts(),
            ExportError::Write { .. } => {
                ErrorFacts::new(ErrorClass::HostWrite, "output-unwritable")
                    .with_help("name a file in a writable directory with free space")
            }
        }
    }
}
