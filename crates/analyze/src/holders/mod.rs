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
//! | `numbers` | a column of small numbers |
//! | `tree` | the tree, also while it is built |

mod kinds;
mod numbers;
mod tree;

pub use kinds::{KindedReferrers, Reading};
pub use tree::{Holder, Holders};

use super::paths;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, ObjectSet, Reachable};
use numbers::{NONE, Numbers};
use tree::Tree;

/// The next level of a walk, and room for the nodes of an object's referrers.
#[derive(Default)]
struct Level {
    next: Vec<ObjectIndex>,
    by: Vec<u32>,
}

/// Search for holders among reachable objects. Several searches in one heap share the reversed
/// references and the names of references.
pub struct Search<'a> {
    graph: &'a HeapGraph,
    referrers: KindedReferrers<'a>,
    roots: ObjectSet,
    reachable: &'a Reachable,
    /// Node by object; [`NONE`] for those that are in no node yet.
    node_of: Numbers,
}

impl<'a> Search<'a> {
    /// Prepares searches. Needs 2 bytes per object.
    pub fn new(referrers: KindedReferrers<'a>, reachable: &'a Reachable) -> Search<'a> {
        let graph = referrers.kinds.graph;
        let roots = graph.root_set();
        Search {
            graph,
            referrers,
            roots,
            reachable,
            node_of: Numbers::new(0),
        }
    }

    /// Merges the paths from `targets` to roots. Unreachable targets do not count.
    pub fn holders(&mut self, name: &str, mut targets: ObjectSet) -> Holders {
        targets.retain(self.reachable.objects());
        let Some(example) = targets.iter().next() else {
            return Holders::default();
        };
        self.node_of.clear(self.graph.len());
        let mut tree = Tree::default();
        tree.add(NONE, NONE, NONE, example);
        for target in targets.iter() {
            self.join(&mut tree, target, 0);
        }
        let mut level = Level::default();
        for target in targets.iter() {
            self.look_up(&mut tree, &mut level, target);
        }
        while !level.next.is_empty() {
            let mut objects = std::mem::take(&mut level.next);
            tree.sort(&mut objects, self.graph.len(), &self.node_of);
            for object in objects {
                self.look_up(&mut tree, &mut level, object);
            }
        }
        tree.finish(name, &self.referrers.kinds)
    }

    /// Adds the referrers of an object to the tree.
    fn look_up(&mut self, tree: &mut Tree, level: &mut Level, object: ObjectIndex) {
        let graph = self.graph;
        let below = self.node_of.get(object.at());
        // Here and not where it joins, because now objects come in the order of sizes.
        tree.count(below, graph.shallow_bytes(object));
        // Paths end at a root, but holders of a starting object are of interest even if it
        // is a root.
        if below != 0 && self.roots.contains(object) {
            return;
        }
        let Level { next, by } = level;
        by.clear();
        let mut entries = self.referrers.entries(object);
        while let Some((owner, entry)) = self.referrers.next(&mut entries, object) {
            let known = self.node_of.get(owner.at());
            if known == NONE && !self.reachable.contains(owner) {
                continue;
            }
            if tree.leads_back(known, below) {
                continue;
            }
            let kind = self.referrers.kind(entry, owner, object);
            by.push(if known == NONE {
                let node = tree.node(below, kind, owner);
                self.join(tree, owner, node);
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
        for &node in &*by {
            tree.nodes[node as usize].holds += 1;
        }
    }

    #[inline]
    fn join(&mut self, tree: &mut Tree, object: ObjectIndex, node: u32) {
        self.node_of.set(object.at(), node);
        if self.roots.contains(object)
            && let Some(reason) = paths::root_reason(self.graph, object)
        {
            let roots = tree.roots.entry(node).or_default();
            roots.entry(reason.to_string()).or_insert((reason, 0)).1 += 1;
        }
    }
}
