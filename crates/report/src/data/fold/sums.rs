//! Sums of values by target.

use super::omitted::NONE;
use super::targets::Targets;
use heaptap_analyze::native::sampled::SmallSamples;
use heaptap_base::parallel::{self, Pool};
use heaptap_base::prefetch::{BATCH, prefetch};
use heaptap_model::stacks::{Dump, Measure, NodeId, Values, View};
use std::ops::Range;

/// Number of rows of a dump that are read while others are summed.
pub(super) const ROWS: usize = 1 << 14;

/// Sums of a dump's rows by target. All dumps have the same few targets, so each target has an
/// index and no dump needs sorting.
pub(super) struct Sums<'a> {
    targets: &'a Targets,
    /// Targets, ascending.
    nodes: Vec<NodeId>,
    /// Index in `nodes` by callsite of the tree.
    places: Vec<u32>,
    /// Values of all columns by index, adjacent.
    values: Vec<i64>,
    /// Whether the dump has a row of it, by index.
    has_row: Vec<bool>,
}

impl<'a> Sums<'a> {
    /// Creates sums in a tree of `node_count` callsites.
    pub(super) fn new(targets: &'a Targets, node_count: usize) -> Sums<'a> {
        let mut places = vec![NONE; node_count];
        for node in targets.nodes() {
            places[node.0 as usize] = 0;
        }
        let mut nodes = Vec::new();
        for (node, place) in (0..).zip(&mut places) {
            if *place != NONE {
                *place = nodes.len() as u32;
                nodes.push(NodeId(node));
            }
        }
        Sums {
            targets,
            has_row: vec![false; nodes.len()],
            values: Vec::new(),
            nodes,
            places,
        }
    }

    /// Replaces a dump's values with sums. Adds columns for the error of sums, while callsites are
    /// still separate. Returns the summed part of the first measure.
    pub(super) fn take(&mut self, dump: &mut Dump) -> i64 {
        let small = [View::Space, View::AllocSpace].map(|bytes| {
            let at = dump.measures.iter().position(|m| m.view == Some(bytes))?;
            Some((bytes, SmallSamples::new(dump, at)?))
        });
        let small: Vec<(View, SmallSamples<'_>)> = small.into_iter().flatten().collect();
        let columns = &dump.values.columns;
        // A dump without columns has no stack with values.
        let width = (columns.len() + small.len()).max(1);
        self.values.clear();
        self.values.resize(self.nodes.len() * width, 0);
        self.has_row.fill(false);
        let mut summed = 0i64;
        let (targets, places) = (self.targets, &self.places);
        let rows = dump.values.nodes.len();
        let parts = (0..rows)
            .step_by(ROWS)
            .map(|start| start..rows.min(start + ROWS));
        let buffers = Pool::default();
        let read = |_: &mut (), rows: Range<usize>| {
            let (mut held, mut values): (Vec<_>, Vec<_>) = buffers.take().unwrap_or_default();
            held.clear();
            values.clear();
            held.extend(rows.filter_map(|row| {
                let (target, is_kept) = targets.of(dump.values.nodes[row])?;
                Some((row, places[target.0 as usize] as usize, is_kept))
            }));
            for &(row, ..) in &held {
                values.extend(columns.iter().map(|column| column[row]));
                values.extend(small.iter().map(|(_, small)| small.at(row)));
            }
            (held, values)
        };
        parallel::in_order(
            parts,
            || (),
            read,
            |(held, values)| {
                for (held, values) in held.chunks(BATCH).zip(values.chunks(BATCH * width)) {
                    prefetch(
                        held.iter()
                            .map(|(_, place, _)| self.values[place * width] as u8),
                    );
                    for (&(row, place, is_kept), values) in held.iter().zip(values.chunks(width)) {
                        self.has_row[place] = true;
                        let sums = &mut self.values[place * width..][..width];
                        for (sum, value) in sums.iter_mut().zip(values) {
                            *sum = sum.saturating_add(*value);
                        }
                        if !is_kept && let Some(column) = columns.get(dump.default_measure) {
                            summed = summed.saturating_add(column[row]);
                        }
                    }
                }
                buffers.put((held, values));
                true
            },
        );
        let measures: Vec<Measure> = small
            .into_iter()
            .map(|(bytes, _)| Measure::small_samples(bytes))
            .collect();
        dump.measures.extend(measures);
        let count = self.has_row.iter().filter(|has_row| **has_row).count();
        let mut sums = Values {
            nodes: Vec::with_capacity(count),
            columns: (0..dump.measures.len())
                .map(|_| Vec::with_capacity(count))
                .collect(),
        };
        for (place, _) in self.has_row.iter().enumerate().filter(|(_, has)| **has) {
            sums.nodes.push(self.nodes[place]);
            let own = &self.values[place * width..][..width];
            for (column, value) in sums.columns.iter_mut().zip(own) {
                column.push(*value);
            }
        }
        dump.values = sums;
        summed
    }
}
