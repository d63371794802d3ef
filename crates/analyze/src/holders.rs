//! All paths from objects to roots, merged: a tree from the objects outwards in which each node
//! stands for the objects of one class that refer by one field to those of the node before.
//!
//! Referrers are walked breadth first and each object counts once, at the node that reached it
//! first, the one with most objects going first. Where another node reaches it too, that node
//! gets a leaf that says where the object stands. A walk ends at roots, but for those among the
//! objects asked about. What leads to no root by objects other than those asked about is left
//! out. Objects of one class that hold each other by one field, as those of a linked list do,
//! share a node.

use super::label;
use super::paths::{self, Link, Links, RootReason};
use heaptap_model::heap_graph::{Dominators, Follow, HeapGraph, ObjectIndex, Referrers};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};

/// Objects of one class that hold those of the node before by one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// Class of the objects; `class X` for class objects.
    pub name: String,
    /// The reference by which they hold the node before, any element of an array alike; `None`
    /// for the objects asked about.
    pub link: Option<Link>,
    /// How many objects.
    pub count: u64,
    /// How many objects of the node before they hold.
    pub holds: u64,
    /// The first of them.
    pub example: ObjectIndex,
    /// Those of them that are roots, by the reason.
    pub roots: Vec<(RootReason, u64)>,
    /// Their shallow sizes, bytes.
    pub shallow_bytes: u64,
    /// The node before, by index; `None` for the first.
    pub held: Option<usize>,
    /// The objects stand at that node, which goes on from there; `None` for a node of its own.
    pub same_as: Option<usize>,
    /// Nodes that hold this one, by index, those that hold most of its objects first.
    pub holders: Vec<usize>,
}

/// The tree. Node 0 are the objects asked about; nodes come after those that they hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Holders {
    /// The nodes.
    pub nodes: Vec<Holder>,
}

/// Merges the paths to roots of `targets`, of which those that no root reaches do not count.
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
            // A root needs nobody to hold it; of those asked about, others are to be known.
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

/// An object that no node has yet.
const NOWHERE: usize = usize::MAX;
/// So many nodes back a circle is looked for. A longer one is shown as what it is not: one more
/// holder.
const MAX_CYCLE_LEN: usize = 64;

/// What makes a node: the one it holds, class, reference, and where its objects stand.
type Key = (usize, String, Link, Option<usize>);

struct Walk<'a> {
    graph: &'a HeapGraph,
    /// By object; [`NOWHERE`] for those that are in none yet.
    node_of: Vec<usize>,
    nodes: Vec<Holder>,
    by_key: HashMap<Key, usize>,
    /// Objects that stand at one node and hold those of others.
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

    /// Whether an object stands at a node or at one that the node holds: a circle.
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

    /// The node for holders of `below` with that name and link.
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

    /// The node for an object that stands at `known` and holds one of `below` too.
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

    /// Leaves out what leads nowhere and orders the rest.
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

/// Why objects of a node are roots, by its text, and how many.
type Roots = BTreeMap<String, (RootReason, u64)>;

/// Steps from each node to the nearest root, `u32::MAX` where none leads there.
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
            // What stands for the objects asked about leads nowhere else.
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
