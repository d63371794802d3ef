//! Errors of mapping files.

use super::index::BadLine;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_base::units::ByteSize;
use std::io;
use std::path::PathBuf;

/// Failure to use a mapping file.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// The file cannot be opened or read.
    #[error("cannot read the mapping file {}", path.display())]
    Unreadable { path: PathBuf, source: io::Error },
    /// The file cannot be decompressed.
    #[error("the mapping file {} is damaged: {what}", path.display())]
    Damaged {
        path: PathBuf,
        /// Cause.
        what: String,
    },
    /// The file, or its decompressed contents, is larger than the limit.
    #[error("the mapping file {} is larger than {most}", path.display())]
    TooLarge {
        path: PathBuf,
        /// Limit for this kind of file.
        most: ByteSize,
    },
    /// An archive without a mapping file, or with several.
    #[error("{} contains {what}", path.display())]
    Archive {
        path: PathBuf,
        /// Contents of the archive.
        what: String,
    },
    /// No line of the file declares a class.
    #[error("{} is not a mapping file: it has no line such as `com.example.Main -> a.b:`{}",
        path.display(), described(.first_bad_lines))]
    NoClasses {
        path: PathBuf,
        /// Problems of the first lines.
        first_bad_lines: Vec<BadLine>,
        /// Git LFS left its pointer in place of the file.
        is_lfs_pointer: bool,
    },
}

fn described(bad: &[BadLine]) -> String {
    bad.first().map_or_else(String::new, |bad| {
        format!("; line {}: {}", bad.line, bad.fault)
    })
}

impl Classified for MapError {
    fn facts(&self) -> ErrorFacts {
        match self {
            MapError::Unreadable { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "mapping-unreadable").with_help(
                    "pass FILE or PACKAGE=FILE; Gradle writes it to \
                     app/build/outputs/mapping/<variant>/mapping.txt",
                )
            }
            MapError::Damaged { .. } => ErrorFacts::new(ErrorClass::BadInput, "mapping-damaged")
                .with_help("copy the file again from its source"),
            MapError::TooLarge { .. } => ErrorFacts::new(ErrorClass::BadInput, "mapping-too-large")
                .with_help("unpack the file and pass the mapping file"),
            MapError::Archive { .. } => ErrorFacts::new(ErrorClass::BadInput, "no-mapping-inside")
                .with_help("extract the mapping file and pass it"),
            MapError::NoClasses {
                is_lfs_pointer: true,
                ..
            } => ErrorFacts::new(ErrorClass::BadInput, "not-a-mapping")
                .with_help("it is a pointer of Git LFS; fetch the file with `git lfs pull`"),
            MapError::NoClasses { .. } => ErrorFacts::new(ErrorClass::BadInput, "not-a-mapping")
                .with_help(
                    "pass the file that R8 writes to Gradle's build/outputs/mapping, or download \
                     it from the app bundle in the Play Console",
                ),
        }
    }
}
