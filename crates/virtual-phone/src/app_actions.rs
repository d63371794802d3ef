//! Actions of the screen and the system that affect the memory of processes. Bounded: the latest
//! actions of each process are stored one by one, older ones only as far as they still count.

use std::collections::{BTreeMap, VecDeque};

use super::clock::BootNs;
use super::process::Pid;

/// Maximum number of actions of a process that are stored one by one.
const KEPT: usize = 1_000;
/// Maximum number of trim levels that are distinguished when old actions are dropped.
const LEVELS: usize = 64;

/// An action that affects the memory of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AppAction {
    /// One of its activities was destroyed.
    Destroyed,
    /// It was requested to free memory, at this level.
    Trimmed(u32),
}

/// Actions on one process.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProcessHistory {
    /// Activities destroyed before the first stored action.
    destroyed: u64,
    /// Stored actions in order.
    kept: VecDeque<(BootNs, AppAction)>,
}

impl ProcessHistory {
    /// Adds an action; one that arrives late is placed after the last one.
    pub(crate) fn note(&mut self, at: BootNs, deed: AppAction) {
        let last = self.kept.back().map_or(0, |(t, _)| *t);
        self.kept.push_back((at.max(last), deed));
        if self.kept.len() > KEPT {
            self.forget_one();
        }
    }

    /// Drops the first action that is not needed: a destroyed activity, which is only counted, or a
    /// level that was requested again later.
    fn forget_one(&mut self) {
        let seen_again = |place: usize| match self.kept.get(place).map(|(_, deed)| *deed) {
            Some(AppAction::Trimmed(level)) => self
                .kept
                .iter()
                .skip(place + 1)
                .any(|(_, later)| *later == AppAction::Trimmed(level)),
            _ => true,
        };
        let place = (0..LEVELS).find(|place| seen_again(*place)).unwrap_or(0);
        if let Some((_, AppAction::Destroyed)) = self.kept.remove(place) {
            self.destroyed += 1;
        }
    }

    /// Returns the number of activities destroyed up to `until`.
    pub(crate) fn destroyed(&self, until: BootNs) -> u64 {
        let kept = self
            .until(until)
            .filter(|(_, deed)| *deed == AppAction::Destroyed);
        self.destroyed + kept.count() as u64
    }

    /// Returns the trim requests up to `until` with time and level, the last one first.
    pub(crate) fn trims(&self, until: BootNs) -> impl Iterator<Item = (BootNs, u32)> + '_ {
        self.until(until).rev().filter_map(|(at, deed)| match deed {
            AppAction::Trimmed(level) => Some((at, level)),
            AppAction::Destroyed => None,
        })
    }

    fn until(&self, until: BootNs) -> impl DoubleEndedIterator<Item = (BootNs, AppAction)> + '_ {
        let all = self.kept.iter().copied();
        all.filter(move |(at, _)| *at <= until)
    }
}

/// Actions on all processes.
#[derive(Debug, Default)]
pub(crate) struct AllDeeds(BTreeMap<Pid, ProcessHistory>);

impl AllDeeds {
    pub(crate) fn of(&self, pid: Pid) -> ProcessHistory {
        self.0.get(&pid).cloned().unwrap_or_default()
    }

    pub(crate) fn destroyed(&self, pid: Pid, until: BootNs) -> u64 {
        self.0.get(&pid).map_or(0, |deeds| deeds.destroyed(until))
    }

    /// Returns the level of the last trim request that still counts.
    pub(crate) fn trim_level(&self, pid: Pid, until: BootNs) -> u32 {
        let deeds = self.0.get(&pid);
        let level = deeds.and_then(|deeds| deeds.trims(until).next());
        level.map_or(0, |(_, level)| level)
    }

    pub(crate) fn note(&mut self, pid: Pid, at: BootNs, deed: AppAction) {
        self.0.entry(pid).or_default().note(at, deed);
    }

    /// Keeps only the actions of some processes.
    pub(crate) fn retain(&mut self, keeps: impl Fn(Pid) -> bool) {
        self.0.retain(|pid, _| keeps(*pid));
    }

    /// Drops the actions of a PID that another process uses now.
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
        deeds.note(1, AppAction::Trimmed(80));
        for at in 2..10_000 {
            deeds.note(at, AppAction::Destroyed);
            if at % 3 == 0 {
                deeds.note(at, AppAction::Trimmed(20));
            }
        }
        assert!(deeds.kept.len() <= KEPT);
        assert_eq!(deeds.destroyed(10_000), 9_998);
        assert_eq!(deeds.trims(10_000).next(), Some((9_999, 20)));
        // The only request of its level still counts.
        assert!(deeds.trims(10_000).any(|trim| trim == (1, 80)));
        // Past values are exact as far as actions are stored.
        assert_eq!(deeds.destroyed(9_990), 9_989);
        assert_eq!(deeds.trims(9_998).next(), Some((9_996, 20)));
        // The number of levels does not matter.
        for level in 0..5_000 {
            deeds.note(20_000, AppAction::Trimmed(level));
        }
        assert!(deeds.kept.len() <= KEPT);
        assert_eq!(deeds.destroyed(20_000), 9_998);
    }
}
