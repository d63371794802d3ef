//! The dominator tree: `d` dominates `o` where every path from a root to `o` goes through `d`.
//! What an object dominates would go with it: its retained size. A virtual node above all roots
//! makes it one tree.

use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;
use super::reach::ShortestPaths;

/// Immediate dominators and retained sizes of all reachable objects.
#[derive(Debug, Clone, Default)]
pub struct Dominators {
    /// By object: its immediate dominator, `NONE` for the virtual root; `NONE` too for what is
    /// not reachable.
    idom: Vec<ObjectIndex>,
    /// Reachable objects, dominators before those they dominate.
    order: Vec<ObjectIndex>,
    retained: Vec<u64>,
    retained_native: Vec<u64>,
    retained_count: Vec<u32>,
}

impl Dominators {
    /// Computes the tree for what `follow` reaches.
    pub fn of(graph: &HeapGraph, follow: Follow) -> Dominators {
        // Cooper, Harvey, Kennedy over the breadth-first order.
        let walk = ShortestPaths::of(graph, follow);
        let order = walk.order().to_vec();
        let mut number = vec![u32::MAX; graph.len()];
        for (at, object) in order.iter().enumerate() {
            number[object.at()] = at as u32;
        }
        let mut before: Vec<Vec<u32>> = vec![Vec::new(); order.len()];
        for (at, &object) in order.iter().enumerate() {
            for target in graph.kept_by(object, follow) {
                before[number[target.at()] as usize].push(at as u32 + 1);
            }
        }
        for root in graph.roots() {
            before[number[root.object.at()] as usize].push(0);
        }
        // Node 0 is the virtual root, node n + 1 the nth of `order`.
        let mut idom = vec![u32::MAX; order.len() + 1];
        idom[0] = 0;
        let mut changed = true;
        while changed {
            changed = false;
            for (at, sources) in before.iter().enumerate() {
                let mut best: Option<u32> = None;
                for &source in sources {
                    if idom[source as usize] == u32::MAX {
                        continue;
                    }
                    best = Some(match best {
                        None => source,
                        Some(other) => meet(&idom, source, other),
                    });
                }
                let best = best.unwrap_or(0);
                if idom[at + 1] != best {
                    idom[at + 1] = best;
                    changed = true;
                }
            }
        }
        let mut all = Dominators {
            idom: vec![ObjectIndex::NONE; graph.len()],
            retained: vec![0; graph.len()],
            retained_native: vec![0; graph.len()],
            retained_count: vec![0; graph.len()],
            order,
        };
        for at in 0..all.order.len() {
            let object = all.order[at];
            if let Some(up) = (idom[at + 1] as usize).checked_sub(1) {
                all.idom[object.at()] = all.order[up];
            }
            all.retained[object.at()] = graph.shallow_bytes(object);
            all.retained_native[object.at()] = graph.native_bytes(object);
            all.retained_count[object.at()] = 1;
        }
        for at in (0..all.order.len()).rev() {
            let object = all.order[at];
            if let Some(up) = all.idom(object) {
                all.retained[up.at()] += all.retained[object.at()];
                all.retained_native[up.at()] += all.retained_native[object.at()];
                all.retained_count[up.at()] += all.retained_count[object.at()];
            }
        }
        all
    }

    /// The immediate dominator; `None` where only the virtual root is above it, and for what is
    /// not reachable.
    pub fn idom(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let idom = self.idom[object.at()];
        (idom != ObjectIndex::NONE).then_some(idom)
    }

    /// Whether any root reaches it.
    pub fn is_reachable(&self, object: ObjectIndex) -> bool {
        self.retained_count[object.at()] != 0
    }

    /// Reachable objects, each after its immediate dominator.
    pub fn order(&self) -> &[ObjectIndex] {
        &self.order
    }

    /// Shallow bytes of all that the object dominates, itself included; 0 where not reachable.
    pub fn retained_bytes(&self, object: ObjectIndex) -> u64 {
        self.retained[object.at()]
    }

    /// Native bytes of the same objects.
    pub fn retained_native_bytes(&self, object: ObjectIndex) -> u64 {
        self.retained_native[object.at()]
    }

    /// How many objects those are.
    pub fn retained_count(&self, object: ObjectIndex) -> u32 {
        self.retained_count[object.at()]
    }
}

/// The nearest common dominator; numbers of dominators are smaller.
fn meet(idom: &[u32], mut a: u32, mut b: u32) -> u32 {
    while a != b {
        while a > b {
            a = idom[a as usize];
        }
        while b > a {
            b = idom[b as usize];
        }
    }
    a
}
