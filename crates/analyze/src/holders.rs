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
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, Follow, HeapGraph, ObjectIndex, ObjectSet, Referrers,
};
use heaptap_model::profile::index::FastHash;
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::rc::Rc;

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

/// Returns the reachable objects of classes, ascending, by the number that `number_of` gives a
/// class, below `numbers`.
pub fn objects_of(
    graph: &HeapGraph,
    dominators: &Dominators,
    numbers: usize,
    number_of: &[Option<usize>],
) -> Vec<Vec<ObjectIndex>> {
    let reachable = || graph.objects().filter(|&o| dominators.is_reachable(o));
    let number = |object| number_of[graph.class_of(object).at()];
    let mut counts = vec![0; numbers];
    for at in reachable().filter_map(number) {
        counts[at] += 1;
    }
    let mut objects: Vec<Vec<ObjectIndex>> = counts.into_iter().map(Vec::with_capacity).collect();
    for object in reachable() {
        if let Some(at) = number(object) {
            objects[at].push(object);
        }
    }
    objects
}

/// Search for holders. Several searches in one heap share the names of references.
pub struct Search<'a> {
    graph: &'a HeapGraph,
    dominators: &'a Dominators,
    referrers: &'a Referrers,
    links: Links<'a>,
    kinds: Kinds,
    roots: ObjectSet,
    /// Class objects differ in name, so a class that has some does not name its objects.
    has_class_objects: Vec<bool>,
    /// Node by object; [`NOWHERE`] for those that are in no node yet.
    node_of: Vec<u32>,
}

impl<'a> Search<'a> {
    /// Prepares searches along the references that `follow` follows. Needs 4 bytes per object.
    pub fn new(
        graph: &'a HeapGraph,
        dominators: &'a Dominators,
        referrers: &'a Referrers,
        follow: Follow,
    ) -> Search<'a> {
        let mut roots = ObjectSet::new(graph.len());
        for root in graph.roots() {
            roots.insert(root.object);
        }
        let classes = graph.classes().iter();
        let mut has_class_objects: Vec<bool> = classes
            .map(|class| label::represented(class.shown()).is_some())
            .collect();
        for &(object, _) in &graph.class_objects {
            has_class_objects[graph.class_of(object).at()] = true;
        }
        Search {
            graph,
            dominators,
            referrers,
            links: Links::of(graph, follow),
            kinds: Kinds::new(graph),
            roots,
            has_class_objects,
            node_of: vec![NOWHERE; graph.len()],
        }
    }

    /// Merges the paths from `targets` to roots. Unreachable targets do not count.
    pub fn holders(&mut self, name: &str, mut targets: Vec<ObjectIndex>) -> Holders {
        targets.retain(|&o| self.dominators.is_reachable(o));
        let Some(&example) = targets.first() else {
            return Holders::default();
        };
        let (graph, dominators, referrers) = (self.graph, self.dominators, self.referrers);
        self.node_of.fill(NOWHERE);
        let mut tree = Tree::default();
        tree.add(NO_KIND, NOWHERE, NOWHERE, example);
        for &target in &targets {
            self.join(&mut tree, target, 0);
        }
        let mut level = targets;
        let mut by: Vec<u32> = Vec::new();
        while !level.is_empty() {
            tree.sort(&mut level, &self.node_of);
            let mut next = Vec::new();
            for &object in &level {
                let below = self.node_of[object.at()];
                // Paths end at a root, but holders of a starting object are of interest even if it
                // is a root.
                if below != 0 && self.roots.contains(object) {
                    continue;
                }
                by.clear();
                for owner in referrers.to(object) {
                    let known = self.node_of[owner.at()];
                    if !dominators.is_reachable(owner) || tree.leads_back(known, below) {
                        continue;
                    }
                    let kind = self.kind(owner, object);
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
        tree.finish(name, &self.kinds)
    }

    #[inline]
    fn join(&mut self, tree: &mut Tree, object: ObjectIndex, node: u32) {
        self.node_of[object.at()] = node;
        let holder = &mut tree.nodes[node as usize];
        holder.count += 1;
        let own = self.graph.shallow_bytes(object);
        holder.shallow_bytes = holder.shallow_bytes.saturating_add(own);
        if self.roots.contains(object)
            && let Some(reason) = paths::root_reason(self.graph, object)
        {
            let roots = tree.roots.entry(node).or_default();
            roots.entry(reason.to_string()).or_insert((reason, 0)).1 += 1;
        }
    }

    /// Returns the kind of the first reference from `owner` to `target`.
    #[inline]
    fn kind(&mut self, owner: ObjectIndex, target: ObjectIndex) -> u32 {
        let class = self.graph.class_of(owner);
        let place = match self.has_class_objects[class.at()] {
            true => None,
            false => self.links.place(class, owner, target),
        };
        let known = place.and_then(|place| self.kinds.by_place[class.at()].get(place as usize));
        match known {
            Some(&kind) if kind != NO_KIND => kind,
            _ => self.named(class, place, owner, target),
        }
    }

    fn named(
        &mut self,
        class: ClassIndex,
        place: Option<u32>,
        owner: ObjectIndex,
        target: ObjectIndex,
    ) -> u32 {
        let name = label::object_name(self.graph, owner).into_owned();
        let kind = self.kinds.number(name, self.links.any(owner, target));
        if let Some(place) = place {
            let by_place = &mut self.kinds.by_place[class.at()];
            if by_place.len() <= place as usize {
                by_place.resize(place as usize + 1, NO_KIND);
            }
            by_place[place as usize] = kind;
        }
        kind
    }
}

/// Node of an object that is not in any node yet.
const NOWHERE: u32 = u32::MAX;
/// Kind of the starting objects.
const NO_KIND: u32 = u32::MAX;
/// Number of nodes to search back for a cycle. A longer cycle is shown as another holder.
const MAX_CYCLE_LEN: usize = 64;

/// Numbered names of holders, each with the reference by which they hold: comparing numbers takes
/// far less time than comparing texts.
struct Kinds {
    all: Vec<Rc<(String, Link)>>,
    numbers: HashMap<Rc<(String, Link)>, u32>,
    /// By class and by the result of [`Links::place`]; [`NO_KIND`] if not looked up yet.
    by_place: Vec<Vec<u32>>,
}

impl Kinds {
    fn new(graph: &HeapGraph) -> Kinds {
        Kinds {
            all: Vec::new(),
            numbers: HashMap::new(),
            by_place: vec![Vec::new(); graph.classes().len()],
        }
    }

    fn number(&mut self, name: String, link: Link) -> u32 {
        let key = Rc::new((name, link));
        let next = self.all.len() as u32;
        *self.numbers.entry(key).or_insert_with_key(|key| {
            self.all.push(Rc::clone(key));
            next
        })
    }
}

/// Node identity: parent node, kind, and the node that contains the objects.
type Key = (u32, u32, u32);

/// [`Holder`] under construction.
struct Node {
    kind: u32,
    /// Parent node; [`NOWHERE`] for the first node.
    held: u32,
    same_as: u32,
    example: ObjectIndex,
    count: u64,
    holds: u64,
    shallow_bytes: u64,
    /// The child node that was requested last: the next request is usually for the same one.
    latest: u32,
}

#[derive(Default)]
struct Tree {
    nodes: Vec<Node>,
    by_key: HashMap<Key, u32>,
    /// Objects that are in one node and refer to objects of another: the other node above 32 bits
    /// of the object.
    referring: HashSet<u64, FastHash>,
    /// Root reasons by node.
    roots: HashMap<u32, Roots>,
    /// Place of the nodes of a level in its order.
    ranks: Vec<u32>,
}

impl Tree {
    fn add(&mut self, kind: u32, held: u32, same_as: u32, example: ObjectIndex) -> u32 {
        self.nodes.push(Node {
            kind,
            held,
            same_as,
            example,
            count: 0,
            holds: 0,
            shallow_bytes: 0,
            latest: NOWHERE,
        });
        self.ranks.push(0);
        self.nodes.len() as u32 - 1
    }

    /// Sorts the objects of a level: those of nodes that hold most come first. Levels can be most of
    /// the heap, so those are sorted in linear time.
    fn sort(&mut self, level: &mut Vec<ObjectIndex>, node_of: &[u32]) {
        let mut nodes: Vec<u32> = Vec::new();
        for object in level.iter() {
            let node = node_of[object.at()];
            if nodes.last() != Some(&node) {
                nodes.push(node);
            }
        }
        nodes.sort_unstable_by_key(|&node| (Reverse(self.nodes[node as usize].holds), node));
        nodes.dedup();
        for (&node, rank) in nodes.iter().zip(0..) {
            self.ranks[node as usize] = rank;
        }
        if level.len() > node_of.len() / 64 {
            let mut set = ObjectSet::new(node_of.len());
            for &object in level.iter() {
                set.insert(object);
            }
            level.clear();
            level.extend(set.iter());
        } else {
            level.sort_unstable();
        }
        if nodes.len() == 1 {
            return;
        }
        let rank_of = |object: ObjectIndex| self.ranks[node_of[object.at()] as usize] as usize;
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
    fn leads_back(&self, known: u32, node: u32) -> bool {
        let mut at = node;
        for _ in 0..MAX_CYCLE_LEN {
            // Nodes come after their parents, so `known` is not further up.
            if known >= at || at == NOWHERE {
                return known == at && at != NOWHERE;
            }
            at = self.nodes[at as usize].held;
        }
        false
    }

    /// Returns the node of that kind that refers to `below`; creates it if it does not exist.
    fn node(&mut self, below: u32, kind: u32, example: ObjectIndex) -> u32 {
        match self.nodes[below as usize].kind == kind {
            true => below,
            false => self.keyed((below, kind, NOWHERE), example),
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
    fn refer(
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
    fn finish(mut self, name: &str, kinds: &Kinds) -> Holders {
        let steps = steps_to_roots(&self.nodes, &self.roots);
        let mut kept = Holders::default();
        let mut new = vec![usize::MAX; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate() {
            if steps[at] == u32::MAX && at > 0 {
                continue;
            }
            new[at] = kept.nodes.len();
            let kind = kinds.all.get(node.kind as usize);
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
                same_as: (node.same_as != NOWHERE).then_some(node.same_as as usize),
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
        if node.same_as != NOWHERE {
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
