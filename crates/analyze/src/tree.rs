//! Dominator tree merged by class or package: siblings of one class are one node, and objects of
//! their dominator's class (linked lists) join its node.

use super::histogram::Sums;
use super::label;
use heaptap_model::heap_graph::{Dominators, HeapGraph, ObjectIndex};
use heaptap_model::profile::index::FastHash;
use heaptap_model::profile::interned::Texts;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::HashMap;

/// What the objects of a node have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum NodeKey {
    /// Their class.
    #[default]
    Class,
    /// The package of their class; for a class object, of the class that it represents.
    Package,
}

/// Objects of one class or package below those of the parent node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Class name without parts that differ from run to run, `class X` for class objects; or the
    /// package.
    pub name: String,
    /// Sums of the objects, with their retained size.
    pub sums: Sums,
    /// One of the objects.
    pub example: ObjectIndex,
    /// Index of the parent node; `None` at the top.
    pub above: Option<usize>,
    /// Indexes of the child nodes, largest retained size first.
    pub below: Vec<usize>,
}

/// Merged tree. Nodes come after their parents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Tree {
    pub nodes: Vec<Node>,
    /// Nodes that nothing dominates, largest retained size first.
    pub tops: Vec<usize>,
}

/// Merges the tree. Nodes that retain less than `least` bytes (Java and native) are omitted,
/// including their descendants.
pub fn merged(graph: &HeapGraph, dominators: &Dominators, key: NodeKey, least: u64) -> Tree {
    // Names by class; classes with equal display names share a name.
    let mut texts = Texts::default();
    let mut of_class = vec![None; graph.classes().len()];
    let is_class = label::is_class(graph);
    let mut number = |object| {
        let class = graph.class_of(object);
        let mut of_object = || match key {
            NodeKey::Class => {
                let name = label::object_name(graph, object);
                texts.id(&label::without_address(&name))
            }
            NodeKey::Package => {
                let behind = label::class_behind(graph, object);
                let own = || label::class_name(graph, class);
                texts.id(label::package(behind.unwrap_or_else(own)))
            }
        };
        match is_class[class.at()] {
            // Class objects differ.
            true => of_object(),
            false => *of_class[class.at()].get_or_insert_with(of_object),
        }
    };
    let mut tree = Tree::default();
    let mut numbers: Vec<u32> = Vec::new();
    // The child of each node that was found last: the next object usually belongs to the same one.
    let mut latest: Vec<usize> = Vec::new();
    let mut by_key: HashMap<u64, usize, FastHash> = HashMap::default();
    // Nodes of the dominators of the current object, and the ends of their subtrees.
    let mut line: Vec<(usize, usize)> = Vec::new();
    for (at, (object, retained)) in dominators.iter().enumerate() {
        while line.last().is_some_and(|&(_, end)| end <= at) {
            line.pop();
        }
        let above = line.last().map(|&(node, _)| node);
        let name = number(object);
        let node = match above {
            Some(above) if numbers[above] == name => above,
            Some(above) if numbers.get(latest[above]) == Some(&name) => latest[above],
            _ => {
                let key = above.map_or(0, |above| above as u64 + 1) << 32 | u64::from(name);
                let node = *by_key.entry(key).or_insert_with(|| {
                    tree.nodes.push(Node {
                        name: String::new(),
                        sums: Sums::default(),
                        example: object,
                        above,
                        below: Vec::new(),
                    });
                    numbers.push(name);
                    latest.push(usize::MAX);
                    tree.nodes.len() - 1
                });
                if let Some(above) = above {
                    latest[above] = node;
                }
                node
            }
        };
        let sums = &mut tree.nodes[node].sums;
        sums.add(graph, object);
        if above != Some(node) {
            sums.retained.add(retained);
        }
        line.push((node, at + retained.count as usize));
    }
    for (node, number) in tree.nodes.iter_mut().zip(numbers) {
        texts.get(number).clone_into(&mut node.name);
    }
    tree.without_small(least)
}

impl Tree {
    fn without_small(self, least: u64) -> Tree {
        let mut kept = Tree::default();
        let mut new: Vec<Option<usize>> = Vec::with_capacity(self.nodes.len());
        for mut node in self.nodes {
            let above = node.above.map(|above| new[above]);
            if node.sums.retained.total_bytes() < least || above == Some(None) {
                new.push(None);
                continue;
            }
            node.above = above.flatten();
            new.push(Some(kept.nodes.len()));
            kept.nodes.push(node);
        }
        let mut order: Vec<usize> = (0..kept.nodes.len()).collect();
        order.sort_by_key(|&at| (Reverse(kept.nodes[at].sums.retained.total_bytes()), at));
        for at in order {
            match kept.nodes[at].above {
                Some(above) => kept.nodes[above].below.push(at),
                None => kept.tops.push(at),
            }
        }
        kept
    }
}
