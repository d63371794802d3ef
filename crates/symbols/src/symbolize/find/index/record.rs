//! Stored form of an index of a directory tree. Defines the format on disk; the walk decides which
//! parts are still valid.

use crate::symbolize::find::content::Content;
use crate::symbolize::find::source::Stamp;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Format version. Bump it when the structure or its meaning changes.
const VERSION: u32 = 3;

/// Walked directories by path.
pub(in crate::symbolize::find) type Directories = HashMap<String, Directory>;

/// Directory in the index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct Directory {
    /// Modification time in nanoseconds since 1970: as long as it does not change, the names in the
    /// directory are the same. `None` if it was too recent to be reliable.
    pub mtime_ns: Option<i64>,
    /// Regular files, by name.
    pub files: Vec<File>,
    /// Subdirectories, by name.
    pub directories: Vec<Below>,
}

/// Subdirectory.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct Below {
    pub name: String,
    pub is_link: bool,
}

/// Regular file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(in crate::symbolize::find) struct File {
    pub name: String,
    pub stamp: Stamp,
    /// True if every later change would alter the stamp; false for very recent files.
    pub is_settled: bool,
    pub content: Content,
}

/// Serializes directories.
pub(super) fn write(directories: &Directories) -> Option<Vec<u8>> {
    postcard::to_stdvec(&(VERSION, directories)).ok()
}

/// Deserializes the result of [`write`]; `None` if it is of another version or damaged.
pub(super) fn read(bytes: &[u8]) -> Option<Directories> {
    let (version, rest): (u32, &[u8]) = postcard::take_from_bytes(bytes).ok()?;
    if version != VERSION {
        return None;
    }
    postcard::from_bytes(rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::symbolize::file::Knowledge;
    use crate::symbolize::find::content::Symbols;
    use std::io;

    #[test]
    fn directories_are_read_as_they_were_written() {
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
            knowledge: Some(Knowledge::Lines),
        };
        let directory = Directory {
            mtime_ns: Some(5),
            files: vec![
                file("a", Content::Other),
                file("b", Content::Symbols(Box::new(symbols))),
                file("c", Content::Damaged("cut".to_owned())),
                file(
                    "d",
                    Content::Unreadable {
                        kind: io::ErrorKind::Other,
                    },
                ),
            ],
            directories: vec![Below {
                name: "d".to_owned(),
                is_link: true,
            }],
        };
        let directories = Directories::from([("/x".to_owned(), directory)]);
        let bytes = write(&directories).unwrap();
        assert_eq!(read(&bytes).unwrap(), directories);
        assert_eq!(read(&bytes[..bytes.len() - 1]), None);
        let mut other = bytes.clone();
        other[0] += 1;
        assert_eq!(read(&other), None);
        // A length without data.
        assert_eq!(read(&[VERSION as u8, 0xff, 0xff, 0xff, 0xff, 0x7f]), None);
    }
}
