//! A graph from objects that come in any order, with references by id. Readers that can do
//! better (two passes over a mapped file) fill the columns themselves.

use super::class::Class;
use super::contents::Contents;
use super::follow::ReferenceKind;
use super::graph::{DumpFacts, HeapGraph, HeapKind, Referent};
use super::id_set::Ids;
use super::ids::{ClassIndex, ObjectId, ObjectIndex};
use super::root::{Root, RootKind};
use std::collections::BTreeMap;

/// Why there is no graph.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// Indices have 32 bits.
    #[error("the heap has more than {most} {what}")]
    TooLarge {
        /// Objects or references.
        what: &'static str,
        /// What a graph holds.
        most: u64,
    },
}

/// An object as a reader found it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewObject {
    /// Its id in the dump.
    pub id: ObjectId,
    /// Its class, by index into what [`GraphBuilder::finish`] is given.
    pub class: ClassIndex,
    /// Shallow size in bytes.
    pub shallow_bytes: u64,
    /// Its heap.
    pub heap: HeapKind,
}

/// A reference as a reader found it.
#[derive(Debug, Clone, Copy)]
enum NewReference {
    Plain(u64),
    Referent(ReferenceKind, u64),
}

/// Gathers objects, then makes a graph of them.
#[derive(Default)]
pub struct GraphBuilder {
    objects: Vec<NewObject>,
    /// Where each object's references begin.
    starts: Vec<usize>,
    references: Vec<NewReference>,
    roots: Vec<(u64, RootKind, Option<u32>, Option<u32>)>,
    native: Vec<(u64, u64)>,
}

impl GraphBuilder {
    /// Adds an object; references added next are its own. One that comes again replaces the
    /// earlier.
    pub fn object(&mut self, object: NewObject) {
        self.objects.push(object);
        self.starts.push(self.references.len());
    }

    /// Adds a reference of the last object; id 0 is null.
    pub fn reference(&mut self, target: ObjectId) {
        self.references.push(NewReference::Plain(target.0));
    }

    /// Adds the `referent` of the last object, a `java.lang.ref.Reference`.
    pub fn referent(&mut self, kind: ReferenceKind, target: ObjectId) {
        self.references.push(NewReference::Referent(kind, target.0));
    }

    /// Adds a root.
    pub fn root(&mut self, id: ObjectId, kind: RootKind, thread: Option<u32>, frame: Option<u32>) {
        self.roots.push((id.0, kind, thread, frame));
    }

    /// Adds native bytes that an object owns.
    pub fn native(&mut self, id: ObjectId, bytes: u64) {
        self.native.push((id.0, bytes));
    }

    /// The graph. References to ids that no object has become placeholders where
    /// `keep_dangling`, else nulls; both are counted.
    ///
    /// # Errors
    /// Where indices of 32 bits do not do.
    pub fn finish(
        self,
        classes: Vec<Class>,
        class_objects: Vec<(ObjectId, ClassIndex)>,
        contents: Box<dyn Contents>,
        mut facts: DumpFacts,
        keep_dangling: bool,
    ) -> Result<HeapGraph, BuildError> {
        let mut all: Vec<u64> = self.objects.iter().map(|o| o.id.0).collect();
        let own: Ids = all.iter().copied().collect();
        facts.losses.repeated_objects += (all.len() - own.len()) as u64;
        let dangling = |target: u64| target != 0 && own.find(ObjectId(target)).is_none();
        let targets = self.references.iter().map(|r| match *r {
            NewReference::Plain(id) | NewReference::Referent(_, id) => id,
        });
        let missing: Vec<u64> = targets.filter(|&id| dangling(id)).collect();
        facts.losses.dangling_references += missing.len() as u64;
        let ids = if keep_dangling {
            all.extend(&missing);
            all.into_iter().collect()
        } else {
            own.clone()
        };
        let most = u64::from(u32::MAX) - 1;
        let too_large = |what| BuildError::TooLarge { what, most };
        if ids.len() as u64 > most {
            return Err(too_large("objects"));
        }
        if self.references.len() as u64 > most {
            return Err(too_large("references"));
        }
        // The last object of an id wins.
        let mut source = vec![usize::MAX; ids.len()];
        for (at, object) in self.objects.iter().enumerate() {
            if let Some(index) = ids.find(object.id) {
                source[index.at()] = at;
            }
        }
        let mut graph = HeapGraph {
            class_of: Vec::with_capacity(ids.len()),
            shallow: Vec::with_capacity(ids.len()),
            huge: BTreeMap::new(),
            native: Vec::new(),
            heaps: Vec::with_capacity(ids.len()),
            only_heap: HeapKind::Unknown,
            starts: Vec::with_capacity(ids.len() + 1),
            targets: Vec::new(),
            referents: Vec::new(),
            classes,
            roots: Vec::new(),
            placeholders: Vec::new(),
            class_objects: Vec::new(),
            contents,
            facts,
            ids,
        };
        for (index, &at) in source.iter().enumerate() {
            let object = ObjectIndex(index as u32);
            graph.starts.push(graph.targets.len() as u32);
            let Some(new) = self.objects.get(at) else {
                graph.placeholders.push(object);
                graph.class_of.push(ClassIndex(0));
                graph.shallow.push(0);
                graph.heaps.push(HeapKind::Unknown);
                continue;
            };
            graph.class_of.push(new.class);
            graph.heaps.push(new.heap);
            match u32::try_from(new.shallow_bytes) {
                Ok(bytes) if bytes < u32::MAX => graph.shallow.push(bytes),
                _ => {
                    graph.shallow.push(u32::MAX);
                    graph.huge.insert(object, new.shallow_bytes);
                }
            }
            let end = self.starts.get(at + 1).copied();
            let end = end.unwrap_or(self.references.len());
            for reference in &self.references[self.starts[at]..end] {
                let (kind, id) = match *reference {
                    NewReference::Plain(id) => (None, id),
                    NewReference::Referent(kind, id) => (Some(kind), id),
                };
                let target = graph.ids.find(ObjectId(id)).filter(|_| id != 0);
                let plain = match (kind, target) {
                    (Some(kind), Some(target)) => {
                        graph.referents.push(Referent {
                            owner: object,
                            target,
                            kind,
                        });
                        ObjectIndex::NONE
                    }
                    (_, target) => target.unwrap_or(ObjectIndex::NONE),
                };
                graph.targets.push(plain);
            }
        }
        graph.starts.push(graph.targets.len() as u32);
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
        let mut native: BTreeMap<ObjectIndex, u64> = BTreeMap::new();
        for (id, bytes) in self.native {
            if let Some(object) = graph.ids.find(ObjectId(id)).filter(|_| bytes != 0) {
                let sum = native.entry(object).or_default();
                *sum = sum.saturating_add(bytes);
            }
        }
        graph.native = native.into_iter().collect();
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

#[cfg(test)]
mod tests {
    use super::super::contents::NoContents;
    use super::*;

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
}
