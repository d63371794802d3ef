//! What a walk over a graph goes along: references and the referents that are followed.

use super::follow::Follow;
use super::graph::{HeapGraph, Referent};
use super::ids::ObjectIndex;
use super::object_set::ObjectSet;

/// The references that count, for a walk over all objects: asks for referents only where there
/// are any that are followed.
pub(super) struct Edges<'a> {
    pub(super) graph: &'a HeapGraph,
    follow: Follow,
    /// Owners of referents that are followed; `None` where nobody is.
    owners: Option<ObjectSet>,
}

impl<'a> Edges<'a> {
    pub(super) fn new(graph: &'a HeapGraph, follow: Follow) -> Edges<'a> {
        let followed = graph.referents().iter().filter(|r| follow.follows(r.kind));
        let mut owners = None;
        for referent in followed {
            owners
                .get_or_insert_with(|| ObjectSet::new(graph.len()))
                .insert(referent.owner);
        }
        Edges {
            graph,
            follow,
            owners,
        }
    }

    /// Where an object's references stand in the graph's `targets`.
    #[inline]
    pub(super) fn range(&self, object: ObjectIndex) -> (usize, usize) {
        let starts = &self.graph.starts;
        (
            starts[object.at()] as usize,
            starts[object.at() + 1] as usize,
        )
    }

    /// Whether an object has referents that are followed.
    #[inline]
    pub(super) fn has_referents(&self, object: ObjectIndex) -> bool {
        match &self.owners {
            Some(owners) => owners.contains(object),
            None => false,
        }
    }

    /// Targets of an object's referents that are followed.
    pub(super) fn referents(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + 'a {
        let all: &[Referent] = match self.has_referents(object) {
            true => self.graph.referents_of(object),
            false => &[],
        };
        let follow = self.follow;
        let followed = all.iter().filter(move |r| follow.follows(r.kind));
        followed.map(|r| r.target)
    }

    /// Whether that referent is followed.
    pub(super) fn follows(&self, referent: &Referent) -> bool {
        self.follow.follows(referent.kind)
    }

    /// All that an object keeps; may repeat.
    #[inline]
    pub(super) fn of(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + 'a {
        let references = self.graph.references(object).iter().copied();
        references
            .filter(|&target| target != ObjectIndex::NONE)
            .chain(self.referents(object))
    }
}
