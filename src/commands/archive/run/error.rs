//! Errors of `archive`.

use std::path::PathBuf;

use heaptap_archive::StoreError;

use crate::heaps::input::InputError;
use crate::heaps::java::JavaError;
use heaptap_base::error::{Classified, ErrorClass, ErrorFacts, Failure};
use heaptap_results::manifest::ManifestError;

/// Reason why a recording is not archived.
#[derive(Debug, thiserror::Error)]
pub enum ArchiveError {
    /// The heaps cannot be read.
    #[error(transparent)]
    Look(#[from] InputError),
    /// The Java heaps cannot be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// The manifest cannot be read.
    #[error(transparent)]
    Manifest(#[from] ManifestError),
    /// The results of a scenario cannot be read.
    #[error("{}", .0.message)]
    Results(Failure),
    /// The archive cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The input is neither a recording nor results.
    #[error("cannot archive {}: {why}", path.display())]
    NotARecording { path: PathBuf, why: &'static str },
}

impl Classified for ArchiveError {
    fn facts(&self) -> ErrorFacts {
        match self {
            ArchiveError::Look(error) => error.facts(),
            ArchiveError::Java(error) => error.facts(),
            ArchiveError::Manifest(error) => error.facts(),
            ArchiveError::Results(failure) => ErrorFacts {
                class: failure.class,
                kind: failure.kind,
                excerpt: failure.excerpt.clone(),
                help: failure.help.clone(),
                hints: failure.hints.clone(),
            },
            ArchiveError::Store(StoreError::NotAStore(_)) => {
                ErrorFacts::new(ErrorClass::Usage, "not-an-archive")
                    .with_help("name a new directory, or one that `heaptap archive` created")
            }
            ArchiveError::Store(StoreError::Read { .. }) => {
                ErrorFacts::new(ErrorClass::BadInput, "archive-unreadable").with_help(
                    "remove the file and archive its recordings again, or restore it from a copy",
                )
            }
            ArchiveError::Store(StoreError::Write { .. }) => {
                ErrorFacts::new(ErrorClass::HostWrite, "host-write")
                    .with_help("free some space, or make the archive writable")
            }
            ArchiveError::NotARecording { .. } => {
                ErrorFacts::new(ErrorClass::BadInput, "not-a-recording")
                    .with_help("name the directory of `heaptap record`, `dump` or `run`")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_that_cannot_be_read_keep_all_lines_of_their_failure() {
        let mut failure = Failure::new(ErrorClass::BadInput, "results-damaged", "damaged")
            .with_excerpt(vec!["line 3".to_owned()])
            .with_help("run it again");
        failure.hints = vec!["heaptap run".to_owned()];
        let shown = Failure::from(ArchiveError::Results(failure));
        assert_eq!(
            (shown.kind, shown.message.as_str()),
            ("results-damaged", "damaged")
        );
        assert_eq!(shown.excerpt, ["line 3"]);
        assert_eq!(shown.help.as_deref(), Some("run it again"));
        assert_eq!(shown.hints, ["heaptap run"]);
    }
}
