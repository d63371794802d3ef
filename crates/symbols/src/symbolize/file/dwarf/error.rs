//! Errors in debug information. They end a part of the reading, never the whole.

use super::super::notes::Note;

/// Error in debug information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DwarfError {
    #[error(transparent)]
    Format(#[from] gimli::Error),
    #[error("unterminated abbreviation table")]
    AbbrevCut,
    #[error("unknown attribute form 0x{0:x}")]
    Form(u64),
    #[error("truncated entry")]
    Cut,
    #[error("undefined abbreviation")]
    UnknownAbbreviation,
    #[error("reference to a missing entry")]
    Offset,
    #[error("unknown line table version {0}")]
    LineVersion(u16),
    #[error("contradictory line table header")]
    LineHeader,
    #[error("debug info exceeds the expansion limit")]
    TooMuchWork,
}

pub(super) fn note_of(part: &str, error: DwarfError) -> Note {
    match error {
        DwarfError::TooMuchWork => Note::TooMuchWork,
        error => Note::damaged(part, error),
    }
}
