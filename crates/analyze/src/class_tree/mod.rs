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

use build::{Builder, TOP};
use heaptap_model::heap_graph::{
    Dominators, HeapGraph, HeapKind, PathReferences, RootKind, ShortestPaths, Walk,
};
use std::borrow::Cow;

/// Rule for merging objects into nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Rule of Perfetto's flame graph: objects of one name below one parent are one node.
    Flamegraph,
    /// Rule of Perfetto's table: by name and heap, and an object joins a parent of the same name.
    /// The root kind of a top node is that of the first object in dump order, or `None` if that
    /// object joined the node later.
    Collapsed,
}

/// Object tree to merge.
#[derive(Clone, Copy)]
pub enum Over<'a> {
    /// Tree of shortest paths from GC roots.
    ShortestPaths(&'a ShortestPaths),
    /// Dominator tree.
    Dominators(&'a Dominators),
}

/// Index into [`ClassTree::nodes`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct NodeIndex(pub u32);

/// Objects merged by class.
#[derive(Debug, Clone, Default)]
pub struct ClassTree {
    /// Unique class names.
    pub names: Vec<String>,
    pub nodes: Vec<Node>,
}

/// Node: objects of one class at one position, or their native bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Node {
    /// Parent node; `None` at the top.
    pub parent: Option<NodeIndex>,
    /// Index into [`ClassTree::names`].
    pub name: u32,
    /// Root kind, if the objects are GC roots.
    pub root: Option<RootKind>,
    /// Heap of the objects, or of the first one if the node spans several heaps.
    pub heap: HeapKind,
    /// Whether the node holds native bytes owned by objects of its parent.
    pub is_native: bool,
    /// Number of objects in the node itself.
    pub count: u64,
    /// Bytes of those objects: shallow or native.
    pub bytes: u64,
}

/// Sums of a node and its descendants.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Cumulative {
    pub count: u64,
    /// Shallow and native bytes.
    pub bytes: u64,
}

impl ClassTree {
    /// Merges a tree of objects. Time is linear in objects; memory is linear in nodes, plus 4 bytes
    /// per object for shortest paths.
    pub fn of(graph: &HeapGraph, over: Over<'_>, merge: Merge) -> ClassTree {
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

    /// Returns the display name of a node: `Class`, `Class [ROOT_JNI_GLOBAL]`, `[native] Class`.
    pub fn name(&self, node: &Node) -> Cow<'_, str> {
        let name = self.names[node.name as usize].as_str();
        match (node.is_native, node.root) {
            (false, None) => Cow::Borrowed(name),
            (false, Some(root)) => format!("{name} [{root}]").into(),
            (true, None) => format!("[native] {name}").into(),
            (true, Some(root)) => format!("[native] {name} [{root}]").into(),
        }
    }

    /// Returns the sums of each node and its descendants.
    pub fn cumulative(&self) -> Vec<Cumulative> {
        let own = self.nodes.iter().map(|node| Cumulative {
            count: node.count,
            bytes: node.bytes,
        });
        let mut sums: Vec<Cumulative> = own.collect();
        for at in (0..self.nodes.len()).rev() {
            if let Some(NodeIndex(parent)) = self.nodes[at].parent {
                let own = sums[at];
                let sum = &mut sums[parent as usize];
                sum.count = sum.count.saturating_add(own.count);
                sum.bytes = sum.bytes.saturating_add(own.bytes);
            }
        }
        sums
    }

    /// Cuts the tree below `depth`, given [`ClassTree::depths`]. Nodes at that depth absorb their
    /// descendants.
    pub fn cut(mut self, depths: &[u32], depth: u32) -> ClassTree {
        let nodes = &mut self.nodes;
        for at in (0..nodes.len()).rev() {
            let node = nodes[at];
            if depths[at] > depth
                && let Some(NodeIndex(parent)) = node.parent
            {
                let above = &mut nodes[parent as usize];
                above.count = above.count.saturating_add(node.count);
                above.bytes = above.bytes.saturating_add(node.bytes);
            }
        }
        let mut moved = vec![0; nodes.len()];
        let mut kept = 0;
        for at in 0..nodes.len() {
            if depths[at] <= depth {
                let mut node = nodes[at];
                node.parent = node.parent.map(|above| NodeIndex(moved[above.0 as usize]));
                moved[at] = kept;
                nodes[kept as usize] = node;
                kept += 1;
            }
        }
        nodes.truncate(kept as usize);
        nodes.shrink_to_fit();
        self
    }

    /// Returns the depth of each node; 1 at the top.
    pub fn depths(&self) -> Vec<u32> {
        let mut depths: Vec<u32> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let above = node.parent.map_or(0, |parent| depths[parent.0 as usize]);
            depths.push(above + 1);
        }
        depths
    }
}

/// Returns the total length of the paths from the top to all nodes, given [`ClassTree::depths`]: the
/// cost of writing each node with its path.
pub fn steps(depths: &[u32]) -> u64 {
    depths.iter().copied().map(u64::from).sum()
}

/// Returns the greatest depth at which a tree of these depths, cut, has at most `steps` steps.
pub fn depth_within(depths: &[u32], steps: u64) -> u32 {
    let mut nodes_at: Vec<u64> = Vec::new();
    for &depth in depths {
        let depth = depth as usize;
        if depth >= nodes_at.len() {
            nodes_at.resize(depth + 1, 0);
        }
        nodes_at[depth] += 1;
    }
    let mut left = steps;
    let mut within = 1;
    for (depth, &nodes) in (0..).zip(&nodes_at).skip(1) {
        let cost = u64::from(depth).saturating_mul(nodes);
        if cost > left {
            break;
        }
        left -= cost;
        within = depth;
    }
    within
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
        let later = ClassTree::of(&heap.graph, over, Merge::Flamegraph);
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
