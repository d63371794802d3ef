//! Where the symbols of a library come from. Owns the places, their order, and the record of
//! what was tried; what a file says is [`crate::symbolize::file`]'s.
//!
//! The order and what belongs to each place stand in `docs/symbols.md`. Two rules hold over
//! all of them. A file counts only if its build ID is the library's; one without build ID is
//! taken only where [`Places::allow_no_build_id`] asks for it. And of several files with that
//! build ID the one that knows most wins, wherever it lies: a stripped copy in the first place
//! does not hide the line table in the last.

mod folder;
mod found;
mod names;
mod places;
mod regular;
mod source;

pub use found::{Attempt, Candidate, Found, Nearest, Place, WhyNot};
pub use places::{Mode, Places, project_around};

use crate::symbolize::library::Library;
use names::Wanted;
use std::path::PathBuf;

/// Finds files with the symbols of libraries. Shared by threads: each may search for a library
/// of its own.
#[derive(Debug)]
pub struct Finder {
    searches: Vec<Search>,
    allow_no_build_id: bool,
}

/// One place that is searched.
#[derive(Debug)]
struct Search {
    place: Place,
    root: PathBuf,
    how: How,
}

/// How a place is searched.
#[derive(Debug)]
enum How {
    /// A single file.
    File,
    /// The five places below the root.
    Below,
    /// The mapping's own path.
    HostPath,
    /// Only the `.build-id` tree below the root.
    BuildIdTree,
}

impl Finder {
    /// A finder for `places`. Reads nothing yet but whether a `--symbols` is a folder.
    pub fn new(places: Places) -> Self {
        let mut searches = Vec::new();
        let mut add = |place, root, how| searches.push(Search { place, root, how });
        for root in places.symbols {
            let how = if root.is_dir() { How::Below } else { How::File };
            add(Place::Symbols, root, how);
        }
        if places.host_paths && places.mode == Mode::Find {
            add(Place::HostPath, PathBuf::new(), How::HostPath);
        }
        for root in places.binary_path {
            add(Place::BinaryPath, root, How::Below);
        }
        if let Some(out) = places.product_out {
            add(Place::ProductOut, out.join("symbols"), How::Below);
        }
        if places.host_paths && places.mode != Mode::Find {
            add(Place::HostPath, PathBuf::new(), How::HostPath);
        }
        for root in places.build_id_trees {
            add(Place::BuildIdTree, root, How::BuildIdTree);
        }
        Finder {
            searches,
            allow_no_build_id: places.allow_no_build_id,
        }
    }

    /// Searches for the symbols of `library`, place after place, until a file with its build ID
    /// and DWARF is found. Reads files; may be called from several threads at once.
    pub fn find(&self, library: &Library) -> Found {
        let mut found = Found::default();
        self.search_on(library, &mut found);
        found
    }

    /// Goes on where the search stopped: for when its best candidate turns out to be damaged.
    /// Returns whether there was anything left to search.
    pub fn search_on(&self, library: &Library, found: &mut Found) -> bool {
        let wanted = Wanted::new(library, self.allow_no_build_id);
        let before = found.searched;
        let known = found.candidates.len();
        for search in &self.searches[before..] {
            found.searched += 1;
            found.of_this_search = 0;
            let candidates = found.candidates.len();
            search.make(&wanted, found);
            if found.candidates.len() == candidates && found.of_this_search == 0 {
                let path = found::shown(&search.root.to_string_lossy());
                let why_not = match search.root.as_os_str().is_empty() || search.root.exists() {
                    true => WhyNot::NotThere,
                    false => WhyNot::NoSuchPlace,
                };
                found.refuse(search.place, path, why_not);
            }
            if found.is_complete() && found.candidates.len() > known {
                break;
            }
        }
        found.searched > before
    }
}

impl Search {
    fn make(&self, wanted: &Wanted, found: &mut Found) {
        match self.how {
            How::File => {
                folder::look_at(&self.root, self.place, wanted, found);
            }
            How::Below => folder::look_below(&self.root, self.place, wanted, found),
            How::HostPath => {
                if let Some(path) = wanted.host_path() {
                    folder::look_at(&path, self.place, wanted, found);
                }
            }
            How::BuildIdTree => {
                if let Some(path) = names::build_id_path(&wanted.library.build_id.0) {
                    folder::look_at(&self.root.join(path), self.place, wanted, found);
                }
            }
        }
    }
}

#[cfg(test)]
pub(in crate::symbolize) mod sample;
#[cfg(test)]
mod tests;
