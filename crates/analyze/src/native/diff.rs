//! Differences between two dumps: growth of unreleased or allocated bytes by callsite, function,
//! library and so on, each with its sampling error and a test whether that explains it. The input
//! is two columns of values over one table; `stacks::join` joins two tables.

use std::cmp::{Ordering, Reverse};

use super::filter::Filter;
use super::groups::{Groups, RowKey};
use super::table::{Key, Table};
use super::visible_tree::VisibleTree;
use crate::sampling::verdict::{FALSE_DISCOVERIES, MIN_HITS_TO_TEST, benjamini_hochberg};
use crate::sampling::{Counters, Interval, Rate, Sampled, Turnover};
use heaptap_model::stacks::{Dump, NodeId, StackTable, Values, View, sum};

/// Relation between two dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpRelation {
    /// Dumps of one process in one recording, the first before the second. Survivors are in both
    /// and cancel, including their error.
    OneRun,
    /// Dumps of two runs, which are compared as independent samples.
    Apart,
}

/// Quantity whose growth is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Growing {
    /// Unreleased bytes.
    #[default]
    Held,
    /// Bytes allocated since profiling began.
    Allocated,
}

impl Growing {
    /// Returns the views of bytes and of counts.
    pub fn views(self) -> (View, View) {
        match self {
            Growing::Held => (View::Space, View::Objects),
            Growing::Allocated => (View::AllocSpace, View::AllocObjects),
        }
    }
}

/// Parameters of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    pub by: RowKey,
    pub growing: Growing,
    pub relation: DumpRelation,
    /// Divisor of each side's values: iterations or seconds. Positive and finite.
    pub divisors: [f64; 2],
}

/// Comparison of two dumps.
#[derive(Debug)]
pub struct Diff<'a> {
    /// Callsites of the rows.
    pub shown: VisibleTree<'a>,
    /// Groups of the rows.
    pub groups: Groups<'a>,
    /// Change of all callsites, regardless of the filter.
    pub total: Change,
    /// Change of the callsites that pass the filter.
    pub left: Change,
    /// Changed rows in no particular order.
    pub rows: Vec<Row>,
    /// Whether a sampling interval is known. Otherwise changes have no limits.
    pub has_limits: bool,
}

/// Row of a comparison.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    pub key: Key,
    /// Change of stacks that end there.
    pub own: Change,
    /// Change of stacks that pass there.
    pub cumulative: Change,
}

/// Change of one value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Change {
    pub before: i64,
    pub after: i64,
    pub samples_before: i64,
    pub samples_after: i64,
    /// Second value minus first, each divided as in `Terms`, with 95% limits. Without a known
    /// interval the limits equal the value.
    pub growth: Rate,
    /// Whether sampling error does not explain the change: the limits exclude zero, and the change
    /// is significant among all tested rows.
    pub is_certain: bool,
}

impl Change {
    /// Returns whether there was nothing before.
    pub fn is_new(&self) -> bool {
        self.before == 0 && self.samples_before == 0
    }

    /// Returns whether nothing is left.
    pub fn is_gone(&self) -> bool {
        self.after == 0 && self.samples_after == 0
    }

    /// Returns `new`, `gone`, `grown`, `shrunk` or `same`, regardless of certainty.
    pub fn status(&self) -> &'static str {
        match self.growth.value.partial_cmp(&0.0) {
            _ if self.is_new() && self.is_gone() => "same",
            _ if self.is_new() => "new",
            _ if self.is_gone() => "gone",
            Some(Ordering::Greater) => "grown",
            Some(Ordering::Less) => "shrunk",
            _ => "same",
        }
    }
}

/// Columns of values over the table of both dumps.
const BEFORE: usize = 0;
const AFTER: usize = 2;
const KEPT: usize = 4;
const RELEASED: usize = 7;
const COLUMNS: usize = 10;

/// One of two dumps.
#[derive(Debug, Clone, Copy)]
struct Side<'a> {
    values: &'a Values,
    columns: [Option<&'a [i64]>; 4],
    interval: Option<Interval>,
}

impl<'a> Side<'a> {
    fn from_dump(dump: &'a Dump) -> Side<'a> {
        Side {
            values: &dump.values,
            columns: [
                View::Space,
                View::Objects,
                View::AllocSpace,
                View::AllocObjects,
            ]
            .map(|view| dump.column(view)),
            interval: Interval::from_facts(&dump.facts),
        }
    }

    /// Returns the counters of a callsite. Missing counts are the maximum that the bytes allow.
    fn counters(&self, at: Option<usize>) -> Counters {
        let value = |column: usize| at.and_then(|at| Some(self.columns[column]?[at]));
        let count = |column: usize, bytes: i64| match self.columns[column] {
            Some(_) => value(column).unwrap_or(0),
            None => {
                let interval = self.interval.map_or(1, Interval::bytes);
                i64::try_from(bytes.unsigned_abs().div_ceil(interval)).unwrap_or(i64::MAX)
            }
        };
        let (space, alloc_space) = (value(0).unwrap_or(0), value(2).unwrap_or(0));
        Counters {
            space,
            objects: count(1, space),
            alloc_space,
            alloc_objects: count(3, alloc_space),
            small: None,
        }
    }

    fn has_all(&self) -> bool {
        self.columns.iter().all(Option::is_some)
    }
}

impl<'a> Diff<'a> {
    /// Compares two dumps over one table. If one is absent, everything in the other is new or gone.
    pub fn new(
        table: &'a StackTable,
        before: Option<&Dump>,
        after: Option<&Dump>,
        filter: &Filter,
        terms: &Terms,
    ) -> Diff<'a> {
        let sides = Sides::new(before, after, terms);
        let values = sides.values();
        let shown = VisibleTree::new(table, filter, &[&values]);
        let groups = Groups::new(table, terms.by);
        let made = Table::new(&shown, &groups, &values);
        let mut rows: Vec<Row> = made
            .rows()
            .map(|row| Row {
                key: row.key,
                own: sides.change(row.own),
                cumulative: sides.change(row.cumulative),
            })
            .collect();
        let tests: Vec<_> = made
            .rows()
            .map(|row| (sides.chance(row.own), sides.chance(row.cumulative)))
            .collect();
        settle(&mut rows, tests.iter().map(|test| test.0), |row| {
            &mut row.own
        });
        settle(&mut rows, tests.iter().map(|test| test.1), |row| {
            &mut row.cumulative
        });
        let root = shown.totals(&values);
        let all: Vec<i64> = values.columns.iter().map(|column| sum(column)).collect();
        Diff {
            total: sides.change(&all),
            left: sides.change(&root),
            shown,
            groups,
            rows,
            has_limits: sides.intervals.is_some(),
        }
    }

    /// Returns the positions of the rows that changed: certain changes first,
    /// growth before shrinkage, largest first.
    pub fn ranked(&self, of: impl Fn(&Row) -> Change) -> Vec<usize> {
        let rank = |at: &usize| {
            let change = of(&self.rows[*at]);
            let grown = change.growth.value > 0.0;
            // The order of positive numbers is that of their bits.
            let size = change.growth.value.abs().to_bits();
            let place = match change.is_certain {
                true => (0, !grown),
                false => (1, false),
            };
            (place, Reverse(size), self.rows[*at].key)
        };
        let changed = |at: &usize| {
            let change = of(&self.rows[*at]);
            change.growth.value != 0.0 || change.before != change.after
        };
        let mut ranked: Vec<usize> = (0..self.rows.len()).filter(changed).collect();
        ranked.sort_by_cached_key(rank);
        ranked
    }
}

/// Determines which changes are certain: the row's own limits exclude zero, and the change is
/// significant after correction for all tested rows.
fn settle(
    rows: &mut [Row],
    chances: impl Iterator<Item = Option<f64>>,
    of: fn(&mut Row) -> &mut Change,
) {
    let (tested, chances): (Vec<usize>, Vec<f64>) = chances
        .enumerate()
        .filter_map(|(at, chance)| Some((at, chance?)))
        .unzip();
    for row in rows.iter_mut() {
        let change = of(row);
        // Allocations recorded at full size have no sampling error that could explain the change.
        change.is_certain &= change.growth.exact || change.growth.hits == 0.0;
    }
    for (at, stands_out) in tested
        .into_iter()
        .zip(benjamini_hochberg(&chances, FALSE_DISCOVERIES))
    {
        let change = of(&mut rows[at]);
        change.is_certain = stands_out && (change.growth.low > 0.0 || change.growth.high < 0.0);
    }
}

/// Two dumps with the parameters of their comparison.
struct Sides<'a> {
    sides: [Option<Side<'a>>; 2],
    intervals: Option<[Interval; 2]>,
    one_run: bool,
    growing: Growing,
    divisors: [f64; 2],
}

impl<'a> Sides<'a> {
    fn new(before: Option<&'a Dump>, after: Option<&'a Dump>, terms: &Terms) -> Sides<'a> {
        let sides = [before.map(Side::from_dump), after.map(Side::from_dump)];
        let known = sides.map(|side| side.and_then(|side| side.interval));
        let intervals = match (known, sides.map(|side| side.is_some())) {
            ([Some(before), Some(after)], _) => Some([before, after]),
            ([Some(one), None], [_, false]) | ([None, Some(one)], [false, _]) => Some([one, one]),
            _ => None,
        };
        let complete = sides.iter().flatten().all(Side::has_all);
        Sides {
            sides,
            intervals,
            one_run: terms.relation == DumpRelation::OneRun && complete,
            growing: terms.growing,
            divisors: terms.divisors,
        }
    }

    /// Returns, by callsite, the bytes and counts of both dumps and the inputs of the interval.
    fn values(&self) -> Values {
        let nodes = |side: usize| -> &[NodeId] {
            self.sides[side].map_or(&[][..], |side| &side.values.nodes)
        };
        let (before, after) = (nodes(0), nodes(1));
        let mut values = Values {
            nodes: Vec::with_capacity(before.len().max(after.len())),
            columns: vec![Vec::new(); COLUMNS],
        };
        let (mut b, mut a) = (0, 0);
        while b < before.len() || a < after.len() {
            let order = match (before.get(b), after.get(a)) {
                (Some(left), Some(right)) => left.cmp(right),
                (Some(_), None) => Ordering::Less,
                _ => Ordering::Greater,
            };
            let left = (order != Ordering::Greater).then_some(b);
            let right = (order != Ordering::Less).then_some(a);
            let node = left.map_or_else(|| after[a], |b| before[b]);
            b += usize::from(left.is_some());
            a += usize::from(right.is_some());
            values.nodes.push(node);
            let counters = |side: usize, at: Option<usize>| {
                self.sides[side].map_or_else(Counters::default, |side| side.counters(at))
            };
            let row = self.row(&counters(0, left), &counters(1, right));
            for (column, value) in values.columns.iter_mut().zip(row) {
                column.push(value);
            }
        }
        values
    }

    fn row(&self, before: &Counters, after: &Counters) -> [i64; COLUMNS] {
        let of = |counters: &Counters| match self.growing {
            Growing::Held => (counters.space, counters.objects),
            Growing::Allocated => (counters.alloc_space, counters.alloc_objects),
        };
        let ((b_bytes, b_samples), (a_bytes, a_samples)) = (of(before), of(after));
        let turnover = self
            .intervals
            .map(|[t_before, t_after]| match self.one_run {
                true if self.growing == Growing::Held => {
                    Turnover::paired(before, after, t_before.wider(t_after))
                }
                true => {
                    let interval = t_before.wider(t_after);
                    let bytes = a_bytes.saturating_sub(b_bytes);
                    let since = Sampled::new(bytes, a_samples.saturating_sub(b_samples), interval);
                    Turnover::of_sums(bytes, since, Sampled::nothing(interval))
                }
                false => Turnover::independent(
                    Sampled::new(b_bytes, b_samples, t_before),
                    Sampled::new(a_bytes, a_samples, t_after),
                ),
            });
        let count = |count: u64| i64::try_from(count).unwrap_or(i64::MAX);
        let parts = |of: Option<Sampled>| {
            of.map_or([0; 3], |s| {
                [s.bytes(), count(s.samples()), count(s.small())]
            })
        };
        let [kept, kept_samples, kept_small] = parts(turnover.map(|t| t.kept()));
        let [released, released_samples, released_small] = parts(turnover.map(|t| t.released()));
        [
            b_bytes,
            b_samples,
            a_bytes,
            a_samples,
            kept,
            kept_samples,
            kept_small,
            released,
            released_samples,
            released_small,
        ]
    }

    /// Returns the turnover from sums of the columns, with the second side scaled to the time or
    /// iterations of the first one.
    fn turnover(&self, sums: &[i64]) -> Option<Turnover> {
        let [t_before, t_after] = self.intervals?;
        let net = sums[AFTER].saturating_sub(sums[BEFORE]);
        let part =
            |at: usize, interval| Sampled::of_sums(sums[at], sums[at + 1], sums[at + 2], interval);
        if self.one_run {
            let interval = t_before.wider(t_after);
            return Some(Turnover::of_sums(
                net,
                part(KEPT, interval),
                part(RELEASED, interval),
            ));
        }
        let (released, mut kept) = (part(RELEASED, t_before), part(KEPT, t_after));
        if self.divisors[0] != self.divisors[1] {
            kept = kept.scaled(self.divisors[0] / self.divisors[1]);
        }
        Some(Turnover::independent(released, kept))
    }

    fn change(&self, sums: &[i64]) -> Change {
        let growth = match self.turnover(sums) {
            Some(turnover) => turnover.estimate().per(self.divisors[0]),
            None => None,
        };
        let [per_before, per_after] = self.divisors;
        let plain = sums[AFTER] as f64 / per_after - sums[BEFORE] as f64 / per_before;
        let growth = growth.unwrap_or(Rate {
            value: plain,
            low: plain,
            high: plain,
            hits: 0.0,
            samples: 0,
            exact: true,
        });
        Change {
            before: sums[BEFORE],
            after: sums[AFTER],
            samples_before: sums[BEFORE + 1],
            samples_after: sums[AFTER + 1],
            growth,
            is_certain: growth.low > 0.0 || growth.high < 0.0,
        }
    }

    /// Returns the probability that sampling alone produces such a change if there was none.
    /// Returns `None` if there are too few samples to answer, or if the values have no error.
    fn chance(&self, sums: &[i64]) -> Option<f64> {
        let turnover = self.turnover(sums)?;
        if turnover.is_exact() || turnover.hits() < MIN_HITS_TO_TEST {
            return None;
        }
        Some(turnover.chance())
    }
}

#[cfg(test)]
mod tests;
