//! Reversed references, for the holders of an object and all paths to the roots.

use super::edges::Edges;
use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;

/// Reversed references. Needs 4 bytes per object and 4 per non-null reference. Building it is a
/// walk over all references, so do it once and only on request.
#[derive(Debug, Clone, Default)]
pub struct Referrers {
    /// Index of each object's first owner; one more entry than objects.
    starts: Vec<u32>,
    owners: Vec<ObjectIndex>,
}

impl Referrers {
    /// Reverses the references of all objects, reachable or not.
    pub fn of(graph: &HeapGraph, follow: Follow) -> Referrers {
        let edges = Edges::new(graph, follow);
        let mut starts = vec![0u32; graph.len() + 1];
        for owner in graph.objects() {
            let mut last = ObjectIndex::NONE;
            for target in edges.of(owner) {
                // Neighboring slots of an array often hold the same object.
                if target != last {
                    starts[target.at()] += 1;
                }
                last = target;
            }
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        // From the end, so that owners are ascending and each start is correct afterwards.
        let mut owners = vec![ObjectIndex::NONE; sum as usize];
        for owner in graph.objects().rev() {
            let mut last = ObjectIndex::NONE;
            for target in edges.of(owner) {
                if target != last {
                    let start = &mut starts[target.at()];
                    *start -= 1;
                    owners[*start as usize] = owner;
                }
                last = target;
            }
        }
        Referrers { starts, owners }
    }

    /// Returns the objects that refer to an object, ascending, each once.
    #[inline]
    pub fn to(&self, object: ObjectIndex) -> impl Iterator<Item = ObjectIndex> + '_ {
        let (from, to) = (self.starts[object.at()], self.starts[object.at() + 1]);
        let owners = &self.owners[from as usize..to as usize];
        owners.chunk_by(|a, b| a == b).map(|same| same[0])
    }
}
