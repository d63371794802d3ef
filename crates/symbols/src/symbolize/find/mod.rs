//! Search for the symbols of a library. Defines the places, their order, and the record of
//! attempts; [`crate::symbolize::file`] reads the files.
//!
//! `docs/guide/symbols.md` describes the places and their order. Two rules apply to all of them. First, a
//! file counts only if its build ID is the library's; a file without build ID is used only if
//! [`Places::allow_no_build_id`] is set. Second, if several files have that build ID, the one with
//! the most information wins, whatever its place: a stripped copy in the first place does not hide
//! the line table in the last.
//!
//! ```text
//! Places ──► Finder: one Search a place, in order
//!               │ find(library)
//!               ▼
//!            directory   files at paths that follow from the library's path and build ID
//!            index    trees by build ID, walked once, remembered in the cache
//!              archive   ZIP members within both
//!            cache, debuginfod
//!               ▼
//!            Found: candidates best first, attempts, the nearest
//! ```

mod archive;
mod companions;
mod content;
mod directory;
mod found;
mod gradle;
mod index;
mod names;
mod places;
mod regular;
mod reject_reason;
mod search;
mod source;

pub use found::{Attempt, Candidate, Found, Nearest, Place};
pub use places::{Mode, Places, project_around};
pub use reject_reason::RejectReason;

use super::debuginfod::Client;
use super::file::Bytes;
use super::library::Library;
use companions::Around;
use heaptap_base::untrusted::sanitize;
use index::{SearchRoot, Tree};
use names::LibraryQuery;
use search::{How, Search, Shared};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Finder of files with the symbols of libraries. Threads can share it, each for its own library.
/// Clones are cheap and share the state.
#[derive(Debug, Clone)]
pub struct Finder(Arc<Shared>);

impl Finder {
    /// Makes a finder for `places`. Only checks which of the paths are files.
    pub fn new(places: Places) -> Self {
        let cache = places.cache;
        let tree = |root| Tree::new(root, cache.as_ref().map(|cache| cache.indexes().clone()));
        let mut searches = Vec::new();
        let mut add = |place, root: &Path, how| {
            let root = root.to_owned();
            searches.push(Search { place, root, how });
        };
        for root in places.symbols.iter().map(absolute) {
            let how = match root.is_file() {
                true => How::Tree(tree(SearchRoot::File(root.clone()))),
                false => How::Both(tree(SearchRoot::Directory(root.clone()))),
            };
            add(Place::Symbols, &root, how);
        }
        if places.host_paths && places.mode == Mode::Find {
            add(Place::HostPath, Path::new(""), How::HostPath);
        }
        for root in places.binary_path.iter().map(absolute) {
            let how = match places.mode {
                _ if root.is_file() => How::Tree(tree(SearchRoot::File(root.clone()))),
                Mode::Find => How::FivePlaces,
                Mode::Index => How::Tree(tree(SearchRoot::Directory(root.clone()))),
            };
            add(Place::BinaryPath, &root, how);
        }
        if let Some(root) = places.breakpad.as_ref().map(absolute) {
            let how = How::Breakpad(tree(SearchRoot::Directory(root.clone())));
            add(Place::BreakpadDir, &root, how);
        }
        if let Some(root) = places.project.as_ref().map(absolute) {
            let how = How::Tree(tree(SearchRoot::Project(root.clone())));
            add(Place::Project, &root, how);
        }
        if let Some(out) = places.product_out.as_ref().map(absolute) {
            let root = out.join("symbols");
            let how = How::ProductOut(tree(SearchRoot::Directory(root.clone())));
            add(Place::ProductOut, &root, how);
        }
        if places.host_paths && places.mode != Mode::Find {
            add(Place::HostPath, Path::new(""), How::HostPath);
        }
        for root in places.build_id_trees.iter().map(absolute) {
            add(Place::BuildIdTree, &root, How::BuildIdTree);
        }
        if let Some(cache) = &cache {
            add(Place::Cache, cache.directory(), How::Cache(cache.clone()));
            if let Some(servers) = places.debuginfod {
                let how = How::Debuginfod(Client::new(servers, cache.clone()));
                add(Place::Debuginfod, Path::new(""), how);
            }
        }
        Finder(Arc::new(Shared {
            searches,
            allow_no_build_id: places.allow_no_build_id,
        }))
    }

    /// Searches for the symbols of `library`, place by place, until a file with its build ID and
    /// DWARF is found. Reads files, walks trees when first needed, and queries servers if there are
    /// any. Can be called from several threads at once.
    pub fn find(&self, library: &Library) -> Found {
        let mut found = Found::default();
        self.search_on(library, &mut found);
        found
    }

    /// Continues a stopped search, for example if its best candidate is damaged. Returns whether
    /// there was anything left to search.
    pub fn search_on(&self, library: &Library, found: &mut Found) -> bool {
        let query = LibraryQuery::new(library, self.0.allow_no_build_id);
        if query.names.is_none() && library.build_id.is_empty() {
            // Memory without a file behind it does not have symbols.
            return false;
        }
        let before = found.searched;
        let full = found.full();
        for search in &self.0.searches[before..] {
            found.searched += 1;
            found.of_this_search = 0;
            let candidates = found.candidates.len();
            search.make(&query, found);
            if found.candidates.len() == candidates && found.of_this_search == 0 {
                search.tell_nothing(&query, found);
            }
            if found.full() > full {
                break;
            }
        }
        for candidate in &mut found.candidates {
            candidate.around.get_or_insert_with(|| {
                Around::new(
                    Arc::clone(&self.0),
                    &candidate.source,
                    names_of(&candidate.path, &query),
                )
            });
        }
        found.searched > before
    }
}

/// Returns the libraries in a ZIP archive and in archives within it: the name of each, and its
/// bytes, which are decompressed when the iterator gets there. Depth, number and size are limited
/// as in any search.
///
/// # Errors
/// Returns an error if the archive cannot be read at all.
pub fn libraries_in(
    archive: &Bytes,
) -> Result<impl Iterator<Item = (String, Result<Bytes, RejectReason>)>, RejectReason> {
    let entries = archive::read(archive)?.into_iter();
    let whole = archive.clone();
    Ok(entries.map(move |entry| {
        let bytes = match entry.content.why_not() {
            Some(why_not) => Err(why_not),
            None => archive::open(&whole, &entry.steps),
        };
        (sanitize(&entry.name).into_owned(), bytes)
    }))
}

/// Returns possible base names for files next to a symbol file.
fn names_of(path: &str, query: &LibraryQuery) -> Vec<String> {
    let file = path.rsplit(['/', '\\', '!']).next().unwrap_or(path);
    let library = query.names.map(|names| names.bare);
    let mut names = vec![file.to_owned(), names::key_of(file).to_owned()];
    names.extend(library.map(str::to_owned));
    names.sort_unstable();
    names.dedup();
    names
}

/// Returns the absolute form of a path without resolving it.
fn absolute(path: &PathBuf) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.clone())
}

#[cfg(test)]
pub(in crate::symbolize) mod tests;
