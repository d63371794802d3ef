//! All paths from objects to roots, merged into a tree that starts at the objects. Each node
//! contains the objects of one class that refer by one field to the objects of its parent.
//!
//! Referrers are walked breadth first. Each object counts once, at the node that reached it first;
//! nodes with more objects go first. If another node reaches the object too, that node gets a leaf
//! that names the object's node. A walk ends at roots, except at roots among the starting objects.
//! Branches that lead to a root only through starting objects are omitted. Objects of one class
//! that refer to each other by one field, such as the links of a linked list, share a node.

use super::label;
use super::paths::{self, Link, Links, RootReason};
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph, ObjectIndex, Referrers};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

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
    /// Shallow bytes.
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

/// Merges the paths from `targets` to roots. Unreachable targets do not count.
pub fn holders(
    graph: &HeapGraph,
    dominators: &Dominators,
    referrers: &Referrers,
    follow: Follow,
    name: &str,
    targets: &[ObjectIndex],
) -> Holders {
    let mut targets = targets.to_vec();
    targets.retain(|&o| dominators.is_reachable(o));
    let Some(&example) = targets.first() else {
        return Holders::default();
    };
    let mut tree = Walk {
        graph,
        node_of: vec![NOWHERE; graph.len()],
        nodes: Vec::new(),
        by_key: HashMap::new(),
        referring: HashSet::new(),
        roots: Vec::new(),
    };
    tree.add(name.to_owned(), None, None, None, example);
    for &target in &targets {
        tree.join(target, 0);
    }
    let mut links = Links::of(graph, follow);
    let mut level = targets;
    while !level.is_empty() {
        level.sort_by_key(|&o| {
            let node = tree.node_of[o.at()];
            (Reverse(tree.nodes[node].holds), node, o)
        });
        let mut next = Vec::new();
        for &object in &level {
            let below = tree.node_of[object.at()];
            // Paths end at a root, but holders of a starting object are of interest even if it is a
            // root.
            if below != 0 && graph.root_kind(object).is_some() {
                continue;
            }
            let mut by = Vec::new();
            for owner in referrers.to(object) {
                if !dominators.is_reachable(owner) || tree.leads_back(owner, below) {
                    continue;
                }
                let link = links.any(owner, object);
                let name = label::object_name(graph, owner).into_owned();
                by.push(match tree.node_of[owner.at()] {
                    NOWHERE => {
                        let node = tree.node(below, name, link, owner);
                        tree.join(owner, node);
                        next.push(owner);
                        node
                    }
                    known => tree.refer(below, name, link, owner, known),
                });
            }
            by.sort_unstable();
            by.dedup();
            for node in by {
                tree.nodes[node].holds += 1;
            }
        }
        level = next;
    }
    tree.finish()
}

/// Node of an object that is not in any node yet.
const NOWHERE: usize = usize::MAX;
/// Number of nodes to search back for a cycle. A longer cycle is shown as another holder.
const MAX_CYCLE_LEN: usize = 64;

/// Node identity: parent node, class, reference, and the node that contains the objects.
type Key = (usize, String, Link, Option<usize>);

struct Walk<'a> {
    graph: &'a HeapGraph,
    /// By object; [`NOWHERE`] for those that are in no node yet.
    node_of: Vec<usize>,
    nodes: Vec<Holder>,
    by_key: HashMap<Key, usize>,
    /// Objects that are in one node and refer to objects of another.
    referring: HashSet<(usize, ObjectIndex)>,
    roots: Vec<Roots>,
}

impl Walk<'_> {
    fn add(
        &mut self,
        name: String,
        link: Option<Link>,
        held: Option<usize>,
        same_as: Option<usize>,
        example: ObjectIndex,
    ) -> usize {
        self.nodes.push(Holder {
            name,
            link,
            count: 0,
            holds: 0,
            example,
            roots: Vec::new(),
            shallow_bytes: 0,
            held,
            same_as,
            holders: Vec::new(),
        });
        self.roots.push(BTreeMap::new());
        self.nodes.len() - 1
    }

    /// Returns whether an object belongs to a node or to one of its ancestors, which makes a cycle.
    fn leads_back(&self, object: ObjectIndex, node: usize) -> bool {
        let known = self.node_of[object.at()];
        let mut at = Some(node);
        known != NOWHERE
            && (0..MAX_CYCLE_LEN).any(|_| {
                let here = at;
                at = at.and_then(|at| self.nodes[at].held);
                here == Some(known)
            })
    }

    /// Returns the node with that name and link that refers to `below`; creates it if it does not
    /// exist.
    fn node(&mut self, below: usize, name: String, link: Link, example: ObjectIndex) -> usize {
        let before = &self.nodes[below];
        if before.link.as_ref() == Some(&link) && before.name == name {
            return below;
        }
        self.keyed((below, name, link, None), example)
    }

    fn keyed(&mut self, key: Key, example: ObjectIndex) -> usize {
        if let Some(&node) = self.by_key.get(&key) {
            return node;
        }
        let (below, name, link, same_as) = key.clone();
        let node = self.add(name, Some(link), Some(below), same_as, example);
        self.by_key.insert(key, node);
        node
    }

    /// Returns the node for an object that is in `known` and also refers to an object of `below`.
    fn refer(
        &mut self,
        below: usize,
        name: String,
        link: Link,
        owner: ObjectIndex,
        known: usize,
    ) -> usize {
        let here = &self.nodes[known];
        if here.held == Some(below) && here.link.as_ref() == Some(&link) && here.name == name {
            return known;
        }
        let node = self.keyed((below, name, link, Some(known)), owner);
        if self.referring.insert((node, owner)) {
            self.nodes[node].count += 1;
            let sum = &mut self.nodes[node].shallow_bytes;
            *sum = sum.saturating_add(self.graph.shallow_bytes(owner));
        }
        node
    }

    fn join(&mut self, object: ObjectIndex, node: usize) {
        self.node_of[object.at()] = node;
        let holder = &mut self.nodes[node];
        holder.count += 1;
        let own = self.graph.shallow_bytes(object);
        holder.shallow_bytes = holder.shallow_bytes.saturating_add(own);
        if let Some(reason) = paths::root_reason(self.graph, object) {
            let entry = self.roots[node].entry(reason.to_string());
            entry.or_insert((reason, 0)).1 += 1;
        }
    }

    /// Removes branches without a root and sorts the rest.
    fn finish(self) -> Holders {
        let Walk { nodes, roots, .. } = self;
        let steps = steps_to_roots(&nodes, &roots);
        let mut kept = Holders::default();
        let mut new = vec![usize::MAX; nodes.len()];
        for (at, (mut node, roots)) in nodes.into_iter().zip(roots).enumerate() {
            if steps[at] == u32::MAX && at > 0 {
                continue;
            }
            new[at] = kept.nodes.len();
            node.held = node.held.map(|held| new[held]);
            node.roots = roots.into_values().collect();
            node.roots.sort_by_key(|root| Reverse(root.1));
            kept.nodes.push(node);
        }
        let mut order: Vec<(usize, usize)> = (0..new.len())
            .filter(|&at| new[at] != usize::MAX)
            .map(|at| (at, new[at]))
            .collect();
        order.sort_by_key(|&(old, new)| (Reverse(kept.nodes[new].holds), steps[old], new));
        for (_, at) in order {
            if let Some(held) = kept.nodes[at].held {
                kept.nodes[held].holders.push(at);
            }
        }
        for node in &mut kept.nodes {
            node.same_as = node.same_as.map(|same| new[same]);
        }
        kept
    }
}

/// Root reasons of a node's objects with their number, by the text of the reason.
type Roots = BTreeMap<String, (RootReason, u64)>;

/// Returns the steps from each node to the nearest root; `u32::MAX` if there is no root.
fn steps_to_roots(nodes: &[Holder], roots: &[Roots]) -> Vec<u32> {
    let mut steps = vec![u32::MAX; nodes.len()];
    let mut standing: HashMap<usize, Vec<usize>> = HashMap::new();
    for (at, node) in nodes.iter().enumerate() {
        if let Some(same) = node.same_as {
            standing.entry(same).or_default().push(at);
        }
    }
    let mut level: Vec<usize> = (0..nodes.len())
        .filter(|&at| !roots[at].is_empty())
        .collect();
    let mut distance = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for at in level {
            if steps[at] != u32::MAX {
                continue;
            }
            steps[at] = distance;
            // The node of the starting objects does not continue other paths.
            if at > 0 {
                next.extend(nodes[at].held);
                next.extend(standing.get(&at).into_iter().flatten());
            }
        }
        level = next;
        distance += 1;
    }
    steps
}
