//! All paths from objects to roots, merged: a tree from the objects outwards in which each node
//! stands for the objects of one class that refer by one field to those of the node before.
//!
//! Referrers are walked breadth first and each object counts once, at the node that reached it
//! first. A walk ends at roots. Nodes from which nothing goes on to a root but by objects that
//! stand elsewhere in the tree are left out. Objects of one class that hold each other by one
//! field, as those of a linked list do, share a node.

use super::label;
use super::paths::{self, Link, RootReason};
use crate::heap_graph::{Dominators, Follow, HeapGraph, ObjectIndex, Referrers};
use std::collections::{BTreeMap, HashMap, VecDeque};

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
    /// The first of them.
    pub example: ObjectIndex,
    /// Those of them that are roots, by the reason.
    pub roots: Vec<(RootReason, u64)>,
    /// Their shallow sizes, bytes.
    pub shallow_bytes: u64,
    /// The node before, by index; `None` for the first.
    pub held: Option<usize>,
    /// Nodes that hold this one, by index, those nearest to roots first.
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
    let mut tree = Walk {
        graph,
        node_of: vec![usize::MAX; graph.len()],
        nodes: Vec::new(),
        by_key: HashMap::new(),
        roots: Vec::new(),
    };
    let Some(&example) = targets.first() else {
        return Holders::default();
    };
    tree.nodes.push(Holder {
        name: name.to_owned(),
        link: None,
        count: 0,
        example,
        roots: Vec::new(),
        shallow_bytes: 0,
        held: None,
        holders: Vec::new(),
    });
    tree.roots.push(BTreeMap::new());
    let mut queue: VecDeque<ObjectIndex> = targets.iter().copied().collect();
    for &target in &targets {
        tree.join(target, 0);
    }
    while let Some(object) = queue.pop_front() {
        // A root needs nobody to hold it.
        if graph.root_kind(object).is_some() {
            continue;
        }
        let below = tree.node_of[object.at()];
        for owner in referrers.to(object) {
            // One that refers twice holds once.
            if tree.node_of[owner.at()] != usize::MAX || !dominators.is_reachable(owner) {
                continue;
            }
            let link = paths::link(graph, owner, object, follow).any_element();
            let name = label::object_name(graph, owner).into_owned();
            let node = tree.node(below, name, link, owner);
            tree.join(owner, node);
            queue.push_back(owner);
        }
    }
    tree.finish()
}

struct Walk<'a> {
    graph: &'a HeapGraph,
    /// By object; `usize::MAX` for those that are in none yet.
    node_of: Vec<usize>,
    nodes: Vec<Holder>,
    by_key: HashMap<(usize, String, Link), usize>,
    roots: Vec<BTreeMap<String, (RootReason, u64)>>,
}

impl Walk<'_> {
    /// The node for holders of `below` with that name and link.
    fn node(&mut self, below: usize, name: String, link: Link, example: ObjectIndex) -> usize {
        let before = &self.nodes[below];
        if before.link.as_ref() == Some(&link) && before.name == name {
            return below;
        }
        let key = (below, name, link);
        if let Some(&node) = self.by_key.get(&key) {
            return node;
        }
        let node = self.nodes.len();
        self.nodes.push(Holder {
            name: key.1.clone(),
            link: Some(key.2.clone()),
            count: 0,
            example,
            roots: Vec::new(),
            shallow_bytes: 0,
            held: Some(below),
            holders: Vec::new(),
        });
        self.roots.push(BTreeMap::new());
        self.by_key.insert(key, node);
        node
    }

    fn join(&mut self, object: ObjectIndex, node: usize) {
        self.node_of[object.at()] = node;
        let holder = &mut self.nodes[node];
        holder.count += 1;
        holder.shallow_bytes += self.graph.shallow_bytes(object);
        if let Some(reason) = paths::root_reason(self.graph, object) {
            let entry = self.roots[node].entry(reason.to_string());
            entry.or_insert((reason, 0)).1 += 1;
        }
    }

    /// Leaves out what leads nowhere and orders the rest.
    fn finish(self) -> Holders {
        let Walk { nodes, roots, .. } = self;
        // Steps from each node to the nearest root; nodes come after those that they hold.
        let mut steps = vec![u32::MAX; nodes.len()];
        for at in (0..nodes.len()).rev() {
            if !roots[at].is_empty() {
                steps[at] = 0;
            }
            if let (Some(held), true) = (nodes[at].held, steps[at] < u32::MAX) {
                steps[held] = steps[held].min(steps[at] + 1);
            }
        }
        let mut kept = Holders::default();
        let mut new = vec![usize::MAX; nodes.len()];
        for (at, (mut node, roots)) in nodes.into_iter().zip(roots).enumerate() {
            if steps[at] == u32::MAX && at > 0 {
                continue;
            }
            new[at] = kept.nodes.len();
            node.held = node.held.map(|held| new[held]);
            node.roots = roots.into_values().collect();
            node.roots.sort_by_key(|root| std::cmp::Reverse(root.1));
            kept.nodes.push(node);
        }
        let mut order: Vec<(usize, usize)> = (0..new.len())
            .filter(|&at| new[at] != usize::MAX)
            .map(|at| (at, new[at]))
            .collect();
        order
            .sort_by_key(|&(old, new)| (steps[old], std::cmp::Reverse(kept.nodes[new].count), new));
        for (_, at) in order {
            if let Some(held) = kept.nodes[at].held {
                kept.nodes[held].holders.push(at);
            }
        }
        kept
    }
}
