//! What an index remembers of a tree of folders, and how it is written down. Owns the format
//! on disk; which of it is still true the walk finds out.

use crate::symbolize::file::{Facts, Knowledge};
use crate::symbolize::find::archive::Entry;
use crate::symbolize::find::found::WhyNot;
use crate::symbolize::find::source::Stamp;
use heaptap_model::units::BuildId;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;
use std::io;

/// Another shape or another meaning gets another number.
const VERSION: u32 = 2;

/// Folders by path, as they were walked.
pub(in crate::symbolize::find) type Folders = HashMap<String, Folder>;

/// One folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct Folder {
    /// Its own time in nanoseconds since 1970: what is in it has not changed as long as this
    /// has not. `None` where it was too young to be relied on.
    pub mtime_ns: Option<i64>,
    /// Its regular files, by name.
    pub files: Vec<File>,
    /// Its folders, by name.
    pub folders: Vec<Below>,
}

/// A folder in a folder.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct Below {
    pub name: String,
    pub is_link: bool,
}

/// A regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct File {
    pub name: String,
    pub stamp: Stamp,
    /// Whether another change would show in its stamp: not where it was very young.
    pub is_settled: bool,
    pub content: Content,
}

/// What a file is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) enum Content {
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

/// A file with symbols.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct Symbols {
    /// Empty where it has none.
    pub build_id: Vec<u8>,
    /// Breakpad's.
    pub debug_id: Option<String>,
    /// `None` where the file must be unpacked to know.
    pub knowledge: Option<Known>,
}

/// [`Knowledge`] as it is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) enum Known {
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
    pub(in crate::symbolize::find) fn new(facts: &Facts) -> Self {
        Symbols {
            build_id: facts.build_id.0.clone(),
            debug_id: facts.debug_id.clone(),
            knowledge: Some(facts.knowledge.into()),
        }
    }

    /// The ID that it has, for people.
    pub(in crate::symbolize::find) fn shown_id(&self) -> BuildId {
        match (&self.debug_id, self.build_id.is_empty()) {
            (Some(debug_id), true) => BuildId(debug_id.clone().into_bytes()),
            _ => BuildId(self.build_id.clone()),
        }
    }
}

impl Content {
    /// Something with symbols that may not be used.
    pub(in crate::symbolize::find) fn refused(why_not: WhyNot) -> Content {
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
    pub(in crate::symbolize::find) fn why_not(&self) -> Option<WhyNot> {
        match self {
            Content::Other => Some(WhyNot::NotElf),
            Content::Damaged(what) => Some(WhyNot::Damaged(what.clone())),
            Content::Unreadable { kind } => Some(WhyNot::Unreadable(*kind)),
            Content::Symbols(_) | Content::Archive(_) => None,
        }
    }
}

/// Writes folders down.
pub(super) fn write(folders: &Folders) -> Option<Vec<u8>> {
    postcard::to_stdvec(&(VERSION, folders)).ok()
}

/// Reads what [`write`] wrote; `None` where it is of another version or damaged.
pub(super) fn read(bytes: &[u8]) -> Option<Folders> {
    let (version, rest): (u32, &[u8]) = postcard::take_from_bytes(bytes).ok()?;
    if version != VERSION {
        return None;
    }
    postcard::from_bytes(rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_read_as_they_were_written() {
        let file = |name: &str, content| File {
            name: name.to_owned(),
            stamp: Stamp {
                size: 7,
                mtime_ns: -1,
            },
            is_settled: true,
            content,
        };
        let symbols = Symbols {
            build_id: vec![1, 2],
            debug_id: None,
            knowledge: Some(Known::Lines),
        };
        let folder = Folder {
            mtime_ns: Some(5),
            files: vec![
                file("a", Content::Other),
                file("b", Content::Symbols(Box::new(symbols))),
                file("c", Content::Damaged("cut".to_owned())),
                file(
                    "d",
                    Content::Unreadable {
                        kind: unknown_kind(),
                    },
                ),
            ],
            folders: vec![Below {
                name: "d".to_owned(),
                is_link: true,
            }],
        };
        let folders = Folders::from([("/x".to_owned(), folder)]);
        let bytes = write(&folders).unwrap();
        assert_eq!(read(&bytes).unwrap(), folders);
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        let mut other = bytes.clone();
        other[0] += 1;
        assert_eq!(read(&other), None);
        // A length that is claimed and not there.
        assert_eq!(read(&[VERSION as u8, 0xff, 0xff, 0xff, 0xff, 0x7f]), None);
    }
}
