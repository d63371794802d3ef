//! Self and cumulative sums by group. A row's own sum covers stacks that end in it. Its cumulative
//! sum covers stacks that pass it, each stack once, even with recursion.

use super::groups::{GroupId, Groups, RowKey};
use super::listed::Sums;
use super::visible_tree::{Step, VisibleId, VisibleTree};
use heaptap_model::stacks::{FrameId, NodeId, Values};

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Stack.
    Callsite(VisibleId),
    /// All frames of a group.
    Group(GroupId),
}

/// Sums by group or callsite, with rows in no particular order.
#[derive(Debug)]
pub struct Table {
    keys: Vec<Key>,
    columns: usize,
    /// Own sums by row; the columns of a row are adjacent.
    own: Vec<i64>,
    cumulative: Vec<i64>,
}

/// Values of a row, by column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    pub key: Key,
    /// Sums of stacks that end there.
    pub own: &'a [i64],
    /// Sums of stacks that pass there.
    pub cumulative: &'a [i64],
}

impl Table {
    /// Sums values by group. Omits rows that are all zero and, by callsite, stacks that are only
    /// prefixes of others.
    pub fn new(shown: &VisibleTree<'_>, groups: &Groups<'_>, values: &Values) -> Table {
        if groups.by() == RowKey::Callsite {
            return by_callsite(shown, values);
        }
        let columns = values.columns.len();
        let [own, cumulative] = match &shown.listed {
            Some(listed) => {
                let is_taken = |stack| shown.target(NodeId(stack)).is_some();
                listed.sums(groups, values, is_taken)
            }
            None => sums_of_tree(shown, groups, values),
        };
        let mut table = Table {
            keys: Vec::new(),
            columns,
            own: Vec::new(),
            cumulative: Vec::new(),
        };
        for group in 0..groups.len() {
            let range = group * columns..(group + 1) * columns;
            table.push(
                Key::Group(GroupId(group as u32)),
                own[range.clone()].iter().copied(),
                cumulative[range].iter().copied(),
            );
        }
        table
    }

    fn push(
        &mut self,
        key: Key,
        own: impl Iterator<Item = i64> + Clone,
        cumulative: impl Iterator<Item = i64> + Clone,
    ) {
        if own
            .clone()
            .chain(cumulative.clone())
            .any(|value| value != 0)
        {
            self.keys.push(key);
            self.own.extend(own);
            self.cumulative.extend(cumulative);
        }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// Returns the row at a position.
    pub fn row(&self, at: usize) -> Row<'_> {
        let range = at * self.columns..(at + 1) * self.columns;
        Row {
            key: self.keys[at],
            own: &self.own[range.clone()],
            cumulative: &self.cumulative[range],
        }
    }

    /// Returns all rows in table order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).map(|at| self.row(at))
    }

    /// Returns the positions of the rows, highest `rank` first, then in order of their keys.
    /// Returns at most `limit` rows unless it is 0.
    pub fn ranked<R: Ord>(&self, limit: usize, rank: impl Fn(Row<'_>) -> R) -> Vec<usize> {
        let mut ranked: Vec<(std::cmp::Reverse<R>, Key, usize)> = (0..self.len())
            .map(|at| (std::cmp::Reverse(rank(self.row(at))), self.keys[at], at))
            .collect();
        if limit > 0 && limit < ranked.len() {
            ranked.select_nth_unstable(limit - 1);
            ranked.truncate(limit);
        }
        ranked.sort_unstable();
        ranked.into_iter().map(|(_, _, at)| at).collect()
    }
}

fn sums_of_tree(shown: &VisibleTree<'_>, groups: &Groups<'_>, values: &Values) -> Sums {
    let columns = values.columns.len();
    let mut own = vec![0i64; groups.len() * columns];
    let mut cumulative = own.clone();
    let outermost = outermost(shown, groups);
    // One column at a time: there can be many more callsites than groups.
    for column in 0..columns {
        let mut sums = shown.own(values, column);
        let place = |frame| groups.group(FrameId(frame)).0 as usize * columns + column;
        for (id, call) in shown.calls() {
            let sum = &mut own[place(call.frame)];
            *sum = sum.saturating_add(sums[id]);
        }
        shown.accumulate(&mut sums);
        for (id, call) in shown.calls().filter(|(id, _)| outermost[*id]) {
            let sum = &mut cumulative[place(call.frame)];
            *sum = sum.saturating_add(sums[id]);
        }
    }
    [own, cumulative]
}

fn by_callsite(shown: &VisibleTree<'_>, values: &Values) -> Table {
    let columns = values.columns.len();
    let mut is_row = vec![false; shown.len()];
    for column in 0..columns {
        for (is_row, value) in is_row.iter_mut().zip(shown.own(values, column)) {
            *is_row |= value != 0;
        }
    }
    let rows: Vec<usize> = (0..shown.len()).filter(|at| is_row[*at]).collect();
    let mut table = Table {
        keys: rows
            .iter()
            .map(|at| Key::Callsite(VisibleId(*at as u32)))
            .collect(),
        columns,
        own: vec![0; rows.len() * columns],
        cumulative: vec![0; rows.len() * columns],
    };
    for column in 0..columns {
        let places = (0..).skip(column).step_by(columns);
        let mut sums = shown.own(values, column);
        for (place, at) in places.clone().zip(&rows) {
            table.own[place] = sums[*at];
        }
        shown.accumulate(&mut sums);
        for (place, at) in places.zip(&rows) {
            table.cumulative[place] = sums[*at];
        }
    }
    table
}

/// Returns, by callsite, whether its callers are all of other groups.
fn outermost(shown: &VisibleTree<'_>, groups: &Groups<'_>) -> Vec<bool> {
    let mut outermost = vec![false; shown.len()];
    // Occurrences on the path, by group.
    let mut counts = vec![0u32; groups.len()];
    let group = |id: VisibleId| shown.frame(id).map(|frame| groups.group(frame).0 as usize);
    shown.walk(|step| match step {
        Step::Enter(id) => {
            if let Some(group) = group(id) {
                outermost[id.at()] = counts[group] == 0;
                counts[group] += 1;
            }
        }
        Step::Leave(id) => {
            if let Some(group) = group(id) {
                counts[group] -= 1;
            }
        }
    });
    outermost
}
