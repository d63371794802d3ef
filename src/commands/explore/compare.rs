//! Comparison of the explored heap with an earlier one: classes, and leaks by signature. Of the earlier
//! heap, only what the comparison needs stays in memory.

use crate::analyze::diff::{self, ByClass, Change, Classes, Side};
use crate::analyze::filter::Filter;
use crate::analyze::histogram::Sums;
use crate::analyze::leaks::Leaks;
use crate::explore::{Explorer, Page, Size, Table};
use crate::heaps::java::facts::HeapFacts;
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Classes and leaks of an earlier heap.
pub(super) struct Earlier {
    facts: HeapFacts,
    classes: Classes,
    leaks: BTreeMap<LeakKey, LeakSide>,
}

impl Earlier {
    pub(super) fn of(side: Side<'_>, facts: HeapFacts, leaks: &Leaks) -> Earlier {
        Earlier {
            facts,
            classes: diff::classes(side, &Filter::default()),
            leaks: by_signature(leaks),
        }
    }
}

/// Signature and class of leaks.
type LeakKey = (String, String);

/// Leaks of one signature and class in one heap.
#[derive(Debug, Clone, Copy, Default)]
struct LeakSide {
    what: &'static str,
    count: u64,
    bytes: u64,
}

fn by_signature(found: &Leaks) -> BTreeMap<LeakKey, LeakSide> {
    let sides = found.groups.iter().map(|group| {
        let side = LeakSide {
            what: group.what(),
            count: group.leaks.len() as u64,
            bytes: group.kept.bytes.saturating_add(group.kept.native_bytes),
        };
        ((group.signature.clone(), group.class.clone()), side)
    });
    sides.collect()
}

/// What changed from the earlier heap to the explored one.
pub(super) struct Comparison {
    before: HeapFacts,
    classes: ByClass,
    leaks: Vec<LeakChange>,
}

/// Leaks of one signature in both heaps.
#[derive(Debug, Clone, Serialize)]
pub(super) struct LeakChange {
    signature: String,
    what: &'static str,
    class: String,
    /// `new`, `gone` or `stays`.
    status: &'static str,
    count_before: u64,
    count_after: u64,
    retained_bytes_before: u64,
    retained_bytes_after: u64,
}

/// Class in both heaps.
#[derive(Serialize)]
pub(super) struct ChangedClass<'a> {
    name: &'a str,
    /// `new`, `gone`, `changed` …
    status: &'static str,
    before: Figures,
    after: Figures,
}

#[derive(Serialize)]
struct Figures {
    count: u64,
    shallow_bytes: u64,
    native_bytes: u64,
    retained: Size,
}

impl From<Sums> for Figures {
    fn from(sums: Sums) -> Figures {
        Figures {
            count: sums.count,
            shallow_bytes: sums.shallow_bytes,
            native_bytes: sums.native_bytes,
            retained: sums.retained.into(),
        }
    }
}

/// Order of the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ChangeSort {
    Name,
    Count,
    Shallow,
    Native,
    Retained,
}

/// Request for a part of the classes.
pub(super) struct ChangeQuery {
    pub(super) sort: ChangeSort,
    /// Smallest growth first.
    pub(super) is_reverse: bool,
    /// Text that names contain, in any case.
    pub(super) filter: String,
    pub(super) page: Page,
}

impl Comparison {
    pub(super) fn new(earlier: Earlier, explorer: &Explorer, leaks: &Leaks) -> Comparison {
        let graph = explorer.graph();
        let side = Side {
            graph,
            dominators: explorer.dominators(),
        };
        let after = diff::classes(side, &Filter::default());
        Comparison {
            before: earlier.facts,
            classes: diff::merge(earlier.classes, after),
            leaks: changes(earlier.leaks, by_signature(leaks)),
        }
    }

    /// Returns the facts about the earlier heap.
    pub(super) fn before(&self) -> &HeapFacts {
        &self.before
    }

    /// Returns the leaks: new ones first, then those that stay, those that are gone last.
    pub(super) fn leaks(&self) -> &[LeakChange] {
        &self.leaks
    }

    /// Returns a part of the classes that changed. The numbers are those of `heaptap diff`.
    pub(super) fn classes(&self, query: &ChangeQuery) -> Table<ChangedClass<'_>> {
        let wanted = query.filter.to_lowercase();
        let is_wanted = |row: &&diff::ClassChange| {
            !row.change.growth().is_none() && row.name.to_lowercase().contains(&wanted)
        };
        let mut rows: Vec<_> = self.classes.rows.iter().filter(is_wanted).collect();
        let figure = |change: &Change| {
            let growth = change.growth();
            match query.sort {
                ChangeSort::Name => 0,
                ChangeSort::Count => growth.count,
                ChangeSort::Shallow => growth.shallow_bytes,
                ChangeSort::Native => growth.native_bytes,
                ChangeSort::Retained => growth.retained_total_bytes(),
            }
        };
        rows.sort_by_cached_key(|row| (Reverse(figure(&row.change)), row.name.clone()));
        if query.is_reverse {
            rows.reverse();
        }
        let total = rows.len() as u64;
        let rows = rows.into_iter().skip(query.page.offset);
        Table {
            total,
            rows: rows
                .take(query.page.limit)
                .map(|row| ChangedClass {
                    name: &row.name,
                    status: row.change.status().name(),
                    before: row.change.before.into(),
                    after: row.change.after.into(),
                })
                .collect(),
        }
    }
}

fn changes(
    before: BTreeMap<LeakKey, LeakSide>,
    after: BTreeMap<LeakKey, LeakSide>,
) -> Vec<LeakChange> {
    let mut both: BTreeMap<LeakKey, (LeakSide, LeakSide)> = BTreeMap::new();
    for (key, side) in before {
        both.entry(key).or_default().0 = side;
    }
    for (key, side) in after {
        both.entry(key).or_default().1 = side;
    }
    let changes = both
        .into_iter()
        .map(|((signature, class), (before, after))| {
            let status = match (before.count, after.count) {
                (0, _) => "new",
                (_, 0) => "gone",
                _ => "stays",
            };
            LeakChange {
                signature,
                what: if after.count > 0 { after } else { before }.what,
                class,
                status,
                count_before: before.count,
                count_after: after.count,
                retained_bytes_before: before.bytes,
                retained_bytes_after: after.bytes,
            }
        });
    let mut changes: Vec<LeakChange> = changes.collect();
    let order = ["new", "stays", "gone"];
    changes.sort_by_key(|change| {
        let place = order.iter().position(|word| *word == change.status);
        let bytes = change
            .retained_bytes_after
            .max(change.retained_bytes_before);
        (place, Reverse(bytes))
    });
    changes
}
