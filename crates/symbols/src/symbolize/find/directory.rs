//! Files at given paths: whether one is the requested library, and its amount of information.
//! Covers the five places below a root, and the path of the memory mapping.

use super::content::Symbols;
use super::found::{Candidate, Found, Nearest, Place};
use super::index::{SearchRoot, Tree};
use super::names::LibraryQuery;
use super::reject_reason::RejectReason;
use super::source::{self, Source};
use crate::symbolize::file::{self, Facts};
use heaptap_base::untrusted::sanitize;
use std::path::{Component, Path};

/// Examines the file at `path`.
pub(super) fn look_at(path: &Path, place: Place, query: &LibraryQuery, found: &mut Found) {
    let text = sanitize(&path.to_string_lossy()).into_owned();
    let mapped = source::map(path, None);
    let (facts, stamp) = match mapped.and_then(|(b, stamp)| Ok((file::identify(&b)?, stamp))) {
        Ok(read) => read,
        // A directory can have the name of a library: `libfoo.so/`.
        Err(RejectReason::NotThere | RejectReason::NotAFile) if !path.is_file() => return,
        Err(why_not) => return found.refuse(place, text, why_not),
    };
    let source = Source::File {
        path: path.to_owned(),
        stamp,
    };
    let likeness = query.likeness(path.components().filter_map(plain));
    judge(facts, source, text, likeness, place, query, found);
}

/// Adds a file as a candidate, or records why it cannot be used.
pub(super) fn judge(
    facts: Facts,
    source: Source,
    path: String,
    likeness: usize,
    place: Place,
    query: &LibraryQuery,
    found: &mut Found,
) {
    let own = &query.library.build_id;
    let verified = facts.is_build(own);
    // If either side does not have a build ID, the files cannot be compared.
    let open = own.is_empty() || (facts.build_id.is_empty() && facts.debug_id.is_none());
    if verified || (open && query.allow_no_build_id) {
        found.add(Candidate {
            place,
            path,
            knowledge: facts.knowledge,
            verified,
            build_id: verified.then(|| own.clone()),
            likeness,
            source,
            around: None,
        });
        return;
    }
    let near = Nearest {
        place,
        path,
        build_id: Symbols::new(&facts).shown_id(),
        likeness,
    };
    found.refuse_build(query, near);
}

/// Examines the five places below `root`.
pub(super) fn look_below(root: &Path, place: Place, query: &LibraryQuery, found: &mut Found) {
    for below in query.five_places() {
        look_at(&root.join(below), place, query, found);
    }
}

/// Searches the packages below `root` that can contain the library, judged by its path.
pub(super) fn look_into_packages(
    root: &Path,
    place: Place,
    query: &LibraryQuery,
    found: &mut Found,
) {
    for below in query.packages() {
        let path = root.join(below);
        if path.is_file() {
            let tree = Tree::new(SearchRoot::File(path), None);
            tree.search(place, query, found);
        }
    }
}

fn plain(component: Component<'_>) -> Option<&str> {
    match component {
        Component::Normal(name) => name.to_str(),
        _ => None,
    }
}
