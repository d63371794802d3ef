//! Tree of objects merged by class: the tree of shortest paths or the dominator tree. The two merge
//! rules are Perfetto's, so the values match:
//!
//! * its flame graph: objects of one name below one node are a node. The name of a root includes
//!   its kind. Nothing is collapsed, so a linked list is as deep as it is long.
//! * its table `android_heap_graph_class_summary_tree`: an object with the name of its parent joins
//!   the parent's node, and heaps are kept apart.
//!
//! Native bytes that objects of a node own are in a child node, `[native] Class`.

use super::label;
use heaptap_model::heap_graph::{
    Class, Dominators, HeapGraph, HeapKind, ObjectIndex, ObjectSet, RootKind, ShortestPaths,
};
use std::borrow::Cow;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};

/// Rule for merging objects into nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Merge {
    /// Rule of Perfetto's flame graph: objects of one name below one parent are one node.
    Flamegraph,
    /// Like `Flamegraph`, but an object joins a parent of the same name. A linked list that is too
    /// long to draw becomes one node.
    Folded,
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
    /// Merges a tree of objects. Time is linear in objects; memory is linear in nodes plus 4 bytes
    /// per object.
    pub fn of(graph: &HeapGraph, over: Over<'_>, merge: Merge) -> ClassTree {
        match over {
            Over::ShortestPaths(paths) => {
                build(graph, paths.order(), |object| paths.parent(object), merge)
            }
            Over::Dominators(dominators) => build(
                graph,
                dominators.order(),
                |object| dominators.idom(object),
                merge,
            ),
        }
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

    /// Returns the total length of the paths from the top to all nodes, which is the cost of
    /// writing each node with its path.
    pub fn steps(&self) -> u64 {
        self.depths().into_iter().map(u64::from).sum()
    }

    /// Returns the greatest depth at which the cut tree has at most `steps` steps.
    pub fn depth_within(&self, steps: u64) -> u32 {
        let mut depths = self.depths();
        depths.sort_unstable();
        let mut left = steps;
        let mut within = 1;
        for same in depths.chunk_by(|a, b| a == b) {
            let cost = u64::from(same[0]).saturating_mul(same.len() as u64);
            if cost > left {
                break;
            }
            left -= cost;
            within = same[0];
        }
        within
    }

    /// Cuts the tree below `depth`. Nodes at that depth absorb their descendants.
    pub fn cut(mut self, depth: u32) -> ClassTree {
        let depths = self.depths();
        for at in (0..self.nodes.len()).rev() {
            let node = self.nodes[at];
            if depths[at] > depth
                && let Some(NodeIndex(parent)) = node.parent
            {
                let above = &mut self.nodes[parent as usize];
                above.count = above.count.saturating_add(node.count);
                above.bytes = above.bytes.saturating_add(node.bytes);
            }
        }
        let mut moved = vec![0; self.nodes.len()];
        let mut kept: Vec<Node> = Vec::new();
        for (at, mut node) in self.nodes.into_iter().enumerate() {
            if depths[at] <= depth {
                node.parent = node.parent.map(|above| NodeIndex(moved[above.0 as usize]));
                moved[at] = kept.len() as u32;
                kept.push(node);
            }
        }
        ClassTree {
            names: self.names,
            nodes: kept,
        }
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

/// Numbered class names.
struct Names {
    names: Vec<String>,
    by_class: Vec<u32>,
    /// By class, the name number of `java.lang.Class<X>`. All class objects of an HPROF share one
    /// class; here each gets its own name, as in a heap graph.
    of_class_objects: Vec<u32>,
    /// By class, whether its instances are class objects.
    is_class: Vec<bool>,
}

impl Names {
    fn of(graph: &HeapGraph) -> Names {
        let mut numbers: HashMap<String, u32> = HashMap::new();
        let mut names = Vec::new();
        let mut number = |name: String| {
            *numbers.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        };
        let classes = graph.classes();
        let by_class = classes
            .iter()
            .map(|c| number(c.shown().to_owned()))
            .collect();
        let is_class: Vec<bool> = classes.iter().map(|c| c.name == label::CLASS).collect();
        let of_class_objects = match is_class.contains(&true) {
            true => {
                let name = |c: &Class| format!("{}<{}>", label::CLASS, c.shown());
                classes.iter().map(|c| number(name(c))).collect()
            }
            false => Vec::new(),
        };
        Names {
            names,
            by_class,
            of_class_objects,
            is_class,
        }
    }

    fn number(&self, graph: &HeapGraph, object: ObjectIndex) -> u32 {
        let class = graph.class_of(object).at();
        if self.is_class[class]
            && let Some(behind) = graph.class_behind(object)
        {
            return self.of_class_objects[behind.at()];
        }
        self.by_class[class]
    }
}

/// Parent of top nodes.
const TOP: u32 = u32::MAX;

fn build(
    graph: &HeapGraph,
    order: &[ObjectIndex],
    parent: impl Fn(ObjectIndex) -> Option<ObjectIndex>,
    merge: Merge,
) -> ClassTree {
    let names = Names::of(graph);
    let mut nodes: Vec<Node> = Vec::new();
    let mut index = Children::default();
    let mut node_of = vec![TOP; graph.len()];
    let mut is_root = ObjectSet::new(graph.len());
    for root in graph.roots() {
        is_root.insert(root.object);
    }
    // First object in dump order of each node.
    let mut first: Vec<ObjectIndex> = Vec::new();
    let mut natives = Vec::new();
    let has_native = !graph.natives().is_empty();
    for &object in order {
        let above = parent(object).map_or(TOP, |parent| node_of[parent.at()]);
        let name = names.number(graph, object);
        let heap = graph.heap_of(object);
        let joins =
            merge != Merge::Flamegraph && above != TOP && nodes[above as usize].name == name;
        let node = if joins {
            above
        } else {
            let root = match is_root.contains(object) {
                true => graph.root_kind(object),
                false => None,
            };
            let key = Key {
                parent: above,
                name,
                root,
                heap: match merge {
                    Merge::Collapsed => heap,
                    Merge::Flamegraph | Merge::Folded => HeapKind::Unknown,
                },
            };
            index.node(key, &mut nodes, heap)
        };
        node_of[object.at()] = node;
        if merge == Merge::Collapsed {
            match first.get_mut(node as usize) {
                Some(first) if graph.place(*first) < graph.place(object) => {}
                Some(first) => *first = object,
                None => first.push(object),
            }
        }
        let own = &mut nodes[node as usize];
        own.count += 1;
        own.bytes = own.bytes.saturating_add(graph.shallow_bytes(object));
        if has_native {
            let bytes = graph.native_bytes(object);
            if bytes != 0 {
                natives.push((node, bytes));
            }
        }
    }
    for (node, &object) in nodes.iter_mut().zip(&first) {
        node.root = graph.root_kind(object).filter(|_| node.parent.is_none());
    }
    natives.sort_by_key(|native| native.0);
    for own in natives.chunk_by(|a, b| a.0 == b.0) {
        let above = nodes[own[0].0 as usize];
        let bytes = own.iter().map(|native| native.1);
        nodes.push(Node {
            parent: Some(NodeIndex(own[0].0)),
            is_native: true,
            count: own.len() as u64,
            bytes: bytes.fold(0, u64::saturating_add),
            ..above
        });
    }
    let names = names.names;
    ClassTree { names, nodes }
}

/// Node identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    parent: u32,
    name: u32,
    root: Option<RootKind>,
    heap: HeapKind,
}

/// Nodes by key, as an open-addressing table of key hashes and node numbers. The keys are in the
/// nodes.
#[derive(Default)]
struct Children {
    hasher: Seed,
    slots: Vec<(u32, u32)>,
    /// Heap that is part of the key, by node.
    heaps: Vec<HeapKind>,
}

/// Random hash factor, so that a dump cannot force collisions.
struct Seed(u64);

impl Default for Seed {
    fn default() -> Seed {
        Seed(RandomState::new().hash_one(0) | 1)
    }
}

impl Children {
    /// Returns the node of a key; creates it if it does not exist.
    #[inline]
    fn node(&mut self, key: Key, nodes: &mut Vec<Node>, heap: HeapKind) -> u32 {
        if nodes.len() * 2 >= self.slots.len() {
            self.grow();
        }
        let mask = self.slots.len() - 1;
        let hash = self.hash(key);
        let mut at = hash as usize & mask;
        loop {
            let (found, node) = self.slots[at];
            if node == TOP {
                break;
            }
            if found == hash && self.key(node, nodes) == key {
                return node;
            }
            at = (at + 1) & mask;
        }
        let node = nodes.len() as u32;
        self.slots[at] = (hash, node);
        self.heaps.push(key.heap);
        nodes.push(Node {
            parent: (key.parent != TOP).then_some(NodeIndex(key.parent)),
            name: key.name,
            root: key.root,
            heap,
            is_native: false,
            count: 0,
            bytes: 0,
        });
        node
    }

    fn key(&self, node: u32, nodes: &[Node]) -> Key {
        let of = &nodes[node as usize];
        Key {
            parent: of.parent.map_or(TOP, |parent| parent.0),
            name: of.name,
            root: of.root,
            heap: self.heaps[node as usize],
        }
    }

    fn hash(&self, key: Key) -> u32 {
        let root = key.root.map_or(0, |root| root as u64 + 1);
        let words = u64::from(key.parent) << 32 | u64::from(key.name);
        let words = words ^ root << 24 ^ (key.heap as u64) << 29;
        let product = u128::from(words ^ self.hasher.0) * u128::from(self.hasher.0);
        ((product as u64) ^ (product >> 64) as u64) as u32
    }

    #[cold]
    fn grow(&mut self) {
        let size = (self.slots.len() * 2).max(64);
        let old = std::mem::replace(&mut self.slots, vec![(0, TOP); size]);
        for (hash, node) in old.into_iter().filter(|slot| slot.1 != TOP) {
            let mut at = hash as usize & (size - 1);
            while self.slots[at].1 != TOP {
                at = (at + 1) & (size - 1);
            }
            self.slots[at] = (hash, node);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::dsl;
    use super::*;
    use heaptap_model::heap_graph::Follow;

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

    fn tree(merge: Merge) -> (ClassTree, Vec<String>) {
        let heap = dsl::heap(HEAP);
        let paths = ShortestPaths::of(&heap.graph, Follow::default());
        let tree = ClassTree::of(&heap.graph, Over::ShortestPaths(&paths), merge);
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
        let (_, rows) = tree(Merge::Flamegraph);
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
        let (tree, rows) = tree(Merge::Folded);
        assert_eq!(
            rows[1..3],
            [
                "1 x.Node [ROOT_JNI_GLOBAL] 3 30 of 4 35",
                "2 java.lang.String 1 5 of 1 5"
            ]
        );
        assert_eq!(tree.steps(), 1 + 1 + 2 + 2 + 3);
    }

    #[test]
    fn what_is_cut_off_counts_above() {
        let (tree, _) = tree(Merge::Flamegraph);
        assert_eq!(tree.depth_within(tree.steps()), 4);
        assert_eq!(tree.depth_within(6), 2);
        assert_eq!(tree.depth_within(0), 1);
        let whole: u64 = tree.nodes.iter().map(|node| node.bytes).sum();
        let cut = tree.cut(2);
        assert_eq!(cut.nodes.len(), 4);
        assert_eq!(cut.nodes.iter().map(|node| node.bytes).sum::<u64>(), whole);
        assert_eq!(cut.depths().into_iter().max(), Some(2));
    }
}
