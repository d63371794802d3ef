//! Tree of the callsites that pass a filter, without hidden frames and excluded stacks. Maps the
//! table's callsites to shown ones and sums values over them.
//!
//! The cost is a few passes over the callsites of the table, for any filter, and over those of the
//! shown tree for each column. No path is walked twice.

use std::collections::HashMap;

use super::filter::{Filter, LEVELS, Verdict, Visibility};
use super::listed::Listed;
use heaptap_base::prefetch::zeros;
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::calls::{Call, Calls};
use heaptap_model::stacks::{FrameId, NodeId, StackTable, Values};

/// Callsite of the shown tree; 0 is the root.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VisibleId(pub u32);

impl VisibleId {
    /// Root of all stacks.
    pub const ROOT: VisibleId = VisibleId(0);

    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// Callsites of a table that pass a filter.
#[derive(Debug)]
pub struct VisibleTree<'a> {
    table: &'a StackTable,
    /// Parents come before their children; the root is its own parent.
    calls: Calls,
    /// Shown callsite that receives the values, by the table's callsites, or [`NOWHERE`].
    targets: Vec<u32>,
    taken_out: bool,
    /// Stacks of a table with a list. They have no tree: all values are those of the root.
    pub(super) listed: Option<Listed<'a>>,
}

const NOWHERE: u32 = u32::MAX;

/// Step of a walk through the tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// To a callsite, from its caller.
    Enter(VisibleId),
    /// From a callsite back to its caller, after all of its callees.
    Leave(VisibleId),
}

/// Shown tree under construction.
struct Growing<'a> {
    table: &'a StackTable,
    verdicts: Vec<Verdict>,
    calls: Calls,
    /// Whether several of the table's callsites can enter a call of this frame, by shown callsite.
    /// Only then is there a search for an equal call.
    shared: Vec<bool>,
}

impl Growing<'_> {
    /// Returns the call of `frame` from `parent`. `direct`: the caller in the table is shown.
    fn child(&mut self, parent: u32, frame: FrameId, direct: bool) -> u32 {
        self.shared[parent as usize] |= !direct;
        if !self.shared[parent as usize] {
            self.shared.push(false);
            return self.calls.add(parent, frame.0);
        }
        let image = self.calls.child(parent, frame.0);
        match self.shared.get_mut(image as usize) {
            Some(shared) => *shared = true,
            None => self.shared.push(false),
        }
        image
    }

    fn verdict(&self, node: NodeId) -> Option<(FrameId, Verdict)> {
        let frame = self.table.frame_of(node)?;
        Some((frame, self.verdicts[frame.0 as usize]))
    }

    /// Returns the target for the values of a callsite whose frames are all hidden by default: its
    /// stack of the least hidden frames.
    fn fallback(
        &mut self,
        node: NodeId,
        limit: Visibility,
        paths: &[Path],
        known: &mut HashMap<u32, u32, FastHash>,
    ) -> u32 {
        let mut pending = Vec::new();
        let mut at = node;
        let mut image = loop {
            if at == NodeId::ROOT || !paths[at.0 as usize].has(STARTED.at(limit)) {
                break 0;
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
                image = self.calls.child(image, frame.0);
            }
            known.insert(node.0, image);
        }
        image
    }
}

/// Properties of a stack from the root to a callsite.
#[derive(Debug, Clone, Copy, Default)]
struct Path(u16);

/// Property of a stack that counts only its frames up to a level: one bit for each level.
#[derive(Debug, Clone, Copy)]
struct Leveled(u16);

/// Has a frame.
const SEEN: Leveled = Leveled(1);
/// Has a frame that matches the focus.
const FOCUSED: Leveled = Leveled(1 << 3);
/// Has a frame that is ignored.
const IGNORED: Leveled = Leveled(1 << 6);
/// Has begun.
const STARTED: Leveled = Leveled(1 << 9);
/// All of these: those of a caller are also those of its callees.
const INHERITED: u16 = (1 << 12) - 1;
/// Leads to values.
const USED: u16 = 1 << 12;
/// Has values of its own.
const HOLDS: u16 = 1 << 13;
/// Its last frame is shown.
const DIRECT: u16 = 1 << 14;

impl Leveled {
    /// Returns the property of a stack without the frames above a level.
    fn at(self, level: Visibility) -> u16 {
        self.0 << level as u16
    }

    /// Returns the properties that a frame of a level gives to its stack.
    fn from(self, level: Visibility) -> u16 {
        let level = level as u16;
        self.0 * (0b111 >> level << level)
    }
}

impl Path {
    fn has(self, property: u16) -> bool {
        self.0 & property != 0
    }

    fn set(&mut self, property: u16, is_set: bool) {
        if is_set {
            self.0 |= property;
        }
    }

    /// Returns the least level of its frames: patterns apply to those.
    fn level(self) -> Visibility {
        let mut levels = LEVELS.into_iter();
        let seen = levels.find(|level| self.has(SEEN.at(*level)));
        seen.unwrap_or(Visibility::Plain)
    }
}

impl<'a> VisibleTree<'a> {
    /// Applies `filter` to the callsites that lead to the values. Values of other callsites must
    /// not be summed over the result.
    pub fn new(table: &'a StackTable, filter: &Filter, values: &[&Values]) -> VisibleTree<'a> {
        match Listed::new(table, filter) {
            Some(listed) => VisibleTree::of_list(table, listed, filter, values),
            None => VisibleTree::of_tree(table, filter, values),
        }
    }

    fn of_list(
        table: &'a StackTable,
        listed: Listed<'a>,
        filter: &Filter,
        values: &[&Values],
    ) -> VisibleTree<'a> {
        let target = |passes| if passes { 0 } else { NOWHERE };
        let passing = listed.passing(filter, values).into_iter();
        VisibleTree {
            table,
            calls: Calls::default(),
            targets: passing.map(target).collect(),
            taken_out: listed.takes_out(values),
            listed: Some(listed),
        }
    }

    fn of_tree(table: &'a StackTable, filter: &Filter, values: &[&Values]) -> VisibleTree<'a> {
        let count = table.node_count();
        let mut paths = vec![Path::default(); count];
        for node in values.iter().flat_map(|values| &values.nodes) {
            paths[node.0 as usize] = Path(USED | HOLDS);
        }
        for node in (1..count).rev() {
            if paths[node].has(USED) {
                paths[table.parent(NodeId(node as u32)).0 as usize].set(USED, true);
            }
        }
        paths[0].set(DIRECT, true);
        let all = |property: Leveled| property.from(Visibility::Plain);
        paths[0].set(all(FOCUSED), filter.focus.is_empty());
        paths[0].set(all(STARTED), filter.show_from.is_empty());
        let mut growing = Growing {
            table,
            verdicts: filter.verdicts(table),
            calls: Calls::default(),
            shared: vec![false],
        };
        let mut taken_out = false;
        // Shown callsite of each callsite, or of its nearest caller that has one.
        let mut images = vec![0u32; count];
        for node in 1..count {
            if !paths[node].has(USED) {
                continue;
            }
            let id = NodeId(node as u32);
            let parent = table.parent(id).0 as usize;
            let above = paths[parent];
            let Some((frame, verdict)) = growing.verdict(id) else {
                continue;
            };
            let path = &mut paths[node];
            path.0 |= above.0 & INHERITED;
            path.set(SEEN.from(verdict.level), true);
            path.set(FOCUSED.from(verdict.level), verdict.focus);
            path.set(IGNORED.from(verdict.level), verdict.ignore);
            path.set(STARTED.from(verdict.level), verdict.start);
            images[node] = match verdict.visibility {
                Visibility::Plain if path.has(STARTED.at(Visibility::Plain)) => {
                    path.set(DIRECT, true);
                    growing.child(images[parent], frame, above.has(DIRECT))
                }
                _ => images[parent],
            };
            taken_out |= !matches!(verdict.visibility, Visibility::Plain | Visibility::Never);
        }
        let mut targets = images;
        let mut known = [HashMap::default(), HashMap::default()];
        for node in 0..count {
            let path = paths[node];
            let mut image = std::mem::replace(&mut targets[node], NOWHERE);
            let has = |property: Leveled| path.has(property.at(path.level()));
            if !path.has(HOLDS) || !has(FOCUSED) || !has(STARTED) || has(IGNORED) {
                continue;
            }
            for (&limit, known) in LEVELS[1..].iter().zip(&mut known) {
                if image == 0 && taken_out {
                    image = growing.fallback(NodeId(node as u32), limit, &paths, known);
                }
            }
            // A filter on frames does not apply to a stack without frames.
            if image != 0 || filter.takes_all() {
                targets[node] = image;
            }
        }
        let mut calls = growing.calls;
        calls.seal();
        VisibleTree {
            table,
            calls,
            targets,
            taken_out,
            listed: None,
        }
    }

    /// Returns the table with the frames.
    pub fn table(&self) -> &'a StackTable {
        self.table
    }

    /// Returns the number of callsites, including the root.
    pub fn len(&self) -> usize {
        self.calls.all().len()
    }

    /// Returns whether any values pass the filter.
    pub fn has_matches(&self) -> bool {
        self.targets.iter().any(|target| *target != NOWHERE)
    }

    /// Returns whether nothing is shown.
    pub fn is_empty(&self) -> bool {
        self.len() == 1
    }

    /// Returns whether frames of allocators or of the Java runtime were removed.
    pub fn took_out(&self) -> bool {
        self.taken_out
    }

    /// Returns the caller of a callsite; the root for outermost frames and for the root itself.
    pub fn parent(&self, id: VisibleId) -> VisibleId {
        VisibleId(self.calls.all()[id.at()].parent)
    }

    /// Returns the frame of a callsite; `None` for the root.
    pub fn frame(&self, id: VisibleId) -> Option<FrameId> {
        (id != VisibleId::ROOT).then(|| FrameId(self.calls.all()[id.at()].frame))
    }

    /// Returns all calls except the root, in order of their IDs.
    pub(super) fn calls(&self) -> impl DoubleEndedIterator<Item = (usize, Call)> {
        let calls = self.calls.all().iter().copied();
        calls.enumerate().skip(1)
    }

    /// Walks through all callsites except the root, in depth-first order.
    pub(super) fn walk(&self, mut visit: impl FnMut(Step)) {
        let calls = self.calls.all();
        let mut first_child = vec![0u32; calls.len()];
        let mut next = vec![0u32; calls.len()];
        for (id, call) in self.calls().rev() {
            let parent = call.parent as usize;
            next[id] = first_child[parent];
            first_child[parent] = id as u32;
        }
        let mut at = first_child[0];
        while at != 0 {
            visit(Step::Enter(VisibleId(at)));
            let mut here = at as usize;
            at = first_child[here];
            while at == 0 && here != 0 {
                visit(Step::Leave(VisibleId(here as u32)));
                at = next[here];
                here = calls[here].parent as usize;
            }
        }
    }

    /// Returns the frames of a callsite, leaf first.
    pub fn stack(&self, leaf: VisibleId) -> impl Iterator<Item = FrameId> + '_ {
        let next = |id: &VisibleId| Some(self.parent(*id));
        std::iter::successors(Some(leaf), next).map_while(|id| self.frame(id))
    }

    /// Appends the frames of the stack that receives the values of a table's callsite, outermost
    /// first. Returns whether they are not excluded.
    pub(super) fn frames_of(&self, node: NodeId, frames: &mut Vec<FrameId>) -> bool {
        let Some(target) = self.target(node) else {
            return false;
        };
        match &self.listed {
            Some(listed) => listed.shown(node.0, frames),
            None => {
                let start = frames.len();
                frames.extend(self.stack(target));
                frames[start..].reverse();
            }
        }
        true
    }

    /// Returns the shown callsite that receives the values of a table's callsite; `None` if they
    /// are excluded.
    pub fn target(&self, node: NodeId) -> Option<VisibleId> {
        let target = self.targets[node.0 as usize];
        (target != NOWHERE).then_some(VisibleId(target))
    }

    /// Passes each value of a column that is not excluded, with its shown callsite.
    pub(super) fn each(
        &self,
        values: &Values,
        column: usize,
        mut each: impl FnMut(VisibleId, i64),
    ) {
        for (node, value) in values.nodes.iter().zip(&values.columns[column]) {
            if let Some(target) = self.target(*node) {
                each(target, *value);
            }
        }
    }

    /// Returns the sum of each column of values over the stacks that pass the filter.
    pub fn totals(&self, values: &Values) -> Vec<i64> {
        let totals = (0..values.columns.len()).map(|column| {
            let mut total = 0i64;
            self.each(values, column, |_, value| {
                total = total.saturating_add(value);
            });
            total
        });
        totals.collect()
    }

    /// Sums a column of values by callsite: only stacks that end there.
    pub fn own(&self, values: &Values, column: usize) -> Vec<i64> {
        let mut sums: Vec<i64> = zeros(self.len());
        self.each(values, column, |target, value| {
            let sum = &mut sums[target.at()];
            *sum = sum.saturating_add(value);
        });
        sums
    }

    /// Returns [`VisibleTree::own`] of each column.
    pub fn own_columns(&self, values: &Values) -> Vec<Vec<i64>> {
        let columns = 0..values.columns.len();
        columns.map(|column| self.own(values, column)).collect()
    }

    /// Adds the sums of stacks that end at a callsite to its callers, so that they become those of
    /// all stacks that pass there.
    pub(super) fn accumulate(&self, sums: &mut [i64]) {
        self.calls.accumulate(sums);
    }
}
