//! Reachable objects by size, of each class name and of all. Needs 8 bytes per object.

use crate::answer::Page;
use crate::sparse::{ByShallow, Sparse};
use heaptap_analyze::label;
use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph, ObjectIndex};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Objects in descending order of retained bytes; equal ones in the order of their IDs.
pub(crate) struct Ranking {
    all: Vec<ObjectIndex>,
    by_shallow: ByShallow,
    /// Number of each class name.
    groups: HashMap<String, u32>,
    /// By class.
    group_of: Vec<u32>,
    /// By group: its objects in the order of their IDs, if all have the same shallow bytes.
    of_one_size: Vec<Option<Sparse>>,
    /// Start of each group in `members`; one more than groups.
    starts: Vec<u32>,
    members: Vec<ObjectIndex>,
}

/// Retained sizes below this have a counter each: nearly all objects are that small, and are sorted
/// in linear time. With counters of more than 128 KiB, musl would get them from the system for each
/// list.
const COUNTED_BYTES: u64 = 1 << 14;

/// Lists of at most this length are sorted without counters.
const FEW: usize = 4096;

impl Ranking {
    pub(crate) fn new(graph: &HeapGraph, dominators: &Dominators) -> Ranking {
        let reachable = || {
            let objects = graph.objects();
            objects.filter(|&object| dominators.is_reachable(object))
        };
        let retained = |object| dominators.retained(object).total_bytes();
        let all = largest_first(reachable, retained);
        let sizes = reachable().map(|object| (object, graph.shallow_bytes(object)));
        let by_shallow = ByShallow::new(sizes);
        let mut groups: HashMap<String, u32> = HashMap::new();
        let group_of: Vec<u32> = (0..graph.classes().len() as u32)
            .map(|class| {
                let name = label::class_name(graph, ClassIndex(class));
                let next = groups.len() as u32;
                *groups.entry(name.to_owned()).or_insert(next)
            })
            .collect();
        let group = |object: ObjectIndex| group_of[graph.class_of(object).at()] as usize;
        let mut starts = vec![0; groups.len() + 1];
        for &object in &all {
            starts[group(object) + 1] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut next = starts.clone();
        let mut members = vec![ObjectIndex::NONE; all.len()];
        for &object in &all {
            let place: &mut u32 = &mut next[group(object)];
            members[*place as usize] = object;
            *place += 1;
        }
        let mut of_one_size: Vec<OneSize> = Vec::new();
        of_one_size.resize_with(groups.len(), OneSize::default);
        for object in reachable() {
            of_one_size[group(object)].add(object, graph.shallow_bytes(object));
        }
        Ranking {
            all,
            by_shallow,
            groups,
            of_one_size: of_one_size.into_iter().map(|of| of.objects).collect(),
            group_of,
            starts,
            members,
        }
    }

    pub(crate) fn all(&self) -> &[ObjectIndex] {
        &self.all
    }

    /// Returns the number of objects, and a page in the order of shallow bytes.
    pub(crate) fn by_shallow(
        &self,
        (graph, dominators): (&HeapGraph, &Dominators),
        page: Page,
    ) -> (usize, Vec<ObjectIndex>) {
        let of_size = |bytes, first| {
            let objects = from(graph, first);
            objects.filter(move |&object| {
                graph.shallow_bytes(object) == bytes && dominators.is_reachable(object)
            })
        };
        let page = self.by_shallow.page(page.offset, page.limit, of_size);
        (self.by_shallow.len(), page)
    }

    /// Returns the same of the objects of a class name; `None` if they differ in shallow bytes.
    pub(crate) fn of_class_by_shallow(
        &self,
        (graph, dominators): (&HeapGraph, &Dominators),
        name: &str,
        page: Page,
    ) -> Option<(usize, Vec<ObjectIndex>)> {
        let &group = self.groups.get(name)?;
        let objects = self.of_one_size[group as usize].as_ref()?;
        let members = |first| {
            from(graph, first).filter(move |&object| {
                self.group_of[graph.class_of(object).at()] == group
                    && dominators.is_reachable(object)
            })
        };
        let page = objects.page(page.offset, page.limit, members);
        Some((objects.len(), page))
    }

    pub(crate) fn has_class(&self, name: &str) -> bool {
        self.groups.contains_key(name)
    }

    /// Returns the objects of all classes with that name but for an address.
    pub(crate) fn of_class_in_any_run(&self, name: &str) -> Vec<ObjectIndex> {
        let names = self.groups.keys();
        let name = label::without_address(name);
        let same = names.filter(|known| label::without_address(known) == name);
        same.flat_map(|known| self.of_class(known))
            .copied()
            .collect()
    }

    /// Returns the objects of all classes with that name.
    pub(crate) fn of_class(&self, name: &str) -> &[ObjectIndex] {
        let Some(&group) = self.groups.get(name) else {
            return &[];
        };
        let group = group as usize;
        &self.members[self.starts[group] as usize..self.starts[group + 1] as usize]
    }
}

/// Objects that may have the same size.
#[derive(Default)]
struct OneSize {
    bytes: Option<u64>,
    /// `None` once two differ.
    objects: Option<Sparse>,
}

impl OneSize {
    #[inline]
    fn add(&mut self, object: ObjectIndex, bytes: u64) {
        let is_first = self.bytes.is_none();
        if is_first {
            self.objects = Some(Sparse::default());
        }
        if *self.bytes.get_or_insert(bytes) != bytes {
            self.objects = None;
        }
        if let Some(objects) = &mut self.objects {
            objects.add(object);
        }
    }
}

/// Returns the objects from one on.
fn from(graph: &HeapGraph, first: ObjectIndex) -> impl Iterator<Item = ObjectIndex> {
    (first.0..graph.len() as u32).map(ObjectIndex)
}

/// Returns objects by size, largest first; equal ones in their order.
pub(crate) fn largest_first<Objects: Iterator<Item = ObjectIndex>>(
    objects: impl Fn() -> Objects,
    bytes_of: impl Fn(ObjectIndex) -> u64,
) -> Vec<ObjectIndex> {
    let mut large: Vec<(Reverse<u64>, ObjectIndex)> = Vec::new();
    if objects().take(FEW + 1).count() <= FEW {
        large.extend(objects().map(|object| (Reverse(bytes_of(object)), object)));
        large.sort_unstable();
        return large.into_iter().map(|(_, object)| object).collect();
    }
    // Number of objects of each size; then the place of the next one.
    let mut places = vec![0u32; COUNTED_BYTES as usize];
    for object in objects() {
        match bytes_of(object) {
            bytes if bytes < COUNTED_BYTES => places[bytes as usize] += 1,
            bytes => large.push((Reverse(bytes), object)),
        }
    }
    large.sort_unstable();
    let mut sum = large.len() as u32;
    for place in places.iter_mut().rev() {
        sum += std::mem::replace(place, sum);
    }
    let mut all: Vec<ObjectIndex> = large.into_iter().map(|(_, object)| object).collect();
    all.resize(sum as usize, ObjectIndex::NONE);
    for object in objects() {
        let bytes = bytes_of(object);
        if bytes < COUNTED_BYTES {
            let place = &mut places[bytes as usize];
            all[*place as usize] = object;
            *place += 1;
        }
    }
    all
}
