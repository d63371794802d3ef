//! All paths from objects to roots, merged into a tree that starts at the objects. Each node
//! contains the objects of one class that refer by one field to the objects of its parent.
//!
//! Referrers are walked breadth first. Each object counts once, at the node that reached it first;
//! nodes with more objects go first. If another node reaches the object too, that node gets a leaf
//! that names the object's node. A walk ends at roots, except at roots among the starting objects.
//! Branches that lead to a root only through starting objects are omitted. Objects of one class
//! that refer to each other by one field, such as the links of a linked list, share a node.

//!
//! | file | owns |
//! |---|---|
//! | `kinds` | reversed references with their kinds |
//! | `tree` | the tree while it is built |

mod kinds;
mod tree;

pub use kinds::{KindedReferrers, Reading};

use super::paths::{self, Link, RootReason};
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, ObjectSet, Reachable};
use kinds::NO_KIND;
use tree::{NOWHERE, Tree, UNREACHABLE};

/// Objects of one class that refer by one field to those of the parent node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Class of the objects; `class X` for class objects.
    pub name: String,
    /// Reference to the objects of the parent node, with all array elements alike; `None` for the
    /// starting objects.
    pub link: Option<Link>,
    /// Number of objects.
    pub count: u64,
    /// Number of objects of the parent node that they refer to.
    pub holds: u64,
    /// First of the objects.
    pub example: ObjectIndex,
    /// Root reasons of objects that are roots, with their number.
    pub roots: Vec<(RootReason, u64)>,
    pub shallow_bytes: u64,
    /// Index of the parent node; `None` for the first node.
    pub held: Option<usize>,
    /// Node that contains the objects and continues their paths; `None` if this node does.
    pub same_as: Option<usize>,
    /// Indexes of the nodes whose objects refer to those of this node, largest number of referenced
    /// objects first.
    pub holders: Vec<usize>,
}

/// Tree of holders. Node 0 contains the starting objects; nodes come after their parents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    pub nodes: Vec<Holder>,
}

/// Objects of several groups of classes, in a byte per object: a walk over all objects for each group
/// takes far longer.
pub struct Members {
    groups: Vec<u8>,
}

/// Objects of no group.
const NO_GROUP: u8 = u8::MAX;

impl Members {
    /// Finds the objects of the groups below 255 that `group_of` gives to classes.
    pub fn of(graph: &HeapGraph, group_of: &[Option<u8>]) -> Members {
        let group = |object| group_of[graph.class_of(object).at()].unwrap_or(NO_GROUP);
        Members {
            groups: graph.objects().map(group).collect(),
        }
    }

    /// Returns the objects of a group, ascending.
    pub fn of_group(&self, group: u8) -> Vec<ObjectIndex> {
        memchr::memchr_iter(group, &self.groups)
            .map(|at| ObjectIndex(at as u32))
            .collect()
    }
}

/// Search for holders among reachable objects. Several searches in one heap share the reversed
/// references and the names of references.
pub struct Search<'a> {
    graph: &'a HeapGraph,
    referrers: KindedReferrers<'a>,
    roots: ObjectSet,
    reachable: &'a Reachable,
    /// Node by object; [`NOWHERE`] for those that are in no node yet, [`UNREACHABLE`] for those that
    /// never are.
    node_of: Vec<u32>,
}

impl<'a> Search<'a> {
    /// Prepares searches. Needs 4 bytes per object.
    pub fn new(referrers: KindedReferrers<'a>, reachable: &'a Reachable) -> Search<'a> {
        let graph = referrers.kinds.graph;
        let roots = graph.root_set();
        Search {
            graph,
            referrers,
            roots,
            reachable,
            node_of: Vec::new(),
        }
    }

    /// Merges the paths from `targets` to roots. Unreachable targets do not count.
    pub fn holders(&mut self, name: &str, mut targets: Vec<ObjectIndex>) -> Holders {
        targets.retain(|&o| self.reachable.contains(o));
        let Some(&example) = targets.first() else {
            return Holders::default();
        };
        let graph = self.graph;
        self.forget_nodes();
        let mut tree = Tree::default();
        tree.add(NO_KIND, NOWHERE, NOWHERE, example);
        for &target in &targets {
            self.join(&mut tree, target, 0);
        }
        let mut level = targets;
        let mut by: Vec<u32> = Vec::new();
        let mut owners: Vec<(ObjectIndex, usize)> = Vec::new();
        while !level.is_empty() {
            tree.sort(&mut level, &self.node_of);
            let mut next = Vec::new();
            for &object in &level {
                let below = self.node_of[object.at()];
                // Here and not where it joins, because now objects come in the order of sizes.
                tree.count(below, graph.shallow_bytes(object));
                // Paths end at a root, but holders of a starting object are of interest even if it
                // is a root.
                if below != 0 && self.roots.contains(object) {
                    continue;
                }
                by.clear();
                owners.clear();
                owners.extend(self.referrers.to(object));
                for &(owner, entry) in &owners {
                    let known = self.node_of[owner.at()];
                    if known == UNREACHABLE {
                        continue;
                    }
                    if tree.leads_back(known, below) {
                        continue;
                    }
                    let kind = self.referrers.kind(entry, owner, object);
                    by.push(if known == NOWHERE {
                        let node = tree.node(below, kind, owner);
                        self.join(&mut tree, owner, node);
                        next.push(owner);
                        node
                    } else {
                        let bytes = || graph.shallow_bytes(owner);
                        tree.refer(below, kind, owner, known, bytes)
                    });
                }
                if by.len() > 1 {
                    by.sort_unstable();
                    by.dedup();
                }
                for &node in &by {
                    tree.nodes[node as usize].holds += 1;
                }
            }
            level = next;
        }
        tree.finish(name, &self.referrers.kinds)
    }

    fn forget_nodes(&mut self) {
        self.node_of.clear();
        self.node_of.resize(self.graph.len(), NOWHERE);
        let unreachable = self.reachable.objects().missing(self.graph.len());
        unreachable.for_each(|object| self.node_of[object.at()] = UNREACHABLE);
    }

    #[inline]
    fn join(&mut self, tree: &mut Tree, object: ObjectIndex, node: u32) {
        self.node_of[object.at()] = node;
        if self.roots.contains(object)
            && let Some(reason) = paths::root_reason(self.graph, object)
        {
            let roots = tree.roots.entry(node).or_default();
            roots.entry(reason.to_string()).or_insert((reason, 0)).1 += 1;
        }
    }
}
