//! Reversed references, for the holders of an object and all paths to the roots.

use super::edges::Edges;
use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;
use super::object_set::ObjectSet;
use super::positions::Positions;
use super::reach::PathReferences;
use std::ops::Range;

/// Reversed references. Needs 2 bytes per object and 4 per non-null reference. Building it is a
/// walk over all references, so do it once and only on request.
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

impl Referrers {
    /// Reverses the references of all objects, reachable or not. Keeps which are on the shortest `paths`.
    pub fn of(graph: &HeapGraph, follow: Follow, paths: Option<&PathReferences>) -> Referrers {
        Referrers::with_entries(graph, follow, paths, |_, _| {})
    }

    /// Does the same, and passes each owner with the entries of its references: each with the position of
    /// the reference among the owner's, or `None` for a referent. Owners come in any order.
    pub fn with_entries(
        graph: &HeapGraph,
        follow: Follow,
        paths: Option<&PathReferences>,
        mut each: impl FnMut(ObjectIndex, &[(usize, Option<usize>)]),
    ) -> Referrers {
        let edges = Edges::new(graph, follow);
        let mut starts = vec![0u32; graph.len() + 1];
        for owner in graph.objects() {
            distinct(&edges, owner, |target, _| starts[target.at()] += 1);
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // From the end, so that owners are ascending and each start is correct afterwards.
        // Memory from the system, which is zero already.
        let mut owners = vec![0; sum as usize];
        let mut on_paths = ObjectSet::new(paths.map_or(0, |_| owners.len()));
        let mut entries = Vec::new();
        for owner in graph.objects().rev().filter(|&owner| edges.has_any(owner)) {
            let range = graph.reference_range(owner);
            let referents = edges.referents(owner).map(|target| (None, target));
            let references = range.clone().map(|at| (Some(at), graph.targets[at]));
            let mut last = ObjectIndex::NONE;
            for (at, target) in references.chain(referents) {
                if target == last || target == ObjectIndex::NONE {
                    continue;
                }
                last = target;
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
                entries.push((*start as usize, at.map(|at| at - range.start)));
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

/// Passes the targets of an object with the position of the first reference to each: neighboring
/// slots of an array often hold the same object.
#[inline]
fn distinct(
    edges: &Edges<'_>,
    owner: ObjectIndex,
    mut each: impl FnMut(ObjectIndex, Option<usize>),
) {
    let mut last = ObjectIndex::NONE;
    for (position, &target) in edges.graph.references(owner).iter().enumerate() {
        if target == ObjectIndex::NONE {
            continue;
        }
        if target != last {
            each(target, Some(position));
        }
        last = target;
    }
    for target in edges.referents(owner) {
        if target != last {
            each(target, None);
        }
        last = target;
    }
}
