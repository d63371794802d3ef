//! Index of a mapping file: the start of each class. One pass over the lines checks all of them and
//! records the position of each class and of its source file. A class of any size takes eight
//! bytes, and eight more for the lookup. Contents of a class are read when needed.

use super::class::MAX_MEMBERS;
use super::grammar::{Fault, Line};
use super::metadata::{Metadata, Version, json_of};
use heaptap_model::profile::index::Seed;
use std::collections::HashMap;

/// Maximum number of bad lines, and of duplicate classes, listed individually.
const KEPT: usize = 10;

/// Line that is not valid in a mapping file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BadLine {
    /// Line number, from 1.
    pub line: u64,
    /// Problem of the line.
    pub fault: Fault,
}

/// Metadata of a mapping file and its problems.
#[derive(Debug, Clone, Default)]
pub struct Survey {
    /// Number of classes with distinct names in the app.
    pub classes: usize,
    /// ID of the R8 mapping (`pg_map_id`); new builds put it into the source files of frames.
    pub id: Option<String>,
    /// Number of bad lines, which were skipped.
    pub bad_lines: u64,
    pub first_bad_lines: Vec<BadLine>,
    /// Number of names in the app that several blocks have. The last block counts, as in R8's
    /// retrace; classes that R8 merged into one share a header.
    pub duplicates: u64,
    /// First duplicate names.
    pub first_duplicates: Vec<String>,
    /// True if the format version is unknown, or newer than the supported one.
    pub foreign_version: bool,
}

/// Position of a class in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct ClassAt(u32);

#[derive(Debug, Clone, Copy)]
struct Row {
    /// Start of the line that declares it.
    start: u32,
    /// Start of the line with its source file; 0 for none, because a class comes before it.
    source_file: u32,
}

/// Index of a mapping file, as described for the module.
#[derive(Debug)]
pub(super) struct Index {
    seed: Seed,
    rows: Vec<Row>,
    /// Half a hash of the name in the app with the class's position, sorted; only the last class of
    /// each name.
    by_name: Vec<u64>,
    /// Format versions, each with the offset from which it applies.
    versions: Vec<(u32, Version)>,
    pub(super) survey: Survey,
}

/// Maximum bytes of an indexed file.
pub(super) const MAX_SIZE: usize = u32::MAX as usize;

/// Byte order mark, which has no meaning in UTF-8.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Returns the line at an offset, without its line feed.
pub(super) fn line_at(bytes: &[u8], start: usize) -> &[u8] {
    let rest = bytes.get(start..).unwrap_or_default();
    let end = memchr::memchr(b'\n', rest).unwrap_or(rest.len());
    &rest[..end]
}

impl Index {
    /// Indexes a file of at most [`MAX_SIZE`] bytes.
    pub(super) fn build(bytes: &[u8]) -> Index {
        let mut pass = Pass {
            seed: Seed::default(),
            rows: Vec::new(),
            keys: Vec::new(),
            versions: Vec::new(),
            survey: Survey::default(),
            in_class: false,
            members: 0,
        };
        let mut start = if bytes.starts_with(BYTE_ORDER_MARK) {
            BYTE_ORDER_MARK.len()
        } else {
            0
        };
        let mut number = 0;
        while start < bytes.len() {
            let line = line_at(bytes, start);
            number += 1;
            if let Err(fault) = pass.line(line, start) {
                pass.survey.bad_lines += 1;
                if pass.survey.first_bad_lines.len() < KEPT {
                    let bad = BadLine {
                        line: number,
                        fault,
                    };
                    pass.survey.first_bad_lines.push(bad);
                }
            }
            start += line.len() + 1;
        }
        let mut index = Index {
            seed: pass.seed,
            rows: pass.rows,
            by_name: pass.keys,
            versions: pass.versions,
            survey: pass.survey,
        };
        index.rows.shrink_to_fit();
        index.by_name.sort_unstable();
        index.settle_duplicates(bytes);
        index.by_name.shrink_to_fit();
        index.survey.classes = index.by_name.len();
        index
    }

    /// Keeps the last of the classes with the same name.
    fn settle_duplicates(&mut self, bytes: &[u8]) {
        let mut keys = std::mem::take(&mut self.by_name);
        let mut lost: Vec<u64> = Vec::new();
        for run in keys.chunk_by(|a, b| a >> 32 == b >> 32) {
            if run.len() == 1 {
                continue;
            }
            let mut by_name: HashMap<&str, Vec<ClassAt>> = HashMap::new();
            for key in run {
                let at = ClassAt(*key as u32);
                let (_, obfuscated) = self.names(bytes, at);
                by_name.entry(obfuscated).or_default().push(at);
            }
            for (name, classes) in by_name {
                let Some((_, earlier)) = classes.split_last() else {
                    continue;
                };
                if earlier.is_empty() {
                    continue;
                }
                self.survey.duplicates += 1;
                if self.survey.first_duplicates.len() < KEPT {
                    self.survey.first_duplicates.push(name.to_owned());
                }
                let half = run[0] & !u64::from(u32::MAX);
                lost.extend(earlier.iter().map(|at| half | u64::from(at.0)));
            }
        }
        self.survey.first_duplicates.sort_unstable();
        if !lost.is_empty() {
            lost.sort_unstable();
            keys.retain(|key| lost.binary_search(key).is_err());
        }
        self.by_name = keys;
    }

    /// Returns the class with a name in the app.
    pub(super) fn find(&self, bytes: &[u8], obfuscated: &str) -> Option<ClassAt> {
        let hash = half(self.seed, obfuscated);
        let start = self.by_name.partition_point(|key| key >> 32 < hash);
        let run = self.by_name[start..].iter();
        run.take_while(|key| *key >> 32 == hash)
            .map(|key| ClassAt(*key as u32))
            .find(|&at| self.names(bytes, at).1 == obfuscated)
    }

    /// Returns all classes except for overridden duplicates, in order of the file.
    pub(super) fn classes(&self) -> Vec<ClassAt> {
        let mut all: Vec<ClassAt> = self
            .by_name
            .iter()
            .map(|&key| ClassAt(key as u32))
            .collect();
        all.sort_unstable();
        all
    }

    /// Returns the keys of all classes, including duplicates, sorted by name in the source.
    pub(super) fn by_original(&self, bytes: &[u8]) -> Vec<u64> {
        let mut keys: Vec<u64> = (0..self.rows.len() as u32)
            .map(|at| half(self.seed, self.names(bytes, ClassAt(at)).0) << 32 | u64::from(at))
            .collect();
        keys.sort_unstable();
        keys
    }

    /// Returns the last class with a name in the source, from the result of [`Index::by_original`].
    pub(super) fn find_original(
        &self,
        bytes: &[u8],
        by_original: &[u64],
        original: &str,
    ) -> Option<ClassAt> {
        let hash = half(self.seed, original);
        let end = by_original.partition_point(|key| key >> 32 <= hash);
        let run = by_original[..end].iter().rev();
        run.take_while(|key| *key >> 32 == hash)
            .map(|key| ClassAt(*key as u32))
            .find(|&at| self.names(bytes, at).0 == original)
    }

    /// Returns the names of a class: in the source, and in the app.
    pub(super) fn names<'a>(&self, bytes: &'a [u8], at: ClassAt) -> (&'a str, &'a str) {
        match Line::parse(line_at(bytes, self.start(at))) {
            Ok(Line::Class {
                original,
                obfuscated,
            }) => (original, obfuscated),
            // The mapped file was changed after it was indexed.
            _ => ("", ""),
        }
    }

    pub(super) fn start(&self, at: ClassAt) -> usize {
        self.rows[at.0 as usize].start as usize
    }

    pub(super) fn source_file(&self, bytes: &[u8], at: ClassAt) -> Option<String> {
        match self.rows[at.0 as usize].source_file {
            0 => None,
            start => match Line::parse(line_at(bytes, start as usize)) {
                Ok(Line::Comment(comment)) => {
                    match Metadata::parse(json_of(comment)?, Version::NONE) {
                        Some(Metadata::SourceFile(name)) => Some(name),
                        _ => None,
                    }
                }
                _ => None,
            },
        }
    }

    /// Returns the format version that applies at an offset.
    pub(super) fn version_at(&self, start: usize) -> Version {
        let before = self
            .versions
            .partition_point(|(from, _)| (*from as usize) < start);
        before
            .checked_sub(1)
            .map_or(Version::NONE, |at| self.versions[at].1)
    }
}

fn half(seed: Seed, name: &str) -> u64 {
    seed.bytes(name.as_bytes()) >> 32
}

/// State of the pass over all lines.
struct Pass {
    seed: Seed,
    rows: Vec<Row>,
    keys: Vec<u64>,
    versions: Vec<(u32, Version)>,
    survey: Survey,
    in_class: bool,
    /// Number of members of the current class.
    members: usize,
}

impl Pass {
    fn line(&mut self, line: &[u8], start: usize) -> Result<(), Fault> {
        match Line::parse(line)? {
            Line::Blank => {}
            Line::Member(_) if self.members >= MAX_MEMBERS => return Err(Fault::TooMany),
            Line::Member(_) if self.in_class => self.members += 1,
            Line::Member(_) => return Err(Fault::NoClass),
            Line::Comment(comment) => self.comment(comment, start),
            Line::Class { obfuscated, .. } => {
                let at = self.rows.len() as u64;
                self.keys.push(half(self.seed, obfuscated) << 32 | at);
                self.rows.push(Row {
                    start: start as u32,
                    source_file: 0,
                });
                self.in_class = true;
                self.members = 0;
            }
        }
        Ok(())
    }

    fn comment(&mut self, comment: &str, start: usize) {
        let Some(json) = json_of(comment) else {
            if self.rows.is_empty()
                && let Some(id) = comment.trim().strip_prefix("pg_map_id:")
            {
                self.survey.id = Some(id.trim().to_owned());
            }
            return;
        };
        // Most metadata is read only with its class.
        let of_class = self.in_class && self.members == 0;
        if of_class && json.contains("sourceFile") {
            if let Some(Metadata::SourceFile(_)) = Metadata::parse(json, Version::NONE)
                && let Some(row) = self.rows.last_mut()
            {
                row.source_file = start as u32;
            }
        } else if json.contains("r8.mapping")
            && let Some(Metadata::Version { version, foreign }) =
                Metadata::parse(json, Version::NONE)
        {
            self.versions.push((start as u32, version));
            self.survey.foreign_version |= foreign;
            self.in_class = false;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_found_by_both_of_its_names() {
        let text = b"\xef\xbb\xbf# pg_map_id: 0d0fd23\nx.A -> a:\r\n    int k -> f\n\n\
            x.B -> b:\n# {'id':'sourceFile','fileName':'Bee.kt'}\n a -> c:";
        let index = Index::build(text);
        assert_eq!(index.survey.id.as_deref(), Some("0d0fd23"));
        assert_eq!(index.survey.classes, 2);
        let b = index.find(text, "b").unwrap();
        assert_eq!(index.names(text, b), ("x.B", "b"));
        assert_eq!(index.source_file(text, b).as_deref(), Some("Bee.kt"));
        assert_eq!(index.find(text, "c"), None);
        let by_original = index.by_original(text);
        let a = index.find_original(text, &by_original, "x.A").unwrap();
        assert_eq!(index.names(text, a), ("x.A", "a"));
        assert_eq!(index.source_file(text, a), None);
        assert_eq!(index.find_original(text, &by_original, "a"), None);
        let bad = BadLine {
            line: 7,
            fault: Fault::NoType,
        };
        assert_eq!(index.survey.first_bad_lines, [bad]);
    }

    #[test]
    fn of_two_classes_with_one_name_the_last_counts() {
        let text = b"x.A -> a:\nx.B -> b:\nx.A -> a:\nx.C -> b:\nx.B -> b:\n";
        let index = Index::build(text);
        let start = |name| index.start(index.find(text, name).unwrap());
        assert_eq!((start("a"), start("b")), (20, 40));
        assert_eq!((index.survey.duplicates, index.survey.classes), (2, 2));
        assert_eq!(index.survey.first_duplicates, ["a", "b"]);
    }

    #[test]
    fn a_version_rules_what_follows_and_ends_the_class_before_it() {
        let text = b"x.A -> a:\n# {'id':'com.android.tools.r8.mapping','version':'2.2'}\n\
            \x20   int k -> f\nx.B -> b:\n#{'id':'com.android.tools.r8.mapping','version':'9'}";
        let index = Index::build(text);
        let version = |name| index.version_at(index.start(index.find(text, name).unwrap()));
        assert_eq!(version("a"), Version::NONE);
        assert!(version("b") > Version::NONE);
        assert!(index.survey.foreign_version);
        let bad = BadLine {
            line: 3,
            fault: Fault::NoClass,
        };
        assert_eq!(index.survey.first_bad_lines, [bad]);
    }
}
