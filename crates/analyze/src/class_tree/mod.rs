//! Tree of objects merged by class: the tree of shortest paths or the dominator tree. The two merge
//! rules are Perfetto's, so the values match:
//!
//! * its flame graph: objects of one name below one node are a node. The name of a root includes
//!   its kind. Nothing is collapsed, so a linked list is as deep as it is long.
//! * its table `android_heap_graph_class_summary_tree`: an object with the name of its parent joins
//!   the parent's node, and heaps are kept apart.
//!
//! Native bytes that objects of a node own are in a child node, `[native] Class`.

mod build;
mod tree;

pub use tree::{ClassTree, Cumulative, Merge, Node, NodeIndex, depth_within, steps};

use build::{Builder, TOP};
use heaptap_model::heap_graph::{Dominators, HeapGraph, PathReferences, ShortestPaths, Walk};

/// Object tree to merge.
#[derive(Clone, Copy)]
pub enum Over<'a> {
    /// Tree of shortest paths from GC roots.
    ShortestPaths(&'a ShortestPaths),
    /// Dominator tree.
    Dominators(&'a Dominators),
}

impl ClassTree {
    /// Merges a tree of objects. Time is linear in objects; memory is linear in nodes, plus 4 bytes
    /// per object for shortest paths.
    pub fn new(graph: &HeapGraph, over: Over<'_>, merge: Merge) -> ClassTree {
        let mut tree = Builder::new(graph, merge);
        match over {
            Over::ShortestPaths(paths) => {
                // Node by place.
                let mut nodes: Vec<u32> = Vec::with_capacity(paths.order().len());
                for (&object, parent) in paths.order().iter().zip(paths.parent_places()) {
                    let above = parent.map_or(TOP, |place| nodes[place as usize]);
                    nodes.push(tree.add(object, above));
                }
            }
            Over::Dominators(dominators) => {
                dominators.nested(|object, above| tree.add(object, above.unwrap_or(TOP)));
            }
        }
        tree.finish()
    }

    /// Walks the shortest paths and merges them at the same time, as [`Merge::Flamegraph`].
    pub fn with_shortest_paths(graph: &HeapGraph, walk: &Walk<'_>) -> (ClassTree, PathReferences) {
        let mut tree = Builder::new(graph, Merge::Flamegraph);
        let add = |object, above: Option<u32>| tree.add(object, above.unwrap_or(TOP));
        let references = PathReferences::walked(graph, walk, add);
        (tree.finish(), references)
    }

    /// Merges each node of a [`Merge::Flamegraph`] tree with the name of its parent into the
    /// parent: a linked list that is too long to draw becomes one node.
    pub fn folded(self) -> ClassTree {
        build::folded(self)
    }
}

#[cfg(test)]
mod tests {
    use super::super::dsl;
    use super::*;

    /// A list of three below a root, an array of two objects that share a class, and native bytes.
    const HEAP: &str = "
        list x.Node 10 root=JNI_GLOBAL -> next:two
        two x.Node 10 -> next:three
        three x.Node 10 -> value:text
        text java.lang.String 5
        array x.Box[] 40 root=JNI_GLOBAL -> one, other
        one x.Box 7 +100
        other x.Box 7 +50
    ";

    fn tree(made: fn(ClassTree) -> ClassTree) -> (ClassTree, Vec<String>) {
        let heap = dsl::heap(HEAP);
        let (tree, _) = ClassTree::with_shortest_paths(&heap.graph, &Walk::default());
        let paths = ShortestPaths::by(&heap.graph, &Walk::default());
        let over = Over::ShortestPaths(&paths);
        let later = ClassTree::new(&heap.graph, over, Merge::Flamegraph);
        assert_eq!(tree.nodes, later.nodes);
        let tree = made(tree);
        let (depths, sums) = (tree.depths(), tree.cumulative());
        let mut rows: Vec<String> = (0..tree.nodes.len())
            .map(|at| {
                let (node, sums) = (&tree.nodes[at], sums[at]);
                let name = tree.name(node);
                let (count, bytes) = (node.count, node.bytes);
                format!(
                    "{} {name} {count} {bytes} of {} {}",
                    depths[at], sums.count, sums.bytes
                )
            })
            .collect();
        rows.sort();
        (tree, rows)
    }

    #[test]
    fn a_flamegraph_is_as_deep_as_its_lists_and_has_native_children() {
        let (_, rows) = tree(|tree| tree);
        assert_eq!(
            rows,
            [
                "1 x.Box[] [ROOT_JNI_GLOBAL] 1 40 of 5 204",
                "1 x.Node [ROOT_JNI_GLOBAL] 1 10 of 4 35",
                "2 x.Box 2 14 of 4 164",
                "2 x.Node 1 10 of 3 25",
                "3 [native] x.Box 2 150 of 2 150",
                "3 x.Node 1 10 of 2 15",
                "4 java.lang.String 1 5 of 1 5",
            ]
        );
    }

    #[test]
    fn lists_fold_into_a_node() {
        let (tree, rows) = tree(ClassTree::folded);
        assert_eq!(
            rows[1..3],
            [
                "1 x.Node [ROOT_JNI_GLOBAL] 3 30 of 4 35",
                "2 java.lang.String 1 5 of 1 5"
            ]
        );
        assert_eq!(steps(&tree.depths()), 1 + 1 + 2 + 2 + 3);
    }

    #[test]
    fn what_is_cut_off_counts_above() {
        let (tree, _) = tree(|tree| tree);
        let depths = tree.depths();
        assert_eq!(depth_within(&depths, steps(&depths)), 4);
        assert_eq!(depth_within(&depths, 6), 2);
        assert_eq!(depth_within(&depths, 0), 1);
        let whole: u64 = tree.nodes.iter().map(|node| node.bytes).sum();
        let cut = tree.cut(&depths, 2);
        assert_eq!(cut.nodes.len(), 4);
        assert_eq!(cut.nodes.iter().map(|node| node.bytes).sum::<u64>(), whole);
        assert_eq!(cut.depths().into_iter().max(), Some(2));
    }
}
