//! The tree of holders, and the same under construction.

use super::kinds::Kinds;
use super::numbers::{NONE, Numbers};
use crate::paths::{Link, RootReason};
use heaptap_model::heap_graph::{ObjectIndex, ObjectSet};
use heaptap_model::profile::index::FastHash;
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

/// Number of nodes to search back for a cycle. A longer cycle is shown as another holder.
const MAX_CYCLE_LEN: usize = 64;

/// Node identity: parent node, kind, and the node that contains the objects.
type Key = (u32, u32, u32);

/// [`Holder`] under construction.
pub(super) struct Node {
    kind: u32,
    /// Parent node; [`NONE`] for the first node.
    held: u32,
    same_as: u32,
    example: ObjectIndex,
    count: u64,
    pub(super) holds: u64,
    shallow_bytes: u64,
    /// The child node that was requested last: the next request is usually for the same one.
    latest: u32,
}

#[derive(Default)]
pub(super) struct Tree {
    pub(super) nodes: Vec<Node>,
    by_key: HashMap<Key, u32, FastHash>,
    /// Objects that are in one node and refer to objects of another: the other node above 32 bits
    /// of the object.
    referring: HashSet<u64, FastHash>,
    /// Root reasons by node.
    pub(super) roots: HashMap<u32, Roots>,
    /// Place of the nodes of a level in its order.
    ranks: Vec<u32>,
}

impl Tree {
    pub(super) fn add(&mut self, kind: u32, held: u32, same_as: u32, example: ObjectIndex) -> u32 {
        self.nodes.push(Node {
            kind,
            held,
            same_as,
            example,
            count: 0,
            holds: 0,
            shallow_bytes: 0,
            latest: NONE,
        });
        self.ranks.push(0);
        self.nodes.len() as u32 - 1
    }

    /// Counts an object of a node.
    #[inline]
    pub(super) fn count(&mut self, node: u32, bytes: u64) {
        let node = &mut self.nodes[node as usize];
        node.count += 1;
        node.shallow_bytes = node.shallow_bytes.saturating_add(bytes);
    }

    /// Sorts the objects of a level: those of nodes that hold most come first. Levels can be most of
    /// the heap, so those are sorted in linear time.
    pub(super) fn sort(&mut self, level: &mut Vec<ObjectIndex>, objects: usize, node_of: &Numbers) {
        let mut nodes: Vec<u32> = Vec::new();
        for object in level.iter() {
            let node = node_of.get(object.at());
            if nodes.last() != Some(&node) {
                nodes.push(node);
            }
        }
        nodes.sort_unstable_by_key(|&node| (Reverse(self.nodes[node as usize].holds), node));
        nodes.dedup();
        for (&node, rank) in nodes.iter().zip(0..) {
            self.ranks[node as usize] = rank;
        }
        ObjectSet::sort(objects, level);
        if nodes.len() == 1 {
            return;
        }
        let rank_of = |object: ObjectIndex| self.ranks[node_of.get(object.at()) as usize] as usize;
        // Index of the next object of each node.
        let mut next = vec![0; nodes.len() + 1];
        for &object in level.iter() {
            next[rank_of(object) + 1] += 1;
        }
        for rank in 1..next.len() {
            next[rank] += next[rank - 1];
        }
        let mut sorted = vec![ObjectIndex(0); level.len()];
        for &object in level.iter() {
            let place: &mut usize = &mut next[rank_of(object)];
            sorted[*place] = object;
            *place += 1;
        }
        *level = sorted;
    }

    /// Returns whether an object's node `known` is a node or one of its ancestors, which makes a
    /// cycle.
    pub(super) fn leads_back(&self, known: u32, node: u32) -> bool {
        let mut at = node;
        for _ in 0..MAX_CYCLE_LEN {
            // Nodes come after their parents, so `known` is not further up.
            if known >= at || at == NONE {
                return known == at && at != NONE;
            }
            at = self.nodes[at as usize].held;
        }
        false
    }

    /// Returns the node of that kind that refers to `below`; creates it if it does not exist.
    pub(super) fn node(&mut self, below: u32, kind: u32, example: ObjectIndex) -> u32 {
        match self.nodes[below as usize].kind == kind {
            true => below,
            false => self.keyed((below, kind, NONE), example),
        }
    }

    fn keyed(&mut self, key: Key, example: ObjectIndex) -> u32 {
        let (below, kind, same_as) = key;
        let latest = self.nodes[below as usize].latest;
        if let Some(node) = self.nodes.get(latest as usize)
            && (node.kind, node.same_as) == (kind, same_as)
        {
            return latest;
        }
        let node = match self.by_key.get(&key) {
            Some(&node) => node,
            None => {
                let node = self.add(kind, below, same_as, example);
                self.by_key.insert(key, node);
                node
            }
        };
        self.nodes[below as usize].latest = node;
        node
    }

    /// Returns the node for an object of `known` that also refers to an object of `below`.
    pub(super) fn refer(
        &mut self,
        below: u32,
        kind: u32,
        owner: ObjectIndex,
        known: u32,
        bytes: impl Fn() -> u64,
    ) -> u32 {
        let here = &self.nodes[known as usize];
        if here.held == below && here.kind == kind {
            return known;
        }
        let node = self.keyed((below, kind, known), owner);
        if self
            .referring
            .insert(u64::from(node) << 32 | u64::from(owner.0))
        {
            let node = &mut self.nodes[node as usize];
            node.count += 1;
            node.shallow_bytes = node.shallow_bytes.saturating_add(bytes());
        }
        node
    }

    /// Removes branches without a root and sorts the rest.
    pub(super) fn finish(mut self, name: &str, kinds: &Kinds<'_>) -> Holders {
        let steps = steps_to_roots(&self.nodes, &self.roots);
        let mut kept = Holders::default();
        let mut new = vec![usize::MAX; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if steps[at] == u32::MAX && at > 0 {
                continue;
            }
            new[at] = kept.nodes.len();
            let kind = kinds.get(node.kind);
            let roots = self.roots.remove(&(at as u32)).unwrap_or_default();
            let mut roots: Vec<_> = roots.into_values().collect();
            roots.sort_by_key(|root| Reverse(root.1));
            kept.nodes.push(Holder {
                name: kind.map_or(name, |kind| &kind.0).to_owned(),
                link: kind.map(|kind| kind.1.clone()),
                count: node.count,
                holds: node.holds,
                example: node.example,
                roots,
                shallow_bytes: node.shallow_bytes,
                held: new.get(node.held as usize).copied(),
                same_as: (node.same_as != NONE).then_some(node.same_as as usize),
                holders: Vec::new(),
            });
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
fn steps_to_roots(nodes: &[Node], roots: &HashMap<u32, Roots>) -> Vec<u32> {
    let mut steps = vec![u32::MAX; nodes.len()];
    let mut standing: HashMap<u32, Vec<u32>> = HashMap::new();
    for (node, at) in nodes.iter().zip(0..) {
        if node.same_as != NONE {
            standing.entry(node.same_as).or_default().push(at);
        }
    }
    let mut level: Vec<u32> = roots.keys().copied().collect();
    let mut distance = 0;
    while !level.is_empty() {
        let mut next = Vec::new();
        for at in level {
            if steps[at as usize] != u32::MAX {
                continue;
            }
            steps[at as usize] = distance;
            // The node of the starting objects does not continue other paths.
            if at > 0 {
                next.push(nodes[at as usize].held);
                next.extend(standing.get(&at).into_iter().flatten());
            }
        }
        level = next;
        distance += 1;
    }
    steps
}
