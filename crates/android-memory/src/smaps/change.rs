//! Comparison of two states: grown, added and removed groups.

use std::collections::BTreeMap;

use super::group::{By, Group, Grouped};
use super::mapping::{Form, Smaps};
use heaptap_model::smaps::{Field, Sums};

/// A group in both states.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    pub group: Group,
    /// Number of mappings before and after.
    pub count: (u64, u64),
    /// Figures before; `None` if the group did not exist.
    pub before: Option<Sums>,
    /// Figures after; `None` if the group no longer exists.
    pub after: Option<Sums>,
}

impl Change {
    /// Returns the change of a figure; `None` if a state does not report it.
    pub fn delta(&self, field: Field) -> Option<i64> {
        delta(self.before.as_ref(), self.after.as_ref(), field)
    }

    /// Returns the change of private dirty pages and swap: the additional cost of the process.
    pub fn cost(&self) -> i64 {
        let cost = |sums: &Option<Sums>| sums.map_or(0, |sums| sums.dirty_and_swapped());
        difference(cost(&self.before), cost(&self.after))
    }
}

fn difference(before: u64, after: u64) -> i64 {
    let difference = i128::from(after) - i128::from(before);
    i64::try_from(difference).unwrap_or(if difference < 0 { i64::MIN } else { i64::MAX })
}

fn delta(before: Option<&Sums>, after: Option<&Sums>, field: Field) -> Option<i64> {
    let get = |sums: Option<&Sums>| match sums {
        // A missing group uses no memory, but a figure that is not reported is unknown.
        None => Some(0),
        Some(sums) => sums.get(field),
    };
    if before.is_none() && after.is_none() {
        return None;
    }
    Some(difference(get(before)?, get(after)?))
}

/// All differences between two states.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Changes {
    /// Changed groups, the largest change first.
    pub rows: Vec<Change>,
    /// Number of unchanged groups.
    pub unchanged: usize,
    /// Sums of all mappings before and after.
    pub totals: (Sums, Sums),
    /// Number of mappings before and after.
    pub count: (u64, u64),
}

impl Changes {
    /// Returns the change of the total; `None` if a state does not report the figure.
    pub fn total(&self, field: Field) -> Option<i64> {
        delta(Some(&self.totals.0), Some(&self.totals.1), field)
    }
}

/// Compares two states. A state that is a single sum has no groups.
pub fn changes(before: &Smaps, after: &Smaps, by: By) -> Changes {
    let (was, is) = (before.groups(by), after.groups(by));
    let mut all: BTreeMap<Group, Change> = BTreeMap::new();
    let mut changes = Changes {
        totals: (was.total, is.total),
        count: (was.count, is.count),
        ..Changes::default()
    };
    if before.form == Form::Rollup || after.form == Form::Rollup {
        return changes;
    }
    let mut add = |rows: &[Grouped], set: fn(&mut Change, &Grouped)| {
        for row in rows {
            let change = all.entry(row.group.clone()).or_insert_with(|| Change {
                group: row.group.clone(),
                count: (0, 0),
                before: None,
                after: None,
            });
            set(change, row);
        }
    };
    add(&was.rows, |change, row| {
        change.count.0 = row.count;
        change.before = Some(row.sums);
    });
    add(&is.rows, |change, row| {
        change.count.1 = row.count;
        change.after = Some(row.sums);
    });
    let groups = all.len();
    changes.rows = all
        .into_values()
        .filter(|change| change.before != change.after || change.count.0 != change.count.1)
        .collect();
    changes.unchanged = groups - changes.rows.len();
    let weight = |change: &Change| {
        let of = |field| change.delta(field).unwrap_or(0).unsigned_abs();
        (
            change.cost().unsigned_abs(),
            of(Field::Pss),
            of(Field::Rss),
            of(Field::Size),
        )
    };
    changes.rows.sort_by(|a, b| {
        let by_name = || a.group.cmp(&b.group);
        weight(b).cmp(&weight(a)).then_with(by_name)
    });
    changes
}
