//! Callsites as a tree with one node per group: from the root, or from the allocating method. Owns
//! pruning. Only shown nodes are made: the stacks that pass a node are parted among its callees.
//!
//! A frame of the same group as its parent node does not get a node. In a tree from the root, a frame
//! whose group occurs twice among the nearest 16 ancestors joins the nearest of them. A stack of a
//! thousand calls of the same few functions thus becomes a few lines. Folded calls are counted.

mod paths;

use std::cmp::Reverse;
use std::collections::HashMap;
use std::ops::Range;

use self::paths::{Cursor, Origin, Path, Paths, Stacks};
use super::groups::{GroupId, Groups};
use super::visible_tree::VisibleTree;
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::Values;
use heaptap_model::stacks::partition::StackPartition;

/// Selection of nodes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pruning {
    /// Maximum number of levels below the root.
    pub depth: usize,
    /// Minimum absolute cumulative value of a node.
    pub least: u64,
    /// Column for `least` and for the order of siblings.
    pub column: usize,
    /// Maximum number of nodes.
    pub most: usize,
}

/// Tree for display: nodes come after their parents, largest sibling first, equal ones in the order of
/// their groups.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Values of the root.
    pub total: Vec<i64>,
    pub nodes: Vec<Node>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Position of the parent; `None` below the root.
    pub above: Option<usize>,
    /// 0 below the root.
    pub depth: usize,
    pub group: GroupId,
    /// Sums of stacks that end here, by column. In an inverted tree these are in the top nodes.
    pub own: Vec<i64>,
    /// Sums of stacks that pass here, by column.
    pub cumulative: Vec<i64>,
    /// Maximum number of calls of the same functions on one stack that were folded into this node.
    pub folded: u32,
    /// Child nodes that were omitted.
    pub left_out: Option<LeftOut>,
}

/// Omitted child nodes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftOut {
    pub count: usize,
    /// Cumulative values, by column.
    pub cumulative: Vec<i64>,
}

impl Tree {
    /// Returns the tree from the root, and the nodes omitted below the root.
    pub fn from_root(
        shown: &VisibleTree<'_>,
        groups: &Groups<'_>,
        values: &Values,
        pruning: &Pruning,
    ) -> (Tree, Option<LeftOut>) {
        Growing::new(shown, groups, values, pruning, Origin::Root).grow()
    }

    /// Returns the tree from the allocating method to its callers.
    pub fn inverted(
        shown: &VisibleTree<'_>,
        groups: &Groups<'_>,
        values: &Values,
        pruning: &Pruning,
    ) -> (Tree, Option<LeftOut>) {
        Growing::new(shown, groups, values, pruning, Origin::Leaf).grow()
    }
}

/// A tree that grows from its origin, largest node first.
struct Growing<'a> {
    shown: &'a VisibleTree<'a>,
    groups: &'a Groups<'a>,
    values: &'a Values,
    pruning: &'a Pruning,
    origin: Origin,
    paths: Paths,
    stacks: StackPartition<Cursor>,
    tree: Tree,
}

/// Node that is not expanded yet.
struct Branch {
    group: GroupId,
    cumulative: Vec<i64>,
    /// Its paths.
    range: Range<usize>,
}

/// Nodes below a node.
struct Below {
    /// Nodes to show.
    chosen: Vec<Branch>,
    left_out: Option<LeftOut>,
    /// Sums of the paths that end at the node.
    own: Vec<i64>,
}

impl<'a> Growing<'a> {
    fn new(
        shown: &'a VisibleTree<'a>,
        groups: &'a Groups<'a>,
        values: &'a Values,
        pruning: &'a Pruning,
        origin: Origin,
    ) -> Self {
        // One level more tells which paths end at the last one.
        let depth = pruning.depth.saturating_add(1);
        let paths = Paths::new(shown, groups, values, origin, depth);
        Growing {
            shown,
            groups,
            values,
            pruning,
            origin,
            stacks: StackPartition::new(paths.cursors(), groups.len()),
            paths,
            tree: Tree {
                total: shown.totals(values),
                nodes: Vec::new(),
            },
        }
    }

    fn grow(mut self) -> (Tree, Option<LeftOut>) {
        let root = self.expand(0..self.stacks.len(), 0, self.pruning.most);
        let mut pending: Vec<(Branch, Option<usize>, usize)> = Vec::new();
        let chosen = root.chosen.into_iter().rev();
        pending.extend(chosen.map(|branch| (branch, None, 0)));
        while let Some((branch, above, depth)) = pending.pop() {
            let at = self.tree.nodes.len();
            let room = self.pruning.most.saturating_sub(at + 1 + pending.len());
            let below = self.expand(branch.range, depth + 1, room);
            let own = match (self.origin, above) {
                (Origin::Root, _) => below.own,
                (Origin::Leaf, None) => branch.cumulative.clone(),
                // Own values belong to the allocating method, not to its callers.
                (Origin::Leaf, Some(_)) => vec![0; branch.cumulative.len()],
            };
            self.tree.nodes.push(Node {
                above,
                depth,
                group: branch.group,
                own,
                cumulative: branch.cumulative,
                folded: 0,
                left_out: below.left_out,
            });
            let chosen = below.chosen.into_iter().rev();
            pending.extend(chosen.map(|branch| (branch, Some(at), depth + 1)));
        }
        self.count_folded();
        (self.tree, root.left_out)
    }

    /// Parts the paths through a node among its callees, and selects those to show.
    fn expand(&mut self, range: Range<usize>, depth: usize, room: usize) -> Below {
        let columns = &self.values.columns;
        let add = |sums: &mut [i64], row: u32| {
            for (sum, column) in sums.iter_mut().zip(columns) {
                *sum = sum.saturating_add(column[row as usize]);
            }
        };
        let mut own = vec![0i64; columns.len()];
        let mut sums: Vec<Vec<i64>> = Vec::new();
        let next = |cursor: &mut Cursor| self.paths.next(cursor).map(|group| group.0);
        let ahead = |cursor: &Cursor| {
            let values = columns.iter().map(|column| column[cursor.row as usize]);
            values.fold(self.paths.first_byte(cursor), |all, v| all ^ v as u8)
        };
        let each = |cursor: &Cursor, child: Option<usize>| {
            let row = cursor.row;
            let Some(child) = child else {
                add(&mut own, row);
                return;
            };
            if child == sums.len() {
                sums.push(vec![0; columns.len()]);
            }
            add(&mut sums[child], row);
        };
        let sorts = depth < self.pruning.depth;
        let children = self.stacks.part(range, sorts, ahead, next, each);
        let branches = children.iter().zip(sums).map(|(child, sums)| Branch {
            group: GroupId(child.frame),
            cumulative: sums,
            range: child.range.clone(),
        });
        let (chosen, left_out) = chosen(branches.collect(), depth, room, self.pruning);
        Below {
            chosen,
            left_out,
            own,
        }
    }

    /// Counts the folded calls of the nodes: reads the stacks that have some again.
    fn count_folded(&mut self) {
        let mut known: HashMap<u64, u32, FastHash> = HashMap::default();
        let key = |above: Option<usize>, group: GroupId| {
            let above = above.map_or(0, |above| above as u64 + 1);
            above << 32 | u64::from(group.0)
        };
        for (at, node) in self.tree.nodes.iter().enumerate() {
            known.insert(key(node.above, node.group), at as u32);
        }
        let mut stacks = Stacks::new(self.shown, self.groups, self.origin);
        let mut path = Path::new(self.groups, self.origin);
        // Calls of the current stack, by node.
        let mut calls = vec![0u32; self.tree.nodes.len()];
        let mut called: Vec<usize> = Vec::new();
        // Nodes of the path, as far as they are in the tree.
        let mut nodes: Vec<usize> = Vec::new();
        for row in self.paths.folded() {
            let Some(groups) = stacks.get(self.values, row as usize) else {
                continue;
            };
            path.clear();
            nodes.clear();
            for at in called.drain(..) {
                calls[at] = 0;
            }
            for group in groups {
                path.step(group);
                let length = path.groups.len();
                nodes.truncate(length);
                if nodes.len() + 1 == length {
                    let above = nodes.last().copied();
                    nodes.extend(known.get(&key(above, group)).map(|at| *at as usize));
                }
                if nodes.len() == length {
                    let at = nodes[length - 1];
                    let folded = &mut self.tree.nodes[at].folded;
                    *folded = (*folded).max(calls[at]);
                    calls[at] += 1;
                    called.push(at);
                }
            }
        }
    }
}

/// Selects the siblings to show, largest first, and sums the others.
fn chosen(
    siblings: Vec<Branch>,
    depth: usize,
    room: usize,
    pruning: &Pruning,
) -> (Vec<Branch>, Option<LeftOut>) {
    let weight = |branch: &Branch| branch.cumulative[pruning.column].unsigned_abs();
    let is_wanted =
        |branch: &Branch| depth < pruning.depth && weight(branch) >= pruning.least.max(1);
    let (mut chosen, mut others): (Vec<Branch>, Vec<Branch>) =
        siblings.into_iter().partition(is_wanted);
    chosen.sort_unstable_by_key(|branch| (Reverse(weight(branch)), branch.group));
    others.extend(chosen.drain(room.min(chosen.len())..));
    others.retain(|branch| branch.cumulative.iter().any(|value| *value != 0));
    let count = others.len();
    let add = |mut sums: Vec<i64>, branch: Branch| {
        for (sum, value) in sums.iter_mut().zip(branch.cumulative) {
            *sum = sum.saturating_add(value);
        }
        sums
    };
    let mut others = others.into_iter();
    let left_out = others.next().map(|first| LeftOut {
        count,
        cumulative: others.fold(first.cumulative, add),
    });
    (chosen, left_out)
}
