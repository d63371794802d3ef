//! Clock snapshots, and conversion of timestamps between clocks.
//!
//! A `ClockSnapshot` (trace_packet.clock_snapshot) has the values of several clocks at one time. A
//! timestamp is converted with the last snapshot at or before it. Clocks without a common snapshot
//! are linked through clocks that share one with each. All snapshots are read before the first
//! conversion, so that late ones are used, too.

use super::wire::{Fields, WireError};
use std::collections::{HashSet, VecDeque};

/// A clock's ID: 1 REALTIME, 3 MONOTONIC, 4 MONOTONIC_COARSE, 6 BOOTTIME, 64 to 127 private to a
/// sequence, others global. The sequence is 0 for a global clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Clock {
    id: u32,
    sequence: u32,
}

impl Clock {
    pub(super) const REALTIME: Clock = Clock::global(1);
    pub(super) const MONOTONIC_COARSE: Clock = Clock::global(4);
    pub(super) const BOOTTIME: Clock = Clock::global(6);

    const fn global(id: u32) -> Clock {
        Clock { id, sequence: 0 }
    }

    /// Returns the clock of an ID on a sequence.
    pub(super) fn of(id: u32, sequence: u32) -> Clock {
        Clock {
            id,
            sequence: if (64..128).contains(&id) { sequence } else { 0 },
        }
    }
}

/// Maximum number of snapshots: those of a year at the service's interval of ten seconds.
const MOST: usize = 1 << 22;

#[derive(Debug, Clone, Default)]
pub(super) struct Clocks {
    /// In file order; incremental clocks are left out (no profile uses them).
    snapshots: Vec<Box<[(Clock, u64)]>>,
    primary: Option<u32>,
}

impl Clocks {
    /// Adds a `ClockSnapshot` of `sequence`.
    pub(super) fn add(&mut self, message: &[u8], sequence: u32) -> Result<(), WireError> {
        let mut clocks = Vec::new();
        let mut fields = Fields::new(message);
        let outcome = loop {
            match fields.next() {
                Ok(Some((1, value))) => match read_clock(value.bytes(), sequence) {
                    Ok(Some(clock)) => clocks.push(clock),
                    Ok(None) => {}
                    Err(error) => break Err(error),
                },
                Ok(Some((2, value))) => {
                    self.primary.get_or_insert(value.number() as u32);
                }
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        if !clocks.is_empty() && self.snapshots.len() < MOST {
            self.snapshots.push(clocks.into_boxed_slice());
        }
        outcome
    }

    /// Returns the clock of the trace: BOOTTIME unless the trace states another.
    pub(super) fn trace_clock(&self) -> Clock {
        self.primary.map_or(Clock::BOOTTIME, Clock::global)
    }

    /// Returns the trace time of the first snapshot: approximately when tracing began.
    pub(super) fn first_trace_time(&self) -> Option<u64> {
        let clock = self.trace_clock();
        self.snapshots
            .iter()
            .find_map(|snapshot| value_of(snapshot, clock))
    }

    /// Converts `time` of clock `from` to clock `to`; `None` if no snapshots link them, or the
    /// result is before 0.
    pub(super) fn convert(&self, from: Clock, time: u64, to: Clock) -> Option<u64> {
        if from == to {
            return Some(time);
        }
        if let Some(time) = self.hop(from, time, to) {
            return Some(time);
        }
        // Breadth-first over the clocks that share a snapshot.
        let mut seen = HashSet::from([from]);
        let mut queue = VecDeque::from([(from, time)]);
        while let Some((clock, time)) = queue.pop_front() {
            let mut next = Vec::new();
            for snapshot in &self.snapshots {
                if value_of(snapshot, clock).is_some() {
                    next.extend(snapshot.iter().map(|&(other, _)| other));
                }
            }
            for other in next {
                if !seen.insert(other) {
                    continue;
                }
                let Some(time) = self.hop(clock, time, other) else {
                    continue;
                };
                if other == to {
                    return Some(time);
                }
                queue.push_back((other, time));
            }
        }
        None
    }

    /// Returns the values of both clocks in the snapshots that have them, in order of `from`.
    pub(super) fn pairs(&self, from: Clock, to: Clock) -> Vec<(u64, u64)> {
        let both =
            |snapshot: &[(Clock, u64)]| Some((value_of(snapshot, from)?, value_of(snapshot, to)?));
        let mut pairs: Vec<(u64, u64)> = self.snapshots.iter().filter_map(|s| both(s)).collect();
        // Stable: a later snapshot of the same time comes after.
        pairs.sort_by_key(|pair| pair.0);
        pairs
    }

    fn hop(&self, from: Clock, time: u64, to: Clock) -> Option<u64> {
        let mut best: Option<(u64, u64)> = None;
        for snapshot in &self.snapshots {
            let (Some(source), Some(target)) = (value_of(snapshot, from), value_of(snapshot, to))
            else {
                continue;
            };
            match best {
                None => best = Some((source, target)),
                // The last one at or before `time`, or the first one if there is none.
                Some((known, _)) if source <= time && (known > time || source >= known) => {
                    best = Some((source, target));
                }
                Some(_) => {}
            }
        }
        let (source, target) = best?;
        let time = i128::from(target) + i128::from(time) - i128::from(source);
        u64::try_from(time).ok()
    }
}

fn value_of(snapshot: &[(Clock, u64)], clock: Clock) -> Option<u64> {
    snapshot.iter().find(|c| c.0 == clock).map(|c| c.1)
}

fn read_clock(message: &[u8], sequence: u32) -> Result<Option<(Clock, u64)>, WireError> {
    let (mut id, mut time, mut incremental, mut unit) = (0, None, false, 1);
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => id = value.number() as u32,
            2 => time = Some(value.number()),
            3 => incremental = value.flag(),
            4 => unit = value.number().max(1),
            _ => {}
        }
    }
    Ok(time
        .filter(|_| !incremental)
        .map(|time| (Clock::of(id, sequence), time.saturating_mul(unit))))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn clocks(snapshots: &[&[(u32, u64)]]) -> Clocks {
        Clocks {
            snapshots: snapshots
                .iter()
                .map(|s| s.iter().map(|&(id, t)| (Clock::global(id), t)).collect())
                .collect(),
            primary: None,
        }
    }

    #[test]
    fn the_last_snapshot_before_a_time_carries_it_over() {
        let clocks = clocks(&[
            &[(4, 100), (6, 1100)],
            &[(4, 200), (6, 1250)],
            &[(4, 300), (6, 1400)],
        ]);
        let at = |t| clocks.convert(Clock::MONOTONIC_COARSE, t, Clock::BOOTTIME);
        assert_eq!(at(250), Some(1300));
        assert_eq!(at(199), Some(1199));
        assert_eq!(at(50), Some(1050), "the first holds for times before it");
        assert_eq!(at(1000), Some(2100));
    }

    #[test]
    fn clocks_that_never_met_are_linked() {
        let clocks = clocks(&[&[(4, 10), (3, 20)], &[(3, 30), (6, 1030)]]);
        assert_eq!(
            clocks.convert(Clock::MONOTONIC_COARSE, 10, Clock::BOOTTIME),
            Some(1020)
        );
        assert_eq!(clocks.convert(Clock::BOOTTIME, 0, Clock::REALTIME), None);
    }

    #[test]
    fn no_clock_is_no_time() {
        let clocks = clocks(&[]);
        assert_eq!(
            clocks.convert(Clock::MONOTONIC_COARSE, 5, Clock::BOOTTIME),
            None
        );
        assert_eq!(clocks.convert(Clock::BOOTTIME, 5, Clock::BOOTTIME), Some(5));
    }

    #[test]
    fn reads_a_snapshot_from_the_wire() {
        // clocks {1: 4, 2: 7}, clocks {1: 6, 2: 9, 4: 2}; primary 6
        let bytes = [
            0x0a, 4, 0x08, 4, 0x10, 7, 0x0a, 6, 0x08, 6, 0x10, 9, 0x20, 2, 0x10, 6,
        ];
        let mut clocks = Clocks::default();
        clocks.add(&bytes, 1).unwrap();
        assert_eq!(
            clocks.convert(Clock::MONOTONIC_COARSE, 8, clocks.trace_clock()),
            Some(19)
        );
        assert_eq!(clocks.first_trace_time(), Some(18));
    }
}
