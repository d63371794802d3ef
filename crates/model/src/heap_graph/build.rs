//! Builder of a graph from objects in any order, with references by ID. Readers with a better
//! method (two passes over a mapped file) fill the columns themselves.
//!
//! IDs that fit 32 bits, like those of heap graphs, are stored in 32 bits and resolved in place.
//! Objects that come in ascending order, as most do, are not moved.

use super::class::Class;
use super::class_column::ClassColumn;
use super::facts::DumpFacts;
use super::follow::ReferenceKind;
use super::graph::{Contents, HeapGraph, HeapKind, Referent};
use super::id_set::{Ids, IdsBuilder};
use super::ids::{ClassIndex, ObjectId, ObjectIndex};
use super::positions::Positions;
use super::root::{Root, RootKind};
use super::shallow_sizes::ShallowSizes;

/// Maximum number of objects, and of references, in a graph.
const MAX_COUNT: usize = u32::MAX as usize - 1;
/// Fewer references than this are resolved by one thread.
const WORTH_A_THREAD: usize = 1 << 16;

/// Reason why a graph cannot be built.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The heap has more than 32-bit indices can number.
    #[error("the heap has more than {most} {what}")]
    TooLarge {
        /// `objects` or `references`.
        what: &'static str,
        /// Maximum number in a graph.
        most: u64,
    },
}

/// An object from a reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewObject {
    /// ID of the object in the dump.
    pub id: ObjectId,
    /// Index of the class in the argument of [`GraphBuilder::finish`].
    pub class: ClassIndex,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    pub heap: HeapKind,
}

/// IDs in the order of arrival, in 32 bits while they fit.
enum IdColumn {
    Narrow(Vec<u32>),
    Wide(Vec<u64>),
}

impl Default for IdColumn {
    fn default() -> IdColumn {
        IdColumn::Narrow(Vec::new())
    }
}

impl IdColumn {
    fn len(&self) -> usize {
        match self {
            IdColumn::Narrow(ids) => ids.len(),
            IdColumn::Wide(ids) => ids.len(),
        }
    }

    #[inline]
    fn push(&mut self, id: u64) {
        match self {
            IdColumn::Wide(ids) => ids.push(id),
            IdColumn::Narrow(ids) => match u32::try_from(id) {
                Ok(id) => ids.push(id),
                Err(_) => {
                    let mut wide: Vec<u64> = Vec::with_capacity(ids.len() * 2);
                    wide.extend(ids.iter().map(|&id| u64::from(id)));
                    wide.push(id);
                    *self = IdColumn::Wide(wide);
                }
            },
        }
    }

    fn iter(&self) -> Box<dyn Iterator<Item = u64> + '_> {
        match self {
            IdColumn::Narrow(ids) => Box::new(ids.iter().map(|&id| id.into())),
            IdColumn::Wide(ids) => Box::new(ids.iter().copied()),
        }
    }

    /// Returns the objects with these IDs, and each occurrence of an ID without an object.
    fn resolved(self, ids: &Ids) -> (Vec<ObjectIndex>, Vec<Missing>) {
        match self {
            IdColumn::Narrow(narrow) => {
                let mut found: Vec<ObjectIndex> = narrow.into_iter().map(ObjectIndex).collect();
                let missing = in_parts(&mut found, |_, part| {
                    let slots = part.iter_mut().enumerate();
                    resolve(slots.map(|(at, slot)| (at, u64::from(slot.0), slot)), ids)
                });
                (found, missing)
            }
            IdColumn::Wide(wide) => {
                let mut found = vec![ObjectIndex::NONE; wide.len()];
                let missing = in_parts(&mut found, |from, part| {
                    let slots = wide[from..].iter().zip(part).enumerate();
                    resolve(slots.map(|(at, (&id, slot))| (at, id, slot)), ids)
                });
                (found, missing)
            }
        }
    }
}

/// An ID without an object, and its position.
struct Missing {
    at: usize,
    id: u64,
}

fn resolve<'a>(
    slots: impl Iterator<Item = (usize, u64, &'a mut ObjectIndex)>,
    ids: &Ids,
) -> Vec<Missing> {
    let mut missing = Vec::new();
    for (at, id, slot) in slots {
        *slot = match id {
            0 => ObjectIndex::NONE,
            id => ids.find(ObjectId(id)).unwrap_or_else(|| {
                missing.push(Missing { at, id });
                ObjectIndex::NONE
            }),
        };
    }
    missing
}

/// Processes parts of the slots in parallel, each with the index of its first slot.
fn in_parts(
    slots: &mut [ObjectIndex],
    work: impl Fn(usize, &mut [ObjectIndex]) -> Vec<Missing> + Sync,
) -> Vec<Missing> {
    let threads = heaptap_base::parallel::threads().get();
    let part = slots.len().div_ceil(threads).max(WORTH_A_THREAD);
    let mut parts = Vec::new();
    std::thread::scope(|scope| {
        let work = &work;
        let mut workers = Vec::new();
        for (number, part_slots) in slots.chunks_mut(part).enumerate() {
            let from = number * part;
            let mut run = move || (from, work(from, part_slots));
            if workers.len() + 1 < threads {
                workers.push(scope.spawn(run));
            } else {
                parts.push(run());
            }
        }
        for worker in workers {
            match worker.join() {
                Ok(done) => parts.push(done),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
    });
    let missing = parts.into_iter().flat_map(|(from, missing)| {
        let moved = move |m: Missing| Missing {
            at: m.at + from,
            id: m.id,
        };
        missing.into_iter().map(moved)
    });
    missing.collect()
}

/// Collects objects and builds a graph from them.
#[derive(Default)]
pub struct GraphBuilder {
    ids: IdColumn,
    class_of: Vec<ClassIndex>,
    shallow: ShallowSizes,
    heaps: Vec<HeapKind>,
    /// Index of each object's first reference.
    starts: Vec<u32>,
    references: IdColumn,
    /// Indices of the references that are referents, ascending.
    referents: Vec<(u32, ReferenceKind)>,
    roots: Vec<(u64, RootKind, Option<u32>, Option<u32>)>,
    native: Vec<(u64, u64)>,
    too_large: Option<&'static str>,
}

impl GraphBuilder {
    /// Adds an object; the references added next belong to it. A repeated ID replaces the earlier
    /// object.
    pub fn object(&mut self, object: NewObject) {
        if self.ids.len() >= MAX_COUNT {
            self.too_large = Some("objects");
            return;
        }
        self.shallow.push(object.shallow_bytes);
        self.ids.push(object.id.0);
        self.class_of.push(object.class);
        self.heaps.push(object.heap);
        self.starts.push(self.references.len() as u32);
    }

    /// Adds a reference of the last object; ID 0 is null.
    #[inline]
    pub fn reference(&mut self, target: ObjectId) {
        if self.references.len() >= MAX_COUNT {
            self.too_large = Some("references");
            return;
        }
        self.references.push(target.0);
    }

    /// Adds the `referent` of the last object, a `java.lang.ref.Reference`.
    pub fn referent(&mut self, kind: ReferenceKind, target: ObjectId) {
        self.referents.push((self.references.len() as u32, kind));
        self.reference(target);
    }

    /// Adds a root.
    pub fn root(&mut self, id: ObjectId, kind: RootKind, thread: Option<u32>, frame: Option<u32>) {
        self.roots.push((id.0, kind, thread, frame));
    }

    /// Adds native bytes that an object owns.
    pub fn native(&mut self, id: ObjectId, bytes: u64) {
        self.native.push((id.0, bytes));
    }

    /// Builds the graph. References to IDs without an object become placeholders with
    /// `keep_dangling`, and nulls otherwise; both are counted.
    ///
    /// # Errors
    /// Returns an error if the heap has too many objects or references for 32-bit indices.
    pub fn finish(
        self,
        mut classes: Vec<Class>,
        class_objects: Vec<(ObjectId, ClassIndex)>,
        contents: Box<dyn Contents>,
        mut facts: DumpFacts,
        keep_dangling: bool,
    ) -> Result<HeapGraph, BuildError> {
        let most = MAX_COUNT as u64;
        if let Some(what) = self.too_large {
            return Err(BuildError::TooLarge { what, most });
        }
        let mut ids = IdsBuilder::new();
        self.ids.iter().for_each(|id| ids.insert(ObjectId(id)));
        let own = ids.finish();
        facts.losses.repeated_objects += (self.ids.len() - own.len()) as u64;
        let (mut targets, missing) = self.references.resolved(&own);
        facts.losses.dangling_references += missing.len() as u64;
        let ids = match keep_dangling && !missing.is_empty() {
            true => with_placeholders(own, &missing, &mut targets),
            false => own,
        };
        if ids.len() > MAX_COUNT {
            let what = "objects";
            return Err(BuildError::TooLarge { what, most });
        }
        if classes.is_empty() && !ids.is_empty() {
            classes.push(Class::default());
        }
        let taken_out = taken_out(&self.referents, &mut targets);
        let mut graph = HeapGraph {
            class_of: ClassColumn::from(Vec::new()),
            shallow: ShallowSizes::default(),
            native: Vec::new(),
            heaps: self.heaps,
            only_heap: HeapKind::Unknown,
            starts: Positions::default(),
            targets,
            referents: Vec::new(),
            classes,
            roots: Vec::new(),
            placeholders: Vec::new(),
            class_objects: Vec::new(),
            first_named: Vec::new(),
            contents,
            facts,
            ids,
        };
        let mut starts = self.starts;
        starts.push(graph.targets.len() as u32);
        let came = Came {
            ids: self.ids,
            class_of: self.class_of,
            shallow: self.shallow,
            starts,
        };
        sort(&mut graph, came, &taken_out);
        if let Some(&first) = graph.heaps.first()
            && graph.heaps.iter().all(|&heap| heap == first)
        {
            graph.heaps = Vec::new();
            graph.only_heap = first;
        }
        for (id, kind, thread, frame) in self.roots {
            match graph.ids.find(ObjectId(id)) {
                Some(object) => graph.roots.push(Root {
                    object,
                    kind,
                    thread,
                    frame,
                }),
                None => graph.facts.losses.dangling_roots += 1,
            }
        }
        graph.roots.sort_by_key(|root| root.object);
        let found = self.native.into_iter().filter(|n| n.1 != 0);
        graph.native = found
            .filter_map(|(id, bytes)| Some((graph.ids.find(ObjectId(id))?, bytes)))
            .collect();
        graph.native.sort_unstable();
        graph.native.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 = kept.1.saturating_add(next.1);
            }
            same
        });
        for (id, class) in class_objects {
            if let Some(object) = graph.ids.find(id) {
                graph.class_objects.push((object, class));
                graph.classes[class.at()].object = Some(object);
            }
        }
        graph.class_objects.sort_unstable();
        graph.class_objects.dedup_by_key(|c| c.0);
        Ok(graph)
    }
}

/// Returns the IDs together with the missing ones; renumbers the targets.
fn with_placeholders(own: Ids, missing: &[Missing], targets: &mut [ObjectIndex]) -> Ids {
    let mut all = IdsBuilder::new();
    own.iter().for_each(|id| all.insert(id));
    missing.iter().for_each(|m| all.insert(ObjectId(m.id)));
    let all = all.finish();
    let moved: Vec<ObjectIndex> = own.iter().filter_map(|id| all.find(id)).collect();
    for target in targets.iter_mut().filter(|t| **t != ObjectIndex::NONE) {
        *target = moved[target.at()];
    }
    for m in missing {
        targets[m.at] = all.find(ObjectId(m.id)).unwrap_or(ObjectIndex::NONE);
    }
    all
}

/// A referent removed from the references.
struct TakenOut {
    /// Index of the referent among the references.
    at: u32,
    kind: ReferenceKind,
    target: ObjectIndex,
}

/// Replaces the referents by nulls and returns those that were not null.
fn taken_out(referents: &[(u32, ReferenceKind)], targets: &mut [ObjectIndex]) -> Vec<TakenOut> {
    let taken = referents.iter().map(|&(at, kind)| TakenOut {
        at,
        kind,
        target: std::mem::replace(&mut targets[at as usize], ObjectIndex::NONE),
    });
    taken.filter(|t| t.target != ObjectIndex::NONE).collect()
}

/// Columns in the order of arrival.
struct Came {
    ids: IdColumn,
    class_of: Vec<ClassIndex>,
    shallow: ShallowSizes,
    starts: Vec<u32>,
}

/// Sorts the columns from the order of arrival into the order of IDs.
fn sort(graph: &mut HeapGraph, came: Came, taken_out: &[TakenOut]) {
    let referent = |owner: usize, taken: &TakenOut| Referent {
        owner: ObjectIndex(owner as u32),
        target: taken.target,
        kind: taken.kind,
    };
    // Objects with ascending IDs are numbered in the order of arrival.
    let sorted = came.ids.len() == graph.ids.len() && came.ids.iter().is_sorted();
    if sorted && came.starts[0] == 0 {
        let mut owner = 0;
        for taken in taken_out {
            while came.starts[owner + 1] <= taken.at {
                owner += 1;
            }
            graph.referents.push(referent(owner, taken));
        }
        graph.class_of = came.class_of.into();
        graph.shallow = came.shallow;
        graph.starts = Positions::from(&came.starts[..]);
        return;
    }
    // The last object of an ID is used; placeholders have no source.
    let mut source = vec![u32::MAX; graph.ids.len()];
    for (at, id) in came.ids.iter().enumerate() {
        if let Some(index) = graph.ids.find(ObjectId(id)) {
            source[index.at()] = at as u32;
        }
    }
    graph.class_of = gathered(&came.class_of, &source, ClassIndex(0)).into();
    let shallow = |&at: &u32| match at {
        u32::MAX => 0,
        at => came.shallow.get(ObjectIndex(at)),
    };
    graph.shallow = source.iter().map(shallow).collect();
    graph.heaps = gathered(&graph.heaps, &source, HeapKind::Unknown);
    let mut starts = Vec::with_capacity(source.len() + 1);
    let mut targets = Vec::with_capacity(graph.targets.len());
    for (index, &at) in source.iter().enumerate() {
        let object = ObjectIndex(index as u32);
        starts.push(targets.len() as u32);
        if at == u32::MAX {
            graph.placeholders.push(object);
            continue;
        }
        let (from, to) = (came.starts[at as usize], came.starts[at as usize + 1]);
        targets.extend_from_slice(&graph.targets[from as usize..to as usize]);
        let first = taken_out.partition_point(|t| t.at < from);
        let own = taken_out[first..].iter().take_while(|t| t.at < to);
        graph
            .referents
            .extend(own.map(|taken| referent(index, taken)));
    }
    starts.push(targets.len() as u32);
    graph.starts = Positions::from(&starts[..]);
    graph.targets = targets;
}

/// Returns a column in the order of `source`; `none` for rows without a source.
fn gathered<T: Copy>(column: &[T], source: &[u32], none: T) -> Vec<T> {
    let value = |&at: &u32| column.get(at as usize).copied().unwrap_or(none);
    source.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::super::graph::NoContents;
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn objects_in_any_order_are_numbered_by_id_and_referents_set_apart() {
        let mut builder = GraphBuilder::default();
        let new = |id, shallow_bytes| NewObject {
            id: ObjectId(id),
            class: ClassIndex(0),
            shallow_bytes,
            heap: HeapKind::App,
        };
        builder.object(new(30, 1 << 33));
        builder.reference(ObjectId(10));
        builder.reference(ObjectId(0));
        builder.referent(ReferenceKind::Weak, ObjectId(20));
        builder.object(new(10, 8));
        builder.object(new(20, 8));
        builder.reference(ObjectId(99));
        builder.root(ObjectId(30), RootKind::JniGlobal, None, None);
        builder.root(ObjectId(98), RootKind::JniGlobal, None, None);
        let classes = vec![Class::default()];
        let facts = DumpFacts::default();
        let graph = builder
            .finish(classes, Vec::new(), Box::new(NoContents), facts, true)
            .expect("it is small");
        assert_eq!(graph.len(), 4, "with a placeholder for 99");
        let largest = graph.find(ObjectId(30)).expect("it is there");
        assert_eq!(largest, ObjectIndex(2));
        assert_eq!(graph.shallow_bytes(largest), 1 << 33);
        let none = ObjectIndex::NONE;
        assert_eq!(graph.references(largest), [ObjectIndex(0), none, none]);
        assert_eq!(graph.referents_of(largest).len(), 1);
        assert!(graph.is_placeholder(ObjectIndex(3)));
        assert_eq!(graph.facts.losses.dangling_references, 1);
        assert_eq!(graph.facts.losses.dangling_roots, 1);
        assert_eq!(graph.root_kind(largest), Some(RootKind::JniGlobal));
    }

    /// Checks a heap against a map from IDs: built in random order, with repeated IDs.
    fn built_as_told(random: &mut fastrand::Rng, objects: usize, spacing: u64, base: u64) {
        let id = |n: u64| base + n * spacing;
        let mut told: BTreeMap<u64, (NewObject, Vec<u64>, Option<u64>)> = BTreeMap::new();
        let mut order: Vec<u64> = (0..objects as u64).collect();
        if random.bool() {
            random.shuffle(&mut order);
            order.extend_from_within(..objects / 7);
        }
        let keep = random.bool();
        let mut builder = GraphBuilder::default();
        let mut missing = 0;
        for n in order {
            let object = NewObject {
                id: ObjectId(id(n)),
                class: ClassIndex(random.u32(0..3)),
                shallow_bytes: [8, u64::from(u32::MAX), 1 << 40][random.usize(0..3)],
                heap: [HeapKind::App, HeapKind::Zygote][random.usize(0..2)],
            };
            builder.object(object);
            let beyond = random.usize(0..2) as u64 * 3;
            let mut references = Vec::new();
            for _ in 0..random.usize(0..5) {
                let to = random.u64(0..objects as u64 + beyond);
                let to = if random.u8(0..5) == 0 { 0 } else { id(to) };
                missing += u64::from(to >= id(objects as u64));
                references.push(to);
                builder.reference(ObjectId(to));
            }
            let referent = random.bool().then(|| id(random.u64(0..objects as u64)));
            if let Some(target) = referent {
                builder.referent(ReferenceKind::Soft, ObjectId(target));
            }
            told.insert(id(n), (object, references, referent));
        }
        let classes = vec![Class::default(); 3];
        let facts = DumpFacts::default();
        let graph = builder.finish(classes, Vec::new(), Box::new(NoContents), facts, keep);
        let graph = graph.expect("it is small");
        assert_eq!(graph.facts.losses.dangling_references, missing);
        assert_eq!(graph.len() - graph.placeholders.len(), told.len());
        for object in graph.objects().filter(|&o| !graph.is_placeholder(o)) {
            let (new, references, referent) = &told[&graph.id(object).0];
            assert_eq!(graph.class_of(object), new.class);
            assert_eq!(graph.shallow_bytes(object), new.shallow_bytes);
            assert_eq!(graph.heap_of(object), new.heap);
            let expected = references.iter().map(|&to| match to {
                0 => ObjectIndex::NONE,
                to if !keep && to >= id(objects as u64) => ObjectIndex::NONE,
                to => graph.find(ObjectId(to)).expect("it is there"),
            });
            let expected: Vec<ObjectIndex> = expected.collect();
            let held = graph.references(object);
            assert_eq!(held[..references.len()], expected);
            let rest = &held[references.len()..];
            assert!(rest.iter().all(|&t| t == ObjectIndex::NONE));
            let referents = graph
                .referents_of(object)
                .iter()
                .map(|r| graph.id(r.target).0);
            assert!(referents.eq(*referent));
        }
    }

    #[test]
    fn what_was_told_is_built_whatever_the_order_and_the_width_of_ids() {
        let mut random = fastrand::Rng::with_seed(3);
        for round in 0..60 {
            let (spacing, base) = [(1, 1), (8, 1 << 20), (1 << 21, 9), (8, 1 << 40)][round % 4];
            let objects = if round < 4 { 60_000 } else { 50 };
            built_as_told(&mut random, objects, spacing, base);
        }
    }
}
