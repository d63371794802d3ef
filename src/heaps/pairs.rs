//! Pairs of dumps that are compared: the heaps of two sides, by the name of their process. Several
//! processes can have one name: those of several users, of which each is compared, and the runs of
//! an app that restarted.

use std::collections::{BTreeMap, BTreeSet};

use heaptap_model::profile::known_heap;
use heaptap_model::stacks::Facts;

/// A heap on both sides, or on one, by its place among the dumps of the side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairedHeap {
    /// The dump on the first side.
    pub before: Option<usize>,
    /// The dump on the second side.
    pub after: Option<usize>,
}

/// Pairs of two sides.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Pairs {
    /// Pairs, and heaps of one side, by process and heap.
    pub pairs: Vec<PairedHeap>,
    /// Last dumps of runs without a counterpart that ended before the process ran again.
    pub ended: [Vec<usize>; 2],
}

/// Returns a dump's heap by the name that it has in any recording.
pub fn heap_of(facts: &Facts) -> &str {
    known_heap(&facts.heap, facts.flags)
}

/// Pairs the last dump of each heap of both sides. One dump on each side is a pair in any process,
/// if the heap is the same: builds can have different names.
pub fn pairs(before: &[&Facts], after: &[&Facts]) -> Pairs {
    if let ([one], [other]) = (before, after) {
        let (heap, like) = (heap_of(one), heap_of(other));
        if heap == like || heap.is_empty() || like.is_empty() {
            return Pairs {
                pairs: vec![pair(Some(0), Some(0))],
                ..Pairs::default()
            };
        }
    }
    let (mut left, mut right) = (runs(before), runs(after));
    let keys: BTreeSet<_> = left.keys().chain(right.keys()).copied().collect();
    let mut all = Pairs::default();
    for key in keys {
        let [left, right] = [&mut left, &mut right].map(|side| side.remove(&key));
        let [mut left, mut right] = [left, right].map(Option::unwrap_or_default);
        all.ended[0].extend(drop_ended(before, &mut left, right.len()));
        all.ended[1].extend(drop_ended(after, &mut right, left.len()));
        left.retain(|&at| {
            let pid = before[at].pid;
            let same = right.iter().position(|&other| after[other].pid == pid);
            let same = same.map(|same| right.remove(same));
            all.pairs
                .extend(same.map(|same| pair(Some(at), Some(same))));
            same.is_none()
        });
        for at in 0..left.len().max(right.len()) {
            all.pairs
                .push(pair(left.get(at).copied(), right.get(at).copied()));
        }
    }
    all
}

fn pair(before: Option<usize>, after: Option<usize>) -> PairedHeap {
    PairedHeap { before, after }
}

/// Name of the process, its ID if it has no name, and the heap.
type Key<'a> = (&'a str, u64, &'a str);

/// Returns the last dump of each run of each process, in the order of their starts.
fn runs<'a>(dumps: &[&'a Facts]) -> BTreeMap<Key<'a>, Vec<usize>> {
    let mut last: BTreeMap<(Key<'a>, u64), usize> = BTreeMap::new();
    let when = |at: usize| (dumps[at].time_ns, dumps[at].number);
    for (at, facts) in dumps.iter().enumerate() {
        let pid = match facts.process.is_empty() {
            true => facts.pid,
            false => 0,
        };
        let key = (facts.process.as_str(), pid, heap_of(facts));
        let known = last.entry((key, facts.pid)).or_insert(at);
        if when(*known) <= when(at) {
            *known = at;
        }
    }
    let mut runs: BTreeMap<Key<'a>, Vec<usize>> = BTreeMap::new();
    for ((key, _), at) in last {
        runs.entry(key).or_default().push(at);
    }
    for run in runs.values_mut() {
        run.sort_by_key(|&at| (dumps[at].start_ns, dumps[at].pid));
    }
    runs
}

/// Removes runs that ended before another one, oldest first, until as many are left as the other
/// side has. The newest one stays.
fn drop_ended(dumps: &[&Facts], runs: &mut Vec<usize>, others: usize) -> Vec<usize> {
    let mut ended = Vec::new();
    while runs.len() > others {
        let is_over = |&at: &usize| {
            let mut all = runs.iter();
            all.any(|&other| ended_before(dumps[at], dumps[other]))
        };
        let Some(at) = runs.iter().position(is_over) else {
            break;
        };
        ended.push(runs.remove(at));
    }
    ended
}

/// Returns whether the run of `one` ended before that of `other` began; `one` is its last dump. If
/// the beginning is unknown, the later one of two dumps is of the later run if the other had ended.
pub fn ended_before(one: &Facts, other: &Facts) -> bool {
    match other.start_ns {
        Some(start) => one.time_ns.is_some_and(|end| end <= start),
        None => one.flags.disconnected && one.time_ns < other.time_ns,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A dump of `process` (`pid`), which runs from `start` on.
    fn dump(process: &str, pid: u64, start: u64, time: u64) -> Facts {
        Facts {
            process: process.to_owned(),
            pid,
            heap: "libc.malloc".to_owned(),
            start_ns: Some(start),
            time_ns: Some(time),
            ..Facts::default()
        }
    }

    fn paired(before: &[Facts], after: &[Facts]) -> (Vec<(u64, u64)>, [Vec<u64>; 2]) {
        let before: Vec<&Facts> = before.iter().collect();
        let after: Vec<&Facts> = after.iter().collect();
        let found = pairs(&before, &after);
        let pid = |side: &[&Facts], at: Option<usize>| at.map_or(0, |at| side[at].pid);
        let pids = found.pairs.iter();
        let pids = pids.map(|pair| (pid(&before, pair.before), pid(&after, pair.after)));
        let [left, right] = &found.ended;
        let of = |side: &[&Facts], all: &[usize]| all.iter().map(|&at| side[at].pid).collect();
        (pids.collect(), [of(&before, left), of(&after, right)])
    }

    #[test]
    fn each_process_of_a_name_has_its_counterpart() {
        let at = |time| [dump("a", 7, 0, time), dump("a", 8, 1, time)];
        let none = [vec![], vec![]];
        assert_eq!(paired(&at(5), &at(9)), (vec![(7, 7), (8, 8)], none.clone()));
        // Another recording, in which a third user runs it.
        let other = [
            dump("a", 21, 0, 9),
            dump("a", 22, 0, 9),
            dump("a", 23, 0, 9),
        ];
        let expected = vec![(7, 21), (8, 22), (0, 23)];
        assert_eq!(paired(&at(5), &other), (expected, none.clone()));
        let expected = vec![(21, 7), (22, 8), (23, 0)];
        assert_eq!(paired(&other, &at(5)), (expected, none));
    }

    #[test]
    fn a_run_that_ended_has_no_counterpart_in_a_process_that_runs() {
        let restarted = [dump("a", 7, 0, 5), dump("a", 8, 6, 9), dump("b", 3, 0, 9)];
        let running = [dump("a", 9, 0, 9), dump("b", 4, 0, 9)];
        assert_eq!(
            paired(&restarted, &running),
            (vec![(8, 9), (3, 4)], [vec![7], vec![]])
        );
        assert_eq!(
            paired(&running, &restarted),
            (vec![(9, 8), (4, 3)], [vec![], vec![7]])
        );
        // The process is another one at each end of a recording.
        let [first, second, _] = restarted;
        let both = [first.clone(), second];
        let expected = (vec![(7, 8)], [vec![], vec![7]]);
        assert_eq!(paired(&[first], &both), expected);
        assert_eq!(paired(&both, &both).0, [(7, 7), (8, 8)]);
    }

    #[test]
    fn a_process_that_exits_beside_another_is_not_an_earlier_run() {
        let mut gone = dump("a", 7, 0, 5);
        gone.flags.disconnected = true;
        let beside = dump("a", 8, 1, 9);
        assert!(!ended_before(&gone, &beside));
        let mut unknown = beside.clone();
        unknown.start_ns = None;
        assert!(ended_before(&gone, &unknown));
        let both = [gone, beside];
        let running = [dump("a", 9, 0, 9)];
        let expected = (vec![(7, 9), (8, 0)], [vec![], vec![]]);
        assert_eq!(paired(&both, &running), expected);
    }

    #[test]
    fn one_heap_on_each_side_is_a_pair_in_any_process() {
        let release = [dump("a", 7, 0, 5)];
        let mut debug = [dump("a.debug", 8, 0, 5)];
        assert_eq!(paired(&release, &debug).0, [(7, 8)]);
        debug[0].heap = "com.android.art".to_owned();
        assert_eq!(paired(&release, &debug).0, [(7, 0), (0, 8)]);
    }
}
