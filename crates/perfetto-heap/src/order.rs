//! The order of profile packets in files that do not keep it.
//!
//! heapprofd numbers its packets per sequence from 0. In an intact trace they are in that order,
//! and a generation of interned data begins only once. Otherwise there are two cases. Several
//! traces are in one file (`cat a b`): numbers start again. Or packets of one run are out of order
//! or have a foreign sequence: then the numbers and times of all of them fit into one run, and they
//! are treated as one.

use super::iids::ScopeId;
use super::reader::Place;
use heaptap_model::profile::Health;
use std::collections::{BTreeMap, HashMap};

/// A profile packet from the first reading.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) place: Place,
    pub(super) sequence: u32,
    /// The packet's generation of interned data.
    pub(super) scope: ScopeId,
    /// Tables of its own chain, Android 10.
    pub(super) own_tables: Option<ScopeId>,
    pub(super) index: Option<u64>,
    pub(super) timestamp: u64,
    /// The packet is damaged, or has a dump whose end is unknown.
    pub(super) damaged: bool,
}

/// Identifies packets that share their interned data and their heaps' history.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RunId(pub(super) u32);

/// Result of [`arrange`].
#[derive(Debug, Default)]
pub(super) struct Runs {
    /// Scopes of a run.
    pub(super) scopes: Vec<Vec<ScopeId>>,
    /// The run of each entry, by its position.
    pub(super) of_entry: Vec<RunId>,
}

/// Sorts entries within runs that are out of order, and groups scopes by run. Entries of different
/// runs keep their relative order in the file.
pub(super) fn arrange(
    entries: &mut [Entry],
    has_no_callstacks: impl Fn(ScopeId) -> bool,
    health: &mut Health,
) -> Runs {
    let mut by_sequence: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
    for (at, entry) in entries.iter().enumerate() {
        by_sequence.entry(entry.sequence).or_default().push(at);
    }
    adopt(entries, &mut by_sequence, has_no_callstacks, health);

    let mut runs = Runs {
        scopes: Vec::new(),
        of_entry: vec![RunId(0); entries.len()],
    };
    let mut sorted = Vec::new();
    for positions in by_sequence.values() {
        let mut known: HashMap<ScopeId, RunId> = HashMap::new();
        let mixed = is_one_run(entries, positions);
        if mixed {
            let first = RunId(runs.scopes.len() as u32);
            runs.scopes.push(Vec::new());
            sorted.clear();
            sorted.extend(positions.iter().map(|&at| entries[at]));
            sorted.sort_by_key(|entry| entry.index);
            for (&at, &entry) in positions.iter().zip(&sorted) {
                if entries[at].index != entry.index {
                    health.reordered_profile_packets += 1;
                }
                if known.insert(entry.scope, first).is_none() {
                    runs.scopes[first.0 as usize].push(entry.scope);
                }
            }
            for (&at, &entry) in positions.iter().zip(&sorted) {
                entries[at] = entry;
                runs.of_entry[at] = first;
            }
        } else {
            for &at in positions {
                let scope = entries[at].scope;
                runs.of_entry[at] = *known.entry(scope).or_insert_with(|| {
                    runs.scopes.push(vec![scope]);
                    RunId(runs.scopes.len() as u32 - 1)
                });
            }
        }
    }
    runs
}

/// Returns whether packets in wrong order belong to one run and are only shuffled: each number
/// occurs once, and times never decrease in order of numbers.
fn is_one_run(entries: &[Entry], positions: &[usize]) -> bool {
    let in_order = positions
        .windows(2)
        .all(|pair| entries[pair[0]].index <= entries[pair[1]].index);
    let one_scope = positions
        .windows(2)
        .all(|pair| entries[pair[0]].scope == entries[pair[1]].scope);
    !(in_order && one_scope) && fits(entries, positions.iter().copied())
}

fn fits(entries: &[Entry], positions: impl Iterator<Item = usize>) -> bool {
    let mut numbered = Vec::new();
    for at in positions {
        let Some(index) = entries[at].index else {
            return false;
        };
        numbered.push((index, entries[at].timestamp));
    }
    numbered.sort_unstable();
    numbered
        .windows(2)
        .all(|pair| pair[0].0 < pair[1].0 && pair[0].1 <= pair[1].1)
}

/// Maximum number of sequences that lost their tables, or can adopt one: each pair is tried, and a
/// device has one heapprofd per session.
const MAX_ORPHANS: usize = 64;

/// Moves the packets of a sequence that never defined a callstack to the one sequence whose
/// numbering they complete, if there is exactly one.
fn adopt(
    entries: &mut [Entry],
    by_sequence: &mut BTreeMap<u32, Vec<usize>>,
    has_no_callstacks: impl Fn(ScopeId) -> bool,
    health: &mut Health,
) {
    let orphans: Vec<u32> = by_sequence
        .iter()
        .filter(|(_, positions)| {
            positions
                .iter()
                .all(|&at| entries[at].own_tables.is_none() && has_no_callstacks(entries[at].scope))
                && positions.iter().any(|&at| entries[at].index != Some(0))
        })
        .map(|(&sequence, _)| sequence)
        .collect();
    let parents: Vec<u32> = by_sequence
        .iter()
        .filter(|(_, positions)| !has_no_callstacks(entries[positions[0]].scope))
        .map(|(&sequence, _)| sequence)
        .take(MAX_ORPHANS + 1)
        .collect();
    if orphans.len() > MAX_ORPHANS || parents.len() > MAX_ORPHANS {
        return;
    }
    for orphan in orphans {
        let fitting: Vec<u32> = parents
            .iter()
            .copied()
            .filter(|parent| {
                *parent != orphan && completes(entries, &by_sequence[&orphan], &by_sequence[parent])
            })
            .collect();
        let &[parent] = &fitting[..] else { continue };
        let Some(moved) = by_sequence.remove(&orphan) else {
            continue;
        };
        health.adopted_profile_packets += moved.len() as u64;
        let scope = entries[by_sequence[&parent][0]].scope;
        for &at in &moved {
            entries[at].scope = scope;
            entries[at].sequence = parent;
        }
        let positions = by_sequence.entry(parent).or_default();
        positions.extend(moved);
        positions.sort_unstable();
    }
}

/// Returns whether both together are one run without a gap, while neither alone is.
fn completes(entries: &[Entry], orphan: &[usize], parent: &[usize]) -> bool {
    let both = || orphan.iter().chain(parent).copied();
    if !fits(entries, both()) {
        return false;
    }
    let mut numbers: Vec<u64> = both().filter_map(|at| entries[at].index).collect();
    numbers.sort_unstable();
    numbers.windows(2).all(|pair| pair[0] + 1 == pair[1])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(sequence: u32, scope: u32, index: u64, timestamp: u64) -> Entry {
        Entry {
            place: Place::default(),
            sequence,
            scope: ScopeId(scope),
            own_tables: None,
            index: Some(index),
            timestamp,
            damaged: false,
        }
    }

    fn order(entries: &mut [Entry], orphan: Option<u32>) -> (Vec<(u64, u32)>, Health) {
        let mut health = Health::default();
        let runs = arrange(entries, |scope| Some(scope.0) == orphan, &mut health);
        let order = entries
            .iter()
            .zip(&runs.of_entry)
            .map(|(entry, run)| (entry.index.unwrap(), run.0))
            .collect();
        (order, health)
    }

    #[test]
    fn a_sound_trace_is_left_alone() {
        let mut entries = [
            entry(1, 0, 0, 5),
            entry(2, 1, 0, 6),
            entry(1, 0, 1, 7),
            entry(2, 1, 1, 8),
        ];
        let (found, health) = order(&mut entries, None);
        assert_eq!(found, [(0, 0), (0, 1), (1, 0), (1, 1)]);
        assert_eq!(health, Health::default());
    }

    #[test]
    fn shuffled_packets_are_put_right_within_their_run() {
        // Another generation begins in the middle of the file, because its first packet is there.
        let mut entries = [
            entry(1, 0, 2, 30),
            entry(2, 5, 0, 1),
            entry(1, 0, 1, 20),
            entry(1, 1, 0, 10),
        ];
        let (found, health) = order(&mut entries, None);
        assert_eq!(found, [(0, 0), (0, 1), (1, 0), (2, 0)]);
        assert_eq!(health.reordered_profile_packets, 2);
    }

    #[test]
    fn two_traces_in_one_file_stay_two_runs() {
        let mut entries = [
            entry(1, 0, 0, 10),
            entry(1, 0, 1, 20),
            entry(1, 1, 0, 10),
            entry(1, 1, 1, 20),
        ];
        let (found, health) = order(&mut entries, None);
        assert_eq!(found, [(0, 0), (1, 0), (0, 1), (1, 1)]);
        assert_eq!(health, Health::default());
    }

    #[test]
    fn packets_under_a_foreign_sequence_go_where_their_numbers_fit() {
        let mut entries = [
            entry(1, 0, 0, 10),
            entry(77, 9, 1, 20),
            entry(1, 0, 2, 30),
            entry(77, 9, 3, 40),
        ];
        let (found, health) = order(&mut entries, Some(9));
        assert_eq!(found, [(0, 0), (1, 0), (2, 0), (3, 0)]);
        assert_eq!(health.adopted_profile_packets, 2);
    }

    #[test]
    fn and_nowhere_if_they_fit_twice() {
        let mut entries = [entry(1, 0, 0, 10), entry(2, 1, 0, 10), entry(77, 9, 1, 20)];
        let (_, health) = order(&mut entries, Some(9));
        assert_eq!(health.adopted_profile_packets, 0);
    }

    #[test]
    fn pairs_beyond_all_measure_are_not_tried() {
        // The sequences with odd numbers lost their tables, and each completes the previous one.
        let mut all: Vec<Entry> = (0..100_000)
            .map(|n| entry(n, n, u64::from(n % 2), 10 + u64::from(n)))
            .collect();
        for most in [2, 100_000] {
            let mut health = Health::default();
            let orphan = |scope: ScopeId| scope.0 % 2 == 1;
            arrange(&mut all[..most], orphan, &mut health);
            assert_eq!(health.adopted_profile_packets, u64::from(most == 2));
        }
    }
}
