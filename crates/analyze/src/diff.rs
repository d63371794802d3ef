//! Changes between two dumps: by class, and by path in the merged dominator tree. Entries match by
//! name, so the dumps can come from different runs, builds and dump formats.

use super::filter::Filter;
use super::histogram::{Histogram, HistogramKey, ObjectScope, Sums, histogram};
use super::tree::Tree;
use heaptap_model::heap_graph::{Dominators, HeapGraph};
use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};

/// Sums of one entry in both dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Change {
    /// Sums in the first dump.
    pub before: Sums,
    /// Sums in the second dump.
    pub after: Sums,
}

/// Signed difference, second dump minus first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
pub struct Growth {
    /// Objects.
    pub count: i64,
    pub shallow_bytes: i64,
    /// Native bytes owned by the objects.
    pub native_bytes: i64,
    /// Retained Java bytes.
    pub retained_bytes: i64,
    pub retained_native_bytes: i64,
}

impl Growth {
    /// Returns the growth of the objects themselves, Java and native bytes.
    pub fn own_bytes(&self) -> i64 {
        self.shallow_bytes.saturating_add(self.native_bytes)
    }

    /// Returns the growth of the retained size, Java and native bytes.
    pub fn retained_total_bytes(&self) -> i64 {
        self.retained_bytes
            .saturating_add(self.retained_native_bytes)
    }

    /// Returns whether all differences are 0.
    pub fn is_none(&self) -> bool {
        *self == Growth::default()
    }
}

/// Keeps the rows that changed most by the absolute values of `change`, of which the first decides, in
/// their order; the first of equal ones.
pub fn keep_largest<Row>(rows: &mut Vec<Row>, most: usize, change: impl Fn(&Row) -> [i64; 2]) {
    if rows.len() <= most {
        return;
    }
    let mut order: Vec<usize> = (0..rows.len()).collect();
    order.sort_by_cached_key(|&at| (Reverse(change(&rows[at]).map(i64::unsigned_abs)), at));
    let mut is_kept = vec![false; rows.len()];
    order.iter().take(most).for_each(|&at| is_kept[at] = true);
    let mut kept = is_kept.into_iter();
    rows.retain(|_| kept.next() == Some(true));
}

impl Change {
    /// Returns the second sums minus the first.
    pub fn growth(&self) -> Growth {
        Growth {
            count: difference(self.before.count, self.after.count),
            shallow_bytes: difference(self.before.shallow_bytes, self.after.shallow_bytes),
            native_bytes: difference(self.before.native_bytes, self.after.native_bytes),
            retained_bytes: difference(self.before.retained.bytes, self.after.retained.bytes),
            retained_native_bytes: difference(
                self.before.retained.native_bytes,
                self.after.retained.native_bytes,
            ),
        }
    }

    /// Returns `new`, `gone`, `grown`, `shrunk` or `same`: by the bytes, among equal ones by the
    /// count of objects, then by the retained bytes.
    pub fn status(&self) -> &'static str {
        let growth = self.growth();
        match (self.before.count, self.after.count) {
            (0, 0) => "same",
            (0, _) => "new",
            (_, 0) => "gone",
            _ => {
                let by = [
                    growth.own_bytes(),
                    growth.count,
                    growth.retained_total_bytes(),
                ];
                match by.into_iter().find(|&by| by != 0) {
                    None => "same",
                    Some(by) if by > 0 => "grown",
                    Some(_) => "shrunk",
                }
            }
        }
    }
}

/// Returns `after - before`, at the limit if it is too large.
pub fn difference(before: u64, after: u64) -> i64 {
    let wide = i128::from(after) - i128::from(before);
    wide.clamp(i64::MIN.into(), i64::MAX.into()) as i64
}

/// One of two dumps.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    pub graph: &'a HeapGraph,
    pub dominators: &'a Dominators,
}

/// Class in both dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClassChange {
    /// Name without parts that differ from run to run.
    pub name: String,
    pub change: Change,
}

/// Reachable objects of one dump by class or package: everything that a comparison needs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Classes(Histogram);

/// Sums reachable objects by class.
pub fn classes(side: Side<'_>, filter: &Filter) -> Classes {
    groups(side, HistogramKey::ClassInAnyRun, filter)
}

/// Sums reachable objects by the package of their class.
pub fn packages(side: Side<'_>, filter: &Filter) -> Classes {
    groups(side, HistogramKey::Package, filter)
}

fn groups(side: Side<'_>, by: HistogramKey, filter: &Filter) -> Classes {
    let scope = ObjectScope::Reachable(side.dominators);
    Classes(histogram(side.graph, scope, by, filter))
}

impl Classes {
    /// Returns the total of all classes. Retained sizes are 0 because they overlap.
    pub fn total(&self) -> Sums {
        let mut total = Sums::default();
        for row in &self.0.rows {
            total.add_sizes(&row.sums);
        }
        total
    }
}

/// Compares two dumps by class or package. Every one with reachable objects in one of the dumps is
/// returned, largest growth first.
pub fn merge(before: Classes, after: Classes) -> Vec<ClassChange> {
    let mut all: BTreeMap<String, Change> = BTreeMap::new();
    for row in before.0.rows {
        all.entry(row.name).or_default().before = row.sums;
    }
    for row in after.0.rows {
        all.entry(row.name).or_default().after = row.sums;
    }
    let mut rows: Vec<ClassChange> = all
        .into_iter()
        .map(|(name, change)| ClassChange { name, change })
        .collect();
    rows.sort_by_cached_key(|row| {
        let growth = row.change.growth();
        (
            Reverse(growth.own_bytes()),
            Reverse(growth.retained_total_bytes()),
            Reverse(growth.count),
            row.name.clone(),
        )
    });
    rows
}

/// Node of both merged dominator trees.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathChange {
    /// Class of the objects.
    pub name: String,
    pub change: Change,
    /// Index of the parent node; `None` at the top.
    pub above: Option<usize>,
    /// Indexes of the child nodes, largest growth of retained bytes first.
    pub below: Vec<usize>,
}

/// Changes by path in the dominator tree. Nodes come after their parents.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ByPath {
    pub nodes: Vec<PathChange>,
    /// Indexes of the nodes that nothing dominates, largest growth first.
    pub tops: Vec<usize>,
}

/// Compares two merged dominator trees.
pub fn by_path(before: &Tree, after: &Tree) -> ByPath {
    let mut all = ByPath::default();
    let mut by_key: HashMap<(Option<usize>, &str), usize> = HashMap::new();
    for (tree, is_after) in [(before, false), (after, true)] {
        let mut place: Vec<usize> = Vec::with_capacity(tree.nodes.len());
        for node in &tree.nodes {
            let above = node.above.map(|above| place[above]);
            let at = *by_key.entry((above, &node.name)).or_insert_with(|| {
                all.nodes.push(PathChange {
                    name: node.name.clone(),
                    change: Change::default(),
                    above,
                    below: Vec::new(),
                });
                all.nodes.len() - 1
            });
            let change = &mut all.nodes[at].change;
            match is_after {
                false => change.before = node.sums,
                true => change.after = node.sums,
            }
            place.push(at);
        }
    }
    let mut order: Vec<usize> = (0..all.nodes.len()).collect();
    order.sort_by_key(|&at| {
        let growth = all.nodes[at].change.growth();
        (
            Reverse(growth.retained_total_bytes()),
            Reverse(growth.count),
            at,
        )
    });
    for at in order {
        match all.nodes[at].above {
            Some(above) => all.nodes[above].below.push(at),
            None => all.tops.push(at),
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_changes_of_either_sign_are_kept_in_their_order() {
        let kept = |rows: &[i64], most| {
            let mut rows = rows.to_vec();
            keep_largest(&mut rows, most, |&row| [row, 0]);
            rows
        };
        assert_eq!(kept(&[9, 8, 7, 6], 2), [9, 8]);
        assert_eq!(kept(&[9, 5, 1, -4, -8], 3), [9, 5, -8]);
        let mut rows = vec![[0, -1], [0, -7], [0, -9], [1, 0]];
        keep_largest(&mut rows, 2, |&row| row);
        assert_eq!(rows, [[0, -9], [1, 0]]);
        assert_eq!(kept(&[3, 3, -3, i64::MIN], 2), [3, i64::MIN]);
        assert_eq!(kept(&[1, -1], 2), [1, -1]);
    }
}
