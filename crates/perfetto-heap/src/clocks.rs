//! Clock snapshots, and conversion of timestamps between clocks.
//!
//! A `ClockSnapshot` (trace_packet.clock_snapshot) has the values of several clocks at one time. A
//! timestamp is converted with the last snapshot at or before it. Clocks without a common snapshot
//! are linked through clocks that share one with each. All snapshots are read before the first
//! conversion, so that late ones are used, too.

use super::wire::{Fields, WireError};
use std::collections::HashMap;

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
    pub(super) fn new(id: u32, sequence: u32) -> Clock {
        Clock {
            id,
            sequence: if (64..128).contains(&id) { sequence } else { 0 },
        }
    }
}

/// Maximum number of snapshots: those of a year at the service's interval of ten seconds.
const MAX_COUNT: usize = 1 << 22;
/// Maximum number of clocks in a snapshot: all that one sequence can have, twice.
const MAX_CLOCKS: usize = 256;
/// Maximum number of steps from one clock to another.
const MAX_STEPS: u32 = 4;

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
                    Ok(Some(clock)) if clocks.len() < MAX_CLOCKS => clocks.push(clock),
                    Ok(_) => {}
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
        if !clocks.is_empty() && self.snapshots.len() < MAX_COUNT {
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

    /// Returns the conversion of times to the clock `to`. Takes a pass over the snapshots for each
    /// step, not for each time or clock.
    pub(super) fn to(&self, to: Clock) -> ToClock {
        let mut steps: HashMap<Clock, Step> = HashMap::new();
        for depth in 1..=MAX_STEPS {
            let known = steps.len();
            for snapshot in &self.snapshots {
                for (at, &(clock, time)) in snapshot.iter().enumerate() {
                    if clock == to || snapshot[..at].iter().any(|c| c.0 == clock) {
                        continue;
                    }
                    let next = match steps.get(&clock) {
                        Some(step) if step.depth < depth => None,
                        Some(step) => Some(step.to),
                        None => snapshot.iter().map(|c| c.0).find(|other| match depth {
                            1 => *other == to,
                            _ => steps.get(other).is_some_and(|s| s.depth == depth - 1),
                        }),
                    };
                    let Some((next, target)) = next.zip(next.and_then(|c| value_of(snapshot, c)))
                    else {
                        continue;
                    };
                    let new = || Step {
                        to: next,
                        depth,
                        pairs: Vec::new(),
                    };
                    let step = steps.entry(clock).or_insert_with(new);
                    step.pairs.push((time, target));
                }
            }
            if steps.len() == known {
                break;
            }
        }
        for step in steps.values_mut() {
            // Stable: a later snapshot of the same time comes after.
            step.pairs.sort_by_key(|pair| pair.0);
        }
        ToClock { to, steps }
    }
}

/// Conversion of times to one clock.
#[derive(Debug, Clone)]
pub(super) struct ToClock {
    to: Clock,
    steps: HashMap<Clock, Step>,
}

/// Step towards that clock: to the clock itself, or to another one that is nearer.
#[derive(Debug, Clone)]
struct Step {
    to: Clock,
    /// Number of steps, with this one.
    depth: u32,
    /// Values of both clocks in the snapshots that have them, in order of the first.
    pairs: Vec<(u64, u64)>,
}

impl ToClock {
    /// Converts a time of the clock `from`; `None` if no snapshots link the clocks, or the result is
    /// before 0.
    pub(super) fn convert(&self, from: Clock, time: u64) -> Option<u64> {
        u64::try_from(self.convert_signed(from, time)?).ok()
    }

    /// Converts a time like [`ToClock::convert`]; the result is negative before the clock began.
    pub(super) fn convert_signed(&self, from: Clock, time: u64) -> Option<i128> {
        let (mut clock, mut time) = (from, i128::from(time));
        while clock != self.to {
            let step = self.steps.get(&clock)?;
            // The last snapshot at or before the time, or the first one if there is none.
            let after = step
                .pairs
                .partition_point(|pair| i128::from(pair.0) <= time);
            let (source, target) = *step.pairs.get(after.saturating_sub(1))?;
            time += i128::from(target) - i128::from(source);
            clock = step.to;
        }
        Some(time)
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
        .map(|time| (Clock::new(id, sequence), time.saturating_mul(unit))))
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

    fn convert(clocks: &Clocks, from: Clock, time: u64, to: Clock) -> Option<u64> {
        clocks.to(to).convert(from, time)
    }

    #[test]
    fn the_last_snapshot_before_a_time_carries_it_over() {
        let clocks = clocks(&[
            &[(4, 100), (6, 1100)],
            &[(4, 200), (6, 1250)],
            &[(4, 300), (6, 1400)],
        ]);
        let at = |t| convert(&clocks, Clock::MONOTONIC_COARSE, t, Clock::BOOTTIME);
        assert_eq!(at(250), Some(1300));
        assert_eq!(at(199), Some(1199));
        assert_eq!(at(50), Some(1050), "the first holds for times before it");
        assert_eq!(at(1000), Some(2100));
    }

    #[test]
    fn clocks_that_never_met_are_linked() {
        let clocks = clocks(&[&[(4, 10), (3, 20)], &[(3, 30), (6, 1030)]]);
        assert_eq!(
            convert(&clocks, Clock::MONOTONIC_COARSE, 10, Clock::BOOTTIME),
            Some(1020)
        );
        assert_eq!(convert(&clocks, Clock::BOOTTIME, 0, Clock::REALTIME), None);
        assert_eq!(
            convert(&clocks, Clock::BOOTTIME, 0, Clock::global(3)),
            None,
            "before 0"
        );
    }

    #[test]
    fn no_clock_is_no_time() {
        let clocks = clocks(&[]);
        let to_boot = |from| convert(&clocks, from, 5, Clock::BOOTTIME);
        assert_eq!(to_boot(Clock::MONOTONIC_COARSE), None);
        assert_eq!(to_boot(Clock::BOOTTIME), Some(5));
    }

    #[test]
    fn a_chain_of_a_million_clocks_takes_no_time() {
        let pairs: Vec<[(u32, u64); 2]> = (200..1_000_200).map(|n| [(n, 1), (n + 1, 1)]).collect();
        let pairs: Vec<&[(u32, u64)]> = pairs.iter().map(|pair| &pair[..]).collect();
        let clocks = clocks(&pairs);
        let to = clocks.to(Clock::global(500_000));
        let from = |id| to.convert(Clock::global(id), 1);
        let near = [499_996, 499_999, 500_004].map(from);
        assert_eq!(near, [Some(1); 3]);
        assert_eq!([499_995, 500_005, 200].map(from), [None; 3]);
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
            convert(&clocks, Clock::MONOTONIC_COARSE, 8, clocks.trace_clock()),
            Some(19)
        );
        assert_eq!(clocks.first_trace_time(), Some(18));
    }
}
