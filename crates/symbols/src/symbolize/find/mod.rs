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
mod source;

pub use found::{Attempt, Candidate, Found, Nearest, Place};
pub use places::{Mode, Places, project_around};
pub use reject_reason::RejectReason;

use super::cache::{Cache, Origin};
use super::debuginfod::{Client, Refusal};
use super::file::{self, Bytes, Knowledge};
use super::library::Library;
use companions::Around;
use heaptap_base::units::BuildId;
use heaptap_base::untrusted::sanitize;
use index::{SearchRoot, Tree};
use names::LibraryQuery;
use source::Source;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Finder of files with the symbols of libraries. Threads can share it, each for its own library.
/// Clones are cheap and share the state.
#[derive(Debug, Clone)]
pub struct Finder(Arc<Shared>);

/// State shared by a finder and its candidates.
#[derive(Debug)]
struct Shared {
    searches: Vec<Search>,
    allow_no_build_id: bool,
}

/// Place to be searched.
#[derive(Debug)]
struct Search {
    place: Place,
    /// Configured path, absolute; for display, and as the base of paths below it.
    root: PathBuf,
    how: How,
}

/// Search method of a place.
#[derive(Debug)]
enum How {
    /// Every file of the tree by build ID.
    Tree(Tree),
    /// The five places below the root.
    FivePlaces,
    /// The five places, then the tree.
    Both(Tree),
    /// The paths that Breakpad's tools use, then the tree.
    Breakpad(Tree),
    /// The five places and those of modules, then the tree.
    ProductOut(Tree),
    /// The path of the memory mapping.
    HostPath,
    /// Only the `.build-id` tree below the root.
    BuildIdTree,
    /// Fetched files.
    Cache(Cache),
    /// Servers.
    Debuginfod(Client),
}

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

impl How {
    fn tree(&self) -> Option<&Tree> {
        match self {
            How::Tree(tree) | How::Both(tree) | How::Breakpad(tree) | How::ProductOut(tree) => {
                Some(tree)
            }
            _ => None,
        }
    }
}

impl Search {
    fn make(&self, query: &LibraryQuery, found: &mut Found) {
        let (root, place) = (&self.root, self.place);
        let full = found.full();
        match &self.how {
            How::Tree(_) => {}
            How::FivePlaces => {
                directory::look_below(root, place, query, found);
                directory::look_into_packages(root, place, query, found);
            }
            How::Both(_) => directory::look_below(root, place, query, found),
            How::Breakpad(_) => {
                for path in query.breakpad_places() {
                    directory::look_at(&root.join(path), place, query, found);
                }
            }
            How::ProductOut(_) => {
                directory::look_below(root, place, query, found);
                for path in query.module_places(root) {
                    directory::look_at(&path, place, query, found);
                }
            }
            How::HostPath => {
                if let Some(path) = query.host_path() {
                    directory::look_at(&path, place, query, found);
                }
            }
            How::BuildIdTree => {
                for path in query.build_id_places() {
                    directory::look_at(&root.join(path), place, query, found);
                }
            }
            How::Cache(cache) => look_in_cache(cache, query, found),
            How::Debuginfod(client) => ask(client, query, found),
        }
        if let Some(tree) = self.how.tree()
            && found.full() == full
        {
            tree.search(place, query, found);
        }
    }

    fn is_there(&self) -> bool {
        self.root.as_os_str().is_empty() || self.root.exists()
    }

    /// Records that the place does not have the library.
    fn tell_nothing(&self, query: &LibraryQuery, found: &mut Found) {
        let path = match self.how {
            // A path that cannot be on this host was not searched.
            How::HostPath if query.host_path().is_none() => return,
            How::Debuginfod(_) => return,
            How::HostPath => sanitize(&query.library.path).into_owned(),
            _ => sanitize(&self.root.to_string_lossy()).into_owned(),
        };
        let why_not = match self.is_there() {
            true => RejectReason::NotThere,
            false => RejectReason::NoSuchPlace,
        };
        found.refuse(self.place, path, why_not);
    }
}

/// Adds fetched files of the library from the cache.
fn look_in_cache(cache: &Cache, query: &LibraryQuery, found: &mut Found) {
    for origin in Origin::ALL {
        let kept = cache.libraries().get(&query.library.build_id, origin);
        if let Some((path, bytes)) = kept {
            add_kept(path, &bytes, Place::Cache, query, found);
        }
    }
}

fn add_kept(path: PathBuf, bytes: &[u8], place: Place, query: &LibraryQuery, found: &mut Found) {
    let text = sanitize(&path.to_string_lossy()).into_owned();
    match file::identify(bytes) {
        Ok(facts) => found.add(Candidate {
            place,
            path: text,
            knowledge: facts.knowledge,
            verified: true,
            build_id: Some(query.library.build_id.clone()),
            likeness: 0,
            source: Source::Kept { path },
            around: None,
        }),
        Err(error) => found.refuse(place, text, error.into()),
    }
}

/// Queries the servers for the debug file, and for the library itself if there is no better file.
fn ask(client: &Client, query: &LibraryQuery, found: &mut Found) {
    let id = &query.library.build_id;
    if id.is_empty() {
        return;
    }
    for origin in [Origin::Debuginfo, Origin::Executable] {
        let best = found.candidates.first();
        let names = best.is_some_and(|c| c.verified && c.knowledge >= Knowledge::Symtab);
        if origin == Origin::Executable && names {
            return;
        }
        let mut refusals = Vec::new();
        let path = client.fetch(id, origin, |url, refusal| {
            let why_not = match refusal {
                Refusal::Missing => RejectReason::NotThere,
                Refusal::Failed(what) => RejectReason::Server(sanitize(&what).into_owned()),
            };
            refusals.push((sanitize(url).into_owned(), why_not));
        });
        if let Some(path) = path {
            // It is in the cache, which has checked only its build ID.
            match Bytes::read(&path, 0) {
                Ok(bytes) => add_kept(path, &bytes, Place::Debuginfod, query, found),
                Err(error) => {
                    let text = sanitize(&path.to_string_lossy()).into_owned();
                    found.refuse(Place::Debuginfod, text, regular::why_not(&error));
                }
            }
        }
        // A missing library adds no information to a missing debug file.
        if origin == Origin::Debuginfo {
            for (url, why_not) in refusals {
                found.refuse(Place::Debuginfod, url, why_not);
            }
        }
    }
}

impl Shared {
    /// Returns the roots that can contain a `.build-id` tree.
    fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots_of(|how| !matches!(how, How::HostPath | How::Cache(_) | How::Debuginfod(_)))
    }

    fn build_id_trees(&self) -> impl Iterator<Item = &Path> {
        self.roots_of(|how| matches!(how, How::BuildIdTree))
    }

    fn roots_of(&self, is_meant: fn(&How) -> bool) -> impl Iterator<Item = &Path> {
        let searches = self.searches.iter();
        let meant = searches.filter(move |search| is_meant(&search.how));
        meant.map(|search| search.root.as_path())
    }

    /// Returns the files with this name in the walked trees.
    fn named(&self, name: &str) -> Vec<Source> {
        let trees = self.searches.iter().filter_map(|search| search.how.tree());
        trees.flat_map(|tree| tree.named(name)).collect()
    }

    /// Returns a debug file from the cache or a server.
    fn fetch_debug(&self, build_id: &BuildId) -> Option<PathBuf> {
        self.searches.iter().find_map(|search| match &search.how {
            How::Cache(cache) => {
                let kept = cache.libraries().get(build_id, Origin::Debuginfo);
                kept.map(|(path, _)| path)
            }
            How::Debuginfod(client) => client.fetch(build_id, Origin::Debuginfo, |_, _| {}),
            _ => None,
        })
    }
}

#[cfg(test)]
pub(in crate::symbolize) mod tests;
