//! What is wrong with debug information. It ends a part of the reading, never the whole.

/// What is wrong with debug information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DwarfError {
    #[error(transparent)]
    Format(#[from] gimli::Error),
    #[error("a table of abbreviations has no end")]
    AbbrevCut,
    #[error("an attribute has a form that is not known (0x{0:x})")]
    Form(u64),
    #[error("it ends within an entry")]
    Cut,
    #[error("an entry has an abbreviation that its unit does not define")]
    UnknownAbbreviation,
    #[error("a reference leads to no entry")]
    Offset,
    #[error("no line table has version {0}")]
    LineVersion(u16),
    #[error("the header of a line table contradicts itself")]
    LineHeader,
    #[error("it repeats itself without measure")]
    TooMuchWork,
}
