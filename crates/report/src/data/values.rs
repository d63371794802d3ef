//! Values of a dump as rows of columns: by callsite, or as differences from the previous dump.

use super::header::{self, DerivedMeasure};
use super::order::Order;
use super::varint;
use heaptap_model::stacks::{Dump, Measure, Unit, View};

/// Rows of a dump by callsite number, ascending; columns in the order of the measures.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Rows {
    pub(super) nodes: Vec<u32>,
    pub(super) columns: Vec<Vec<i64>>,
}

/// Returns the indexes of a dump's measures in stored order: counts before the bytes derived from
/// them.
pub(super) fn stored_order(measures: &[Measure]) -> Vec<usize> {
    let rank = |measure: &Measure| match measure.view {
        Some(View::Objects) => 0,
        Some(View::Space) => 1,
        Some(View::AllocObjects) => 2,
        Some(View::AllocSpace) => 3,
        None => 4,
    };
    let mut order: Vec<usize> = (0..measures.len()).collect();
    order.sort_by_key(|&at| rank(&measures[at]));
    order
}

impl Rows {
    /// Returns the values of a dump with its measures in `stored` order, without rows of zeros.
    pub(super) fn new(dump: &Dump, stored: &[usize], order: &Order) -> Rows {
        let values = &dump.values;
        let mut places: Vec<(u32, usize)> = values
            .nodes
            .iter()
            .enumerate()
            .filter(|(row, _)| values.columns.iter().any(|column| column[*row] != 0))
            .filter_map(|(row, &node)| Some((order.number(node)?, row)))
            .collect();
        places.sort_unstable();
        Rows {
            nodes: places.iter().map(|(node, _)| *node).collect(),
            columns: stored
                .iter()
                .map(|&at| {
                    let column = &values.columns[at];
                    places.iter().map(|(_, row)| column[*row]).collect()
                })
                .collect(),
        }
    }

    /// Returns the rows to add to `base` to obtain these: rows with a difference.
    pub(super) fn minus(&self, base: &Rows) -> Rows {
        let mut difference = Rows {
            nodes: Vec::new(),
            columns: vec![Vec::new(); self.columns.len()],
        };
        let (mut own, mut other) = (0, 0);
        let mut row = Vec::new();
        while own < self.nodes.len() || other < base.nodes.len() {
            let here = self.nodes.get(own).copied().unwrap_or(u32::MAX);
            let there = base.nodes.get(other).copied().unwrap_or(u32::MAX);
            row.clear();
            row.extend(
                self.columns
                    .iter()
                    .zip(&base.columns)
                    .map(|(own_column, base_column)| {
                        let value = if here <= there { own_column[own] } else { 0 };
                        let before = if there <= here { base_column[other] } else { 0 };
                        value.wrapping_sub(before)
                    }),
            );
            if row.iter().any(|&value| value != 0) {
                difference.nodes.push(here.min(there));
                for (column, &value) in difference.columns.iter_mut().zip(&row) {
                    column.push(value);
                }
            }
            own += usize::from(here <= there);
            other += usize::from(there <= here);
        }
        difference
    }

    /// Returns the section, and for each column the measure that is added to it, chosen for the
    /// fewest bytes.
    pub(super) fn encode(&self, times: &[i64]) -> (Vec<u8>, Vec<Option<DerivedMeasure>>) {
        let mut out = Vec::new();
        let mut before = 0;
        for &node in &self.nodes {
            varint::put(&mut out, u64::from(node - before));
            before = node;
        }
        let mut all = Vec::new();
        for (at, column) in self.columns.iter().enumerate() {
            let (derived, _) = candidates(at, times)
                .map(|derived| (derived, self.cost(column, derived)))
                .min_by_key(|(_, cost)| *cost)
                .unwrap_or((None, 0));
            for (row, &value) in column.iter().enumerate() {
                varint::put_signed(&mut out, value.wrapping_sub(self.expected(derived, row)));
            }
            all.push(derived);
        }
        (out, all)
    }

    /// Returns the value of a row predicted from an earlier column.
    fn expected(&self, derived: Option<DerivedMeasure>, row: usize) -> i64 {
        derived.map_or(0, |derived| {
            self.columns[derived.measure][row].wrapping_mul(derived.times)
        })
    }

    /// Estimates the bits of a column. Zeros compress to almost nothing. Of many rows, only a part
    /// is examined.
    fn cost(&self, column: &[i64], derived: Option<DerivedMeasure>) -> u64 {
        let bits = |(row, &value): (usize, &i64)| {
            let rest = value.wrapping_sub(self.expected(derived, row));
            u64::from(64 - varint::zigzag(rest).leading_zeros())
        };
        // Odd, because rows alternate if each caller has two callees.
        let stride = (column.len() / COSTED_ROWS) | 1;
        column.iter().enumerate().step_by(stride).map(bits).sum()
    }
}

/// Number of rows from which the cost of a column at least twice as long is estimated.
const COSTED_ROWS: usize = 1 << 13;

/// Returns the candidates from which a column can be derived: nothing, or a multiple of an earlier
/// column. The simplest come first.
fn candidates(at: usize, times: &[i64]) -> impl Iterator<Item = Option<DerivedMeasure>> + '_ {
    let multiples = (0..at).flat_map(move |measure| {
        times
            .iter()
            .map(move |&times| Some(DerivedMeasure { measure, times }))
    });
    std::iter::once(None).chain(multiples)
}

/// Returns the header entry of a measure, without its derivation.
pub(super) fn measure(measure: &Measure, total: i64) -> header::Measure {
    header::Measure {
        name: measure.name.clone(),
        unit: match &measure.unit {
            Unit::Bytes => "bytes".to_owned(),
            Unit::Count => "count".to_owned(),
            Unit::Other(word) => word.clone(),
        },
        view: measure.view.map(|view| view.name().to_owned()),
        total,
        derived: None,
        small_of: measure.small_of.map(|view| view.name().to_owned()),
    }
}
