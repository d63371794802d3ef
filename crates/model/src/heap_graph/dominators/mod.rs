//! The dominator tree: `d` dominates `o` if every path from a root to `o` goes through `d`. The
//! retained size of an object is the size of all objects that it dominates, because they would be
//! freed with it. A virtual node above all roots makes it one tree.
//!
//! Reachable objects are stored in preorder of that tree: each object comes before all that it
//! dominates, and those follow it directly. So a subtree is a slice, children are found by the
//! sizes of their subtrees, and no table of children is needed.

mod enclosing;
mod semi_nca;
mod spanning;

use super::edges::Edges;
use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::{ClassIndex, ObjectIndex};
use super::object_set::ObjectSet;
use super::reach::Reachable;
use enclosing::Enclosing;
use serde::ser::SerializeStruct;
use spanning::{Spanning, filled};
use std::ops::Range;
use std::sync::OnceLock;

/// Immediate dominators and retained sizes of all reachable objects. Needs 16 bytes per object, 20
/// if the objects have more than 4 GiB together. The computation takes the same 16 bytes in addition to the graph, and 4 to
/// 8 bytes for each reference that is not the first to reach its target.
#[derive(Debug, Clone, Default)]
pub struct Dominators {
    /// Index in `order` by object; [`u32::MAX`] for unreachable objects.
    places: Vec<u32>,
    order: Vec<ObjectIndex>,
    /// Number of objects that each object dominates, including itself, by index in `order`.
    counts: Vec<u32>,
    retained: Bytes,
    /// Finds immediate dominators; made for the first request.
    enclosing: OnceLock<Enclosing>,
    /// Indices of reachable objects with native bytes, ascending, each with the sum before it; the
    /// last entry marks the end.
    native: Vec<(u32, u128)>,
}

/// Sums of bytes by index in `order`, in 32 bits if they fit.
#[derive(Debug, Clone)]
enum Bytes {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for Bytes {
    fn default() -> Bytes {
        Bytes::Narrow(Vec::new())
    }
}

/// Size of the objects that would be freed with one or several objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Retained {
    /// Number of objects.
    pub count: u64,
    /// Sum of their shallow sizes in bytes.
    pub bytes: u64,
    /// Native bytes that they own.
    pub native_bytes: u64,
}

/// The names are a contract of `leaks --json`.
impl serde::Serialize for Retained {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("Retained", 3)?;
        row.serialize_field("bytes", &self.bytes)?;
        row.serialize_field("native_bytes", &self.native_bytes)?;
        row.serialize_field("count", &self.count)?;
        row.end()
    }
}

impl Retained {
    /// Returns the Java and native bytes together.
    pub fn total_bytes(&self) -> u64 {
        self.bytes.saturating_add(self.native_bytes)
    }

    /// Adds the size of other objects.
    pub fn add(&mut self, other: Retained) {
        self.count = self.count.saturating_add(other.count);
        self.bytes = self.bytes.saturating_add(other.bytes);
        self.native_bytes = self.native_bytes.saturating_add(other.native_bytes);
    }
}

impl Dominators {
    /// Computes the tree of everything reachable under `follow`.
    pub fn compute(graph: &HeapGraph, follow: Follow) -> Dominators {
        let spanning = Spanning::new(&Edges::new(graph, follow));
        let tree = semi_nca::dominator_tree(spanning);
        let (mut all, [places, sums]) = ordered(tree);
        (all.places, all.retained) = std::thread::scope(|scope| {
            let places = scope.spawn(|| places_of(&all.order, graph.len(), places));
            let retained = retained(graph, &all, sums);
            match places.join() {
                Ok(places) => (places, retained),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        });
        all.native = native(graph, &all);
        all
    }

    /// Returns the immediate dominator; `None` if that is the virtual root, or if the object is
    /// unreachable.
    pub fn idom(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let end = |place| self.end(place);
        let new = || Enclosing::new(self.order.len(), end);
        let enclosing = self.enclosing.get_or_init(new);
        Some(self.order[enclosing.of(self.place(object)?, end)?])
    }

    /// Returns whether any root reaches the object.
    #[inline]
    pub fn is_reachable(&self, object: ObjectIndex) -> bool {
        self.places[object.at()] != u32::MAX
    }

    /// Returns the set of reachable objects: the same as [`Reachable::new`] finds by a walk.
    pub fn reachable(&self) -> Reachable {
        let is_reachable = |object| self.is_reachable(object);
        Reachable::from_set(ObjectSet::from_fn(self.places.len(), is_reachable))
    }

    /// Returns the reachable objects, each after its immediate dominator and before those it
    /// dominates.
    pub fn order(&self) -> &[ObjectIndex] {
        &self.order
    }

    /// Passes the objects in order, each with what `each` returned for its immediate dominator;
    /// `None` if that is the virtual root.
    #[inline]
    pub fn nested<T: Copy>(&self, mut each: impl FnMut(ObjectIndex, Option<T>) -> T) {
        // Subtrees nest, so the last one that was opened and has not ended is the dominator's.
        let mut open: Vec<(usize, T)> = Vec::new();
        for (place, &object) in self.order.iter().enumerate() {
            while open.last().is_some_and(|&(end, _)| end <= place) {
                open.pop();
            }
            let value = each(object, open.last().map(|&(_, value)| value));
            let end = self.end(place);
            if end == place + 1 {
                continue;
            }
            match open.last_mut() {
                // The last child: nothing else asks for its dominator. So a list needs one entry.
                Some(last) if last.0 == end => last.1 = value,
                _ => open.push((end, value)),
            }
        }
    }

    /// Returns the reachable objects with their retained sizes: faster than single requests.
    #[inline]
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (ObjectIndex, Retained)> + '_ {
        self.part(0..self.order.len())
    }

    /// Returns a part of [`Dominators::iter`], by places in the order. To skip the others would compute
    /// their sizes.
    #[inline]
    pub fn part(
        &self,
        places: Range<usize>,
    ) -> impl ExactSizeIterator<Item = (ObjectIndex, Retained)> + '_ {
        let from = places.start;
        let objects = self.order[places].iter().enumerate();
        objects.map(move |(at, &object)| (object, self.at(from + at)))
    }

    /// Returns all objects that the object dominates, itself first, each after its immediate
    /// dominator; empty if the object is unreachable.
    pub fn dominated(&self, object: ObjectIndex) -> &[ObjectIndex] {
        match self.place(object) {
            Some(place) => &self.order[place..self.end(place)],
            None => &[],
        }
    }

    /// Returns the objects whose immediate dominator it is, each once.
    pub fn children(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + '_ {
        let places = self.side_by_side(self.below(Some(object)));
        places.map(|place| self.order[place])
    }

    /// Returns the objects that only the virtual root dominates, each once.
    pub fn top(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        let places = self.side_by_side(self.below(None));
        places.map(|place| self.order[place])
    }

    /// Returns the objects whose immediate dominator an object is, or else the virtual root, with their
    /// retained sizes: faster than single requests.
    pub fn retained_below(
        &self,
        object: Option<ObjectIndex>,
    ) -> impl Iterator<Item = (ObjectIndex, Retained)> + '_ {
        let places = self.side_by_side(self.below(object));
        places.map(|place| (self.order[place], self.at(place)))
    }

    /// Returns the depth of each object in the tree, in the order of [`Dominators::order`]: 1
    /// directly below the virtual root.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.order.len());
        self.nested(|_, above: Option<u32>| {
            let depth = above.unwrap_or(0) + 1;
            depths.push(depth);
            depth
        });
        depths
    }

    /// Returns the shallow bytes of all objects that the object dominates, including itself; 0 if
    /// it is unreachable.
    pub fn retained_bytes(&self, object: ObjectIndex) -> u64 {
        self.place(object).map_or(0, |place| self.bytes_at(place))
    }

    /// Returns the native bytes of the same objects.
    pub fn retained_native_bytes(&self, object: ObjectIndex) -> u64 {
        self.place(object).map_or(0, |place| self.native_at(place))
    }

    /// Returns the number of the same objects.
    pub fn retained_count(&self, object: ObjectIndex) -> u32 {
        self.place(object).map_or(0, |place| self.counts[place])
    }

    /// Returns count, bytes and native bytes; zeros if the object is unreachable.
    pub fn retained(&self, object: ObjectIndex) -> Retained {
        match self.place(object) {
            Some(place) => self.at(place),
            None => Retained::default(),
        }
    }

    /// Returns the retained size of all roots together: everything reachable.
    pub fn total(&self) -> Retained {
        let mut total = Retained::default();
        for object in self.top() {
            total.add(self.retained(object));
        }
        total
    }

    /// Returns the retained sizes of groups of objects: `group_of` assigns an object to one of the
    /// groups from 0 to `groups - 1`, or to none. An object that another one of its group dominates
    /// counts only with that one, so that nothing counts twice in a group (Perfetto's rule for
    /// classes). The retained sizes of two groups can overlap.
    pub fn retained_by(
        &self,
        groups: usize,
        group_of: impl Fn(ObjectIndex) -> Option<usize>,
    ) -> Vec<Retained> {
        let mut sums = vec![Retained::default(); groups];
        // End of the range that each group has already counted.
        let mut counted = vec![0; groups];
        for (place, &object) in self.order.iter().enumerate() {
            if let Some(group) = group_of(object)
                && counted[group] <= place
            {
                counted[group] = self.end(place);
                sums[group].add(self.at(place));
            }
        }
        sums
    }

    /// Returns the retained size of objects together, under the rule of [`Dominators::retained_by`].
    /// Objects can be listed twice.
    pub fn retained_together(&self, objects: &[ObjectIndex]) -> Retained {
        let places = objects.iter().filter_map(|&object| self.place(object));
        let mut places: Vec<usize> = places.collect();
        places.sort_unstable();
        let (mut sum, mut counted) = (Retained::default(), 0);
        for place in places {
            if counted <= place {
                counted = self.end(place);
                sum.add(self.at(place));
            }
        }
        sum
    }

    /// Returns the retained size of the instances of each class, by class, under the rule of
    /// [`Dominators::retained_by`].
    pub fn retained_by_class(&self, graph: &HeapGraph) -> Vec<Retained> {
        self.retained_by(graph.classes().len(), |object| {
            let ClassIndex(class) = graph.class_of(object);
            Some(class as usize)
        })
    }

    fn place(&self, object: ObjectIndex) -> Option<usize> {
        let place = self.places[object.at()];
        (place != u32::MAX).then_some(place as usize)
    }

    /// Returns the index after all objects that the object at `place` dominates.
    #[inline]
    fn end(&self, place: usize) -> usize {
        place + self.counts[place] as usize
    }

    /// Returns the range of the objects that an object dominates, without itself; of all objects for the
    /// virtual root.
    fn below(&self, object: Option<ObjectIndex>) -> Range<usize> {
        match object.map(|object| self.place(object)) {
            None => 0..self.order.len(),
            Some(Some(place)) => place + 1..self.end(place),
            Some(None) => 0..0,
        }
    }

    /// Returns the places of the objects in a range that no other one in it dominates.
    fn side_by_side(&self, range: Range<usize>) -> impl Iterator<Item = usize> + '_ {
        let mut next = range.start;
        std::iter::from_fn(move || {
            let place = (next < range.end).then_some(next)?;
            next = self.end(place);
            Some(place)
        })
    }

    #[inline]
    fn at(&self, place: usize) -> Retained {
        Retained {
            count: self.counts[place].into(),
            bytes: self.bytes_at(place),
            native_bytes: self.native_at(place),
        }
    }

    #[inline]
    fn bytes_at(&self, place: usize) -> u64 {
        match &self.retained {
            Bytes::Narrow(sums) => sums[place].into(),
            Bytes::Wide(sums) => sums[place],
        }
    }

    #[inline]
    fn native_at(&self, place: usize) -> u64 {
        match self.native.is_empty() {
            true => 0,
            false => self.native_between(place, self.end(place)),
        }
    }

    fn native_between(&self, from: usize, to: usize) -> u64 {
        let before = |place: usize| {
            let at = self.native.partition_point(|n| (n.0 as usize) < place);
            self.native.get(at).map_or(0, |n| n.1)
        };
        (before(to) - before(from)).try_into().unwrap_or(u64::MAX)
    }
}

/// Sorts the tree into the order described above, with indices and sums yet to be computed, and
/// returns the memory that becomes free. At most four columns exist at a time, because memory use
/// peaks here.
fn ordered(tree: semi_nca::Tree) -> (Dominators, [Vec<u32>; 2]) {
    let nodes = tree.idoms.len();
    let [room, more] = tree.room;
    let mut counts = filled(room, nodes, 1);
    for node in (1..nodes).rev() {
        counts[tree.idoms[node] as usize] += counts[node];
    }
    // The index of each node's next child; in the end, the end of its subtree. The virtual node has
    // index 0 for now, so all others are one higher than in the result.
    let mut ends = filled(more, nodes, 1);
    for node in 1..nodes {
        let next = &mut ends[tree.idoms[node] as usize];
        let place = *next;
        *next += counts[node];
        ends[node] = place + 1;
    }
    let mut places = ends;
    for (place, count) in places.iter_mut().zip(&counts) {
        *place -= count;
    }
    let objects_by_number: Vec<u32> = tree.objects.into_iter().map(|o| o.0).collect();
    let (order, room) = by_place(objects_by_number, &places, tree.idoms);
    let (counts, room) = by_place(counts, &places, room);
    let all = Dominators {
        order: order.into_iter().map(ObjectIndex).collect(),
        counts,
        ..Dominators::default()
    };
    (all, [room, places])
}

fn places_of(order: &[ObjectIndex], objects: usize, room: Vec<u32>) -> Vec<u32> {
    let mut places = filled(room, objects, u32::MAX);
    for (place, object) in order.iter().enumerate() {
        places[object.at()] = place as u32;
    }
    places
}

/// Returns a column by index, without the virtual node, which has index 0; and the memory of the
/// old column.
fn by_place(column: Vec<u32>, places: &[u32], room: Vec<u32>) -> (Vec<u32>, Vec<u32>) {
    let mut sorted = filled(room, places.len() - 1, 0);
    for (&value, &place) in column.iter().zip(places).skip(1) {
        sorted[place as usize - 1] = value;
    }
    (sorted, column)
}

fn retained(graph: &HeapGraph, all: &Dominators, mut room: Vec<u32>) -> Bytes {
    let shallow = || all.order.iter().map(|&object| graph.shallow_bytes(object));
    // The sum of a subtree is the sum up to its end minus the sum up to its start.
    room.clear();
    let mut narrow = room;
    let mut sum = 0u32;
    let fits = shallow().all(|bytes| {
        narrow.push(sum);
        match u32::try_from(bytes)
            .ok()
            .and_then(|bytes| sum.checked_add(bytes))
        {
            Some(next) => sum = next,
            None => return false,
        }
        true
    });
    if fits {
        narrow.push(sum);
        for place in 0..all.order.len() {
            narrow[place] = narrow[all.end(place)] - narrow[place];
        }
        return Bytes::Narrow(narrow);
    }
    drop(narrow);
    let mut sums: Vec<u64> = shallow().collect();
    let total = sums.iter().copied().fold(0, u64::saturating_add);
    if total < u64::MAX {
        let mut sum = 0;
        for bytes in &mut sums {
            sum += std::mem::replace(bytes, sum);
        }
        sums.push(total);
        for place in 0..all.order.len() {
            sums[place] = sums[all.end(place)] - sums[place];
        }
        return Bytes::Wide(sums);
    }
    let mut parents = Vec::with_capacity(sums.len());
    all.nested(|_, parent: Option<u32>| {
        parents.push(parent);
        parents.len() as u32 - 1
    });
    for place in (0..sums.len()).rev() {
        if let Some(parent) = parents[place] {
            let own = sums[place];
            let sum = &mut sums[parent as usize];
            *sum = sum.saturating_add(own);
        }
    }
    Bytes::Wide(sums)
}

fn native(graph: &HeapGraph, all: &Dominators) -> Vec<(u32, u128)> {
    let reachable = graph.natives().iter().filter_map(|&(object, bytes)| {
        let place = all.place(object)?;
        Some((place as u32, u128::from(bytes)))
    });
    let mut native: Vec<(u32, u128)> = reachable.collect();
    native.sort_unstable();
    let mut sum = 0;
    for (_, before) in &mut native {
        sum += std::mem::replace(before, sum);
    }
    if !native.is_empty() {
        native.push((u32::MAX, sum));
    }
    native
}
