//! Reversed references, for the holders of an object and all paths to the roots.

use super::edges::Edges;
use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;
use super::object_set::ObjectSet;
use super::positions::Positions;
use super::reach::PathReferences;
use std::ops::Range;

/// Reversed references. Needs 2 bytes per object and 4 per non-null reference, and a bit per reference
/// with the shortest paths. Building it is a walk over all references, so do it once and only on
/// request.
///
/// Each reference is an entry; those to one object are neighbors.
#[derive(Debug, Clone, Default)]
pub struct Referrers {
    /// Index of each object's first entry; one more than objects.
    starts: Positions,
    /// Owner by entry.
    owners: Vec<ObjectIndex>,
    /// Entries of references on shortest paths; empty if those were not passed.
    on_paths: ObjectSet,
}

/// Maximum number of entries that are passed at once: arrays can have millions.
const MAX_ENTRIES: usize = 1024;

impl Referrers {
    /// Reverses the references of all objects, reachable or not. With the shortest `paths`, it knows
    /// which of them are on those.
    pub fn new(graph: &HeapGraph, follow: Follow, paths: Option<&PathReferences>) -> Referrers {
        Referrers::with_entries(graph, follow, paths, |_, _| {})
    }

    /// Does the same, and passes each owner with the entries of its references: each with the position of
    /// the reference among the owner's, or `None` for a referent. Owners come in any order, those of many
    /// references several times.
    pub fn with_entries(
        graph: &HeapGraph,
        follow: Follow,
        paths: Option<&PathReferences>,
        mut each: impl FnMut(ObjectIndex, &[(usize, Option<usize>)]),
    ) -> Referrers {
        let edges = Edges::new(graph, follow);
        let mut starts = vec![0u32; graph.len() + 1];
        for owner in graph.objects() {
            distinct(&edges, owner).for_each(|(_, target)| starts[target.at()] += 1);
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // Zeros come from the system without a write to each page.
        let mut owners = vec![0; sum as usize];
        let mut on_paths = ObjectSet::new(paths.map_or(0, |_| owners.len()));
        let mut entries = Vec::new();
        // From the end, so that owners are ascending and each start is correct afterwards.
        for owner in graph.objects().rev().filter(|&owner| edges.has_any(owner)) {
            let first = graph.reference_range(owner).start;
            for (at, target) in distinct(&edges, owner) {
                let start = &mut starts[target.at()];
                *start -= 1;
                owners[*start as usize] = owner.0;
                if let Some(paths) = paths {
                    let is_on_path = match at {
                        Some(at) => paths.has_reference(at),
                        None => paths.has_referent(owner, target),
                    };
                    on_paths.insert_if(is_on_path, ObjectIndex(*start));
                }
                entries.push((*start as usize, at.map(|at| at - first)));
                if entries.len() == MAX_ENTRIES {
                    each(owner, &entries);
                    entries.clear();
                }
            }
            each(owner, &entries);
            entries.clear();
        }
        Referrers {
            starts: Positions::from(starts.as_slice()),
            owners: owners.into_iter().map(ObjectIndex).collect(),
            on_paths,
        }
    }

    /// Returns the entries of the references to an object, ascending by owner. An owner can have
    /// several, of which the last is its first reference.
    #[inline]
    pub fn entries(&self, object: ObjectIndex) -> Range<usize> {
        self.starts.range(object.at())
    }

    /// Returns the owner of an entry's reference.
    #[inline]
    pub fn owner(&self, entry: usize) -> ObjectIndex {
        self.owners[entry]
    }

    /// Returns the previous object on the shortest path to an object; `None` for roots and unreachable
    /// objects.
    ///
    /// # Panics
    /// Panics if the shortest paths were not passed.
    #[inline]
    pub fn on_path(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let entries = self.entries(object);
        let entries = entries.start as u32..entries.end as u32;
        let ObjectIndex(entry) = self.on_paths.first_in(entries)?;
        Some(self.owners[entry as usize])
    }

    /// Returns the objects that refer to an object, ascending, each once.
    #[inline]
    pub fn to(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + '_ {
        let owners = &self.owners[self.entries(object)];
        owners.chunk_by(|a, b| a == b).map(|same| same[0])
    }
}

/// Returns the targets of an object, each with the index of the first reference to it among all, or `None` for
/// a referent; without those of neighbors: neighboring slots of an array often hold the same object.
#[inline]
fn distinct<'e>(
    edges: &'e Edges<'_>,
    owner: ObjectIndex,
) -> impl Iterator<Item = (Option<usize>, ObjectIndex)> + 'e {
    let graph = edges.graph;
    let references = graph.reference_range(owner);
    let references = references.map(|at| (Some(at), graph.targets[at]));
    let referents = edges.referents(owner).map(|target| (None, target));
    let mut last = ObjectIndex::NONE;
    references.chain(referents).filter(move |&(_, target)| {
        let is_new = target != last && target != ObjectIndex::NONE;
        if is_new {
            last = target;
        }
        is_new
    })
}
