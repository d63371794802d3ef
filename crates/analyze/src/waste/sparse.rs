//! Collections and arrays that are mostly empty, grouped by class and number of slots: a thousand
//! similar maps are one finding.

use std::cmp::Reverse;
use std::collections::HashMap;

use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectId, ObjectIndex};

/// Collections or arrays of one class and number of slots that are mostly empty.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct SparseGroup {
    /// Number of objects.
    pub count: u64,
    /// Display name of the class.
    pub class: String,
    /// Number of used slots in all of them.
    pub used: u64,
    /// Number of slots in all of them.
    pub capacity: u64,
    /// Bytes of their empty slots.
    pub wasted_bytes: u64,
    /// The one that wastes most.
    #[serde(skip)]
    pub example: ObjectIndex,
    /// ID of the example in the dump.
    #[serde(rename = "example")]
    pub example_id: ObjectId,
    /// Name of a holder of the example.
    pub held_by: Option<String>,
}

/// Groups under construction, by class and number of slots.
#[derive(Default)]
pub(super) struct SparseGroups {
    groups: HashMap<(ClassIndex, u64), Group>,
}

struct Group {
    /// Wasted bytes of the example, and the example.
    example: (u64, Reverse<ObjectIndex>),
    count: u64,
    used: u64,
    wasted_bytes: u64,
}

impl SparseGroups {
    /// Adds an object with its numbers of used and of all slots, and the bytes of the others.
    pub(super) fn add(
        &mut self,
        object: ObjectIndex,
        class: ClassIndex,
        used: u64,
        capacity: u64,
        wasted_bytes: u64,
    ) {
        let group = Group {
            example: (wasted_bytes, Reverse(object)),
            count: 1,
            used,
            wasted_bytes,
        };
        self.join((class, capacity), group);
    }

    /// Adds the groups of other objects.
    pub(super) fn merge(&mut self, other: SparseGroups) {
        for (key, group) in other.groups {
            self.join(key, group);
        }
    }

    fn join(&mut self, key: (ClassIndex, u64), more: Group) {
        match self.groups.get_mut(&key) {
            Some(group) => {
                group.example = group.example.max(more.example);
                group.count += more.count;
                group.used += more.used;
                group.wasted_bytes = group.wasted_bytes.saturating_add(more.wasted_bytes);
            }
            None => {
                self.groups.insert(key, more);
            }
        }
    }

    /// Returns the wasted bytes of all groups.
    pub(super) fn wasted_bytes(&self) -> u64 {
        let groups = self.groups.values();
        groups.fold(0, |sum, group| sum.saturating_add(group.wasted_bytes))
    }

    /// Returns the groups that waste most, at most `limit`.
    pub(super) fn largest(self, graph: &HeapGraph, limit: usize) -> Vec<SparseGroup> {
        let mut groups: Vec<_> = self.groups.into_iter().collect();
        groups.sort_unstable_by_key(|(_, group)| (Reverse(group.wasted_bytes), group.example.1.0));
        groups.truncate(limit);
        let describe = |((class, capacity), group): ((ClassIndex, u64), Group)| {
            let (_, Reverse(example)) = group.example;
            SparseGroup {
                example,
                example_id: graph.id(example),
                class: graph.class(class).shown().to_owned(),
                count: group.count,
                used: group.used,
                capacity: capacity.saturating_mul(group.count),
                wasted_bytes: group.wasted_bytes,
                held_by: None,
            }
        };
        groups.into_iter().map(describe).collect()
    }
}
