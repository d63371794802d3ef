//! A mapping file, opened: mapped into memory, indexed by class, read a class at a time.

use super::block;
use super::class::{Class, Method, OriginalLines, packet_name};
use super::error::MapError;
use super::index::{ClassAt, Index, Survey};
use super::unpack::{self, Reading};
use heaptap_model::bytes::Bytes;
use heaptap_model::profile::PacketLines;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// So many packages are looked for in a map; no phone profiles more at once.
const MOST_PACKAGES: usize = 256;

/// What a map says, in the words of a trace's packets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry<'a> {
    /// A class.
    Class {
        /// Its name in the app.
        obfuscated: &'a str,
        /// Its name in the source.
        original: &'a str,
    },
    /// A field of the class before it.
    Field {
        /// Its name in the app.
        obfuscated: &'a str,
        /// Its name in the source; whole where it was written in another class.
        original: Cow<'a, str>,
    },
    /// An entry of a method of the class before it.
    Method {
        /// Its name in the app.
        obfuscated: &'a str,
        /// Its name in the source; whole where it was written in another class.
        original: Cow<'a, str>,
        /// Its lines.
        lines: PacketLines,
    },
}

fn packet_lines(method: &Method) -> PacketLines {
    let (source_start, source_end) = match method.original {
        OriginalLines::Same => (None, None),
        OriginalLines::Line(line) => (Some(line), Some(line)),
        OriginalLines::Range(lines) => (Some(lines.first), Some(lines.last)),
    };
    PacketLines {
        obfuscated_start: method.lines.map(|lines| lines.first),
        obfuscated_end: method.lines.map(|lines| lines.last),
        source_start,
        source_end,
    }
}

/// A mapping file of R8 or ProGuard. What is held of it is an index of its classes; the file
/// itself stays on disk and is mapped, unless it was packed.
#[derive(Debug)]
pub struct MapFile {
    path: PathBuf,
    bytes: Bytes,
    index: Index,
    /// Classes by their names in the source, sorted by a hash.
    by_original: OnceLock<Vec<u64>>,
}

impl MapFile {
    /// Opens a mapping file, plain or in gzip, zstd or ZIP (app bundles too), and passes over
    /// all its lines once. Bad lines are passed over and counted in [`MapFile::survey`].
    ///
    /// # Errors
    /// Where it can't be read, or no line of it is a class.
    pub fn open(path: &Path) -> Result<MapFile, MapError> {
        MapFile::from_bytes(unpack::read(path, Reading::Mapped)?, path)
    }

    /// The same, for a file that somebody may be writing: it is read into memory unless it is
    /// very large, and must be a regular one.
    ///
    /// # Errors
    /// As [`MapFile::open`].
    pub fn open_copied(path: &Path) -> Result<MapFile, MapError> {
        MapFile::from_bytes(unpack::read(path, Reading::Copied)?, path)
    }

    /// The same, from bytes; `path` is what they are called.
    ///
    /// # Errors
    /// As [`MapFile::open`].
    pub fn from_bytes(bytes: Bytes, path: &Path) -> Result<MapFile, MapError> {
        let bytes = unpack::unpack(bytes, path)?;
        let index = Index::build(&bytes);
        if index.survey.classes == 0 {
            return Err(MapError::NoClasses {
                path: path.to_owned(),
                first_bad_lines: index.survey.first_bad_lines,
            });
        }
        Ok(MapFile {
            path: path.to_owned(),
            bytes,
            index,
            by_original: OnceLock::new(),
        })
    }

    /// Where it was opened.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says of itself, and what is wrong with it.
    pub fn survey(&self) -> &Survey {
        &self.index.survey
    }

    /// Those of some packages that it has classes of: an app's own classes are called after its
    /// package, or after what several packages of its makers begin with.
    pub fn mentioned(&self, packages: &BTreeSet<String>) -> BTreeSet<String> {
        // `com.example.` of `com.example.app.debug`.
        let common = |package: &str| {
            let second = package.match_indices('.').nth(1).map(|(at, _)| at);
            format!("{}.", &package[..second.unwrap_or(package.len())])
        };
        let asked = packages.iter().take(MOST_PACKAGES);
        let mut left: Vec<(String, &String)> = asked.map(|p| (common(p), p)).collect();
        let mut found = BTreeSet::new();
        for at in self.index.classes() {
            if left.is_empty() {
                break;
            }
            let (original, _) = self.index.names(&self.bytes, at);
            left.retain(|(start, package)| {
                let there = original.starts_with(start);
                if there {
                    found.insert((*package).clone());
                }
                !there
            });
        }
        found
    }

    /// The class with a name in the app, its members read.
    pub(super) fn class(&self, obfuscated: &str) -> Option<Class<'_>> {
        let at = self.index.find(&self.bytes, obfuscated)?;
        Some(self.read(at))
    }

    fn read(&self, at: ClassAt) -> Class<'_> {
        let (original, _) = self.index.names(&self.bytes, at);
        let mut class = Class::new(original);
        let start = self.index.start(at);
        let version = self.index.version_at(start);
        block::read(&self.bytes, start, version, &mut class);
        class.finish();
        class
    }

    /// Gives all that the map says to `sink`, class by class in order of the file; members of a
    /// class follow it, fields first, entries of one method together.
    ///
    /// # Errors
    /// The sink's, at once.
    pub fn entries<E>(&self, mut sink: impl FnMut(Entry<'_>) -> Result<(), E>) -> Result<(), E> {
        for at in self.index.classes() {
            let (original, obfuscated) = self.index.names(&self.bytes, at);
            sink(Entry::Class {
                obfuscated,
                original,
            })?;
            let class = self.read(at);
            for field in class.all_fields() {
                sink(Entry::Field {
                    obfuscated: field.obfuscated,
                    original: packet_name(original, field.holder, field.name),
                })?;
            }
            for method in class.all_methods() {
                sink(Entry::Method {
                    obfuscated: method.obfuscated,
                    original: packet_name(original, method.holder, method.name),
                    lines: packet_lines(method),
                })?;
            }
        }
        Ok(())
    }

    /// The name in the source of a class of the app.
    pub(super) fn original(&self, obfuscated: &str) -> Option<&str> {
        let at = self.index.find(&self.bytes, obfuscated)?;
        Some(self.index.names(&self.bytes, at).0)
    }

    /// The name in the app of a class of the source.
    pub(super) fn obfuscated(&self, original: &str) -> Option<&str> {
        let at = self.find_original(original)?;
        Some(self.index.names(&self.bytes, at).1)
    }

    /// The file that a class of the source was written in, where the map says.
    pub(super) fn source_file(&self, original: &str) -> Option<String> {
        let at = self.find_original(original)?;
        self.index.source_file(&self.bytes, at)
    }

    fn find_original(&self, original: &str) -> Option<ClassAt> {
        let by_original = self
            .by_original
            .get_or_init(|| self.index.by_original(&self.bytes));
        self.index.find_original(&self.bytes, by_original, original)
    }
}
