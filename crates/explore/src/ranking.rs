//! Reachable objects by size, of each class name and of all. Needs 12 bytes per object.

use heaptap_analyze::label;
use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph, ObjectIndex};
use std::cmp::Reverse;
use std::collections::HashMap;

/// Objects in descending order of retained bytes; equal ones in the order of their IDs.
pub(crate) struct Ranking {
    all: Vec<ObjectIndex>,
    /// All in descending order of shallow bytes.
    by_shallow: Vec<ObjectIndex>,
    /// Number of each class name.
    groups: HashMap<String, u32>,
    /// Start of each group in `members`; one more than groups.
    starts: Vec<u32>,
    members: Vec<ObjectIndex>,
}

/// Retained sizes below this have a counter each: nearly all objects are that small, and are sorted
/// in linear time.
const COUNTED_BYTES: u64 = 1 << 16;

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
        let by_shallow = largest_first(reachable, |object| graph.shallow_bytes(object));
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
        Ranking {
            all,
            by_shallow,
            groups,
            starts,
            members,
        }
    }

    pub(crate) fn all(&self) -> &[ObjectIndex] {
        &self.all
    }

    pub(crate) fn by_shallow(&self) -> &[ObjectIndex] {
        &self.by_shallow
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
