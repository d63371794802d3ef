//! A depth-first tree over everything reachable, and the references that are not part of it: the
//! whole input of the search for dominators.

use crate::heap_graph::edges::Edges;
use crate::heap_graph::ids::ObjectIndex;
use crate::heap_graph::object_set::ObjectSet;
use std::ops::Range;

/// Returns a column of one value in reused memory: fresh pages from the system take longer to get
/// than to fill.
pub(super) fn filled(mut room: Vec<u32>, len: usize, value: u32) -> Vec<u32> {
    room.clear();
    room.resize(len, value);
    room
}

/// Objects numbered in the order of a depth-first walk, from 1; 0 is the virtual node above all
/// roots.
pub(super) struct Spanning {
    /// Object by number; `NONE` for the virtual node.
    pub(super) objects: Vec<ObjectIndex>,
    /// Number of each node's parent in the walk, by number.
    pub(super) parents: Vec<u32>,
    /// Index of the first source of the other references to a node, by number; one more entry than
    /// numbers.
    pub(super) starts: Vec<u32>,
    /// Numbers of those sources.
    pub(super) sources: Vec<u32>,
    /// Memory for reuse.
    pub(super) room: Vec<u32>,
}

/// State of the walk. References to roots can be left out, because only the virtual node dominates
/// a root.
struct DepthFirst<'a> {
    edges: &'a Edges<'a>,
    seen: ObjectSet,
    /// Number by object, if seen.
    numbers: Vec<u32>,
    objects: Vec<ObjectIndex>,
    parents: Vec<u32>,
    /// Next position of the walk in `targets`, by number; a stack that needs no memory of its own.
    cursors: Vec<u32>,
    /// References that are not part of the tree, one bit for each of `targets`.
    others: Vec<u64>,
    /// Referents that are not part of the tree: number of the owner, and the object.
    other_referents: Vec<(u32, ObjectIndex)>,
}

impl Spanning {
    pub(super) fn new(edges: &Edges<'_>) -> Spanning {
        let graph = edges.graph;
        let roots = graph.root_set();
        let mut walk = DepthFirst {
            edges,
            seen: roots.clone(),
            numbers: vec![0; graph.len()],
            objects: Vec::with_capacity(graph.len() + 2),
            parents: Vec::with_capacity(graph.len() + 2),
            cursors: Vec::with_capacity(graph.len() + 2),
            others: vec![0; graph.targets.len().div_ceil(64)],
            other_referents: Vec::new(),
        };
        walk.objects.push(ObjectIndex::NONE);
        walk.parents.push(0);
        walk.cursors.push(0);
        for root in roots.iter() {
            walk.descend(root, &roots);
        }
        walk.turned_round()
    }
}

impl DepthFirst<'_> {
    fn number(&mut self, object: ObjectIndex, parent: u32) -> u32 {
        let number = self.objects.len() as u32;
        self.numbers[object.at()] = number;
        self.objects.push(object);
        self.parents.push(parent);
        self.cursors.push(0);
        number
    }

    fn descend(&mut self, root: ObjectIndex, roots: &ObjectSet) {
        let graph = self.edges.graph;
        let mut now = self.number(root, 0);
        let Range {
            start: mut at,
            mut end,
        } = graph.reference_range(root);
        loop {
            let mut below = None;
            while at < end {
                let target = graph.targets[at];
                at += 1;
                if target == ObjectIndex::NONE {
                    continue;
                }
                if self.seen.insert(target) {
                    // Half of all objects refer to nothing, so visiting them is unnecessary.
                    if !self.edges.has_any(target) {
                        self.number(target, now);
                        continue;
                    }
                    below = Some(target);
                    break;
                }
                if !roots.contains(target) {
                    self.others[(at - 1) / 64] |= 1 << ((at - 1) % 64);
                }
            }
            // Referents follow: the cursor continues past the references.
            if below.is_none() && self.edges.has_referents(self.objects[now as usize]) {
                let referents = graph.referents_of(self.objects[now as usize]);
                for referent in referents.get(at - end..).into_iter().flatten() {
                    at += 1;
                    if !self.edges.follows(referent) {
                        continue;
                    }
                    if self.seen.insert(referent.target) {
                        below = Some(referent.target);
                        break;
                    }
                    if !roots.contains(referent.target) {
                        self.other_referents.push((now, referent.target));
                    }
                }
            }
            match below {
                Some(target) => {
                    self.cursors[now as usize] = at as u32;
                    now = self.number(target, now);
                    Range { start: at, end } = graph.reference_range(target);
                }
                None => {
                    now = self.parents[now as usize];
                    if now == 0 {
                        return;
                    }
                    at = self.cursors[now as usize] as usize;
                    end = graph.reference_range(self.objects[now as usize]).end;
                }
            }
        }
    }

    /// Groups the references outside the tree by target.
    fn turned_round(self) -> Spanning {
        let graph = self.edges.graph;
        let mut starts = filled(self.cursors, self.objects.len() + 1, 0);
        let number = |target: ObjectIndex| self.numbers[target.at()] as usize;
        for at in set_bits(&self.others) {
            starts[number(graph.targets[at])] += 1;
        }
        for &(_, target) in &self.other_referents {
            starts[number(target)] += 1;
        }
        let mut sum = 0;
        for start in &mut starts {
            sum += *start;
            *start = sum;
        }
        let mut sources = vec![0; sum as usize];
        let mut put = |target: ObjectIndex, source: u32| {
            let start = &mut starts[number(target)];
            *start -= 1;
            sources[*start as usize] = source;
        };
        let mut owner = 0;
        for at in set_bits(&self.others) {
            while graph.starts.get(owner + 1) <= at {
                owner += 1;
            }
            put(graph.targets[at], self.numbers[owner]);
        }
        for &(source, target) in &self.other_referents {
            put(target, source);
        }
        Spanning {
            objects: self.objects,
            parents: self.parents,
            starts,
            sources,
            room: self.numbers,
        }
    }
}

/// Returns the indices of the set bits, ascending.
fn set_bits(words: &[u64]) -> impl Iterator<Item = usize> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| rest.trailing_zeros() as usize)?;
            rest &= rest - 1;
            Some(at * 64 + bit)
        })
    })
}
