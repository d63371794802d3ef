//! Builder of class trees: merges objects into nodes by their parent's node and their name.

use super::super::label;
use super::tree::{ClassTree, Merge, Node, NodeIndex};
use heaptap_model::heap_graph::{Class, HeapGraph, HeapKind, ObjectIndex, ObjectSet, RootKind};
use heaptap_model::profile::index::{FastHash, Index, Seed};
use std::collections::HashMap;

/// Numbered class names.
struct Names {
    names: Vec<String>,
    /// By class, the number; [`OF_CLASSES`] if its instances are class objects.
    by_class: Vec<u32>,
    /// By class, the name number of `java.lang.Class<X>`. All class objects of an HPROF share one
    /// class; here each gets its own name, as in a heap graph.
    of_class_objects: Vec<u32>,
    /// Number of the name `java.lang.Class`.
    class: u32,
}

/// Mark of classes whose instances are class objects.
const OF_CLASSES: u32 = u32::MAX;

impl Names {
    fn from_graph(graph: &HeapGraph) -> Names {
        let mut numbers: HashMap<String, u32, FastHash> = HashMap::default();
        let mut names = Vec::new();
        let mut number = |name: String| {
            *numbers.entry(name).or_insert_with_key(|name| {
                names.push(name.clone());
                names.len() as u32 - 1
            })
        };
        let classes = graph.classes();
        let mut class = OF_CLASSES;
        let by_class = |c: &Class| {
            let number = number(c.shown().to_owned());
            match c.name == label::CLASS {
                true => {
                    class = number;
                    OF_CLASSES
                }
                false => number,
            }
        };
        let by_class: Vec<u32> = classes.iter().map(by_class).collect();
        let of_class_objects = match by_class.contains(&OF_CLASSES) {
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
            class,
        }
    }

    #[inline]
    fn number(&self, graph: &HeapGraph, object: ObjectIndex) -> u32 {
        let number = self.by_class[graph.class_of(object).at()];
        match number == OF_CLASSES {
            true => self.of_class_object(graph, object),
            false => number,
        }
    }

    #[cold]
    fn of_class_object(&self, graph: &HeapGraph, object: ObjectIndex) -> u32 {
        let behind = graph.class_behind(object);
        behind.map_or(self.class, |class| self.of_class_objects[class.at()])
    }
}

/// Parent of top nodes.
pub(super) const TOP: u32 = u32::MAX;

/// A tree under construction. Objects come after those above them.
pub(super) struct Builder<'a> {
    graph: &'a HeapGraph,
    merge: Merge,
    names: Names,
    is_root: ObjectSet,
    nodes: Vec<Node>,
    index: Children,
    /// First object in dump order of each node, for [`Merge::Collapsed`].
    first: Vec<ObjectIndex>,
    /// Nodes and native bytes of objects that have some.
    natives: Vec<(u32, u64)>,
}

impl<'a> Builder<'a> {
    pub(super) fn new(graph: &'a HeapGraph, merge: Merge) -> Builder<'a> {
        let is_root = graph.root_set();
        Builder {
            graph,
            merge,
            names: Names::from_graph(graph),
            is_root,
            nodes: Vec::new(),
            index: Children::default(),
            first: Vec::new(),
            natives: Vec::new(),
        }
    }

    /// Adds an object below a node, or below [`TOP`]. Returns its node.
    #[inline]
    pub(super) fn add(&mut self, object: ObjectIndex, above: u32) -> u32 {
        let graph = self.graph;
        let name = self.names.number(graph, object);
        let is_collapsed = self.merge == Merge::Collapsed;
        let joins = is_collapsed && above != TOP && self.nodes[above as usize].name == name;
        let node = if joins {
            above
        } else {
            let key = Key {
                parent: above,
                name,
                root: match self.is_root.contains(object) {
                    true => graph.root_kind(object),
                    false => None,
                },
                heap: match is_collapsed {
                    true => graph.heap_of(object),
                    false => HeapKind::Unknown,
                },
            };
            let heap = || graph.heap_of(object);
            self.index.node(key, &mut self.nodes, heap)
        };
        if is_collapsed {
            match self.first.get_mut(node as usize) {
                Some(first) if graph.place(*first) < graph.place(object) => {}
                Some(first) => *first = object,
                None => self.first.push(object),
            }
        }
        let own = &mut self.nodes[node as usize];
        own.count += 1;
        own.bytes = own.bytes.saturating_add(graph.shallow_bytes(object));
        if !graph.natives().is_empty() {
            let bytes = graph.native_bytes(object);
            if bytes != 0 {
                self.natives.push((node, bytes));
            }
        }
        node
    }

    pub(super) fn finish(mut self) -> ClassTree {
        for (node, &object) in self.nodes.iter_mut().zip(&self.first) {
            node.root = self
                .graph
                .root_kind(object)
                .filter(|_| node.parent.is_none());
        }
        let natives = self.natives.into_iter();
        add_natives(
            &mut self.nodes,
            natives.map(|(node, bytes)| (node, 1, bytes)),
        );
        ClassTree {
            names: self.names.names,
            nodes: self.nodes,
        }
    }
}

/// Appends a child for the native bytes of each node, given nodes, numbers of objects, and their
/// native bytes.
fn add_natives(nodes: &mut Vec<Node>, natives: impl Iterator<Item = (u32, u64, u64)>) {
    let mut natives: Vec<_> = natives.collect();
    natives.sort_by_key(|native| native.0);
    for own in natives.chunk_by(|a, b| a.0 == b.0) {
        let above = nodes[own[0].0 as usize];
        let bytes = own.iter().map(|native| native.2);
        nodes.push(Node {
            parent: Some(NodeIndex(own[0].0)),
            is_native: true,
            count: own.iter().map(|native| native.1).sum(),
            bytes: bytes.fold(0, u64::saturating_add),
            ..above
        });
    }
}

/// See [`ClassTree::folded`]. Nodes are in the order of their first objects before and after, so they
/// move down within their vector.
pub(super) fn folded(mut tree: ClassTree) -> ClassTree {
    let nodes = &mut tree.nodes;
    let joined = |node: &Node, above: &Node| !node.is_native && above.name == node.name;
    // Children of one node have different keys, so only those of several nodes are compared.
    let mut is_merged = vec![false; nodes.len()];
    for (at, node) in nodes.iter().enumerate() {
        if let Some(NodeIndex(above)) = node.parent
            && joined(node, &nodes[above as usize])
        {
            is_merged[above as usize] = true;
            is_merged[at] = true;
        }
    }
    let (seed, mut index) = (Seed::default(), Index::default());
    let mut natives = Vec::new();
    let mut folded_of: Vec<u32> = Vec::with_capacity(nodes.len());
    let mut kept = 0;
    for at in 0..nodes.len() {
        let mut node = nodes[at];
        let before = node.parent;
        let parent = before.map(|above| folded_of[above.0 as usize]);
        node.parent = parent.map(NodeIndex);
        let to = match (before, parent) {
            // They come last.
            (_, Some(parent)) if node.is_native => {
                natives.push((parent, node.count, node.bytes));
                continue;
            }
            (_, Some(parent)) if joined(&node, &nodes[parent as usize]) => parent,
            (Some(before), Some(parent)) if is_merged[before.0 as usize] => {
                let root = node.root.map_or(0, |root| root as u32 + 1);
                let hash = seed.words(&[parent, node.name, root]);
                let same = |known: u32| {
                    let known = &nodes[known as usize];
                    (known.parent, known.name, known.root) == (node.parent, node.name, node.root)
                };
                index.find_or_insert(hash, kept, same).0
            }
            _ => kept,
        };
        folded_of.push(to);
        if to == kept {
            nodes[to as usize] = node;
            kept += 1;
            continue;
        }
        let own = &mut nodes[to as usize];
        own.count += node.count;
        own.bytes = own.bytes.saturating_add(node.bytes);
    }
    nodes.truncate(kept as usize);
    add_natives(nodes, natives.into_iter());
    tree
}

/// Node identity.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct Key {
    parent: u32,
    name: u32,
    root: Option<RootKind>,
    heap: HeapKind,
}

/// Nodes by key. The keys are in the nodes.
struct Children {
    seed: Seed,
    index: Index,
    /// Nodes that were asked for lately, by their keys: most objects join few nodes.
    recent: Vec<(Key, u32)>,
    /// Heap that is part of the key, by node.
    heaps: Vec<HeapKind>,
}

/// Number of bits that choose a place among the recent nodes, which fit into the fastest cache.
const RECENT_BITS: u32 = 10;

/// A key that no node has.
const NO_KEY: Key = Key {
    parent: TOP,
    name: u32::MAX,
    root: None,
    heap: HeapKind::Unknown,
};

impl Default for Children {
    fn default() -> Children {
        Children {
            seed: Seed::default(),
            index: Index::default(),
            recent: vec![(NO_KEY, 0); 1 << RECENT_BITS],
            heaps: Vec::new(),
        }
    }
}

impl Children {
    /// Returns the node of a key; creates it if it does not exist.
    #[inline]
    fn node(&mut self, key: Key, nodes: &mut Vec<Node>, heap: impl Fn() -> HeapKind) -> u32 {
        let spread = (key.parent ^ key.name << 16).wrapping_mul(0x9e37_79b1);
        let place = (spread >> (u32::BITS - RECENT_BITS)) as usize;
        let recent = self.recent[place];
        if recent.0 == key {
            return recent.1;
        }
        let node = self.find(key, nodes, heap);
        self.recent[place] = (key, node);
        node
    }

    /// Does the same by the index of all nodes.
    fn find(&mut self, key: Key, nodes: &mut Vec<Node>, heap: impl Fn() -> HeapKind) -> u32 {
        let root = key.root.map_or(0, |root| root as u32 + 1);
        let words = [key.parent, key.name, root << 8 | key.heap as u32];
        let next = nodes.len() as u32;
        let known = |node| key_of(node, nodes, &self.heaps) == key;
        let (node, is_known) = self
            .index
            .find_or_insert(self.seed.words(&words), next, known);
        if !is_known {
            self.heaps.push(key.heap);
            nodes.push(Node {
                parent: (key.parent != TOP).then_some(NodeIndex(key.parent)),
                name: key.name,
                root: key.root,
                heap: heap(),
                is_native: false,
                count: 0,
                bytes: 0,
            });
        }
        node
    }
}

fn key_of(node: u32, nodes: &[Node], heaps: &[HeapKind]) -> Key {
    let of = &nodes[node as usize];
    Key {
        parent: of.parent.map_or(TOP, |parent| parent.0),
        name: of.name,
        root: of.root,
        heap: heaps[node as usize],
    }
}
