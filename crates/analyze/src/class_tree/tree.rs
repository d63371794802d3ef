//! A tree of objects merged by class: its nodes, their names, sums and depths.

use heaptap_model::heap_graph::{HeapKind, RootKind};
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
