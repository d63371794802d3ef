//! What is reachable from the roots, and the tree of shortest paths to them.

use super::follow::Follow;
use super::graph::HeapGraph;
use super::ids::ObjectIndex;

/// A set of objects: those that roots reach.
#[derive(Debug, Clone, Default)]
pub struct Reachable {
    bits: Vec<u64>,
}

impl Reachable {
    /// The closure of the roots under references and followed referents.
    pub fn of(graph: &HeapGraph, follow: Follow) -> Reachable {
        let mut set = Reachable {
            bits: vec![0; graph.len().div_ceil(64)],
        };
        let mut stack = Vec::new();
        for root in graph.roots() {
            if set.insert(root.object) {
                stack.push(root.object);
            }
        }
        while let Some(object) = stack.pop() {
            for target in graph.kept_by(object, follow) {
                if set.insert(target) {
                    stack.push(target);
                }
            }
        }
        set
    }

    /// Whether roots reach the object.
    pub fn contains(&self, object: ObjectIndex) -> bool {
        self.bits[object.at() / 64] >> (object.at() % 64) & 1 == 1
    }

    fn insert(&mut self, object: ObjectIndex) -> bool {
        let word = &mut self.bits[object.at() / 64];
        let bit = 1 << (object.at() % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }

    /// How many are.
    pub fn count(&self) -> u64 {
        self.bits.iter().map(|w| u64::from(w.count_ones())).sum()
    }
}

/// The breadth-first tree from all roots: each object's parent lies on a shortest path. Roots
/// start in the order of (class name, id), neighbours come in ascending order of ids, and whoever
/// reaches an object first is its parent: Perfetto's rule, so that its flamegraph comes out.
#[derive(Debug, Clone, Default)]
pub struct ShortestPaths {
    /// By object; [`ObjectIndex::NONE`] for roots and what is not reached.
    parent: Vec<ObjectIndex>,
    /// Reached objects in order of the walk: parents before children.
    order: Vec<ObjectIndex>,
}

impl ShortestPaths {
    /// Walks the graph.
    pub fn of(graph: &HeapGraph, follow: Follow) -> ShortestPaths {
        let mut seen = Reachable {
            bits: vec![0; graph.len().div_ceil(64)],
        };
        let mut roots: Vec<ObjectIndex> = graph.roots().iter().map(|r| r.object).collect();
        roots.dedup();
        roots.sort_by(|&a, &b| {
            let name = |o| graph.class(graph.class_of(o)).name.as_str();
            name(a).cmp(name(b)).then(a.cmp(&b))
        });
        let mut paths = ShortestPaths {
            parent: vec![ObjectIndex::NONE; graph.len()],
            order: Vec::new(),
        };
        for root in roots {
            if seen.insert(root) {
                paths.order.push(root);
            }
        }
        let mut neighbours = Vec::new();
        let mut next = 0;
        while let Some(&object) = paths.order.get(next) {
            next += 1;
            neighbours.clear();
            neighbours.extend(graph.kept_by(object, follow));
            neighbours.sort_unstable();
            for &target in &neighbours {
                if seen.insert(target) {
                    paths.parent[target.at()] = object;
                    paths.order.push(target);
                }
            }
        }
        paths
    }

    /// Who comes before it on the path; `None` for roots and what no root reaches.
    pub fn parent(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let parent = self.parent[object.at()];
        (parent != ObjectIndex::NONE).then_some(parent)
    }

    /// What roots reach, each after its parent.
    pub fn order(&self) -> &[ObjectIndex] {
        &self.order
    }

    /// The path from a root to the object, both included; the object alone where nothing reaches
    /// it.
    pub fn path(&self, object: ObjectIndex) -> Vec<ObjectIndex> {
        let mut path = vec![object];
        let mut at = object;
        while let Some(parent) = self.parent(at) {
            path.push(parent);
            at = parent;
        }
        path.reverse();
        path
    }
}
