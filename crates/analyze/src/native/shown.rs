//! The tree of callsites that a filter leaves of a table's: without hidden frames, without
//! stacks that do not count. Owns the way from the table's callsites to those shown, and sums
//! over them.
//!
//! Cost: a few passes over the callsites below which the given values lie, whatever the filter;
//! nothing is walked up twice.

use std::collections::HashMap;

use super::filter::{Filter, Verdict, Visibility};
use heaptap_model::profile::index::{FastHash, Index, Seed};
use heaptap_model::stacks::{FrameId, NodeId, StackTable, Values};

/// A callsite of the shown tree; 0 is the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShownId(pub u32);

impl ShownId {
    /// Where all stacks begin.
    pub const ROOT: ShownId = ShownId(0);

    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// What a filter leaves of a table.
#[derive(Debug)]
pub struct Shown<'a> {
    table: &'a StackTable,
    /// Parents stand before their children; the root is its own.
    parents: Vec<ShownId>,
    /// Frame by callsite; the root's means nothing.
    frames: Vec<FrameId>,
    /// By the table's callsites: where their values go.
    targets: Vec<Option<ShownId>>,
    /// Callsites whose parent comes right before them in a walk from the root, in that order.
    preorder: Vec<ShownId>,
    taken_out: bool,
}

/// Values by callsite of a shown tree, column by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// Of stacks that end there, by column and callsite.
    pub own: Vec<Vec<i64>>,
    /// Of stacks that pass there, by column and callsite. The root's is the total shown.
    pub cumulative: Vec<Vec<i64>>,
}

/// Growth of a shown tree while it is made.
struct Growing<'a> {
    table: &'a StackTable,
    verdicts: Vec<Verdict>,
    seed: Seed,
    index: Index,
    parents: Vec<ShownId>,
    frames: Vec<FrameId>,
}

impl Growing<'_> {
    fn child(&mut self, parent: ShownId, frame: FrameId) -> ShownId {
        let hash = self
            .seed
            .number(u64::from(parent.0) << 32 | u64::from(frame.0));
        let next = u32::try_from(self.parents.len()).expect("no more than the table's callsites");
        let (parents, frames) = (&self.parents, &self.frames);
        let (id, there) = self.index.find_or_insert(hash, next, |id| {
            parents[id as usize] == parent && frames[id as usize] == frame
        });
        if !there {
            self.parents.push(parent);
            self.frames.push(frame);
        }
        ShownId(id)
    }

    fn verdict(&self, node: NodeId) -> Option<(FrameId, Verdict)> {
        let frame = self.table.frame_of(node)?;
        Some((frame, self.verdicts[frame.0 as usize]))
    }

    /// Where the values of a callsite go whose frames are all hidden as a rule: to its stack
    /// of frames that are hidden least. `started` tells below which callsites stacks begin.
    fn fallback(
        &mut self,
        node: NodeId,
        limit: Visibility,
        started: &[Path],
        known: &mut HashMap<u32, ShownId, FastHash>,
    ) -> ShownId {
        let mut pending = Vec::new();
        let mut at = node;
        let mut image = loop {
            if at == NodeId::ROOT || !started[at.0 as usize].started {
                break ShownId::ROOT;
            }
            if let Some(&image) = known.get(&at.0) {
                break image;
            }
            pending.push(at);
            at = self.table.parent(at);
        };
        for node in pending.into_iter().rev() {
            if let Some((frame, verdict)) = self.verdict(node)
                && verdict.visibility <= limit
            {
                image = self.child(image, frame);
            }
            known.insert(node.0, image);
        }
        image
    }
}

/// What is known of a stack from the root to a callsite.
#[derive(Debug, Clone, Copy)]
struct Path {
    image: ShownId,
    focused: bool,
    ignored: bool,
    started: bool,
    used: bool,
}

impl<'a> Shown<'a> {
    /// What `filter` leaves of the callsites below which the values lie. Values of other
    /// callsites must not be summed over it.
    pub fn of(table: &'a StackTable, filter: &Filter, values: &[&Values]) -> Shown<'a> {
        let count = table.node_count();
        let unfocused = filter.focus.is_empty();
        let unbounded = filter.show_from.is_empty();
        let mut paths = vec![
            Path {
                image: ShownId::ROOT,
                focused: unfocused,
                ignored: false,
                started: unbounded,
                used: false,
            };
            count
        ];
        let mut holds = vec![false; count];
        for node in values.iter().flat_map(|values| &values.nodes) {
            holds[node.0 as usize] = true;
            paths[node.0 as usize].used = true;
        }
        for node in (1..count).rev() {
            if paths[node].used {
                paths[table.parent(NodeId(node as u32)).0 as usize].used = true;
            }
        }
        let mut growing = Growing {
            table,
            verdicts: filter.verdicts(table),
            seed: Seed::default(),
            index: Index::default(),
            parents: vec![ShownId::ROOT],
            frames: vec![FrameId(u32::MAX)],
        };
        let mut taken_out = false;
        for node in 1..count {
            if !paths[node].used {
                continue;
            }
            let id = NodeId(node as u32);
            let above = paths[table.parent(id).0 as usize];
            let Some((frame, verdict)) = growing.verdict(id) else {
                continue;
            };
            let path = &mut paths[node];
            path.focused = above.focused || verdict.focus;
            path.ignored = above.ignored || verdict.ignore;
            let hidden = verdict.visibility == Visibility::Never;
            path.started = above.started || (verdict.start && !hidden);
            path.image = match verdict.visibility {
                Visibility::Plain if path.started => growing.child(above.image, frame),
                _ => above.image,
            };
            taken_out |= !matches!(verdict.visibility, Visibility::Plain | Visibility::Never);
        }
        let mut targets = vec![None; count];
        let mut known = [HashMap::default(), HashMap::default()];
        for node in (0..count).filter(|node| holds[*node]) {
            let path = paths[node];
            if !path.focused || path.ignored || !path.started {
                continue;
            }
            let mut image = path.image;
            let levels = [Visibility::Runtime, Visibility::Allocator];
            for (limit, known) in levels.into_iter().zip(&mut known) {
                if image == ShownId::ROOT && taken_out {
                    image = growing.fallback(NodeId(node as u32), limit, &paths, known);
                }
            }
            // A filter that names frames has nothing to say of a stack without any.
            if image != ShownId::ROOT || filter.takes_all() {
                targets[node] = Some(image);
            }
        }
        let mut shown = Shown {
            table,
            preorder: preorder(&growing.parents),
            parents: growing.parents,
            frames: growing.frames,
            targets,
            taken_out,
        };
        shown.preorder.shrink_to_fit();
        shown
    }

    /// The table that names the frames.
    pub fn table(&self) -> &'a StackTable {
        self.table
    }

    /// Number of callsites, the root among them.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Whether the filter leaves the values of any callsite.
    pub fn has_matches(&self) -> bool {
        self.targets.iter().any(Option::is_some)
    }

    /// Whether nothing is shown.
    pub fn is_empty(&self) -> bool {
        self.parents.len() == 1
    }

    /// Whether frames of allocators or of the Java runtime are there and were taken out.
    pub fn took_out(&self) -> bool {
        self.taken_out
    }

    /// Who called a callsite; the root for those called by nobody, and for the root.
    pub fn parent(&self, id: ShownId) -> ShownId {
        self.parents[id.at()]
    }

    /// The frame of a callsite; `None` for the root.
    pub fn frame(&self, id: ShownId) -> Option<FrameId> {
        (id != ShownId::ROOT).then(|| self.frames[id.at()])
    }

    /// All callsites but the root; each after the one that called it, and before any that one
    /// called later.
    pub fn preorder(&self) -> &[ShownId] {
        &self.preorder
    }

    /// A callsite's frames, leaf first.
    pub fn stack(&self, leaf: ShownId) -> impl Iterator<Item = FrameId> + '_ {
        let next = |id: &ShownId| Some(self.parent(*id));
        std::iter::successors(Some(leaf), next).map_while(|id| self.frame(id))
    }

    /// Where the values of one of the table's callsites go; `None` where they do not count.
    pub fn target(&self, node: NodeId) -> Option<ShownId> {
        self.targets[node.0 as usize]
    }

    /// Sums of values over this tree, all their columns.
    pub fn sums(&self, values: &Values) -> Sums {
        let columns = values.columns.iter();
        let own: Vec<Vec<i64>> = columns
            .map(|column| {
                let mut sums = vec![0i64; self.len()];
                for (node, value) in values.nodes.iter().zip(column) {
                    if let Some(target) = self.target(*node) {
                        let sum = &mut sums[target.at()];
                        *sum = sum.saturating_add(*value);
                    }
                }
                sums
            })
            .collect();
        self.accumulated(own)
    }

    /// Cumulative sums for values by callsite of this tree.
    pub fn accumulated(&self, own: Vec<Vec<i64>>) -> Sums {
        let mut cumulative = own.clone();
        for column in &mut cumulative {
            for id in (1..self.len()).rev() {
                let value = column[id];
                let above = &mut column[self.parents[id].at()];
                *above = above.saturating_add(value);
            }
        }
        Sums { own, cumulative }
    }
}

/// A walk from the root along the parents of all callsites.
fn preorder(parents: &[ShownId]) -> Vec<ShownId> {
    let count = parents.len();
    let mut first_child = vec![0u32; count];
    let mut next = vec![0u32; count];
    for id in (1..count).rev() {
        let parent = parents[id].at();
        next[id] = first_child[parent];
        first_child[parent] = id as u32;
    }
    let mut order = Vec::with_capacity(count.saturating_sub(1));
    let mut at = first_child.first().copied().unwrap_or(0);
    while at != 0 {
        order.push(ShownId(at));
        let mut here = at as usize;
        at = first_child[here];
        while at == 0 && here != 0 {
            at = next[here];
            here = parents[here].at();
        }
    }
    order
}
