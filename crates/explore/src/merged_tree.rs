//! Trees of objects merged by class, for flame graphs.

use heaptap_analyze::class_tree::{ClassTree, Merge, Over};
use heaptap_model::heap_graph::HeapGraph;

/// Tree of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlameTree {
    /// Shortest paths from GC roots.
    Paths,
    /// Dominators.
    Dominators,
}

/// Depth from which on nodes are folded into parents of the same class: a list is as deep as it is
/// long.
const DEEP: u32 = 500;

/// Tree merged by class.
pub(crate) struct MergedTree {
    pub(crate) tree: ClassTree,
    pub(crate) is_folded: bool,
}

impl MergedTree {
    pub(crate) fn new(graph: &HeapGraph, over: Over<'_>) -> MergedTree {
        let mut tree = ClassTree::of(graph, over, Merge::Flamegraph);
        // Their objects are those of their parents.
        for node in tree.nodes.iter_mut().filter(|node| node.is_native) {
            node.count = 0;
        }
        let is_deep = tree.depths().into_iter().max() > Some(DEEP);
        MergedTree {
            tree: match is_deep {
                true => tree.folded(),
                false => tree,
            },
            is_folded: is_deep,
        }
    }
}
