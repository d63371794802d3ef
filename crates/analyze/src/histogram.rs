//! Sums over objects by a common property: class, package, superclass, heap, loader, or kind of GC
//! root.
//!
//! The retained size of a group is the sum over those of its objects that no other object of the
//! group dominates. Nothing is counted twice, and a linked list counts once. This is Perfetto's
//! `dominated_size` of a class.

use super::filter::{Filter, ObjectFilter};
use super::label;
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, HeapGraph, HeapKind, ObjectIndex, Reachable, Retained, RootKind,
    ShortestPaths,
};
use std::collections::HashMap;

/// Sums over objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Number of objects.
    pub count: u64,
    /// Shallow bytes.
    pub shallow_bytes: u64,
    /// Native bytes that the objects own.
    pub native_bytes: u64,
    /// Retained size, including the objects themselves; 0 if unknown.
    pub retained: Retained,
}

impl Sums {
    /// Returns the sums of all reachable objects.
    pub fn of_reachable(dominators: &Dominators) -> Sums {
        let retained = dominators.total();
        Sums {
            count: retained.count,
            shallow_bytes: retained.bytes,
            native_bytes: retained.native_bytes,
            retained,
        }
    }

    /// Returns the sums of all unreachable objects, without retained sizes. `reachable` are the
    /// sums of the others.
    pub fn of_unreachable(graph: &HeapGraph, reachable: &Sums) -> Sums {
        let sum = |sizes: &mut dyn Iterator<Item = u64>| sizes.fold(0, u64::saturating_add);
        let count = (graph.len() - graph.placeholders.len()) as u64;
        // Placeholders have no shallow size.
        let shallow_bytes = sum(&mut graph.objects().map(|o| graph.shallow_bytes(o)));
        let natives = graph.natives().iter();
        let dumped = natives.filter(|native| !graph.is_placeholder(native.0));
        let native_bytes = sum(&mut dumped.map(|native| native.1));
        Sums {
            count: count.saturating_sub(reachable.count),
            shallow_bytes: shallow_bytes.saturating_sub(reachable.shallow_bytes),
            native_bytes: native_bytes.saturating_sub(reachable.native_bytes),
            ..Sums::default()
        }
    }

    /// Adds an object.
    #[inline]
    pub fn add(&mut self, graph: &HeapGraph, object: ObjectIndex) {
        self.count += 1;
        self.shallow_bytes = self
            .shallow_bytes
            .saturating_add(graph.shallow_bytes(object));
        self.native_bytes = self.native_bytes.saturating_add(graph.native_bytes(object));
    }
}

/// Set of objects to count.
#[derive(Clone, Copy)]
pub enum ObjectScope<'a> {
    /// Reachable objects, with retained sizes.
    Reachable(&'a Dominators),
    /// Unreachable objects.
    Unreachable(&'a Reachable),
    /// All objects, with retained sizes of the reachable ones.
    All(&'a Dominators),
    /// All objects, without retained sizes.
    Everything,
}

/// Property by which objects are grouped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HistogramKey {
    /// Class name.
    Class,
    /// Class name without parts that differ from run to run, for comparing dumps.
    ClassInAnyRun,
    /// Package of the class; for a class object, of the class it represents.
    Package,
    /// The class and each of its superclasses.
    Superclass,
    Heap,
    /// Loader of the class; for a class object, of the class it represents.
    Loader,
}

/// Group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// Value of the common property.
    pub name: String,
    pub sums: Sums,
}

/// Sums by group in no particular order, without empty groups.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Histogram {
    pub rows: Vec<Row>,
    /// Sums over all counted objects before any filter, each once.
    pub total: Sums,
}

/// Returns a histogram of the objects that `filter` selects.
pub fn histogram(
    graph: &HeapGraph,
    scope: ObjectScope<'_>,
    by: HistogramKey,
    filter: &Filter,
) -> Histogram {
    let filter = filter.of(graph);
    let mut groups = Groups::default();
    match by {
        HistogramKey::Class => {
            let of = classes(graph, |class| {
                Some(groups.number(label::class_name(graph, class)))
            });
            sum(graph, scope, groups, &filter, |o| {
                of[graph.class_of(o).at()]
            })
        }
        HistogramKey::ClassInAnyRun => {
            let of = classes(graph, |class| {
                let name = label::class_name(graph, class);
                Some(groups.number(&label::without_address(name)))
            });
            sum(graph, scope, groups, &filter, |o| {
                of[graph.class_of(o).at()]
            })
        }
        HistogramKey::Package => {
            let of = classes(graph, |class| {
                Some(groups.number(label::package(graph.class(class).shown())))
            });
            let of = ClassGroups::new(graph, of, |o| {
                let name = label::class_behind(graph, o);
                name.map(|name| groups.number(label::package(name)))
            });
            sum(graph, scope, groups, &filter, |o| of.group(graph, o))
        }
        HistogramKey::Superclass => {
            let of: Vec<Vec<u32>> = (0..graph.classes().len() as u32)
                .map(|class| {
                    let line = graph.ancestry(ClassIndex(class));
                    let names = line.map(|c| groups.number(label::class_name(graph, c)));
                    let mut names: Vec<u32> = names.collect();
                    names.sort_unstable();
                    names.dedup();
                    names
                })
                .collect();
            sum(graph, scope, groups, &filter, |o| {
                of[graph.class_of(o).at()].iter().copied()
            })
        }
        HistogramKey::Heap => {
            let heap = |kind: HeapKind| match kind {
                HeapKind::Unknown => "(unknown)",
                kind => kind.name(),
            };
            const KINDS: [HeapKind; 4] = [
                HeapKind::Unknown,
                HeapKind::App,
                HeapKind::Zygote,
                HeapKind::BootImage,
            ];
            let of = KINDS.map(|kind| groups.number(heap(kind)));
            sum(graph, scope, groups, &filter, |o| {
                let at = KINDS.iter().position(|&kind| kind == graph.heap_of(o));
                at.map(|at| of[at])
            })
        }
        HistogramKey::Loader => {
            let name = |class: ClassIndex| match graph.class(class).loader {
                Some(loader) => {
                    let class = label::object_name(graph, loader);
                    format!("{class} {}", graph.id(loader))
                }
                None => "(boot)".to_owned(),
            };
            let of = classes(graph, |class| Some(groups.number(&name(class))));
            let of = ClassGroups::new(graph, of, |o| {
                graph
                    .class_behind(o)
                    .map(|class| groups.number(&name(class)))
            });
            sum(graph, scope, groups, &filter, |o| of.group(graph, o))
        }
    }
}

/// Returns a histogram by the kind of GC root at which the shortest path to each object begins.
pub fn by_root(
    graph: &HeapGraph,
    dominators: &Dominators,
    paths: &ShortestPaths,
    filter: &Filter,
) -> Histogram {
    let filter = filter.of(graph);
    let mut groups = Groups::default();
    let mut of = vec![u32::MAX; graph.len()];
    for &object in paths.order() {
        of[object.at()] = match paths.parent(object) {
            Some(parent) => of[parent.at()],
            None => {
                let kind = graph.root_kind(object).unwrap_or(RootKind::Unknown);
                groups.number(kind.in_words())
            }
        };
    }
    let scope = ObjectScope::Reachable(dominators);
    sum(graph, scope, groups, &filter, |o| {
        Some(of[o.at()]).filter(|&group| group != u32::MAX)
    })
}

/// Numbered group names.
#[derive(Default)]
struct Groups {
    names: Vec<String>,
    by_name: HashMap<String, u32>,
}

impl Groups {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.by_name.get(name) {
            return number;
        }
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), number);
        number
    }
}

fn classes<T>(graph: &HeapGraph, of: impl FnMut(ClassIndex) -> T) -> Vec<T> {
    (0..graph.classes().len() as u32)
        .map(ClassIndex)
        .map(of)
        .collect()
}

/// Groups by class, except for class objects: they have the group of the class they represent.
struct ClassGroups {
    of: Vec<Option<u32>>,
    /// Whether the objects of a class are class objects.
    is_class: Vec<bool>,
    objects: HashMap<ObjectIndex, u32>,
}

impl ClassGroups {
    fn new(
        graph: &HeapGraph,
        of: Vec<Option<u32>>,
        mut group_of: impl FnMut(ObjectIndex) -> Option<u32>,
    ) -> ClassGroups {
        let is_class = classes(graph, |class| {
            label::class_name(graph, class) == label::CLASS
        });
        let objects = graph.objects();
        let objects = objects.filter(|&o| is_class[graph.class_of(o).at()]);
        let objects = objects.filter_map(|o| Some((o, group_of(o)?))).collect();
        ClassGroups {
            of,
            is_class,
            objects,
        }
    }

    #[inline]
    fn group(&self, graph: &HeapGraph, object: ObjectIndex) -> Option<u32> {
        let class = graph.class_of(object).at();
        match self.is_class[class] {
            true => self.objects.get(&object).copied().or(self.of[class]),
            false => self.of[class],
        }
    }
}

/// Sums objects that the filter selects into their groups.
fn sum<G: IntoIterator<Item = u32>>(
    graph: &HeapGraph,
    scope: ObjectScope<'_>,
    groups: Groups,
    filter: &ObjectFilter<'_>,
    groups_of: impl Fn(ObjectIndex) -> G,
) -> Histogram {
    let mut sums = vec![Sums::default(); groups.names.len()];
    let mut total = Sums::default();
    let mut take = |object: ObjectIndex| {
        total.add(graph, object);
        if filter.takes(object) {
            for group in groups_of(object) {
                sums[group as usize].add(graph, object);
            }
        }
    };
    match scope {
        ObjectScope::Reachable(dominators) => {
            let own = |sums: &mut Sums, object| sums.add(graph, object);
            retain(dominators, filter, &mut sums, &groups_of, own);
            total = Sums::of_reachable(dominators);
        }
        ObjectScope::All(dominators) => {
            for object in graph.objects().filter(|&o| !graph.is_placeholder(o)) {
                take(object);
            }
            retain(dominators, filter, &mut sums, &groups_of, |_, _| {});
            total.retained = dominators.total();
        }
        ObjectScope::Everything => {
            for object in graph.objects().filter(|&o| !graph.is_placeholder(o)) {
                take(object);
            }
        }
        ObjectScope::Unreachable(reachable) => {
            let lost = |&o: &ObjectIndex| !reachable.contains(o) && !graph.is_placeholder(o);
            for object in graph.objects().filter(lost) {
                take(object);
            }
        }
    }
    let rows = groups.names.into_iter().zip(sums);
    let rows = rows.filter(|(_, sums)| sums.count > 0);
    Histogram {
        rows: rows.map(|(name, sums)| Row { name, sums }).collect(),
        total,
    }
}

/// Adds the retained size of each group, and by `own` what else is summed of an object.
fn retain<G: IntoIterator<Item = u32>>(
    dominators: &Dominators,
    filter: &ObjectFilter<'_>,
    sums: &mut [Sums],
    groups_of: impl Fn(ObjectIndex) -> G,
    own: impl Fn(&mut Sums, ObjectIndex),
) {
    // By group, end of the last subtree whose top is in the group.
    let mut ends = vec![0usize; sums.len()];
    for (at, (object, retained)) in dominators.iter().enumerate() {
        if !filter.takes(object) {
            continue;
        }
        for group in groups_of(object) {
            let group = group as usize;
            own(&mut sums[group], object);
            if at >= ends[group] {
                ends[group] = at + retained.count as usize;
                sums[group].retained.add(retained);
            }
        }
    }
}
