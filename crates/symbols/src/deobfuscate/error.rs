//! Why a file gives no map.

use super::index::BadLine;
use heaptap_model::error::{Classified, ErrorClass, ErrorFacts};
use heaptap_model::units::ByteSize;
use std::io;
use std::path::PathBuf;

/// A mapping file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// It can't be opened or read.
    #[error("cannot read the mapping file {}", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Its packing can't be undone.
    #[error("the mapping file {} is damaged: {what}", path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// It is, or unpacks to, more than any compiler writes.
    #[error("the mapping file {} has more than {most}", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
        /// What a file of its kind may have.
        most: ByteSize,
    },
    /// An archive with no mapping file in it, or with several.
    #[error("{} holds {what}", path.display())]
    Archive {
        /// The file.
        path: PathBuf,
        /// What it holds.
        what: String,
    },
    /// No line of it is a class.
    #[error("{} is no mapping file: it has no line such as `com.example.Main -> a.b:`{}",
        path.display(), described(.first_bad_lines))]
    NoClasses {
        /// The file.
        path: PathBuf,
        /// What was wrong with its first lines.
        first_bad_lines: Vec<BadLine>,
    },
}

fn described(bad: &[BadLine]) -> String {
    bad.first().map_or_else(String::new, |bad| {
        format!("; of line {}, {}", bad.line, bad.fault)
    })
}

impl Classified for MapError {
    fn facts(&self) -> ErrorFacts {
        match self {
            MapError::Unreadable { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "mapping-unreadable").with_help(
                    "give PACKAGE=FILE or FILE; Gradle leaves it at \
                     app/build/outputs/mapping/<variant>/mapping.txt",
                )
            }
            MapError::Damaged { .. } => ErrorFacts::new(ErrorClass::BadInput, "mapping-damaged")
                .with_help("copy it again from where it came"),
            MapError::TooLarge { .. } => ErrorFacts::new(ErrorClass::BadInput, "mapping-too-large")
                .with_help("unpack it yourself and give the mapping file"),
            MapError::Archive { .. } => ErrorFacts::new(ErrorClass::BadInput, "no-mapping-inside")
                .with_help("take the mapping file out of it and give that"),
            MapError::NoClasses { .. } => ErrorFacts::new(ErrorClass::BadInput, "not-a-mapping")
                .with_help(
                    "it is the file that R8 writes beside the app, in Gradle's \
                     build/outputs/mapping; Play's console has it under the app bundle",
                ),
        }
    }
}
