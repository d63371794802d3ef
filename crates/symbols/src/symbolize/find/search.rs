//! Places to be searched, each with its method, and the state that a finder and its candidates
//! share.

use super::found::{Candidate, Found, Place};
use super::index::Tree;
use super::names::LibraryQuery;
use super::reject_reason::RejectReason;
use super::source::Source;
use super::{directory, regular};
use crate::symbolize::cache::{Cache, Origin};
use crate::symbolize::debuginfod::{Client, Refusal};
use crate::symbolize::file::{self, Bytes, Knowledge};
use heaptap_base::units::BuildId;
use heaptap_base::untrusted::sanitize;
use std::path::{Path, PathBuf};

/// State shared by a finder and its candidates.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) searches: Vec<Search>,
    pub(super) allow_no_build_id: bool,
}

/// Place to be searched.
#[derive(Debug)]
pub(super) struct Search {
    pub(super) place: Place,
    /// Configured path, absolute; for display, and as the base of paths below it.
    pub(super) root: PathBuf,
    pub(super) how: How,
}

/// Search method of a place.
#[derive(Debug)]
pub(super) enum How {
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
    pub(super) fn make(&self, query: &LibraryQuery, found: &mut Found) {
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

    /// Records that the place does not have the library.
    pub(super) fn tell_nothing(&self, query: &LibraryQuery, found: &mut Found) {
        let path = match self.how {
            // A path that cannot be on this host was not searched.
            How::HostPath if query.host_path().is_none() => return,
            How::Debuginfod(_) => return,
            How::HostPath => sanitize(&query.library.path).into_owned(),
            _ => sanitize(&self.root.to_string_lossy()).into_owned(),
        };
        let why_not = match self.root.as_os_str().is_empty() || self.root.exists() {
            true => RejectReason::NotThere,
            false => RejectReason::NoSuchPlace,
        };
        found.refuse(self.place, path, why_not);
    }
}

impl Shared {
    /// Returns the roots that can contain a `.build-id` tree.
    pub(super) fn roots(&self) -> impl Iterator<Item = &Path> {
        self.roots_of(|how| !matches!(how, How::HostPath | How::Cache(_) | How::Debuginfod(_)))
    }

    pub(super) fn build_id_trees(&self) -> impl Iterator<Item = &Path> {
        self.roots_of(|how| matches!(how, How::BuildIdTree))
    }

    fn roots_of(&self, is_meant: fn(&How) -> bool) -> impl Iterator<Item = &Path> {
        let searches = self.searches.iter();
        let meant = searches.filter(move |search| is_meant(&search.how));
        meant.map(|search| search.root.as_path())
    }

    /// Returns the files with this name in the walked trees.
    pub(super) fn named(&self, name: &str) -> Vec<Source> {
        let trees = self.searches.iter().filter_map(|search| search.how.tree());
        trees.flat_map(|tree| tree.named(name)).collect()
    }

    /// Returns a debug file from the cache or a server.
    pub(super) fn fetch_debug(&self, build_id: &BuildId) -> Option<PathBuf> {
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
