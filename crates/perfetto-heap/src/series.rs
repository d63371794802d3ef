//! One heap of one process through all its dumps: from heapprofd's cumulative figures by callstack
//! ID to ours by callsite.
//!
//! heapprofd reports a callstack's figures since its first sample. It drops a callstack that holds
//! nothing and was idle since the last dump. If that callstack returns, it counts from zero,
//! usually with a new ID. So a callsite's figures are the sum over all IDs it ever had, each with
//! its last figures. A decreasing figure of an ID that was absent in between is a new start; any
//! other is malformed. With `dump_at_max` each dump is independent.

use super::profile_packet::Sample;
use heaptap_model::profile::index::FastHash;
use heaptap_model::profile::{CallsiteId, DumpKind, Figures};
use std::collections::HashMap;

/// Figures as in the trace.
type Raw = [u64; 4];
const ALLOCATED: usize = 0;
const FREED: usize = 1;
const ALLOCATIONS: usize = 2;
const FREES: usize = 3;

/// Identity of a callstack of a heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Key {
    /// Position of its ID among all IDs of the trace.
    Defined(u32),
    /// An ID that the trace does not define.
    Undefined(u64),
    /// The callsite, because IDs that are valid for one chain only (Android 10) do not identify a
    /// callstack.
    Callsite(u32),
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    callsite: CallsiteId,
    /// The last dump that reported it, counted from 1.
    dump: u32,
    total: Raw,
}

#[derive(Debug, Default)]
pub(super) struct Series {
    known: Known,
    entries: Vec<Entry>,
    /// Figures of an entry before it restarted from zero, for the few that did.
    bases: HashMap<u32, Raw>,
    /// Entries in order of callsites, as `callsite << 32 | entry`; empty as long as they arrive in
    /// that order, as in a first dump.
    order: Vec<u64>,
    out_of_order: bool,
    dump: u32,
    /// Timestamp at which profiling began: the start of the first dump.
    started: Option<u64>,
    at_maximum: bool,
    /// Memory limit; `None` for no limit.
    most: Option<usize>,
    is_full: bool,
}

/// Memory of an entry, of a page of positions, and of a key that is not a position.
const ENTRY: usize = 100;
const OF_PAGE: usize = size_of::<[u32; PAGE]>() + 32;
const OTHER: usize = 60;

/// Entries by key. Positions of a process are close together and arrive in order, so they are
/// stored in pages, and the last page is tried first.
#[derive(Debug, Default)]
struct Known {
    pages: Vec<[u32; PAGE]>,
    by_number: HashMap<u32, u32, FastHash>,
    /// Number of the last page used, and its index.
    last: Option<(u32, u32)>,
    others: HashMap<Key, u32>,
}

const PAGE: usize = 64;
const NONE: u32 = u32::MAX;

impl Known {
    fn has(&self, key: Key) -> bool {
        let Key::Defined(position) = key else {
            return self.others.contains_key(&key);
        };
        let page = self.by_number.get(&(position / PAGE as u32));
        page.is_some_and(|&at| self.pages[at as usize][position as usize % PAGE] != NONE)
    }

    /// Returns the entry of a key, or `None` after adding `next` for a new key.
    #[inline]
    fn get_or_enter(&mut self, key: Key, next: u32) -> Option<u32> {
        let Key::Defined(position) = key else {
            let known = self.others.get(&key).copied();
            if known.is_none() {
                self.others.insert(key, next);
            }
            return known;
        };
        let number = position / PAGE as u32;
        let page = match self.last {
            Some((last, page)) if last == number => page,
            _ => self.page(number),
        };
        let entry = &mut self.pages[page as usize][position as usize % PAGE];
        if *entry == NONE {
            *entry = next;
            return None;
        }
        Some(*entry)
    }

    fn page(&mut self, number: u32) -> u32 {
        let next = self.pages.len() as u32;
        let page = *self.by_number.entry(number).or_insert(next);
        if page == next {
            self.pages.push([NONE; PAGE]);
        }
        self.last = Some((number, page));
        page
    }
}

/// Outcome of adding a sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Taken {
    /// Counted.
    Yes,
    /// The figures decreased, and the sample was skipped.
    Malformed,
    /// The sample exceeded the memory limit.
    LeftOut,
}

impl Series {
    /// Begins a dump.
    pub(super) fn begin(&mut self) {
        self.dump += 1;
        self.at_maximum = false;
    }

    /// Returns the timestamp at which profiling began; 0 if unknown. heapprofd's `start` of a dump
    /// is the time of the previous dump.
    pub(super) fn started(&mut self, start: u64) -> u64 {
        *self.started.get_or_insert(start)
    }

    /// Forgets the process, which exited: heapprofd counts a next one with its pid from zero.
    pub(super) fn end(&mut self) {
        *self = Series::default();
    }

    /// Returns the approximate memory of the state.
    pub(super) fn weight(&self) -> usize {
        self.entries.len() * ENTRY
            + self.known.pages.len() * OF_PAGE
            + self.known.others.len() * OTHER
    }

    /// Raises the memory limit.
    pub(super) fn allow(&mut self, memory: usize) {
        self.most = Some(self.weight().saturating_add(memory));
        self.is_full = memory == 0;
    }

    /// Adds a sample of the dump, of a callstack identified by `key` with the callsite `callsite`.
    /// `counts` means that the maximum's count is reliable.
    #[inline]
    pub(super) fn take(
        &mut self,
        sample: &Sample,
        counts: bool,
        key: Key,
        callsite: CallsiteId,
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
        // An empty sample of an unseen callstack adds nothing, and at the memory limit no callstack
        // is added.
        let is_empty = values == [0; 4];
        if (is_empty || self.is_full) && !self.known.has(key) {
            return match is_empty {
                true => Taken::Yes,
                false => Taken::LeftOut,
            };
        }
        let next = self.entries.len() as u32;
        let Some(at) = self.known.get_or_enter(key, next) else {
            self.enter(callsite, values);
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

    #[inline]
    fn enter(&mut self, callsite: CallsiteId, total: Raw) {
        let at = self.entries.len() as u32;
        let in_order = self
            .entries
            .last()
            .is_none_or(|last| last.callsite <= callsite);
        if self.out_of_order || !in_order {
            if !self.out_of_order {
                let entries = self.entries.iter().zip(0u32..);
                self.order
                    .extend(entries.map(|(entry, at)| ordinal(entry.callsite, at)));
                self.out_of_order = true;
            }
            self.order.push(ordinal(callsite, at));
        }
        self.entries.push(Entry {
            callsite,
            dump: self.dump,
            total,
        });
        self.is_full = self.most.is_some_and(|most| self.weight() >= most);
    }

    /// Ends a dump: returns the figures of all callsites seen so far, in order of callsites.
    ///
    /// heapprofd reports every callstack with unreleased memory. So after a loss, a callstack that
    /// a complete dump omits (`absent_is_free`) was freed in a lost dump; without a loss, an
    /// earlier dump reported its frees.
    pub(super) fn finish(
        &mut self,
        kind: DumpKind,
        absent_is_free: bool,
    ) -> Vec<(CallsiteId, Figures)> {
        // Merges the sorted part with the new one.
        self.order.sort();
        let entries = &mut self.entries;
        let mut samples: Vec<(CallsiteId, Figures)> = Vec::with_capacity(entries.len());
        for nth in 0..entries.len() {
            let at = match self.out_of_order {
                true => self.order[nth] as u32 as usize,
                false => nth,
            };
            let entry = &mut entries[at];
            let absent = entry.dump != self.dump;
            if kind == DumpKind::AtMaximum && absent {
                continue;
            }
            if absent && absent_is_free && kind == DumpKind::Cumulative {
                entry.total[FREED] = entry.total[FREED].max(entry.total[ALLOCATED]);
                entry.total[FREES] = entry.total[FREES].max(entry.total[ALLOCATIONS]);
            }
            if entry.total == [0; 4] {
                // heapprofd knows it, but it has no samples yet or is not part of the maximum.
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

    /// Returns whether the current dump reports a maximum.
    pub(super) fn is_at_maximum(&self) -> bool {
        self.at_maximum
    }
}

fn ordinal(callsite: CallsiteId, at: u32) -> u64 {
    u64::from(callsite.0) << 32 | u64::from(at)
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
        // heapprofd's frees of Java objects are wrong, and a maximum does not have frees.
        DumpKind::AtMaximum
        | DumpKind::AllocationsOnly
        | DumpKind::JavaHeap
        | DumpKind::Difference => signed(all),
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

    /// Callstack IDs 1 and 11 are callsite 1, and so on.
    fn site(id: u64) -> CallsiteId {
        CallsiteId((id % 10) as u32)
    }

    fn take(series: &mut Series, sample: &Sample) -> Taken {
        let key = Key::Defined(sample.callstack as u32);
        series.take(sample, true, key, site(sample.callstack))
    }

    fn dump(series: &mut Series, samples: &[Sample]) -> Vec<(u32, i64, i64)> {
        dump_after(series, samples, false)
    }

    fn dump_after(series: &mut Series, samples: &[Sample], loss: bool) -> Vec<(u32, i64, i64)> {
        series.begin();
        for sample in samples {
            take(series, sample);
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
        series.begin();
        assert_eq!(take(&mut series, &sample(1, 90, 0)), Taken::Malformed);
        let figures = series.finish(DumpKind::Cumulative, true);
        assert_eq!(figures[0].1.space, 100);
    }

    #[test]
    fn a_process_with_the_pid_of_one_that_exited_starts_from_zero() {
        let mut series = Series::default();
        dump(&mut series, &[sample(2, 100, 0), sample(1, 50, 0)]);
        assert_eq!(series.started(7), 7);
        series.end();
        assert_eq!(dump(&mut series, &[sample(1, 10, 0)]), [(1, 10, 10)]);
        assert_eq!(series.started(9), 9);
    }

    #[test]
    fn after_a_loss_what_a_whole_dump_leaves_out_holds_nothing() {
        let mut series = Series::default();
        dump(&mut series, &[sample(1, 100, 0)]);
        assert_eq!(dump(&mut series, &[]), [(1, 100, 100)]);
        assert_eq!(dump_after(&mut series, &[], true), [(1, 100, 0)]);
    }

    #[test]
    fn callsites_come_in_order_whatever_the_order_of_samples() {
        let mut series = Series::default();
        let samples: Vec<Sample> = [5, 3, 9, 13, 1].map(|id| sample(id, 10 * id, 0)).to_vec();
        let first = dump(&mut series, &samples);
        assert_eq!(
            first,
            [(1, 10, 10), (3, 160, 160), (5, 50, 50), (9, 90, 90)]
        );
        let second = dump(&mut series, &[sample(4, 1, 0)]);
        assert_eq!(second.len(), 5);
        assert!(second.is_sorted());
    }

    #[test]
    fn without_lasting_ids_the_callsite_tells() {
        let mut series = Series::default();
        let mut dump = |id, allocated| {
            series.begin();
            let key = Key::Callsite(id as u32);
            series.take(&sample(id, allocated, 0), true, key, site(id));
            let samples = series.finish(DumpKind::Cumulative, false);
            samples.iter().map(|s| s.1.space).collect::<Vec<_>>()
        };
        assert_eq!(dump(1, 100), [100]);
        assert_eq!(dump(1, 150), [150]);
        assert_eq!(dump(2, 10), [150, 10]);
    }

    #[test]
    fn undefined_callstacks_are_told_apart() {
        let mut series = Series::default();
        series.begin();
        for iid in [u64::MAX, 1, u64::MAX] {
            let key = Key::Undefined(iid);
            series.take(&sample(iid, 10, 0), true, key, CallsiteId(7));
        }
        let samples = series.finish(DumpKind::Cumulative, false);
        assert_eq!(samples.len(), 1);
        assert_eq!(samples[0].1.space, 20);
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
