//! What a file or a member of an archive is, as far as symbols go. It is written down with an
//! index of folders: another shape is another version there.

use super::why_not::WhyNot;
use crate::symbolize::file::{Facts, Knowledge};
use heaptap_model::units::BuildId;
use serde::{Deserialize, Serialize};
use std::io;

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    /// Nothing that has symbols.
    Other,
    /// ELF or Breakpad.
    Symbols(Box<Symbols>),
    /// A ZIP archive, with what has symbols in it.
    Archive(Vec<Entry>),
    /// It begins like a file with symbols.
    Damaged(String),
    /// The system does not let it be read: at this time, so why is not written down.
    Unreadable {
        #[serde(skip, default = "unknown_kind")]
        kind: io::ErrorKind,
    },
}

fn unknown_kind() -> io::ErrorKind {
    io::ErrorKind::Other
}

/// A member with symbols, possibly in an archive within the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Its name; names of nested archives before it, `!` between.
    pub name: String,
    /// From the outermost archive inwards; the last is the member itself.
    pub steps: Vec<Step>,
    pub content: Content,
}

/// Where the bytes of a member lie in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Step {
    pub offset: u64,
    pub packed: u64,
    pub size: u64,
    pub crc: u32,
    pub is_deflated: bool,
}

/// A file with symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Symbols {
    /// Empty where it has none.
    pub build_id: Vec<u8>,
    /// Breakpad's.
    pub debug_id: Option<String>,
    /// `None` where the file must be unpacked to know.
    pub knowledge: Option<Known>,
}

/// [`Knowledge`] as it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Known {
    Nothing,
    Dynsym,
    Symtab,
    Lines,
    Dwarf,
}

impl From<Knowledge> for Known {
    fn from(knowledge: Knowledge) -> Known {
        match knowledge {
            Knowledge::Nothing => Known::Nothing,
            Knowledge::Dynsym => Known::Dynsym,
            Knowledge::Symtab => Known::Symtab,
            Knowledge::Lines => Known::Lines,
            Knowledge::Dwarf => Known::Dwarf,
        }
    }
}

impl From<Known> for Knowledge {
    fn from(known: Known) -> Knowledge {
        match known {
            Known::Nothing => Knowledge::Nothing,
            Known::Dynsym => Knowledge::Dynsym,
            Known::Symtab => Knowledge::Symtab,
            Known::Lines => Knowledge::Lines,
            Known::Dwarf => Knowledge::Dwarf,
        }
    }
}

impl Symbols {
    pub(super) fn new(facts: &Facts) -> Self {
        Symbols {
            build_id: facts.build_id.0.clone(),
            debug_id: facts.debug_id.clone(),
            knowledge: Some(facts.knowledge.into()),
        }
    }

    /// The ID that it has, for people.
    pub(super) fn shown_id(&self) -> BuildId {
        match (&self.debug_id, self.build_id.is_empty()) {
            (Some(debug_id), true) => BuildId(debug_id.clone().into_bytes()),
            _ => BuildId(self.build_id.clone()),
        }
    }
}

impl Content {
    /// Something with symbols that may not be used.
    pub(super) fn refused(why_not: WhyNot) -> Content {
        match why_not {
            WhyNot::Damaged(what) => Content::Damaged(what),
            WhyNot::Unreadable(kind) => Content::Unreadable { kind },
            other => Content::Damaged(other.to_string()),
        }
    }

    /// Whether it stays the same as long as size and time do: a refusal of the system may end
    /// any time.
    pub(super) fn is_lasting(&self) -> bool {
        match self {
            Content::Unreadable { .. } => false,
            Content::Archive(entries) => entries.iter().all(|entry| entry.content.is_lasting()),
            _ => true,
        }
    }

    /// Why a file of the right name is of no use, if it is of none.
    pub(super) fn why_not(&self) -> Option<WhyNot> {
        match self {
            Content::Other => Some(WhyNot::NotElf),
            Content::Damaged(what) => Some(WhyNot::Damaged(what.clone())),
            Content::Unreadable { kind } => Some(WhyNot::Unreadable(*kind)),
            Content::Symbols(_) | Content::Archive(_) => None,
        }
    }
}
