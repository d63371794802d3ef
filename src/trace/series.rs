//! One heap of one process through all its dumps: from heapprofd's cumulative figures by
//! callstack id to ours by callsite.
//!
//! heapprofd reports a callstack's figures since it first saw it. One that holds nothing and
//! did nothing since the last dump is dropped, and should it return, it counts from zero, under
//! a new id as a rule. So a callsite's figures are the sum over all ids it ever had, each with
//! its last figures; a falling figure of an id that was absent in between is a new start, any
//! other is malformed. With `dump_at_max` a dump stands for itself.

use super::iids::IidMap;
use super::profile_packet::Sample;
use crate::profile::{CallsiteId, DumpKind, Figures};
use std::collections::HashMap;

/// Figures as the wire has them.
type Raw = [u64; 4];
const ALLOCATED: usize = 0;
const FREED: usize = 1;
const ALLOCATIONS: usize = 2;
const FREES: usize = 3;

#[derive(Debug, Clone, Copy)]
struct Entry {
    callsite: CallsiteId,
    /// The last dump that reported it, counted from 1.
    dump: u32,
    total: Raw,
}

/// The state of a heap.
#[derive(Debug, Default)]
pub(super) struct Series {
    ids: IidMap,
    entries: Vec<Entry>,
    /// What an id had before it started anew, for the few that did.
    bases: HashMap<u32, Raw>,
    /// Entries in order of callsites; behind `sorted`, those new since the last dump.
    order: Vec<u32>,
    sorted: usize,
    dump: u32,
    at_maximum: bool,
}

/// What became of a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Counted.
    Yes,
    /// It went backwards and was passed over.
    Malformed,
}

impl Series {
    /// Begins a dump.
    pub(super) fn begin(&mut self, at_maximum: bool) {
        self.dump += 1;
        self.at_maximum = at_maximum;
    }

    /// Takes a sample of the dump. `resolve` gives the callsite of an id that is new here.
    /// `counts` tells whether the maximum's count is to be trusted.
    #[inline]
    pub(super) fn take(
        &mut self,
        sample: &Sample,
        counts: bool,
        resolve: impl FnOnce(u64) -> CallsiteId,
    ) -> Taken {
        let values = match sample.max {
            Some(max) => {
                self.at_maximum = true;
                [max, 0, if counts { sample.max_count } else { 0 }, 0]
            }
            None => [
                sample.allocated,
                sample.freed,
                sample.allocations,
                sample.frees,
            ],
        };
        let Some(at) = self.ids.get(sample.callstack) else {
            let at = self.entries.len() as u32;
            self.ids.define(sample.callstack, at);
            self.order.push(at);
            self.entries.push(Entry {
                callsite: resolve(sample.callstack),
                dump: self.dump,
                total: values,
            });
            return Taken::Yes;
        };
        let entry = &mut self.entries[at as usize];
        if self.at_maximum {
            entry.total = values;
            entry.dump = self.dump;
            return Taken::Yes;
        }
        let base = self.bases.get(&at).copied().unwrap_or([0; 4]);
        let total = sum(base, values);
        if total[ALLOCATED] < entry.total[ALLOCATED]
            || total[ALLOCATIONS] < entry.total[ALLOCATIONS]
        {
            if entry.dump + 1 >= self.dump {
                entry.dump = self.dump;
                return Taken::Malformed;
            }
            let base = entry.total;
            self.bases.insert(at, base);
            entry.total = sum(base, values);
        } else {
            entry.total = total;
        }
        entry.dump = self.dump;
        Taken::Yes
    }

    /// Before a sample whose ids hold for its chain only (Android 10): if the id stood for
    /// another callsite before, that one keeps its figures and the id starts afresh.
    pub(super) fn rename(&mut self, id: u64, callsite: CallsiteId) {
        if let Some(at) = self.ids.get(id)
            && self.entries[at as usize].callsite != callsite
        {
            let at = self.entries.len() as u32;
            self.ids.replace(id, at);
            self.order.push(at);
            self.entries.push(Entry {
                callsite,
                dump: self.dump,
                total: [0; 4],
            });
        }
    }

    /// Ends a dump: the figures of all callsites seen so far, in order of callsites.
    ///
    /// heapprofd reports every callstack that holds something. So after a loss, what a whole
    /// dump leaves out (`absent_is_free`) was freed in a dump that is lost; without one, what
    /// is absent said so itself before.
    pub(super) fn finish(
        &mut self,
        kind: DumpKind,
        absent_is_free: bool,
    ) -> Vec<(CallsiteId, Figures)> {
        let entries = &mut self.entries;
        if self.sorted < self.order.len() {
            // A stable sort merges the old run with the new one.
            self.order
                .sort_by_key(|&at| (entries[at as usize].callsite, at));
            self.sorted = self.order.len();
        }
        let mut samples: Vec<(CallsiteId, Figures)> = Vec::with_capacity(self.order.len());
        for &at in &self.order {
            let entry = &mut entries[at as usize];
            let absent = entry.dump != self.dump;
            if kind == DumpKind::AtMaximum && absent {
                continue;
            }
            if absent && absent_is_free && kind == DumpKind::Cumulative {
                entry.total[FREED] = entry.total[FREED].max(entry.total[ALLOCATED]);
                entry.total[FREES] = entry.total[FREES].max(entry.total[ALLOCATIONS]);
            }
            if entry.total == [0; 4] {
                // Known to heapprofd, but not sampled yet, or not part of the maximum.
                continue;
            }
            let figures = figures(entry.total, kind);
            match samples.last_mut() {
                Some((callsite, sum)) if *callsite == entry.callsite => sum.add(&figures),
                _ => samples.push((entry.callsite, figures)),
            }
        }
        samples
    }

    /// Whether the dump in progress reports a maximum.
    pub(super) fn is_at_maximum(&self) -> bool {
        self.at_maximum
    }
}

fn sum(a: Raw, b: Raw) -> Raw {
    std::array::from_fn(|n| a[n].saturating_add(b[n]))
}

fn figures(raw: Raw, kind: DumpKind) -> Figures {
    let signed = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
    let held = |all: u64, gone: u64| match kind {
        DumpKind::Cumulative => {
            let held = i128::from(all) - i128::from(gone);
            held.clamp(i128::from(i64::MIN), i128::from(i64::MAX)) as i64
        }
        // heapprofd's frees of Java objects are bogus, and a maximum knows none.
        DumpKind::AtMaximum | DumpKind::AllocationsOnly => signed(all),
    };
    Figures {
        alloc_space: signed(raw[ALLOCATED]),
        alloc_objects: signed(raw[ALLOCATIONS]),
        space: held(raw[ALLOCATED], raw[FREED]),
        objects: held(raw[ALLOCATIONS], raw[FREES]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(callstack: u64, allocated: u64, freed: u64) -> Sample {
        Sample {
            callstack,
            allocated,
            freed,
            allocations: allocated / 10,
            frees: freed / 10,
            ..Sample::default()
        }
    }

    /// Callstack ids 1 and 11 are callsite 1, and so on.
    fn site(id: u64) -> CallsiteId {
        CallsiteId((id % 10) as u32)
    }

    fn dump(series: &mut Series, samples: &[Sample]) -> Vec<(u32, i64, i64)> {
        dump_after(series, samples, false)
    }

    fn dump_after(series: &mut Series, samples: &[Sample], loss: bool) -> Vec<(u32, i64, i64)> {
        series.begin(false);
        for sample in samples {
            series.take(sample, true, site);
        }
        let kind = if series.is_at_maximum() {
            DumpKind::AtMaximum
        } else {
            DumpKind::Cumulative
        };
        series
            .finish(kind, loss)
            .iter()
            .map(|(site, f)| (site.0, f.alloc_space, f.space))
            .collect()
    }

    #[test]
    fn figures_are_cumulative_and_stay() {
        let mut series = Series::default();
        let first = dump(&mut series, &[sample(2, 100, 0), sample(1, 50, 50)]);
        assert_eq!(first, [(1, 50, 0), (2, 100, 100)]);
        let second = dump(&mut series, &[sample(2, 300, 100), sample(3, 10, 0)]);
        assert_eq!(second, [(1, 50, 0), (2, 300, 200), (3, 10, 10)]);
    }

    #[test]
    fn a_callstack_that_returns_under_a_new_id_adds_to_the_old() {
        let mut series = Series::default();
        dump(&mut series, &[sample(1, 100, 100)]);
        dump(&mut series, &[]);
        let third = dump(&mut series, &[sample(11, 30, 10)]);
        assert_eq!(third, [(1, 130, 20)]);
    }

    #[test]
    fn a_callstack_that_returns_under_its_old_id_starts_anew() {
        let mut series = Series::default();
        dump(&mut series, &[sample(1, 100, 100)]);
        dump(&mut series, &[]);
        assert_eq!(dump(&mut series, &[sample(1, 30, 10)]), [(1, 130, 20)]);
        assert_eq!(dump(&mut series, &[sample(1, 40, 10)]), [(1, 140, 30)]);
    }

    #[test]
    fn a_figure_that_falls_between_two_dumps_is_malformed() {
        let mut series = Series::default();
        dump(&mut series, &[sample(1, 100, 0)]);
        series.begin(false);
        assert_eq!(series.take(&sample(1, 90, 0), true, site), Taken::Malformed);
        let figures = series.finish(DumpKind::Cumulative, true);
        assert_eq!(figures[0].1.space, 100);
    }

    #[test]
    fn after_a_loss_what_a_whole_dump_leaves_out_holds_nothing() {
        let mut series = Series::default();
        dump(&mut series, &[sample(1, 100, 0)]);
        assert_eq!(dump(&mut series, &[]), [(1, 100, 100)]);
        assert_eq!(dump_after(&mut series, &[], true), [(1, 100, 0)]);
    }

    #[test]
    fn an_id_of_one_chain_may_stand_for_another_callsite_in_the_next() {
        let mut series = Series::default();
        dump(&mut series, &[sample(1, 100, 0)]);
        series.rename(1, CallsiteId(7));
        assert_eq!(
            dump(&mut series, &[sample(1, 60, 20)]),
            [(1, 100, 100), (7, 60, 40)]
        );
    }

    #[test]
    fn a_packet_that_stands_twice_counts_once() {
        let mut series = Series::default();
        let twice = [sample(1, 100, 10), sample(1, 100, 10)];
        assert_eq!(dump(&mut series, &twice), [(1, 100, 90)]);
    }

    #[test]
    fn a_maximum_stands_for_itself() {
        let mut series = Series::default();
        let max = |id, bytes| Sample {
            callstack: id,
            max: Some(bytes),
            max_count: 1,
            ..Sample::default()
        };
        assert_eq!(
            dump(&mut series, &[max(1, 100), max(2, 5)]),
            [(1, 100, 100), (2, 5, 5)]
        );
        assert_eq!(dump(&mut series, &[max(1, 70)]), [(1, 70, 70)]);
    }

    #[test]
    fn sums_beyond_the_range_saturate() {
        let mut series = Series::default();
        let all = dump(
            &mut series,
            &[sample(1, u64::MAX, 0), sample(11, 1 << 62, 0)],
        );
        assert_eq!(all, [(1, i64::MAX, i64::MAX)]);
    }
}
