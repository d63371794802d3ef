//! Opened mapping files: mapped into memory, indexed by class, and read one class at a time.

use super::block;
use super::class::{Class, Method, OriginalLines, packet_name};
use super::error::MapError;
use super::index::{ClassAt, Index, Survey};
use super::unpack::{self, Reading};
use heaptap_base::bytes::{Bytes, GIT_LFS_POINTER};
use heaptap_base::text::{is_odd, plain};
use heaptap_model::profile::PacketLines;
use std::borrow::Cow;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Maximum number of packages to search for in an R8 mapping; no device profiles more at once.
const MAX_PACKAGES: usize = 256;

/// Entry of an R8 mapping, as in packets of a trace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Entry<'a> {
    Class {
        /// Name in the app.
        obfuscated: &'a str,
        /// Name in the source.
        original: &'a str,
    },
    /// A field of the preceding class.
    Field {
        /// Name in the app.
        obfuscated: &'a str,
        /// Name in the source, with its class if another class declares it.
        original: Cow<'a, str>,
    },
    /// An entry of a method of the preceding class.
    Method {
        /// Name in the app.
        obfuscated: &'a str,
        /// Name in the source, with its class if another class declares it.
        original: Cow<'a, str>,
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

/// Mapping file of R8 or ProGuard. Only an index of its classes is in memory; the file itself is
/// mapped from disk, unless it was compressed.
#[derive(Debug)]
pub struct MapFile {
    path: PathBuf,
    bytes: Bytes,
    index: Index,
    /// Classes by their names in the source, sorted by hash.
    by_original: OnceLock<Vec<u64>>,
}

impl MapFile {
    /// Opens a mapping file, plain or in gzip, zstd or ZIP (including app bundles), and reads all
    /// its lines once. Bad lines are skipped and counted in [`MapFile::survey`].
    ///
    /// # Errors
    /// Returns an error if the file cannot be read or no line of it declares a class.
    pub fn open(path: &Path) -> Result<MapFile, MapError> {
        MapFile::from_bytes(unpack::read(path, Reading::Mapped)?, path)
    }

    /// Opens a file that another program might be writing: reads it into memory unless it is very
    /// large. It must be a regular file.
    ///
    /// # Errors
    /// Returns the errors of [`MapFile::open`].
    pub fn open_copied(path: &Path) -> Result<MapFile, MapError> {
        MapFile::from_bytes(unpack::read(path, Reading::Copied)?, path)
    }

    /// Opens a mapping file from bytes; `path` is used in messages.
    ///
    /// # Errors
    /// Returns the errors of [`MapFile::open`].
    pub fn from_bytes(bytes: Bytes, path: &Path) -> Result<MapFile, MapError> {
        let mut bytes = unpack::unpack(bytes, path)?;
        // The grammar itself skips a byte order mark and one CR: such a file stays mapped.
        if is_odd(&bytes) {
            bytes = Bytes::from(plain(&bytes).into_owned());
        }
        let index = Index::build(&bytes);
        if index.survey.classes == 0 {
            return Err(MapError::NoClasses {
                path: path.to_owned(),
                first_bad_lines: index.survey.first_bad_lines,
                is_lfs_pointer: bytes.starts_with(GIT_LFS_POINTER),
            });
        }
        Ok(MapFile {
            path: path.to_owned(),
            bytes,
            index,
            by_original: OnceLock::new(),
        })
    }

    /// Returns the path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the metadata of the R8 mapping and its problems.
    pub fn survey(&self) -> &Survey {
        &self.index.survey
    }

    /// Returns those of the given packages that the R8 mapping has classes of. An app's own classes
    /// begin with its package, or with a common prefix of its maker's packages.
    pub fn mentioned(&self, packages: &BTreeSet<String>) -> BTreeSet<String> {
        // `com.example.` of `com.example.app.debug`.
        let common = |package: &str| {
            let second = package.match_indices('.').nth(1).map(|(at, _)| at);
            format!("{}.", &package[..second.unwrap_or(package.len())])
        };
        let asked = packages.iter().take(MAX_PACKAGES);
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

    /// Returns the class with a name in the app, with its members.
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

    /// Calls `sink` with all entries of the R8 mapping, class by class in order of the file.
    /// Members follow their class, fields first, entries of one method together.
    ///
    /// # Errors
    /// Returns the first error of `sink` at once.
    pub fn entries<E>(&self, mut sink: impl FnMut(Entry<'_>) -> Result<(), E>) -> Result<(), E> {
        for at in self.index.classes() {
            let (original, obfuscated) = self.index.names(&self.bytes, at);
            sink(Entry::Class {
                obfuscated,
                original,
            })?;
            let class = self.read(at);
            for field in &class.fields {
                sink(Entry::Field {
                    obfuscated: field.obfuscated,
                    original: packet_name(original, field.holder, field.name),
                })?;
            }
            for method in &class.methods {
                sink(Entry::Method {
                    obfuscated: method.obfuscated,
                    original: packet_name(original, method.holder, method.name),
                    lines: packet_lines(method),
                })?;
            }
        }
        Ok(())
    }

    /// Returns the name in the source of a class of the app.
    pub(super) fn original(&self, obfuscated: &str) -> Option<&str> {
        let at = self.index.find(&self.bytes, obfuscated)?;
        Some(self.index.names(&self.bytes, at).0)
    }

    /// Returns the name in the app of a class of the source.
    pub(super) fn obfuscated(&self, original: &str) -> Option<&str> {
        let at = self.find_original(original)?;
        Some(self.index.names(&self.bytes, at).1)
    }

    /// Returns the source file of a class of the source, if the R8 mapping has it.
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
