//! What was planted in a heap: the yardstick for whoever looks for leaks in its dumps. Retained
//! sizes are found by leaving the object out and counting what can no longer be reached.

use std::collections::HashSet;

use super::heap::{Body, JavaHeap, Kind, Obj, Value};

/// Something planted, while the heap is filled.
#[derive(Debug)]
pub(super) struct Plant {
    what: &'static str,
    held_by: &'static str,
    objects: Vec<Obj>,
    /// What holds all of them, where it is one object.
    holder: Option<Obj>,
}

impl Plant {
    pub(super) fn new(what: &'static str, held_by: &'static str, objects: Vec<Obj>) -> Plant {
        Plant {
            what,
            held_by,
            objects,
            holder: None,
        }
    }

    pub(super) fn with_holder(self, holder: Obj) -> Plant {
        Plant {
            holder: Some(holder),
            ..self
        }
    }

    pub(super) fn moved(&mut self, moved: &[Obj]) {
        let all = self.objects.iter_mut().chain(&mut self.holder);
        all.for_each(|o| *o = moved[o.0 as usize]);
    }
}

/// How a dump of the Java heap was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaDumpKind {
    /// Packets of `android.java_hprof`.
    HeapGraph,
    /// `am dumpheap`.
    Hprof,
}

/// What a dump of a Java heap holds.
#[derive(Debug, Clone, PartialEq)]
pub struct JavaDumpTruth {
    /// How it was made.
    pub kind: JavaDumpKind,
    /// The process.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// When, on the phone's boot clock, nanoseconds.
    pub boot_ns: u64,
    /// Where an HPROF was written; empty for a heap graph.
    pub path: String,
    /// Objects, those that nothing holds included. An HPROF has more: an array for the characters
    /// of each string, and one for what the runtime holds of each class loader and dex cache.
    pub objects: u64,
    /// Their bytes: on ART's heap, not rounded; in an HPROF, where it has no sizes of arrays, those
    /// of their elements.
    pub shallow_bytes: u64,
    /// Objects that roots hold, soft references followed, weak, phantom and finalizer ones not.
    pub reachable_objects: u64,
    /// Their bytes.
    pub reachable_bytes: u64,
    /// Native bytes that registries note for objects.
    pub native_bytes: u64,
    /// What was planted; empty but in `com.example.app`.
    pub planted: Vec<PlantTruth>,
}

/// One planted leak or waste.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantTruth {
    /// What it is: `destroyed-activity`, `listener-list`, `bitmap-cache` …
    pub what: &'static str,
    /// The field that holds it, with the names of the source.
    pub held_by: &'static str,
    /// Class of the objects as the dump names it; empty where they are of several.
    pub class: String,
    /// Its objects' ids in an HPROF; those of a heap graph are a quarter of them.
    pub addresses: Vec<u64>,
    /// The address of the one object whose going would free all of it: the collection that holds
    /// them, or the object itself where it is one.
    pub keeper: Option<u64>,
    /// How many.
    pub count: u64,
    /// Bytes of these objects themselves.
    pub shallow_bytes: u64,
    /// Native bytes noted for these objects themselves.
    pub native_bytes: u64,
    /// What the keeper retains; where there is none, what all of them together do.
    pub retained: Retained,
}

/// What would go if something went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retained {
    /// Objects, itself included.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Native bytes noted for them.
    pub native_bytes: u64,
}

impl JavaHeap {
    /// Objects that one refers to, weak, phantom and finalizer references left out.
    fn strong(&self, object: Obj, out: &mut Vec<Obj>) {
        let of = self.object(object);
        match &of.body {
            Body::Class(class) => {
                let statics = &self.class(*class).statics;
                out.extend(statics.iter().filter_map(|(_, v)| v.object()));
                out.extend(
                    self.class_values(*class)
                        .iter()
                        .filter_map(|(_, v)| v.object()),
                );
            }
            Body::Instance(_) => {
                let kind = self.class(of.class).kind;
                let weak = matches!(kind, Kind::Weak | Kind::Phantom | Kind::Finalizer);
                for (_, field, value) in self.values(object) {
                    let skip = weak && &*field.name == "referent";
                    out.extend(value.object().filter(|_| !skip));
                }
            }
            Body::References(items) => out.extend(items.iter().flatten()),
            Body::String(_) | Body::Primitives(..) => {}
        }
        let held = self
            .internals
            .iter()
            .filter(|(holder, _)| *holder == object);
        held.for_each(|(_, classes)| out.extend(classes));
    }

    /// What can be reached from the roots without `without`.
    pub(super) fn reached(&self, without: &HashSet<Obj>) -> Vec<bool> {
        let mut seen = vec![false; self.objects.len()];
        let mut todo: Vec<Obj> = self.roots.iter().map(|r| r.object).collect();
        let mut next = Vec::new();
        while let Some(object) = todo.pop() {
            let place = object.0 as usize;
            if seen[place] || without.contains(&object) {
                continue;
            }
            seen[place] = true;
            self.strong(object, &mut next);
            todo.append(&mut next);
        }
        seen
    }

    /// Native bytes by object: of each cleaner that is still linked, its registry's size.
    pub(super) fn natives(&self) -> Vec<(Obj, u64)> {
        let long = |object, field| match self.field(object, field) {
            Some(Value::Long(n)) => Some(n as u64 & !1),
            _ => None,
        };
        let follow = |object, field| self.field(object, field)?.object();
        let cleaners = self
            .all()
            .filter(|o| &*self.class(self.object(*o).class).name == "sun.misc.Cleaner");
        cleaners
            .filter_map(|cleaner| {
                let referent = follow(cleaner, "referent")?;
                let thunk = follow(cleaner, "thunk")?;
                let registry = follow(thunk, "this$0")?;
                Some((referent, long(registry, "size")?))
            })
            .collect()
    }

    /// What a dump counts for an object: objects and their bytes.
    fn counted(&self, object: Obj, kind: JavaDumpKind) -> (u64, u64) {
        let bytes = self.bytes(object);
        if kind == JavaDumpKind::HeapGraph {
            return (1, bytes);
        }
        let of = self.object(object);
        match &of.body {
            Body::String(_) => (2, bytes),
            Body::References(items) => (1, items.len() as u64 * 4),
            Body::Primitives(_, data) => (1, data.len() as u64),
            Body::Instance(_) => {
                let class = self.class(of.class).kind;
                if !matches!(class, Kind::ClassLoader | Kind::DexCache) {
                    return (1, bytes);
                }
                let held = self.internals.iter().find(|(holder, _)| *holder == object);
                let held = held.map_or(0, |(_, all)| all.len() as u64);
                (2, bytes + held * 4)
            }
            Body::Class(_) => (1, bytes),
        }
    }

    /// Everything about a dump of this heap but how it came about.
    pub(super) fn truth(&self, plants: &[Plant], kind: JavaDumpKind) -> Measured {
        let natives = self.natives();
        let mut native = vec![0; self.objects.len()];
        for (object, bytes) in &natives {
            native[object.0 as usize] += bytes;
        }
        let sum = |which: &dyn Fn(usize) -> bool| {
            let mut sum = Retained::default();
            for object in self.all().filter(|o| which(o.0 as usize)) {
                let (objects, bytes) = self.counted(object, kind);
                sum.objects += objects;
                sum.bytes += bytes;
                sum.native_bytes += native[object.0 as usize];
            }
            sum
        };
        let whole = self.reached(&HashSet::new());
        let planted = plants
            .iter()
            .map(|plant| {
                let own: HashSet<Obj> = plant.objects.iter().copied().collect();
                let out = plant.holder.map_or(own.clone(), |h| HashSet::from([h]));
                let rest = self.reached(&out);
                let reached = plant.objects.first().is_some_and(|o| whole[o.0 as usize]);
                let itself = sum(&|o| own.contains(&Obj(o as u32)));
                let mut classes = plant.objects.iter().map(|o| self.object(*o).class);
                let first = classes.next().filter(|c| classes.all(|other| other == *c));
                let one = plant.objects.first().filter(|_| plant.objects.len() == 1);
                let keeper = plant.holder.or(one.copied());
                PlantTruth {
                    what: plant.what,
                    held_by: plant.held_by,
                    class: first.map_or_else(String::new, |c| self.class(c).name.to_string()),
                    addresses: plant
                        .objects
                        .iter()
                        .map(|o| u64::from(self.object(*o).address))
                        .collect(),
                    keeper: keeper.map(|o| u64::from(self.object(o).address)),
                    count: plant.objects.len() as u64,
                    shallow_bytes: itself.bytes,
                    native_bytes: itself.native_bytes,
                    retained: if reached {
                        sum(&|o| whole[o] && !rest[o])
                    } else {
                        itself
                    },
                }
            })
            .collect();
        Measured {
            all: sum(&|_| true),
            reachable: sum(&|o| whole[o]),
            planted,
        }
    }
}

/// Sizes of a heap.
pub(super) struct Measured {
    pub(super) all: Retained,
    pub(super) reachable: Retained,
    pub(super) planted: Vec<PlantTruth>,
}
