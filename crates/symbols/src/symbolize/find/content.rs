//! Classification of a file or an archive member with regard to symbols. It is stored with an index
//! of directories: if the structure changes, the version there must change, too.

use super::reject_reason::RejectReason;
use crate::symbolize::file::{Facts, Knowledge};
use heaptap_base::units::BuildId;
use serde::{Deserialize, Serialize};
use std::io;

/// Kind of a file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Content {
    /// A file without symbols.
    Other,
    /// ELF or Breakpad.
    Symbols(Box<Symbols>),
    /// A ZIP archive, with its members that have symbols.
    Archive(Vec<Entry>),
    /// A compressed file or an archive that is not read, which might have symbols.
    Packed,
    /// A file that begins like one with symbols, but is damaged.
    Damaged(String),
    /// The system denied reading it. The reason is not stored, because it can change.
    Unreadable {
        #[serde(skip, default = "unknown_kind")]
        kind: io::ErrorKind,
    },
}

fn unknown_kind() -> io::ErrorKind {
    io::ErrorKind::Other
}

/// Member with symbols, possibly in an archive within the archive.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Entry {
    /// Name, after the names of enclosing archives, separated by `!`.
    pub name: String,
    /// Steps from the outermost archive inwards; the last is the member itself.
    pub steps: Vec<Step>,
    pub content: Content,
}

/// Location of a member's bytes in its archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub(super) struct Step {
    pub offset: u64,
    pub packed: u64,
    pub size: u64,
    pub crc: u32,
    pub is_deflated: bool,
}

/// File with symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Symbols {
    /// Empty if it does not have one.
    pub build_id: Vec<u8>,
    /// Debug ID of a Breakpad file.
    pub debug_id: Option<String>,
    /// `None` if the file must be decompressed to find out.
    pub knowledge: Option<Knowledge>,
}

impl Symbols {
    pub(super) fn new(facts: &Facts) -> Self {
        Symbols {
            build_id: facts.build_id.0.clone(),
            debug_id: facts.debug_id.clone(),
            knowledge: Some(facts.knowledge),
        }
    }

    /// Returns its ID for display.
    pub(super) fn shown_id(&self) -> BuildId {
        match (&self.debug_id, self.build_id.is_empty()) {
            (Some(debug_id), true) => BuildId(debug_id.clone().into_bytes()),
            _ => BuildId(self.build_id.clone()),
        }
    }
}

impl Content {
    /// Makes the content of a file with symbols that cannot be used.
    pub(super) fn refused(why_not: RejectReason) -> Content {
        match why_not {
            RejectReason::Damaged(what) => Content::Damaged(what),
            RejectReason::Unreadable(kind) => Content::Unreadable { kind },
            other => Content::Damaged(other.to_string()),
        }
    }

    /// Returns whether it stays the same as long as size and time do: a denied access can be
    /// allowed at any time.
    pub(super) fn is_lasting(&self) -> bool {
        match self {
            Content::Unreadable { .. } => false,
            Content::Archive(entries) => entries.iter().all(|entry| entry.content.is_lasting()),
            _ => true,
        }
    }

    /// Returns the reason why a file with a matching name cannot be used, if there is one.
    pub(super) fn why_not(&self) -> Option<RejectReason> {
        match self {
            Content::Other => Some(RejectReason::NotElf),
            Content::Packed => Some(RejectReason::Packed),
            Content::Damaged(what) => Some(RejectReason::Damaged(what.clone())),
            Content::Unreadable { kind } => Some(RejectReason::Unreadable(*kind)),
            Content::Symbols(_) | Content::Archive(_) => None,
        }
    }
}
