//! Verdicts over 2,000 callsites at once, through the exact sampler, and their error rate.

use super::super::growth::trend;
use super::super::verdict::{
    Course, Evidence, FALSE_DISCOVERIES, MIN_HITS_TO_TEST, Terms, Verdict, benjamini_hochberg,
    judge, steady, turns_over,
};
use super::super::{Counters, Interval, Turnover};
use super::effort::Effort;
use super::sampler::{Sampler, Seen, normal};

const T: u64 = 4096;
const SITES: usize = 2_000;
const LEAKS: usize = 40;
const ROUNDS: usize = 10;

/// Behavior of a site in each iteration.
#[derive(Debug, Clone, Copy)]
struct Site {
    size: u64,
    /// Permanent allocations made before the first dump.
    staying: u64,
    /// Allocations that survive one iteration.
    replaced: u64,
    /// Relative variation of `replaced` between iterations.
    unrest: f64,
    /// Allocations kept in each iteration.
    leaked: u64,
}

fn sites(random: &mut fastrand::Rng, leaked_hits: f64, unrest: f64) -> Vec<Site> {
    let hits = |random: &mut fastrand::Rng, log_mean: f64, spread: f64| {
        ((log_mean + spread * normal(random)).exp()).min(400.0)
    };
    (0..SITES)
        .map(|at| {
            let size = *[24, 64, 200, 1_000, 3_000]
                .get(random.usize(..5))
                .expect("five sizes");
            let of = |hits: f64| (hits * T as f64 / size as f64).round() as u64;
            Site {
                size,
                staying: of(hits(random, 1.0, 1.5)),
                replaced: of(hits(random, 0.5, 1.5)),
                unrest,
                leaked: if at < LEAKS {
                    of(leaked_hits / ROUNDS as f64)
                } else {
                    0
                },
            }
        })
        .collect()
}

/// Returns dumps 0..=ROUNDS of each site.
fn run(random: &mut fastrand::Rng, sites: &[Site]) -> Vec<Vec<Counters>> {
    let mut sampler = Sampler::new(T, random.u64(..));
    let mut now = vec![Counters::default(); sites.len()];
    let mut replaced = vec![Seen::default(); sites.len()];
    let mut dumps = vec![Vec::new(); sites.len()];
    for round in 0..=ROUNDS {
        for (at, site) in sites.iter().enumerate() {
            let mut record =
                |count: u64| sampler.record(std::iter::repeat_n(site.size, count as usize));
            let counters = &mut now[at];
            if round == 0 {
                record(site.staying).allocate(counters, true);
            } else {
                record(site.leaked).allocate(counters, true);
            }
            let unrest = (1.0 + site.unrest * normal(random)).max(0.0);
            let fresh = record((site.replaced as f64 * unrest) as u64);
            replaced[at].free(counters);
            fresh.allocate(counters, true);
            replaced[at] = fresh;
            dumps[at].push(*counters);
        }
    }
    dumps
}

/// Returns the verdicts of all sites.
fn verdicts(dumps: &[Vec<Counters>], tolerance: f64) -> Vec<Verdict> {
    let interval = Interval::new(T).expect("not zero");
    let turnover = |site: &[Counters], from: usize, to: usize| {
        Turnover::paired(&site[from], &site[to], interval)
    };
    let whole: Vec<Turnover> = dumps.iter().map(|s| turnover(s, 0, ROUNDS)).collect();
    let tested: Vec<usize> = (0..dumps.len())
        .filter(|&at| whole[at].hits() >= MIN_HITS_TO_TEST)
        .collect();
    let p: Vec<f64> = tested.iter().map(|&at| whole[at].sign_test()).collect();
    let mut significant = vec![false; dumps.len()];
    for (rejected, &at) in benjamini_hochberg(&p, FALSE_DISCOVERIES)
        .iter()
        .zip(&tested)
    {
        significant[at] = *rejected;
    }
    let middle = ROUNDS / 2;
    let replaces = |at: usize| {
        let (first, last) = (dumps[at][0], dumps[at][ROUNDS]);
        let allocated = Counters {
            alloc_space: last.alloc_space - first.alloc_space,
            alloc_objects: last.alloc_objects - first.alloc_objects,
            ..Counters::default()
        };
        let freed = last.freed() - first.freed();
        turns_over(&whole[at], &allocated.allocated(interval), freed)
    };
    let courses: Vec<Course> = tested
        .iter()
        .map(|&at| {
            let held: Vec<i64> = dumps[at].iter().map(|dump| dump.space).collect();
            Course {
                trend: trend(&held),
                turns_over: replaces(at),
            }
        })
        .collect();
    let mut rises = vec![false; dumps.len()];
    for (steady, &at) in steady(&courses, ROUNDS as u32).into_iter().zip(&tested) {
        rises[at] = steady;
    }
    dumps
        .iter()
        .enumerate()
        .map(|(at, site)| {
            let evidence = Evidence {
                whole: whole[at],
                halves: Some([turnover(site, 0, middle), turnover(site, middle, ROUNDS)]),
                rounds: [middle as u32, (ROUNDS - middle) as u32],
                spans: None,
                in_every_iteration: false,
                steady: rises[at],
                significant: significant[at],
            };
            let terms = Terms {
                tolerance: tolerance * ROUNDS as f64,
                incomplete: false,
            };
            judge(&evidence, &terms)
        })
        .collect()
}

pub fn all(effort: Effort) {
    let repeats = effort.heaps;
    let mut text = String::from(
        "\n| leak, hits in 10 rounds | unrest | accused by mistake | found | called noise |\n\
         |---|---|---|---|---|\n",
    );
    let mut worst = 0.0_f64;
    for (leaked_hits, unrest) in [
        (0.0, 0.0),
        (20.0, 0.0),
        (40.0, 0.0),
        (40.0, 0.3),
        (0.0, 0.3),
    ] {
        let (mut wrong_share, mut wrong, mut found, mut noise) = (0.0, 0_u64, 0_u64, 0_u64);
        for repeat in 0..repeats {
            let mut random = fastrand::Rng::with_seed(8 + repeat);
            let sites = sites(&mut random, leaked_hits, unrest);
            let dumps = run(&mut random, &sites);
            let verdicts = verdicts(&dumps, leaked_hits / ROUNDS as f64 * T as f64);
            let grows = |v: &&Verdict| matches!(v, Verdict::Grows { .. });
            let leaks = if leaked_hits > 0.0 { LEAKS } else { 0 };
            let false_ones = verdicts[leaks..].iter().filter(grows).count() as u64;
            let true_ones = verdicts[..leaks].iter().filter(grows).count() as u64;
            wrong += false_ones;
            found += true_ones;
            noise += verdicts[..leaks]
                .iter()
                .filter(|v| **v == Verdict::WithinNoise)
                .count() as u64;
            wrong_share += false_ones as f64 / (false_ones + true_ones).max(1) as f64;
        }
        let share = 100.0 * wrong_share / repeats as f64;
        worst = worst.max(share);
        let all = (LEAKS as u64 * repeats) as f64;
        let percent = |n: u64| 100.0 * n as f64 / all;
        text += &format!(
            "| {leaked_hits} | {unrest} | {share:.2} % of verdicts, {:.2} sites of 2,000 | {:.0} % | {:.1} % |\n",
            wrong as f64 / repeats as f64,
            percent(found),
            percent(noise),
        );
        assert!(percent(noise) <= 5.0, "{text}");
    }
    effort.show(&text);
    assert!(worst <= 5.0, "{text}");
}
