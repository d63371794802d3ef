//! Self and cumulative sums by group. A row's own sum covers stacks that end in it. Its cumulative
//! sum covers stacks that pass it, each stack once, even with recursion.

use super::groups::{GroupId, Groups, RowKey};
use super::shown::{Shown, ShownId, Sums};

/// Subject of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// Stack.
    Callsite(ShownId),
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
    pub fn of(shown: &Shown<'_>, groups: &Groups<'_>, sums: &Sums) -> Table {
        if groups.by() == RowKey::Callsite {
            return by_callsite(shown, sums);
        }
        let columns = sums.own.len();
        let mut own = vec![0i64; groups.len() * columns];
        let mut cumulative = own.clone();
        let mut on_path = OnPath::new(groups.len());
        for &id in shown.preorder() {
            let Some(frame) = shown.frame(id) else {
                continue;
            };
            let group = groups.group(frame).0 as usize;
            let outermost = on_path.enter(shown.parent(id), id, group) == 1;
            for column in 0..columns {
                let at = group * columns + column;
                own[at] = own[at].saturating_add(sums.own[column][id.at()]);
                if outermost {
                    let sum = sums.cumulative[column][id.at()];
                    cumulative[at] = cumulative[at].saturating_add(sum);
                }
            }
        }
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

fn by_callsite(shown: &Shown<'_>, sums: &Sums) -> Table {
    let mut table = Table {
        keys: Vec::new(),
        columns: sums.own.len(),
        own: Vec::new(),
        cumulative: Vec::new(),
    };
    for at in 0..shown.len() {
        let own = sums.own.iter().map(|column| column[at]);
        if own.clone().any(|value| value != 0) {
            let cumulative = sums.cumulative.iter().map(|column| column[at]);
            table.push(Key::Callsite(ShownId(at as u32)), own, cumulative);
        }
    }
    table
}

/// Counter of repeated groups on the path, for a walk from the root.
pub(super) struct OnPath {
    /// Occurrences on the path, by what is counted.
    counts: Vec<u32>,
    path: Vec<(ShownId, usize)>,
}

impl OnPath {
    pub(super) fn new(kinds: usize) -> OnPath {
        OnPath {
            counts: vec![0; kinds],
            path: Vec::new(),
        }
    }

    /// Moves to `id`, which `parent` called, and counts `kind` there. Returns its occurrences on
    /// the path.
    pub(super) fn enter(&mut self, parent: ShownId, id: ShownId, kind: usize) -> u32 {
        while let Some(&(last, left)) = self.path.last() {
            if last == parent {
                break;
            }
            self.counts[left] -= 1;
            self.path.pop();
        }
        self.path.push((id, kind));
        if kind >= self.counts.len() {
            self.counts.resize(kind + 1, 0);
        }
        self.counts[kind] += 1;
        self.counts[kind]
    }
}
