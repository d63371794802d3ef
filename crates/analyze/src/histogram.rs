//! Sums over objects by a common property: class, package, superclass, heap, loader, or kind of GC
//! root.
//!
//! The retained size of a group is the sum over those of its objects that no other object of the
//! group dominates. Nothing is counted twice, and a linked list counts once. This is Perfetto's
//! `dominated_size` of a class.

use super::filter::{Filter, ObjectFilter};
use super::label;
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, Follow, HeapGraph, HeapKind, ObjectIndex, Reachable, Retained,
    RootKind, ShortestPaths,
};
use heaptap_model::profile::index::FastHash;
use std::collections::HashMap;

/// Sums over objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Sums {
    /// Number of objects.
    pub count: u64,
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

    /// Returns the sums of the reachable objects that `filter` selects. The retained size is that of
    /// all of them together: what would be free without them.
    pub fn of_matching(
        graph: &HeapGraph,
        dominators: &Dominators,
        follow: Follow,
        filter: &Filter,
    ) -> Sums {
        let taken = filter.of(graph);
        let rest = Reachable::without(graph, follow, |object| taken.takes(object));
        let mut retained = dominators.total();
        for object in rest.objects().iter() {
            retained.count = retained.count.saturating_sub(1);
            retained.bytes = retained.bytes.saturating_sub(graph.shallow_bytes(object));
            let native = graph.native_bytes(object);
            retained.native_bytes = retained.native_bytes.saturating_sub(native);
        }
        let mut sums = Sums {
            retained,
            ..Sums::default()
        };
        let reachable = dominators.order().iter().copied();
        for object in reachable.filter(|&object| taken.takes(object)) {
            sums.add(graph, object);
        }
        sums
    }

    /// Returns the sums of all unreachable objects, without retained sizes. `reachable` are the
    /// sums of the others.
    pub fn of_unreachable(graph: &HeapGraph, reachable: &Sums) -> Sums {
        let count = (graph.len() - graph.placeholders.len()) as u64;
        // Placeholders have no shallow size.
        let shallow_bytes = graph.shallow.total();
        let natives = graph.natives().iter();
        let dumped = natives.filter(|native| !graph.is_placeholder(native.0));
        let native_bytes = dumped.map(|native| native.1).fold(0, u64::saturating_add);
        Sums {
            count: count.saturating_sub(reachable.count),
            shallow_bytes: shallow_bytes.saturating_sub(reachable.shallow_bytes),
            native_bytes: native_bytes.saturating_sub(reachable.native_bytes),
            ..Sums::default()
        }
    }

    /// Adds other sums, without retained sizes, which overlap.
    pub fn add_sizes(&mut self, other: &Sums) {
        self.count += other.count;
        self.shallow_bytes = self.shallow_bytes.saturating_add(other.shallow_bytes);
        self.native_bytes = self.native_bytes.saturating_add(other.native_bytes);
    }

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
    let mut all = histograms(graph, scope, &[by], filter);
    all.pop().unwrap_or_default()
}

/// Returns several histograms of the same objects, in one pass over them.
pub fn histograms(
    graph: &HeapGraph,
    scope: ObjectScope<'_>,
    keys: &[HistogramKey],
    filter: &Filter,
) -> Vec<Histogram> {
    let mut groupings = Vec::with_capacity(keys.len());
    let mut count = 0;
    for &by in keys {
        groupings.push(Grouping::new(graph, by, count));
        count += groupings.last().map_or(0, |of| of.names.len() as u32);
    }
    let mut all = Groupings::new(graph, &groupings);
    // Groups of one key are hardly ever equal.
    if keys.len() > 1 {
        all.places.join_equal(count);
    }
    if let ObjectScope::Reachable(_) = scope
        && filter.takes_all()
    {
        all.places.take_common();
    }
    let names = groupings.iter_mut();
    let names = names.map(|of| std::mem::take(&mut of.names)).collect();
    let place_of = |object| Some(all.place(graph, object));
    sum(
        graph,
        scope,
        names,
        &filter.of(graph),
        &all.places,
        place_of,
    )
}

/// Maximum number of classes on the way up from a class, itself included: several times the depth of
/// any program, so that long chains in a damaged dump do not cost their square.
const MAX_SUPERCLASSES: usize = 32;

/// Heaps that objects can be in.
const HEAPS: [HeapKind; 4] = [
    HeapKind::Unknown,
    HeapKind::App,
    HeapKind::Zygote,
    HeapKind::BootImage,
];

/// Groups by one property.
struct Grouping {
    /// Names of the groups, in order of their numbers.
    names: Vec<String>,
    /// A place for each class.
    by_class: Places,
    /// Of class objects, which have the group of the class that they represent.
    by_object: HashMap<ObjectIndex, u32>,
    by_heap: Option<[u32; HEAPS.len()]>,
}

impl Grouping {
    /// Numbers the groups, from `first` on.
    fn new(graph: &HeapGraph, by: HistogramKey, first: u32) -> Grouping {
        let mut groups = Groups {
            first,
            ..Groups::default()
        };
        let mut by_object = HashMap::new();
        let mut by_heap = None;
        let by_class = match by {
            HistogramKey::Class => classes(graph, |class| {
                [groups.number(label::class_name(graph, class))]
            }),
            HistogramKey::ClassInAnyRun => classes(graph, |class| {
                let name = label::class_name(graph, class);
                [groups.number(&label::without_address(name))]
            }),
            HistogramKey::Package => {
                let of = classes(graph, |class| {
                    [groups.number(label::package(graph.class(class).shown()))]
                });
                for object in label::class_objects(graph) {
                    if let Some(name) = label::class_behind(graph, object) {
                        by_object.insert(object, groups.number(label::package(name)));
                    }
                }
                of
            }
            HistogramKey::Superclass => {
                // Each name is looked up once, not once for each of its subclasses.
                let own = classes(graph, |class| {
                    [groups.number(label::class_name(graph, class))]
                });
                classes(graph, |class| {
                    let line = graph.ancestry(class).take(MAX_SUPERCLASSES);
                    let mut names: Vec<u32> = line.map(|class| own.groups[class.at()]).collect();
                    names.sort_unstable();
                    names.dedup();
                    names
                })
            }
            HistogramKey::Heap => {
                let name = |kind: HeapKind| match kind {
                    HeapKind::Unknown => "(unknown)",
                    kind => kind.name(),
                };
                by_heap = Some(HEAPS.map(|kind| groups.number(name(kind))));
                classes(graph, |_| [])
            }
            HistogramKey::Loader => {
                let name = |class: ClassIndex| match graph.class(class).loader {
                    Some(loader) => {
                        let class = label::object_name(graph, loader);
                        format!("{class} {}", graph.id(loader))
                    }
                    None => "(boot)".to_owned(),
                };
                let of = classes(graph, |class| [groups.number(&name(class))]);
                for object in label::class_objects(graph) {
                    if let Some(class) = graph.class_behind(object) {
                        by_object.insert(object, groups.number(&name(class)));
                    }
                }
                of
            }
        };
        Grouping {
            names: groups.names,
            by_class,
            by_object,
            by_heap,
        }
    }
}

/// Groups of objects that are in the same ones: these share a place.
struct Places {
    /// Start of the groups of each place; one more than places.
    starts: Vec<u32>,
    groups: Vec<u32>,
    /// The group that was taken out because all places share it.
    common: Option<u32>,
    /// By group, the first group with the same places, whose sums it has. Empty if equal groups are not
    /// joined.
    equal_to: Vec<u32>,
}

impl Places {
    fn new() -> Places {
        Places {
            starts: vec![0],
            groups: Vec::new(),
            common: None,
            equal_to: Vec::new(),
        }
    }

    fn push(&mut self, groups: impl Iterator<Item = u32>) {
        for group in groups {
            // A class can have hundreds of superclasses: doubling would waste tens of megabytes.
            if self.groups.len() == self.groups.capacity() {
                self.groups.reserve_exact(64.max(self.groups.len() / 8));
            }
            self.groups.push(group);
        }
        self.starts.push(self.groups.len() as u32);
    }

    fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// Keeps one of the groups with the same places, such as a class without subclasses and the group of
    /// its subclasses.
    fn join_equal(&mut self, groups: u32) {
        // Each place separates its groups from those with the same earlier places that it does not have.
        let mut sets = vec![0; groups as usize];
        let mut next = 1;
        let mut parts: HashMap<u32, u32, FastHash> = HashMap::default();
        for place in 0..self.len() {
            parts.clear();
            for &group in self.groups(place) {
                let set = &mut sets[group as usize];
                *set = *parts.entry(*set).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
        }
        let mut first_in: HashMap<u32, u32, FastHash> = HashMap::default();
        let first = |(set, group)| *first_in.entry(set).or_insert(group);
        let equal_to: Vec<u32> = sets.into_iter().zip(0..).map(first).collect();
        self.keep(|group| equal_to[group as usize] == group);
        self.equal_to = equal_to;
    }

    /// Takes out a group that all places share: its sums are those of all objects.
    fn take_common(&mut self) {
        if self.len() == 0 {
            return;
        }
        let shared = |group: &&u32| (1..self.len()).all(|place| self.groups(place).contains(group));
        let common = self.groups(0).iter().find(shared).copied();
        self.keep(|group| Some(group) != common);
        self.common = common;
    }

    fn keep(&mut self, is_kept: impl Fn(u32) -> bool) {
        let (mut start, mut kept) = (0, 0);
        for end in &mut self.starts[1..] {
            for at in start..*end as usize {
                let group = self.groups[at];
                self.groups[kept] = group;
                kept += usize::from(is_kept(group));
            }
            start = *end as usize;
            *end = kept as u32;
        }
        self.groups.truncate(kept);
    }

    #[inline]
    fn groups(&self, place: usize) -> &[u32] {
        &self.groups[self.starts[place] as usize..self.starts[place + 1] as usize]
    }
}

/// Groups by several properties.
struct Groupings {
    /// By class and heap, then those of class objects.
    places: Places,
    /// Number of heaps that make a difference.
    heaps: usize,
    /// Places of class objects that do not have the one of their class.
    by_object: HashMap<ObjectIndex, usize>,
    /// Whether the objects of a class are class objects; empty if that makes no difference.
    is_class: Vec<bool>,
}

impl Groupings {
    fn new(graph: &HeapGraph, all: &[Grouping]) -> Groupings {
        let by_heap = all.iter().find_map(|of| of.by_heap);
        let heaps = match by_heap {
            Some(_) if !graph.heaps.is_empty() => HEAPS.len(),
            _ => 1,
        };
        let of_heap = |at: usize| {
            let at = match heaps {
                1 => heap_place(graph.only_heap),
                _ => at,
            };
            by_heap.map(|groups| groups[at])
        };
        let mut places = Places::new();
        for class in 0..graph.classes().len() {
            for heap in 0..heaps {
                let by_class = all.iter().flat_map(|of| of.by_class.groups(class));
                places.push(by_class.copied().chain(of_heap(heap)));
            }
        }
        let mut by_object = HashMap::new();
        if all.iter().any(|of| !of.by_object.is_empty()) {
            for object in label::class_objects(graph) {
                let class = graph.class_of(object).at();
                let groups = all.iter().flat_map(|of| match of.by_object.get(&object) {
                    Some(group) => std::slice::from_ref(group),
                    None => of.by_class.groups(class),
                });
                let heap = of_heap(heap_place(graph.heap_of(object)));
                by_object.insert(object, places.len());
                places.push(groups.copied().chain(heap));
            }
        }
        Groupings {
            places,
            heaps,
            is_class: match by_object.is_empty() {
                true => Vec::new(),
                false => label::is_class(graph),
            },
            by_object,
        }
    }

    #[inline]
    fn place(&self, graph: &HeapGraph, object: ObjectIndex) -> usize {
        let class = graph.class_of(object).at();
        if !self.is_class.is_empty()
            && self.is_class[class]
            && let Some(&own) = self.by_object.get(&object)
        {
            return own;
        }
        match self.heaps {
            1 => class,
            heaps => class * heaps + heap_place(graph.heap_of(object)),
        }
    }
}

/// Returns the place in [`HEAPS`].
fn heap_place(kind: HeapKind) -> usize {
    HEAPS.iter().position(|&heap| heap == kind).unwrap_or(0)
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
    let mut places = Places::new();
    for group in 0..groups.names.len() as u32 {
        places.push(std::iter::once(group));
    }
    let scope = ObjectScope::Reachable(dominators);
    let place_of = |object: ObjectIndex| match of[object.at()] {
        u32::MAX => None,
        group => Some(group as usize),
    };
    let names = vec![groups.names];
    let mut all = sum(graph, scope, names, &filter, &places, place_of);
    all.pop().unwrap_or_default()
}

/// Numbered group names.
#[derive(Default)]
struct Groups {
    /// Number of the first one.
    first: u32,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
}

impl Groups {
    fn number(&mut self, name: &str) -> u32 {
        if let Some(&number) = self.by_name.get(name) {
            return number;
        }
        let number = self.first + self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), number);
        number
    }
}

fn classes<G: IntoIterator<Item = u32>>(
    graph: &HeapGraph,
    mut of: impl FnMut(ClassIndex) -> G,
) -> Places {
    let mut places = Places::new();
    for class in (0..graph.classes().len() as u32).map(ClassIndex) {
        places.push(of(class).into_iter());
    }
    places
}

/// Sums objects that the filter selects and that have a place into the groups of the place. `names` has the
/// groups of each histogram.
fn sum(
    graph: &HeapGraph,
    scope: ObjectScope<'_>,
    names: Vec<Vec<String>>,
    filter: &ObjectFilter<'_>,
    places: &Places,
    place_of: impl Fn(ObjectIndex) -> Option<usize>,
) -> Vec<Histogram> {
    // Sizes are looked up once for each object, not for each of its groups.
    let mut of_place = vec![Sums::default(); places.len()];
    let mut sums = vec![Sums::default(); names.iter().map(Vec::len).sum()];
    let mut total = Sums::default();
    let place_of = |object| place_of(object).filter(|_| filter.takes(object));
    let mut take = |object: ObjectIndex| {
        total.add(graph, object);
        if let Some(place) = place_of(object) {
            of_place[place].add(graph, object);
        }
    };
    match scope {
        ObjectScope::Reachable(dominators) => {
            retain(dominators, places, &mut sums, |object| {
                let place = place_of(object)?;
                of_place[place].add(graph, object);
                Some(place)
            });
            total = Sums::of_reachable(dominators);
        }
        ObjectScope::All(dominators) => {
            for object in graph.objects().filter(|&o| !graph.is_placeholder(o)) {
                take(object);
            }
            retain(dominators, places, &mut sums, place_of);
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
    for (place, of_place) in of_place.iter().enumerate() {
        for &group in places.groups(place) {
            sums[group as usize].add_sizes(of_place);
        }
    }
    if let Some(group) = places.common {
        sums[group as usize] = total;
    }
    // A group comes after the one that it equals.
    for (group, &equal) in places.equal_to.iter().enumerate() {
        sums[group] = sums[equal as usize];
    }
    let mut sums = sums.into_iter();
    let histogram = |names: Vec<String>| {
        let rows = names.into_iter().zip(sums.by_ref());
        let rows = rows.filter(|(_, sums)| sums.count > 0);
        Histogram {
            rows: rows.map(|(name, sums)| Row { name, sums }).collect(),
            total,
        }
    };
    names.into_iter().map(histogram).collect()
}

/// Adds the retained size of each group of objects that have a place.
fn retain(
    dominators: &Dominators,
    places: &Places,
    sums: &mut [Sums],
    mut place_of: impl FnMut(ObjectIndex) -> Option<usize>,
) {
    // By group, end of the last subtree whose top is in the group.
    let mut ends = vec![0usize; sums.len()];
    for (at, (object, retained)) in dominators.iter().enumerate() {
        let Some(place) = place_of(object) else {
            continue;
        };
        for &group in places.groups(place) {
            let group = group as usize;
            if at >= ends[group] {
                ends[group] = at + retained.count as usize;
                sums[group].retained.add(retained);
            }
        }
    }
}
