//! Planted leaks of a heap: the reference for leak analyses of its dumps. The retained size of an
//! object is computed by removing it and counting the objects that become unreachable.

use std::collections::HashSet;

use super::heap::{Body, JavaHeap, Kind, Obj};

/// A planted leak or waste while the heap is filled.
#[derive(Debug)]
pub(super) struct Plant {
    what: &'static str,
    held_by: &'static str,
    objects: Vec<Obj>,
    /// The single object that holds all of them, if any.
    holder: Option<Obj>,
}

/// Returns the field that holds a kind of plant; empty for garbage.
fn held_by(what: &str) -> &'static str {
    match what {
        "duplicate-strings" => "com.example.app.feed.FeedAdapter.articles",
        "destroyed-activity" => "com.example.app.ui.Navigator.previous",
        "removed-fragment" => "com.example.app.feed.FeedPresenter$Refresh.fragment",
        "listener-list" | "recreated-activities" => "com.example.app.telemetry.Telemetry.listeners",
        "detached-view" => "com.example.app.ui.ShareSheet.last",
        "bitmap-cache" => "com.example.app.image.ThumbnailCache.bitmaps",
        "sparse-map" => "com.example.app.stats.Counter.counts",
        "stopped-service" => "android.location.LocationManager.mListeners",
        "garbage" => "",
        _ => unreachable!("no field for the plant {what}"),
    }
}

impl Plant {
    /// Creates a plant of a kind.
    pub(super) fn new(what: &'static str, objects: Vec<Obj>) -> Plant {
        Plant {
            what,
            held_by: held_by(what),
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
}

/// Method of a dump of the Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaDumpKind {
    /// Packets of `android.java_hprof`.
    HeapGraph,
    /// `am dumpheap`.
    Hprof,
}

/// Contents of a dump of a Java heap.
#[derive(Debug, Clone, PartialEq)]
pub struct JavaDumpTruth {
    /// Method of the dump.
    pub kind: JavaDumpKind,
    /// PID of the process.
    pub pid: u32,
    /// Name of the process.
    pub process: String,
    /// Time on the phone's boot clock, in nanoseconds.
    pub boot_ns: u64,
    /// Path of the HPROF on the phone; empty for a heap graph.
    pub path: String,
    /// Number of objects, including unreachable ones. An HPROF has more: an array for the
    /// characters of each string, and one for the objects that the runtime holds for each class
    /// loader and dex cache.
    pub objects: u64,
    /// Size of all objects in bytes: on ART's heap, not rounded; in an HPROF, which has no sizes of
    /// arrays, the size of their elements.
    pub shallow_bytes: u64,
    /// Number of reachable objects. Soft references are followed; weak, phantom and finalizer
    /// references are not.
    pub reachable_objects: u64,
    /// Size of the reachable objects in bytes.
    pub reachable_bytes: u64,
    /// Native bytes that registries record for objects.
    pub native_bytes: u64,
    /// Planted leaks; empty except in `com.example.app`.
    pub planted: Vec<PlantTruth>,
}

/// One planted leak or waste.
#[derive(Debug, Clone, PartialEq)]
pub struct PlantTruth {
    /// Kind of the plant: `destroyed-activity`, `listener-list`, `bitmap-cache` …
    pub what: &'static str,
    /// Field that holds it, with the names in source.
    pub held_by: &'static str,
    /// Class of the objects as named in the dump; empty if they have several classes.
    pub class: String,
    /// IDs of the objects in an HPROF; those of a heap graph are a quarter of them.
    pub addresses: Vec<u64>,
    /// Address of the one object whose removal would free all of them: the collection that holds
    /// them, or the object itself if there is only one.
    pub keeper: Option<u64>,
    /// Number of objects.
    pub count: u64,
    /// Shallow size of these objects in bytes.
    pub shallow_bytes: u64,
    /// Native bytes recorded for these objects themselves.
    pub native_bytes: u64,
    /// Retained size of the keeper, or of all objects together if there is no keeper.
    pub retained: Retained,
}

/// Objects that would be freed together with an object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Retained {
    /// Number of objects, including the object itself.
    pub objects: u64,
    /// Size of the objects in bytes.
    pub bytes: u64,
    /// Native bytes recorded for the objects.
    pub native_bytes: u64,
}

impl JavaHeap {
    /// Appends the objects that `object` refers to, without weak, phantom and finalizer references.
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
                let weak = matches!(
                    kind,
                    Kind::WeakReference | Kind::PhantomReference | Kind::FinalizerReference
                );
                for (_, field, value) in self.values(object) {
                    let skip = weak && &*field.name == "referent";
                    out.extend(value.object().filter(|_| !skip));
                }
            }
            Body::References(items) => out.extend(items.iter().flatten()),
            Body::String(_) | Body::Primitives(..) => {}
        }
        out.extend(self.held(object));
    }

    /// Returns the objects that only the runtime holds for an object: the classes of a loader.
    pub(super) fn held(&self, object: Obj) -> &[Obj] {
        let mut holders = self.internals.iter();
        let held = holders.find(|(holder, _)| *holder == object);
        held.map_or(&[], |(_, all)| all)
    }

    /// Returns which objects are reachable from the roots without passing `without`.
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

    /// Returns the native bytes by object: the registry's size for each cleaner that is still
    /// linked.
    pub(super) fn natives(&self) -> Vec<(Obj, u64)> {
        let long = |object, field| Some(self.field(object, field)?.number()? as u64 & !1);
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

    /// Returns the objects and bytes that a dump counts for an object.
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
                if !matches!(class, Kind::Classloader | Kind::Dexcache) {
                    return (1, bytes);
                }
                (2, bytes + self.held(object).len() as u64 * 4)
            }
            Body::Class(_) => (1, bytes),
        }
    }

    /// Computes the truth about a dump of this heap, except its origin.
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
