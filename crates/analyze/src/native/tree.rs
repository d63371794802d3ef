//! Callsites as a tree with one node per group: from the root, or from the allocating method.
//! Contains merging, pruning and folding of recursion.
//!
//! A frame of the same group as its parent node does not get a node. A frame whose group occurs
//! twice among the nearest [`REACH`] ancestors joins the nearest of them. A stack of a thousand
//! calls of the same few functions thus becomes a few lines. Folded calls are counted.

use std::collections::HashMap;

use super::groups::{GroupId, Groups};
use super::shown::{Shown, ShownId, Step};
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::Values;
use heaptap_model::stacks::calls::Calls;

/// Number of ancestors to search for earlier calls of a function.
pub const REACH: usize = 16;

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

/// Tree for display: nodes come after their parents, largest sibling first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// Values of the root.
    pub total: Vec<i64>,
    pub nodes: Vec<Node>,
}

/// Node.
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

/// Tree of groups: parents before children, the root first.
struct Merged {
    /// Nodes with their groups as frames.
    calls: Calls,
    folded: Vec<u32>,
    own: Vec<Vec<i64>>,
    cumulative: Vec<Vec<i64>>,
}

impl Tree {
    /// Returns the tree from the root, and the nodes omitted below the root.
    pub fn from_root(
        shown: &Shown<'_>,
        groups: &Groups<'_>,
        values: &Values,
        pruning: &Pruning,
    ) -> (Tree, Option<LeftOut>) {
        merged(shown, groups, values).pruned(pruning)
    }
}

/// Merges the callsites of a shown tree by group.
fn merged(shown: &Shown<'_>, groups: &Groups<'_>, values: &Values) -> Merged {
    let mut tree = Merged {
        calls: Calls::default(),
        folded: vec![0],
        own: Vec::new(),
        cumulative: Vec::new(),
    };
    let mut nodes = vec![0u32; shown.len()];
    // Occurrences on the path, by node.
    let mut counts = vec![0u32];
    shown.walk(|step| match step {
        Step::Enter(id) => {
            let Some(frame) = shown.frame(id) else {
                return;
            };
            let group = groups.group(frame);
            let above = nodes[shown.parent(id).at()];
            let node = tree.again(above, group);
            let node = node.unwrap_or_else(|| tree.calls.child(above, group.0));
            nodes[id.at()] = node;
            if node as usize == counts.len() {
                counts.push(0);
                tree.folded.push(0);
            }
            let calls = &mut counts[node as usize];
            let folded = &mut tree.folded[node as usize];
            *folded = (*folded).max(*calls);
            *calls += 1;
        }
        Step::Leave(id) => counts[nodes[id.at()] as usize] -= 1,
    });
    tree.calls.seal();
    for column in 0..values.columns.len() {
        let mut sums = vec![0i64; tree.len()];
        shown.each(values, column, |target, value| {
            let sum = &mut sums[nodes[target.at()] as usize];
            *sum = sum.saturating_add(value);
        });
        tree.own.push(sums.clone());
        tree.calls.accumulate(&mut sums);
        tree.cumulative.push(sums);
    }
    tree
}

impl Merged {
    fn len(&self) -> usize {
        self.folded.len()
    }

    fn parent(&self, node: usize) -> u32 {
        self.calls.all()[node].parent
    }

    fn group(&self, node: u32) -> GroupId {
        GroupId(self.calls.all()[node as usize].frame)
    }

    /// Returns the existing node that absorbs a call of `group` from `above`.
    fn again(&self, above: u32, group: GroupId) -> Option<u32> {
        if above != 0 && self.group(above) == group {
            return Some(above);
        }
        let mut nearest = None;
        let mut at = above;
        for _ in 0..REACH {
            if at == 0 {
                return None;
            }
            if self.group(at) == group {
                match nearest {
                    None => nearest = Some(at),
                    found => return found,
                }
            }
            at = self.parent(at as usize);
        }
        None
    }

    fn pruned(&self, pruning: &Pruning) -> (Tree, Option<LeftOut>) {
        let count = self.len();
        let of = |columns: &[Vec<i64>], node: u32| -> Vec<i64> {
            columns.iter().map(|c| c[node as usize]).collect()
        };
        let mut starts = vec![0u32; count + 1];
        for node in 1..count {
            starts[self.parent(node) as usize + 1] += 1;
        }
        for node in 0..count {
            starts[node + 1] += starts[node];
        }
        let mut places = starts.clone();
        let mut children = vec![0u32; count.saturating_sub(1)];
        for node in 1..count as u32 {
            let place = &mut places[self.parent(node as usize) as usize];
            children[*place as usize] = node;
            *place += 1;
        }
        let below = |node: u32| {
            let node = node as usize;
            &children[starts[node] as usize..starts[node + 1] as usize]
        };
        let expand = |node: u32, depth: usize, room: usize| {
            let candidates = below(node)
                .iter()
                .map(|&child| (child, of(&self.cumulative, child)));
            chosen(candidates, depth, room, pruning)
        };
        let mut tree = Tree {
            total: of(&self.cumulative, 0),
            nodes: Vec::new(),
        };
        let (first, left_out) = expand(0, 0, pruning.most);
        let mut pending: Vec<(u32, Option<usize>, usize)> = first
            .into_iter()
            .rev()
            .map(|node| (node, None, 0))
            .collect();
        while let Some((node, above, depth)) = pending.pop() {
            let at = tree.nodes.len();
            let room = pruning.most.saturating_sub(at + 1 + pending.len());
            let (chosen, left_out) = expand(node, depth + 1, room);
            tree.nodes.push(Node {
                above,
                depth,
                group: self.group(node),
                own: of(&self.own, node),
                cumulative: of(&self.cumulative, node),
                folded: self.folded[node as usize],
                left_out,
            });
            let below = chosen.into_iter().rev();
            pending.extend(below.map(|child| (child, Some(at), depth + 1)));
        }
        (tree, left_out)
    }
}

/// Selects the siblings to show, largest first, and sums the others.
fn chosen<T>(
    siblings: impl Iterator<Item = (T, Vec<i64>)>,
    depth: usize,
    room: usize,
    pruning: &Pruning,
) -> (Vec<T>, Option<LeftOut>) {
    let weight = |values: &[i64]| values[pruning.column].unsigned_abs();
    let mut wanted = Vec::new();
    let mut rest = LeftOut {
        count: 0,
        cumulative: Vec::new(),
    };
    let leave = |rest: &mut LeftOut, values: Vec<i64>| {
        rest.count += 1;
        if rest.cumulative.is_empty() {
            rest.cumulative = values;
        } else {
            for (sum, value) in rest.cumulative.iter_mut().zip(values) {
                *sum = sum.saturating_add(value);
            }
        }
    };
    for (place, (sibling, values)) in siblings.enumerate() {
        if depth < pruning.depth && weight(&values) >= pruning.least.max(1) {
            wanted.push((std::cmp::Reverse(weight(&values)), place, sibling, values));
        } else if values.iter().any(|value| *value != 0) {
            leave(&mut rest, values);
        }
    }
    wanted.sort_by_key(|(weight, place, ..)| (*weight, *place));
    for (.., values) in wanted.drain(room.min(wanted.len())..) {
        leave(&mut rest, values);
    }
    let kept = wanted.into_iter().map(|(_, _, sibling, _)| sibling);
    (kept.collect(), (rest.count > 0).then_some(rest))
}

/// Stacks of a call in an inverted tree: their ends and current positions.
struct Callers {
    group: GroupId,
    folded: u32,
    /// Callsite with the values, and the next frame of its stack.
    stacks: Vec<(ShownId, ShownId)>,
}

impl Tree {
    /// Returns the tree from the allocating method to its callers. Only shown nodes are computed:
    /// cost is the number of stacks times the number of levels.
    pub fn inverted(
        shown: &Shown<'_>,
        groups: &Groups<'_>,
        values: &Values,
        pruning: &Pruning,
    ) -> (Tree, Option<LeftOut>) {
        let columns = values.columns.len();
        let own = shown.own_columns(values);
        let sum = |stacks: &[(ShownId, ShownId)]| -> Vec<i64> {
            let mut values = vec![0i64; columns];
            for (owner, _) in stacks {
                for (value, column) in values.iter_mut().zip(&own) {
                    *value = value.saturating_add(column[owner.at()]);
                }
            }
            values
        };
        let mut owners: Vec<(ShownId, ShownId)> = Vec::new();
        shown.walk(|step| {
            if let Step::Enter(id) = step
                && own.iter().any(|column| column[id.at()] != 0)
            {
                owners.push((id, id));
            }
        });
        let mut tree = Tree {
            total: shown.totals(values),
            nodes: Vec::new(),
        };
        let expand = |stacks: Vec<(ShownId, ShownId)>, depth: usize, room: usize| {
            let mut found: Vec<Callers> = Vec::new();
            let mut known: HashMap<u64, usize, FastHash> = HashMap::default();
            for (owner, at) in stacks {
                let Some(frame) = shown.frame(at) else {
                    continue;
                };
                let group = groups.group(frame);
                let (next, folded) = past(shown, groups, at, group);
                let place = *known.entry(u64::from(group.0)).or_insert_with(|| {
                    found.push(Callers {
                        group,
                        folded: 0,
                        stacks: Vec::new(),
                    });
                    found.len() - 1
                });
                found[place].folded = found[place].folded.max(folded);
                found[place].stacks.push((owner, next));
            }
            let weighed = found.into_iter().map(|callers| {
                let values = sum(&callers.stacks);
                (callers, values)
            });
            chosen(weighed, depth, room, pruning)
        };
        let (first, left_out) = expand(owners, 0, pruning.most);
        let mut pending: Vec<(Callers, Option<usize>, usize)> = first
            .into_iter()
            .rev()
            .map(|callers| (callers, None, 0))
            .collect();
        while let Some((callers, above, depth)) = pending.pop() {
            let at = tree.nodes.len();
            let room = pruning.most.saturating_sub(at + 1 + pending.len());
            let cumulative = sum(&callers.stacks);
            // Own values belong to the allocating method, not to its callers.
            let own = match above {
                None => cumulative.clone(),
                Some(_) => vec![0; columns],
            };
            let (chosen, left_out) = expand(callers.stacks, depth + 1, room);
            tree.nodes.push(Node {
                above,
                depth,
                group: callers.group,
                own,
                cumulative,
                folded: callers.folded,
                left_out,
            });
            let below = chosen.into_iter().rev();
            pending.extend(below.map(|callers| (callers, Some(at), depth + 1)));
        }
        (tree, left_out)
    }
}

/// Returns the first caller of `at` in another group, and the number of calls skipped in this
/// group.
fn past(shown: &Shown<'_>, groups: &Groups<'_>, mut at: ShownId, group: GroupId) -> (ShownId, u32) {
    let mut folded = 0;
    loop {
        at = shown.parent(at);
        match shown.frame(at) {
            Some(frame) if groups.group(frame) == group => folded += 1,
            _ => return (at, folded),
        }
    }
}
