//! Self and cumulative sums by group: a row's own is what stacks that end in it allocated, its
//! cumulative what stacks that pass it did, each stack once however often it passes.

use super::groups::{GroupId, Groups, RowKey};
use super::shown::{Shown, ShownId, Sums};

/// What a row is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Key {
    /// A stack.
    Callsite(ShownId),
    /// All frames of a group.
    Group(GroupId),
}

/// Sums by group or callsite: rows in no particular order.
#[derive(Debug)]
pub struct Table {
    keys: Vec<Key>,
    columns: usize,
    /// Row by row, the columns of a row side by side.
    own: Vec<i64>,
    cumulative: Vec<i64>,
}

/// A row's numbers, by column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row<'a> {
    /// What it is about.
    pub key: Key,
    /// Of stacks that end there.
    pub own: &'a [i64],
    /// Of stacks that pass there.
    pub cumulative: &'a [i64],
}

impl Table {
    /// Sums by what `groups` says. Rows that are zero throughout are left out; by callsite, so
    /// are stacks that others only pass.
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

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    /// A row, by its position.
    pub fn row(&self, at: usize) -> Row<'_> {
        let range = at * self.columns..(at + 1) * self.columns;
        Row {
            key: self.keys[at],
            own: &self.own[range.clone()],
            cumulative: &self.cumulative[range],
        }
    }

    /// All rows, in the table's order.
    pub fn rows(&self) -> impl Iterator<Item = Row<'_>> {
        (0..self.len()).map(|at| self.row(at))
    }

    /// Positions of the rows, greatest first by what `rank` says of them; those that rank the
    /// same in order of their keys. At most `limit`, where it is not 0.
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

/// Follows a walk from the root and tells how often a stack has come by the same.
pub(super) struct OnPath {
    /// By what is counted: how often it stands on the path.
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

    /// Goes on to `id`, which `parent` called, and counts `kind` there: how often it stands on
    /// the path now.
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
