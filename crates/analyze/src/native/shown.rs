//! Tree of the callsites that pass a filter, without hidden frames and excluded stacks. Maps the
//! table's callsites to shown ones and sums values over them.
//!
//! The cost is a few passes over the callsites that lead to the given values, for any filter. No
//! path is walked twice.

use std::collections::HashMap;

use super::filter::{Filter, Verdict, Visibility};
use heaptap_model::profile::index::{FastHash, Index, Seed};
use heaptap_model::stacks::{FrameId, NodeId, StackTable, Values};

/// Callsite of the shown tree; 0 is the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ShownId(pub u32);

impl ShownId {
    /// Root of all stacks.
    pub const ROOT: ShownId = ShownId(0);

    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// Callsites of a table that pass a filter.
#[derive(Debug)]
pub struct Shown<'a> {
    table: &'a StackTable,
    /// Parents come before their children; the root is its own parent.
    parents: Vec<ShownId>,
    /// Frame by callsite; meaningless for the root.
    frames: Vec<FrameId>,
    /// Shown callsite that receives the values, by the table's callsites.
    targets: Vec<Option<ShownId>>,
    /// Callsites in depth-first order from the root.
    preorder: Vec<ShownId>,
    taken_out: bool,
}

/// Values by callsite of a shown tree and by column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sums {
    /// Sums of stacks that end there, by column and callsite.
    pub own: Vec<Vec<i64>>,
    /// Sums of stacks that pass there, by column and callsite. The root has the total.
    pub cumulative: Vec<Vec<i64>>,
}

/// Shown tree under construction.
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

    /// Returns the target for the values of a callsite whose frames are all hidden by default: its
    /// stack of the least hidden frames. `started` contains, by callsite, whether a stack has begun
    /// there.
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

/// State of a stack from the root to a callsite.
#[derive(Debug, Clone, Copy)]
struct Path {
    image: ShownId,
    focused: bool,
    ignored: bool,
    started: bool,
    used: bool,
}

impl<'a> Shown<'a> {
    /// Applies `filter` to the callsites that lead to the values. Values of other callsites must
    /// not be summed over the result.
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
            // A filter on frames does not apply to a stack without frames.
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

    /// Returns the table with the frames.
    pub fn table(&self) -> &'a StackTable {
        self.table
    }

    /// Returns the number of callsites, including the root.
    pub fn len(&self) -> usize {
        self.parents.len()
    }

    /// Returns whether any values pass the filter.
    pub fn has_matches(&self) -> bool {
        self.targets.iter().any(Option::is_some)
    }

    /// Returns whether nothing is shown.
    pub fn is_empty(&self) -> bool {
        self.parents.len() == 1
    }

    /// Returns whether frames of allocators or of the Java runtime were removed.
    pub fn took_out(&self) -> bool {
        self.taken_out
    }

    /// Returns the caller of a callsite; the root for outermost frames and for the root itself.
    pub fn parent(&self, id: ShownId) -> ShownId {
        self.parents[id.at()]
    }

    /// Returns the frame of a callsite; `None` for the root.
    pub fn frame(&self, id: ShownId) -> Option<FrameId> {
        (id != ShownId::ROOT).then(|| self.frames[id.at()])
    }

    /// Returns all callsites except the root in depth-first order.
    pub fn preorder(&self) -> &[ShownId] {
        &self.preorder
    }

    /// Returns the frames of a callsite, leaf first.
    pub fn stack(&self, leaf: ShownId) -> impl Iterator<Item = FrameId> + '_ {
        let next = |id: &ShownId| Some(self.parent(*id));
        std::iter::successors(Some(leaf), next).map_while(|id| self.frame(id))
    }

    /// Returns the shown callsite that receives the values of a table's callsite; `None` if they
    /// are excluded.
    pub fn target(&self, node: NodeId) -> Option<ShownId> {
        self.targets[node.0 as usize]
    }

    /// Sums all columns of values over this tree.
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

    /// Returns cumulative sums for values by callsite of this tree.
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

/// Returns the callsites in depth-first order from the root.
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
