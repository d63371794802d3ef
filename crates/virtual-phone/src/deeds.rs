//! What the screen and the system did to processes, as far as their memory shows it. Bounded: of
//! each process the latest deeds are kept one by one, older ones as what still counts of them.

use std::collections::BTreeMap;
use std::collections::VecDeque;

use super::clock::BootNs;
use super::process::Pid;

/// So many deeds of a process are kept one by one.
const KEPT: usize = 1_000;
/// Levels of requests to trim that are told apart when old ones are forgotten.
const LEVELS: usize = 64;

/// Something that happened to a process and that its memory shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Deed {
    /// One of its activities was destroyed.
    Destroyed,
    /// It was asked to give memory back.
    Trimmed(u32),
}

/// What was done to one process.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessHistory {
    /// Activities that were destroyed before the first deed that is kept.
    destroyed: u64,
    /// In order.
    kept: VecDeque<(BootNs, Deed)>,
}

impl ProcessHistory {
    /// Notes a deed; what comes late happened after the last.
    pub(crate) fn note(&mut self, at: BootNs, deed: Deed) {
        let last = self.kept.back().map_or(0, |(t, _)| *t);
        self.kept.push_back((at.max(last), deed));
        if self.kept.len() > KEPT {
            self.forget_one();
        }
    }

    /// Forgets the first deed of which nothing more is asked: a count, or a level that was asked
    /// for again since.
    fn forget_one(&mut self) {
        let seen_again = |place: usize| match self.kept.get(place).map(|(_, deed)| *deed) {
            Some(Deed::Trimmed(level)) => self
                .kept
                .iter()
                .skip(place + 1)
                .any(|(_, later)| *later == Deed::Trimmed(level)),
            _ => true,
        };
        let place = (0..LEVELS).find(|place| seen_again(*place)).unwrap_or(0);
        if let Some((_, Deed::Destroyed)) = self.kept.remove(place) {
            self.destroyed += 1;
        }
    }

    /// Activities that were destroyed up to a moment.
    pub(crate) fn destroyed(&self, until: BootNs) -> u64 {
        let kept = self
            .until(until)
            .filter(|(_, deed)| *deed == Deed::Destroyed);
        self.destroyed + kept.count() as u64
    }

    /// Requests to trim up to a moment, the last one first: when, and which level.
    pub(crate) fn trims(&self, until: BootNs) -> impl Iterator<Item = (BootNs, u32)> + '_ {
        self.until(until).rev().filter_map(|(at, deed)| match deed {
            Deed::Trimmed(level) => Some((at, level)),
            Deed::Destroyed => None,
        })
    }

    fn until(&self, until: BootNs) -> impl DoubleEndedIterator<Item = (BootNs, Deed)> + '_ {
        let all = self.kept.iter().copied();
        all.filter(move |(at, _)| *at <= until)
    }
}

/// The deeds of all processes.
#[derive(Debug, Default)]
pub(crate) struct AllDeeds(BTreeMap<Pid, ProcessHistory>);

impl AllDeeds {
    pub(crate) fn of(&self, pid: Pid) -> ProcessHistory {
        self.0.get(&pid).cloned().unwrap_or_default()
    }

    pub(crate) fn destroyed(&self, pid: Pid, until: BootNs) -> u64 {
        self.0.get(&pid).map_or(0, |deeds| deeds.destroyed(until))
    }

    /// The level of the last request to trim that still counts.
    pub(crate) fn trim_level(&self, pid: Pid, until: BootNs) -> u32 {
        let deeds = self.0.get(&pid);
        let level = deeds.and_then(|deeds| deeds.trims(until).next());
        level.map_or(0, |(_, level)| level)
    }

    pub(crate) fn note(&mut self, pid: Pid, at: BootNs, deed: Deed) {
        self.0.entry(pid).or_default().note(at, deed);
    }

    /// Keeps those of some processes alone.
    pub(crate) fn retain(&mut self, keeps: impl Fn(Pid) -> bool) {
        self.0.retain(|pid, _| keeps(*pid));
    }

    /// Another process has this number now.
    pub(crate) fn forget(&mut self, pid: Pid) {
        self.0.remove(&pid);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_deeds_are_forgotten_and_their_count_is_not() {
        let mut deeds = ProcessHistory::default();
        deeds.note(1, Deed::Trimmed(80));
        for at in 2..10_000 {
            deeds.note(at, Deed::Destroyed);
            if at % 3 == 0 {
                deeds.note(at, Deed::Trimmed(20));
            }
        }
        assert!(deeds.kept.len() <= KEPT);
        assert_eq!(deeds.destroyed(10_000), 9_998);
        assert_eq!(deeds.trims(10_000).next(), Some((9_999, 20)));
        // The only request of its level still counts.
        assert!(deeds.trims(10_000).any(|trim| trim == (1, 80)));
        // Looking back is exact as far as deeds are kept.
        assert_eq!(deeds.destroyed(9_990), 9_989);
        assert_eq!(deeds.trims(9_998).next(), Some((9_996, 20)));
        // However many levels there are.
        for level in 0..5_000 {
            deeds.note(20_000, Deed::Trimmed(level));
        }
        assert!(deeds.kept.len() <= KEPT);
        assert_eq!(deeds.destroyed(20_000), 9_998);
    }
}
