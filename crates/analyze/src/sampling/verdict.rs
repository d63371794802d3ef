//! Whether a callsite leaks: tests over all of them together, then for each what speaks for
//! growth that goes on, and one of three verdicts.

use super::difference::Turnover;
use super::estimate::Sampled;
use super::poisson::Z95_ONE_SIDED;
use super::special;

/// Below so many hits on both sides no test can reject: 5 of 5 is 1 in 32.
pub const MIN_HITS_TO_TEST: f64 = 5.0;
/// Part of the callsites called growing that may be so by chance.
pub const FALSE_DISCOVERIES: f64 = 0.05;
/// Level at which each half has to show growth too: a single step is no leak.
const LEVEL_OF_HALVES: f64 = 0.25;
/// Level below which the second half is called slower than the first.
const LEVEL_OF_SLOWING: f64 = 0.01;

/// Which of these tests to reject so that at most the part `q` of the rejected ones is so by
/// chance (Benjamini and Hochberg): for each, in order. NaN counts as 1.
pub fn benjamini_hochberg(p_values: &[f64], q: f64) -> Vec<bool> {
    let mut sorted: Vec<f64> = p_values
        .iter()
        .map(|p| if p.is_nan() { 1.0 } else { *p })
        .collect();
    sorted.sort_unstable_by(f64::total_cmp);
    let m = sorted.len() as f64;
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

/// What is known of one callsite over a series.
#[derive(Debug, Clone, Copy)]
pub struct Evidence {
    /// From the first dump to the last.
    pub whole: Turnover,
    /// From the first to the middle one, from there to the last; `None` of fewer than two
    /// rounds.
    pub halves: Option<[Turnover; 2]>,
    /// Rounds of each half.
    pub rounds: [u32; 2],
    /// How long each half took, in any unit, where that is known.
    pub spans: Option<[f64; 2]>,
    /// Whether it surely grew in each single round.
    pub in_every_round: bool,
    /// Whether it rises from dump to dump more steadily than chance explains ([`steady`]).
    pub steady: bool,
    /// Whether [`benjamini_hochberg`] rejects "no growth" for it.
    pub significant: bool,
}

/// Whether a site replaces what it holds, so that its size may go up and down of itself: what
/// was released is worth a word beside what was kept, or most of what was allocated between the
/// dumps was `freed` again.
pub fn turns_over(whole: &Turnover, allocated: &Sampled, freed: i64) -> bool {
    whole.released().hits() > TURNOVER * whole.kept().hits()
        || freed > allocated.bytes() / 2 && freed > 0
}

/// How a site's size went from dump to dump.
#[derive(Debug, Clone, Copy)]
pub struct Course {
    /// How likely values in random order are to rise so steadily ([`super::growth::trend`]).
    pub trend: f64,
    /// Whether what it holds is replaced ([`turns_over`]).
    pub turns_over: bool,
}

/// Which of all tested sites rise steadily, over so many rounds. What is replaced goes up and
/// down with the work of each round: of many sites some look like rising, and they are tested
/// together. What only piles up rises by nature, and is held to less.
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

/// Where so much of what is kept was released, a site turns over.
const TURNOVER: f64 = 0.1;

/// What counts as growth.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// Bytes by which what is held may grow over the whole series and nobody minds.
    pub tolerance: f64,
    /// Whether data are missing: nothing is called noise then.
    pub incomplete: bool,
}

/// What is said of a callsite.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// It grows, again and again, and chance does not explain it.
    Grows {
        /// Surely by no more than what nobody minds.
        below_tolerance: bool,
    },
    /// If it grows, then by no more than what nobody minds.
    WithinNoise,
    /// Neither is shown.
    CantTell(InconclusiveReason),
}

/// Why neither is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum InconclusiveReason {
    /// What was sampled is too little for the size of the growth.
    TooFewSamples,
    /// It grew, but not in both halves: a step, a warm-up, a cache.
    OneStep,
    /// It grew in both halves, in the second much less.
    Slowing,
    /// It goes up and down, and ended higher.
    Unsteady,
    /// There are too few rounds to see whether growth goes on.
    TooFewRounds,
    /// Data are missing from the recording.
    Incomplete,
}

/// Judges one callsite.
pub fn judge(evidence: &Evidence, terms: &Terms) -> Verdict {
    let (_, high) = evidence.whole.limits(Z95_ONE_SIDED);
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

/// Whether what grew for certain grew again and again, and seems to go on.
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
    // Two blocks of a megabyte are many hits, yet two events: growth has to come in several
    // samples of each half, or in each and every round.
    let again = |half: &Turnover| half.sign_test_of_samples() <= LEVEL_OF_HALVES;
    if !evidence.in_every_round && !halves.iter().all(again) {
        return Some(if halves.iter().any(again) {
            InconclusiveReason::OneStep
        } else {
            InconclusiveReason::TooFewRounds
        });
    }
    // Rounds may differ in length: what is slower by rounds and not by time has not slowed.
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

/// Whether the second half, of this length, grew by much less than the first, and not by chance.
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
            in_every_round: false,
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
        // Of three dumps the rising order is 1 in 6.
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
        assert!(benjamini_hochberg(&[], 0.05).is_empty());
    }
}
