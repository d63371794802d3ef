//! The edges of a walk over a graph: references and the followed referents.

use super::follow::Follow;
use super::graph::{HeapGraph, Referent};
use super::ids::ObjectIndex;
use super::object_set::ObjectSet;

/// The edges for a walk over all objects; searches referents only for objects that have followed
/// ones.
pub(super) struct Edges<'a> {
    pub(super) graph: &'a HeapGraph,
    follow: Follow,
    /// Owners of followed referents; `None` if there are none.
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

    /// Returns whether an object has followed referents.
    #[inline]
    pub(super) fn has_referents(&self, object: ObjectIndex) -> bool {
        match &self.owners {
            Some(owners) => owners.contains(object),
            None => false,
        }
    }

    /// Returns whether an object has references, null or not, or followed referents.
    #[inline]
    pub(super) fn has_any(&self, object: ObjectIndex) -> bool {
        !self.graph.reference_range(object).is_empty() || self.has_referents(object)
    }

    /// Returns the targets of an object's followed referents.
    #[inline]
    pub(super) fn referents(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + 'a {
        let all: &[Referent] = match self.has_referents(object) {
            true => self.graph.referents_of(object),
            false => &[],
        };
        let follow = self.follow;
        let followed = all.iter().filter(move |r| follow.follows(r.kind));
        followed.map(|r| r.target)
    }

    pub(super) fn follows(&self, referent: &Referent) -> bool {
        self.follow.follows(referent.kind)
    }

    /// Returns all objects that an object keeps alive; can repeat.
    #[inline]
    pub(super) fn of(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + 'a {
        let references = self.graph.references(object).iter().copied();
        references
            .filter(|&target| target != ObjectIndex::NONE)
            .chain(self.referents(object))
    }
}
