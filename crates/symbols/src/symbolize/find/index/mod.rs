//! Directory trees by build ID: every file below a root that has symbols, whatever its name. A tree
//! is walked once, when first needed, into lookup tables. Unchanged files are remembered for later
//! processes.

pub(super) mod record;
mod walk;

use super::content::{Content, Entry, Symbols};
use super::found::{Candidate, Found, Nearest, Place};
use super::gradle;
use super::names::{LibraryQuery, is_tar, key_of};
use super::reject_reason::RejectReason;
use super::source::Source;
use crate::symbolize::cache::{Answers, READER};
use crate::symbolize::file::{self, Knowledge, debug_id};
use heaptap_base::untrusted::sanitize;
use record::{Directory, File};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// Maximum number of compressed members of one build in a tree that are decompressed to find their
/// amount of information.
const MAX_UNPACKED: usize = 16;

/// Root of a walk.
#[derive(Debug, Clone)]
pub(super) enum SearchRoot {
    /// Everything below a directory.
    Directory(PathBuf),
    /// Build outputs below a Gradle project.
    Project(PathBuf),
    /// A single file: a library, an archive.
    File(PathBuf),
}

impl SearchRoot {
    pub(super) fn path(&self) -> &Path {
        match self {
            SearchRoot::Directory(path) | SearchRoot::Project(path) | SearchRoot::File(path) => {
                path
            }
        }
    }
}

/// Tree that is walked when first needed.
#[derive(Debug)]
pub(super) struct Tree {
    root: SearchRoot,
    cache: Option<Answers>,
    index: OnceLock<Index>,
}

/// Contents of a tree with lookup tables.
#[derive(Debug)]
pub(super) struct Index {
    directories: Vec<(String, Directory)>,
    by_id: HashMap<Vec<u8>, Vec<At>>,
    by_name: HashMap<String, Vec<At>>,
    /// Archives that are not read.
    tars: Vec<At>,
    /// Roots that could not be read, or not as a whole.
    lost: Vec<(PathBuf, RejectReason)>,
}

/// File or member of an archive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct At {
    directory: u32,
    file: u32,
    entry: Option<u32>,
}

impl Tree {
    pub(super) fn new(root: SearchRoot, cache: Option<Answers>) -> Self {
        Tree {
            root,
            cache,
            index: OnceLock::new(),
        }
    }

    /// Returns the index. The first call walks the tree with several threads; other callers wait.
    pub(super) fn index(&self) -> &Index {
        self.index.get_or_init(|| {
            let key = self.key();
            let cached = self.cache.as_ref().and_then(|cache| cache.get(&key));
            let earlier = cached.and_then(|bytes| record::read(&bytes));
            let earlier = earlier.unwrap_or_default();
            let mut walked = match &self.root {
                SearchRoot::Directory(root) => walk::walk(std::slice::from_ref(root), earlier),
                SearchRoot::Project(root) => walk::walk(&gradle::outputs(root), earlier),
                SearchRoot::File(path) => walk::one(path, earlier),
            };
            if walked.is_changed
                && let Some(cache) = &self.cache
                && let Some(bytes) = record::write(&walked.directories)
            {
                // If this fails, the next walk only takes longer.
                let _ = cache.put(&key, &bytes);
            }
            if walked.is_cut {
                let why_not = RejectReason::TooManyFiles(walk::MAX_FILES);
                walked.lost.push((self.root.path().to_owned(), why_not));
            }
            Index::new(walked)
        })
    }

    fn key(&self) -> [u8; 32] {
        let kind: &[u8] = match self.root {
            SearchRoot::Directory(_) => b"index of a folder\0",
            SearchRoot::Project(_) => b"index of a project\0",
            SearchRoot::File(_) => b"index of a file\0",
        };
        cache_key(kind, self.root.path().as_os_str().as_encoded_bytes())
    }

    /// Adds files of the library's build, and records files with its name that are another build.
    pub(super) fn search(&self, place: Place, query: &LibraryQuery, found: &mut Found) {
        let index = self.index();
        for (path, why_not) in &index.lost {
            let path = sanitize(&path.to_string_lossy()).into_owned();
            found.refuse(place, path, why_not.clone());
        }
        let full = found.full();
        let mut unpacked = 0;
        for at in index.of_build(query) {
            let is_packed =
                |content: &Content| matches!(content, Content::Symbols(s) if s.knowledge.is_none());
            if is_packed(index.content(at)) {
                // Nothing is better than the file found, and each one must be decompressed.
                if found.full() > full || unpacked == MAX_UNPACKED {
                    continue;
                }
                unpacked += 1;
            }
            self.add(index, at, true, place, query, found);
        }
        if found.full() == full {
            for &at in &index.tars {
                found.refuse(place, index.path(at), RejectReason::Packed);
            }
        }
        let Some(names) = query.names else {
            return;
        };
        for &at in index.by_name.get(key_of(names.bare)).into_iter().flatten() {
            let content = index.content(at);
            let Content::Symbols(symbols) = content else {
                if let Some(why_not) = content.why_not() {
                    found.refuse(place, index.path(at), why_not);
                }
                continue;
            };
            if is_build(symbols, query) {
                continue;
            }
            let has_none = symbols.build_id.is_empty() && symbols.debug_id.is_none();
            if query.allow_no_build_id && (has_none || query.library.build_id.is_empty()) {
                self.add(index, at, false, place, query, found);
                continue;
            }
            let near = Nearest {
                place,
                path: index.path(at),
                build_id: symbols.shown_id(),
                likeness: query.likeness(index.components(at)),
            };
            found.refuse_build(query, near);
        }
    }

    fn add(
        &self,
        index: &Index,
        at: At,
        verified: bool,
        place: Place,
        query: &LibraryQuery,
        found: &mut Found,
    ) {
        let Content::Symbols(symbols) = index.content(at) else {
            return;
        };
        let (source, path) = (index.source(at), index.path(at));
        let known = match symbols.knowledge {
            Some(known) => Ok(known),
            None => self.knowledge_of(&source),
        };
        match known {
            Ok(knowledge) => found.add(Candidate {
                place,
                path,
                knowledge,
                verified,
                build_id: verified.then(|| query.library.build_id.clone()),
                likeness: query.likeness(index.components(at)),
                source,
                around: None,
            }),
            Err(why_not) => found.refuse(place, path, why_not),
        }
    }

    /// Returns the amount of information in a compressed member: cached, or found by reading all of
    /// it.
    fn knowledge_of(&self, source: &Source) -> Result<Knowledge, RejectReason> {
        let key = cache_key(b"knowledge\0", &source.identity());
        let cached = self.cache.as_ref().and_then(|cache| cache.get(&key));
        if let Some(known) = cached.and_then(|bytes| postcard::from_bytes(&bytes).ok()) {
            return Ok(known);
        }
        let bytes = source.open(None)?;
        let knowledge = file::identify(&bytes)?.knowledge;
        // The search ends with such a file, so at most one is kept.
        if knowledge == Knowledge::Dwarf {
            source.keep(bytes);
        }
        if let Some(cache) = &self.cache
            && let Ok(bytes) = postcard::to_stdvec(&knowledge)
        {
            let _ = cache.put(&key, &bytes);
        }
        Ok(knowledge)
    }

    /// Returns the files with exactly this name, of any build, for references from other files.
    pub(super) fn named(&self, name: &str) -> Vec<Source> {
        let index = self.index();
        let of_name = index.by_name.get(key_of(name)).into_iter().flatten();
        let exact = of_name.filter(|at| index.components(**at).next_back() == Some(name));
        exact.map(|at| index.source(*at)).collect()
    }
}

impl Index {
    fn new(walked: walk::Walked) -> Self {
        let mut directories: Vec<(String, Directory)> = walked.directories.into_iter().collect();
        directories.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        let mut index = Index {
            directories: Vec::new(),
            by_id: HashMap::new(),
            by_name: HashMap::new(),
            tars: Vec::new(),
            lost: walked.lost,
        };
        for (directory, (_, contents)) in (0..).zip(&directories) {
            for (file, of) in (0..).zip(&contents.files) {
                let at = At {
                    directory,
                    file,
                    entry: None,
                };
                index.enter(at, &of.name, &of.content);
                if let Content::Archive(entries) = &of.content {
                    for (entry, of) in (0..).zip(entries) {
                        let entry = Some(entry);
                        let last = of.name.rsplit(['/', '\\', '!']).next();
                        index.enter(At { entry, ..at }, last.unwrap_or(""), &of.content);
                    }
                }
            }
        }
        index.directories = directories;
        index
    }

    fn enter(&mut self, at: At, name: &str, content: &Content) {
        match content {
            // Thousands of these are sources and images; text in place of a library is reported.
            Content::Other | Content::Packed if !name.contains(".so") && !is_tar(name) => return,
            Content::Archive(_) => return,
            Content::Symbols(symbols) => {
                if !symbols.build_id.is_empty() {
                    self.by_id
                        .entry(symbols.build_id.clone())
                        .or_default()
                        .push(at);
                }
                if let Some(id) = &symbols.debug_id {
                    let id = id.to_ascii_uppercase().into_bytes();
                    self.by_id.entry(id).or_default().push(at);
                }
            }
            _ => {}
        }
        // An archive that is not read can have any library.
        if *content == Content::Packed && is_tar(name) {
            self.tars.push(at);
        }
        self.by_name
            .entry(key_of(name).to_owned())
            .or_default()
            .push(at);
    }

    /// Returns the files of the library's build, in order of their paths.
    fn of_build(&self, query: &LibraryQuery) -> Vec<At> {
        let id = &query.library.build_id;
        if id.is_empty() {
            return Vec::new();
        }
        // A recording can have Breakpad's ID as text, and a file might have only that one.
        let keys = [
            id.0.clone(),
            id.0.to_ascii_uppercase(),
            debug_id(id).into_bytes(),
        ];
        let hits = keys.iter().filter_map(|key| self.by_id.get(key)).flatten();
        let of_build = |at: &At| match self.content(*at) {
            Content::Symbols(symbols) => is_build(symbols, query),
            _ => false,
        };
        let mut hits: Vec<At> = hits.copied().filter(of_build).collect();
        hits.sort_unstable();
        hits.dedup();
        hits
    }

    fn file(&self, at: At) -> (&str, &File) {
        let (path, directory) = &self.directories[at.directory as usize];
        (path, &directory.files[at.file as usize])
    }

    fn entry(&self, at: At) -> Option<&Entry> {
        match &self.file(at).1.content {
            Content::Archive(entries) => entries.get(at.entry? as usize),
            _ => None,
        }
    }

    fn content(&self, at: At) -> &Content {
        match self.entry(at) {
            Some(entry) => &entry.content,
            None => &self.file(at).1.content,
        }
    }

    /// Returns directories and file name; for a member, those within the archive.
    fn components(&self, at: At) -> impl DoubleEndedIterator<Item = &str> {
        let (directory, file) = self.file(at);
        let whole = match self.entry(at) {
            Some(entry) => ("", entry.name.as_str()),
            None => (directory, file.name.as_str()),
        };
        let directories = whole.0.split(['/', '\\']);
        directories.chain(whole.1.split(['/', '\\', '!']))
    }

    /// Returns the path for display.
    fn path(&self, at: At) -> String {
        let (directory, file) = self.file(at);
        let path = Path::new(directory).join(&file.name);
        match self.entry(at) {
            Some(entry) => sanitize(&format!("{}!{}", path.display(), entry.name)).into_owned(),
            None => sanitize(&path.to_string_lossy()).into_owned(),
        }
    }

    fn source(&self, at: At) -> Source {
        let (directory, file) = self.file(at);
        let path = Path::new(directory).join(&file.name);
        let stamp = file.stamp;
        match self.entry(at) {
            Some(entry) => Source::Member {
                archive: path,
                stamp,
                name: entry.name.clone(),
                steps: entry.steps.clone(),
                unpacked: Arc::default(),
            },
            None => Source::File { path, stamp },
        }
    }
}

/// Returns the cache key of what the reader knows about something.
fn cache_key(kind: &[u8], of: &[u8]) -> [u8; 32] {
    let digest = Sha256::new().chain_update(kind).chain_update(READER);
    digest.chain_update([0]).chain_update(of).finalize().into()
}

/// Returns whether a file in the index is the library's build.
fn is_build(symbols: &Symbols, query: &LibraryQuery) -> bool {
    let debug_id = symbols.debug_id.as_deref();
    file::is_build(&symbols.build_id, debug_id, &query.library.build_id)
}
