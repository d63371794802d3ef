//! Trees of objects merged by class, for flame graphs.

use heaptap_analyze::class_tree::{ClassTree, Merge, Over};
use heaptap_model::heap_graph::{Dominators, HeapGraph, PathReferences, Walk};

/// Tree of a flame graph.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlameTree {
    /// Shortest paths from GC roots.
    Paths,
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
    pub(crate) fn of_dominators(graph: &HeapGraph, dominators: &Dominators) -> MergedTree {
        let over = Over::Dominators(dominators);
        MergedTree::from_tree(ClassTree::new(graph, over, Merge::Flamegraph))
    }

    /// Walks the shortest paths and merges them at the same time.
    pub(crate) fn with_paths(graph: &HeapGraph, walk: &Walk<'_>) -> (MergedTree, PathReferences) {
        let (tree, references) = ClassTree::with_shortest_paths(graph, walk);
        (MergedTree::from_tree(tree), references)
    }

    fn from_tree(mut tree: ClassTree) -> MergedTree {
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
