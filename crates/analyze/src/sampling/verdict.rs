//! Verdicts on callsites: tests of all callsites together, then for each one the evidence that
//! growth continues, and one of three verdicts.

use super::difference::Turnover;
use super::estimate::Sampled;
use super::poisson::Z95_ONE_SIDED;
use super::special;

/// Minimum number of hits on both sides for a test that can reject: 5 of 5 is 1 in 32.
pub const MIN_HITS_TO_TEST: f64 = 5.0;
/// Maximum share of false positives among growing callsites.
pub const FALSE_DISCOVERIES: f64 = 0.05;
/// Level at which each half has to show growth too: a single step is not a leak.
const LEVEL_OF_HALVES: f64 = 0.25;
/// Level below which the second half counts as slower than the first.
const LEVEL_OF_SLOWING: f64 = 0.01;

/// Returns, in order, which of these tests to reject so that at most the part `q` of the rejected
/// ones is rejected by chance (Benjamini and Hochberg). NaN counts as 1.
pub fn benjamini_hochberg(p_values: &[f64], q: f64) -> Vec<bool> {
    benjamini_hochberg_with(p_values, 0, q)
}

/// Like [`benjamini_hochberg`], among `others` more tests whose values are above `q`.
pub fn benjamini_hochberg_with(p_values: &[f64], others: u64, q: f64) -> Vec<bool> {
    let mut sorted: Vec<f64> = p_values
        .iter()
        .map(|p| if p.is_nan() { 1.0 } else { *p })
        .collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let m = (sorted.len() as u64 + others) as f64;
    let limit = sorted
        .iter()
        .enumerate()
        .rfind(|(at, p)| **p <= q * (at + 1) as f64 / m)
        .map(|(_, p)| *p);
    p_values
        .iter()
        .map(|p| limit.is_some_and(|limit| *p <= limit))
        .collect()
}

/// Evidence about one callsite over a series.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// Turnover from the first dump to the last.
    pub whole: Turnover,
    /// Turnover from the first dump to the middle one, and from there to the last; `None` for fewer
    /// than two iterations. Used only if `significant`.
    pub halves: Option<[Turnover; 2]>,
    /// Iterations in each half.
    pub rounds: [u32; 2],
    /// Duration of each half in any unit, if known.
    pub spans: Option<[f64; 2]>,
    /// Whether it certainly grew in each iteration.
    pub in_every_iteration: bool,
    /// Whether it rises from dump to dump more steadily than chance explains ([`steady`]).
    pub steady: bool,
    /// Whether [`benjamini_hochberg`] rejects "no growth" for it.
    pub significant: bool,
}

/// Returns whether a site replaces its allocations, so that its size can fluctuate: a considerable
/// part was released compared with what was kept, or most of the allocations between the dumps were
/// `freed` again.
pub fn turns_over(whole: &Turnover, allocated: &Sampled, freed: i64) -> bool {
    whole.released().hits() > TURNOVER * whole.kept().hits()
        || freed > allocated.bytes() / 2 && freed > 0
}

/// Course of a site's size from dump to dump.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// Probability that values in random order rise as steadily ([`super::growth::trend`]).
    pub trend: f64,
    /// Whether its allocations are replaced ([`turns_over`]).
    pub turns_over: bool,
}

/// Returns which of all tested sites rise steadily over `rounds` iterations. Replaced allocations
/// fluctuate with the work of each iteration. Among many sites some appear to rise by chance, so
/// they are tested together. Sites that only accumulate rise by nature, so their criterion is
/// weaker.
pub fn steady(courses: &[Course], rounds: u32) -> Vec<bool> {
    let orders: u64 = (2..=u64::from(rounds.min(10)) + 1).product();
    let piles_up = f64::max(if rounds < 5 { 0.05 } else { 0.01 }, 1.0 / orders as f64);
    let turning = courses.iter().filter(|course| course.turns_over);
    let p_values: Vec<f64> = turning.map(|course| course.trend).collect();
    let mut rejected = benjamini_hochberg(&p_values, FALSE_DISCOVERIES).into_iter();
    courses
        .iter()
        .map(|course| match course.turns_over {
            true => rejected.next().unwrap_or(false),
            false => course.trend <= piles_up + 1e-12,
        })
        .collect()
}

/// Minimum ratio of released to kept at which a site turns over.
const TURNOVER: f64 = 0.1;

/// Criteria for growth.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Acceptable growth of unreleased bytes over the whole series.
    pub tolerance: f64,
    /// Whether data is missing. Then no site is [`Verdict::WithinNoise`].
    pub incomplete: bool,
}

/// Verdict on a callsite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It grows repeatedly, and chance does not explain it.
    Grows {
        /// Whether the growth is certainly below the tolerance.
        below_tolerance: bool,
    },
    /// If it grows, then by no more than the tolerance.
    WithinNoise,
    /// Neither growth nor its absence is shown.
    CantTell(InconclusiveReason),
}

impl Verdict {
    /// Returns whether the site certainly leaks.
    pub fn grows(&self) -> bool {
        matches!(self, Verdict::Grows { .. })
    }

    /// Returns whether the site certainly grew although the verdict is inconclusive, or grows.
    pub fn is_suspect(&self) -> bool {
        match self {
            Verdict::Grows { .. } => true,
            Verdict::WithinNoise => false,
            Verdict::CantTell(reason) => match reason {
                InconclusiveReason::OneStep
                | InconclusiveReason::Slowing
                | InconclusiveReason::Unsteady
                | InconclusiveReason::TooFewRounds => true,
                InconclusiveReason::TooFewSamples | InconclusiveReason::Incomplete => false,
            },
        }
    }
}

/// Reason for an inconclusive verdict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InconclusiveReason {
    /// Too few samples for the size of the growth.
    TooFewSamples,
    /// Growth in one half only: a step, a warm-up, a cache.
    OneStep,
    /// Growth in both halves, but much less in the second.
    Slowing,
    /// Fluctuation that ended higher.
    Unsteady,
    /// Too few iterations to see whether growth continues.
    TooFewRounds,
    /// Data missing from the recording.
    Incomplete,
}

/// Judges one callsite.
pub fn judge(evidence: &Evidence, terms: &Terms) -> Verdict {
    let high = evidence.whole.upper_limit(Z95_ONE_SIDED);
    let reason = if evidence.significant {
        match repetition_reason(evidence) {
            None => {
                return Verdict::Grows {
                    below_tolerance: high <= terms.tolerance,
                };
            }
            Some(reason) => reason,
        }
    } else {
        InconclusiveReason::TooFewSamples
    };
    if terms.incomplete {
        return Verdict::CantTell(InconclusiveReason::Incomplete);
    }
    if high <= terms.tolerance {
        return Verdict::WithinNoise;
    }
    Verdict::CantTell(reason)
}

/// Returns why certain growth is not known to repeat and to continue; `None` if it is.
fn repetition_reason(evidence: &Evidence) -> Option<InconclusiveReason> {
    let Some(halves) = &evidence.halves else {
        return Some(InconclusiveReason::TooFewRounds);
    };
    let rounds: u32 = evidence.rounds.iter().sum();
    if rounds < 2 {
        return Some(InconclusiveReason::TooFewRounds);
    }
    let grew = |half: &Turnover| half.sign_test() <= LEVEL_OF_HALVES;
    if !halves.iter().all(grew) {
        return Some(InconclusiveReason::OneStep);
    }
    // Two blocks of a megabyte are many hits but two events, so growth has to occur in several
    // samples of each half, or in each iteration.
    let again = |half: &Turnover| half.sign_test_of_samples() <= LEVEL_OF_HALVES;
    if !evidence.in_every_iteration && !halves.iter().all(again) {
        return Some(if halves.iter().any(again) {
            InconclusiveReason::OneStep
        } else {
            InconclusiveReason::TooFewRounds
        });
    }
    // Iterations can differ in duration: growth that is slower per iteration but not per time has
    // not slowed.
    let by_rounds = evidence.rounds.map(|k| f64::from(k.max(1)));
    if slows(halves, by_rounds) && evidence.spans.is_none_or(|spans| slows(halves, spans)) {
        return Some(InconclusiveReason::Slowing);
    }
    if !evidence.steady {
        return Some(if rounds < 5 {
            InconclusiveReason::TooFewRounds
        } else {
            InconclusiveReason::Unsteady
        });
    }
    None
}

/// Returns whether the second half, of this length, grew by much less than the first, and not by
/// chance.
fn slows(halves: &[Turnover; 2], lengths: [f64; 2]) -> bool {
    let net = |half: &Turnover| half.net().max(0) as f64;
    let [first, second] = [net(&halves[0]), net(&halves[1])];
    let [k1, k2] = lengths;
    if !(k1 > 0.0 && k2 > 0.0) || second / k2 >= 0.5 * first / k1 {
        return false;
    }
    if halves[0].is_exact() {
        return true;
    }
    let hits = |half: &Turnover, net: f64| half.kept().interval().hits(net);
    let [first, second] = [hits(&halves[0], first), hits(&halves[1], second)];
    let p = special::binomial_tail((first + second).floor(), first.floor(), k1 / (k1 + k2));
    p <= LEVEL_OF_SLOWING
}

#[cfg(test)]
mod tests {
    use super::super::{Counters, Interval};
    use super::*;

    const T: i64 = 4096;

    fn of(p: i64, q: i64) -> Turnover {
        let interval = Interval::new(T as u64).expect("not zero");
        let held = |hits: i64| {
            Counters {
                space: hits * T,
                objects: hits,
                ..Counters::default()
            }
            .held(interval)
        };
        Turnover::independent(held(q), held(p))
    }

    fn evidence(first: (i64, i64), second: (i64, i64)) -> Evidence {
        let halves = [of(first.0, first.1), of(second.0, second.1)];
        Evidence {
            whole: halves[0].plus(halves[1]),
            halves: Some(halves),
            rounds: [5, 5],
            spans: None,
            in_every_iteration: false,
            steady: true,
            significant: true,
        }
    }

    const TERMS: Terms = Terms {
        tolerance: 10.0 * T as f64,
        incomplete: false,
    };

    #[test]
    fn steady_growth_is_a_leak_and_a_step_is_none() {
        let leak = judge(&evidence((20, 1), (18, 2)), &TERMS);
        assert_eq!(
            leak,
            Verdict::Grows {
                below_tolerance: false
            }
        );
        let step = evidence((40, 0), (1, 1));
        assert_eq!(
            judge(&step, &TERMS),
            Verdict::CantTell(InconclusiveReason::OneStep)
        );
        let slowing = evidence((60, 0), (4, 0));
        assert_eq!(
            judge(&slowing, &TERMS),
            Verdict::CantTell(InconclusiveReason::Slowing)
        );
        let uneven = Evidence {
            spans: Some([15.0, 1.0]),
            ..slowing
        };
        assert!(matches!(judge(&uneven, &TERMS), Verdict::Grows { .. }));
        let unsteady = Evidence {
            steady: false,
            ..evidence((20, 3), (18, 5))
        };
        assert_eq!(
            judge(&unsteady, &TERMS),
            Verdict::CantTell(InconclusiveReason::Unsteady)
        );
    }

    #[test]
    fn of_many_that_are_replaced_some_rise_by_chance() {
        let course = |trend, turns_over| Course { trend, turns_over };
        let mut courses = vec![course(0.006, true), course(0.006, false)];
        assert_eq!(steady(&courses, 10), [true, true]);
        courses.extend([course(0.5, true); 50]);
        assert_eq!(steady(&courses, 10)[..2], [false, true]);
        // Of three dumps, the rising order is 1 in 6.
        assert_eq!(steady(&[course(1.0 / 6.0, false)], 2), [true]);
        assert_eq!(steady(&[course(1.0 / 6.0, true)], 2), [false]);
    }

    #[test]
    fn noise_needs_complete_data_and_a_small_upper_limit() {
        let quiet = Evidence {
            significant: false,
            ..evidence((1, 1), (0, 1))
        };
        assert_eq!(judge(&quiet, &TERMS), Verdict::WithinNoise);
        let lost = Terms {
            incomplete: true,
            ..TERMS
        };
        assert_eq!(
            judge(&quiet, &lost),
            Verdict::CantTell(InconclusiveReason::Incomplete)
        );
        let strict = Terms {
            tolerance: T as f64,
            ..TERMS
        };
        assert_eq!(
            judge(&quiet, &strict),
            Verdict::CantTell(InconclusiveReason::TooFewSamples)
        );
    }

    #[test]
    fn growth_below_the_tolerance_is_said_to_be() {
        let wide = Terms {
            tolerance: 1e9,
            ..TERMS
        };
        assert_eq!(
            judge(&evidence((20, 1), (18, 2)), &wide),
            Verdict::Grows {
                below_tolerance: true
            }
        );
    }

    #[test]
    fn what_is_replaced_turns_over() {
        let allocated = |hits| of(hits, 0).kept();
        assert!(turns_over(&of(20, 3), &allocated(20), 0));
        assert!(!turns_over(&of(20, 1), &allocated(20), 5 * T));
        assert!(
            turns_over(&of(20, 0), &allocated(90), 70 * T),
            "all in between"
        );
        assert!(!turns_over(&of(0, 0), &allocated(0), 0));
    }

    #[test]
    fn two_rounds_at_least() {
        let once = Evidence {
            halves: None,
            rounds: [1, 0],
            ..evidence((20, 0), (20, 0))
        };
        assert_eq!(
            judge(&once, &TERMS),
            Verdict::CantTell(InconclusiveReason::TooFewRounds)
        );
    }

    #[test]
    fn false_discoveries_are_held() {
        assert_eq!(
            benjamini_hochberg(&[0.2, 0.001, 0.03, 0.012, f64::NAN], 0.05),
            [false, true, true, true, false],
            "by hand: 0.03 <= 0.05 * 3 / 5"
        );
        assert_eq!(benjamini_hochberg(&[0.06], 0.05), [false]);
        assert_eq!(
            benjamini_hochberg_with(&[0.012, 0.001], 1, 0.05),
            [true, true]
        );
        assert_eq!(
            benjamini_hochberg_with(&[0.012, 0.001], 9, 0.05),
            [false, true]
        );
        assert!(benjamini_hochberg(&[], 0.05).is_empty());
    }
}
