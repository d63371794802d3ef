//! Kinds of references: the name of the owner, and the field. They are found once for each entry of
//! the reversed references, because several searches meet the same references.

use super::numbers::{NONE, Numbers};
use crate::label;
use crate::paths::{ELEMENTS, Link, Links, Places};
use heaptap_model::heap_graph::{
    ClassIndex, Follow, HeapGraph, ObjectIndex, ObjectSet, PathReferences, Referrers,
};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// When to read the instances whose references are not known without their contents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// All of them, in the order of the dump: for several searches.
    Ahead,
    /// Those that a search meets.
    OnDemand,
}

/// Numbered kinds: comparing numbers takes far less time than comparing texts.
pub(super) struct Kinds<'a> {
    pub(super) graph: &'a HeapGraph,
    links: Links<'a>,
    /// Class objects differ in name, so a class that has some does not name its objects.
    has_class_objects: Vec<bool>,
    all: Vec<Arc<(String, Link)>>,
    numbers: HashMap<Arc<(String, Link)>, u32>,
    /// By class and by the result of [`Links::place`]; [`NONE`] if not looked up yet.
    by_place: Vec<Vec<u32>>,
}

impl<'a> Kinds<'a> {
    pub(super) fn new(graph: &'a HeapGraph, follow: Follow) -> Kinds<'a> {
        let classes = graph.classes().iter();
        let mut has_class_objects: Vec<bool> = classes
            .map(|class| label::represented(class.shown()).is_some())
            .collect();
        for &(object, _) in &graph.class_objects {
            has_class_objects[graph.class_of(object).at()] = true;
        }
        Kinds {
            graph,
            links: Links::new(graph, follow),
            has_class_objects,
            all: Vec::new(),
            numbers: HashMap::new(),
            by_place: vec![Vec::new(); graph.classes().len()],
        }
    }

    /// Returns the owner's name and the reference of a kind.
    pub(super) fn get(&self, kind: u32) -> Option<&(String, Link)> {
        self.all.get(kind as usize).map(Arc::as_ref)
    }

    #[inline]
    fn places(&mut self, class: ClassIndex, owner: ObjectIndex, may_read: bool) -> Places {
        match self.has_class_objects[class.at()] {
            true => Places::Unknown,
            false => self.links.places(class, owner, may_read),
        }
    }

    /// Returns the kind of the references at a place of the objects of a class, if it is known.
    #[inline]
    fn known(&self, class: ClassIndex, place: u32) -> Option<u32> {
        let kind = self.by_place[class.at()].get(place as usize).copied();
        kind.filter(|&kind| kind != NONE)
    }

    /// Names the reference at a place of the objects of a class: `owner` has one to `target` there.
    #[cold]
    fn name(
        &mut self,
        class: ClassIndex,
        place: u32,
        owner: ObjectIndex,
        target: ObjectIndex,
    ) -> u32 {
        let kind = self.named(owner, target);
        let by_place = &mut self.by_place[class.at()];
        if by_place.len() <= place as usize {
            by_place.resize(place as usize + 1, NONE);
        }
        by_place[place as usize] = kind;
        kind
    }

    /// Returns the kind of the first reference from `owner` to `target`.
    fn first(&mut self, owner: ObjectIndex, target: ObjectIndex) -> u32 {
        let class = self.graph.class_of(owner);
        let references = self.graph.references(owner);
        let places = self.places(class, owner, true);
        let position = match places {
            Places::Elements => Some(0),
            Places::Fields { .. } => references.iter().position(|&other| other == target),
            Places::Unknown => None,
        };
        match position.and_then(|position| self.links.place(places, position)) {
            Some(place) => {
                let known = self.known(class, place);
                known.unwrap_or_else(|| self.name(class, place, owner, target))
            }
            None => self.named(owner, target),
        }
    }

    fn named(&mut self, owner: ObjectIndex, target: ObjectIndex) -> u32 {
        let name = label::object_name(self.graph, owner).into_owned();
        let key = Arc::new((name, self.links.any(owner, target)));
        let next = self.all.len() as u32;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.all.push(Arc::clone(key));
            next
        })
    }
}

/// Reversed references, each with its kind. Several searches share them.
pub struct KindedReferrers<'a> {
    pub(super) kinds: Kinds<'a>,
    /// Of all kinds of references.
    referrers: Arc<Referrers>,
    /// Kinds by entry.
    of_entry: Numbers,
    follow: Follow,
    /// Owners of referents that are not followed; `None` if there are none.
    unfollowed: Option<ObjectSet>,
}

impl<'a> KindedReferrers<'a> {
    /// Reverses the references of all objects, reachable or not, as [`Referrers::new`] does. Searches find
    /// those that `follow` follows. Needs 2 bytes per object and 6 per reference.
    pub fn new(
        graph: &'a HeapGraph,
        follow: Follow,
        reading: Reading,
        paths: Option<&PathReferences>,
    ) -> KindedReferrers<'a> {
        let mut this = KindedReferrers::over(graph, follow, Arc::default());
        let (kinds, of_entry) = (&mut this.kinds, &mut this.of_entry);
        let may_read = reading == Reading::Ahead;
        let name = |owner, entries: &[(usize, Option<usize>)]| {
            let class = graph.class_of(owner);
            let places = kinds.places(class, owner, may_read);
            if let Places::Elements = places
                && let Some(kind) = kinds.known(class, ELEMENTS)
            {
                entries
                    .iter()
                    .for_each(|&(entry, _)| of_entry.set(entry, kind));
                return;
            }
            for &(entry, position) in entries {
                let Some(position) = position else {
                    continue;
                };
                let Some(place) = kinds.links.place(places, position) else {
                    break;
                };
                let known = kinds.known(class, place).or_else(|| {
                    let references = graph.references(owner);
                    let target = references[position];
                    // The name of a reference is that of the first one to its target, so a later one
                    // cannot name its place. No search asks for its kind.
                    let is_first = !references[..position].contains(&target);
                    is_first.then(|| kinds.name(class, place, owner, target))
                });
                if let Some(kind) = known {
                    of_entry.set(entry, kind);
                }
            }
        };
        let referrers = Referrers::with_entries(graph, Follow::ALL, paths, name);
        graph.release_contents();
        this.referrers = Arc::new(referrers);
        this
    }

    /// Does the same with references that were reversed before, of all kinds. Needs 2 bytes per
    /// reference that a search meets.
    pub fn over(
        graph: &'a HeapGraph,
        follow: Follow,
        referrers: Arc<Referrers>,
    ) -> KindedReferrers<'a> {
        let mut unfollowed = None;
        for referent in graph.referents() {
            if !follow.follows(referent.kind) {
                unfollowed
                    .get_or_insert_with(|| ObjectSet::new(graph.len()))
                    .insert(referent.owner);
            }
        }
        KindedReferrers {
            kinds: Kinds::new(graph, follow),
            referrers,
            of_entry: Numbers::new(graph.reference_count() + graph.referents().len()),
            follow,
            unfollowed,
        }
    }

    /// Returns the reversed references, of all kinds.
    pub fn referrers(&self) -> &Arc<Referrers> {
        &self.referrers
    }

    /// Returns the entries of the references to an object, for [`KindedReferrers::next`].
    #[inline]
    pub(super) fn entries(&self, object: ObjectIndex) -> Range<usize> {
        self.referrers.entries(object)
    }

    /// Takes the next object that refers to `object` from its entries, with the entry of its first
    /// reference. Objects ascend, and each comes once.
    #[inline]
    pub(super) fn next(
        &self,
        entries: &mut Range<usize>,
        object: ObjectIndex,
    ) -> Option<(ObjectIndex, usize)> {
        loop {
            let mut entry = entries.next()?;
            let owner = self.referrers.owner(entry);
            while entries.start < entries.end && self.referrers.owner(entries.start) == owner {
                entry = entries.next()?;
            }
            if self.is_followed(owner, object) {
                return Some((owner, entry));
            }
        }
    }

    /// Returns whether a referrer keeps an object alive.
    #[inline]
    fn is_followed(&self, owner: ObjectIndex, object: ObjectIndex) -> bool {
        let unfollowed = self.unfollowed.as_ref();
        if !unfollowed.is_some_and(|owners| owners.contains(owner)) {
            return true;
        }
        let mut kept = self.kinds.graph.kept_by(owner, self.follow);
        kept.any(|target| target == object)
    }

    /// Returns the kind of an entry's reference, from `owner` to `target`.
    #[inline]
    pub(super) fn kind(&mut self, entry: usize, owner: ObjectIndex, target: ObjectIndex) -> u32 {
        match self.of_entry.get(entry) {
            NONE => {
                let kind = self.kinds.first(owner, target);
                self.of_entry.set(entry, kind);
                kind
            }
            kind => kind,
        }
    }
}
