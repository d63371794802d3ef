//! Who refers to an object: the graph's references turned round.

use crate::heap_graph::{Follow, HeapGraph, ObjectIndex};

/// References of a graph by what they lead to, without referents that are not followed.
pub struct Referrers {
    starts: Vec<u32>,
    owners: Vec<ObjectIndex>,
}

impl Referrers {
    /// Turns all references round: four bytes each.
    pub fn of(graph: &HeapGraph, follow: Follow) -> Referrers {
        let mut starts = vec![0u32; graph.len() + 1];
        for object in graph.objects() {
            for target in graph.kept_by(object, follow) {
                starts[target.at() + 1] += 1;
            }
        }
        for at in 1..starts.len() {
            starts[at] += starts[at - 1];
        }
        let all = starts.last().copied().unwrap_or(0);
        let mut owners = vec![ObjectIndex::NONE; all as usize];
        let mut next = starts.clone();
        for object in graph.objects() {
            for target in graph.kept_by(object, follow) {
                owners[next[target.at()] as usize] = object;
                next[target.at()] += 1;
            }
        }
        Referrers { starts, owners }
    }

    /// Who refers to the object, ascending; once for each reference.
    pub fn to(&self, object: ObjectIndex) -> &[ObjectIndex] {
        let (from, to) = (self.starts[object.at()], self.starts[object.at() + 1]);
        &self.owners[from as usize..to as usize]
    }
}
