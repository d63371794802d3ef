//! Events of a process that affect its memory: sleep, requested collections, and actions of the
//! screen and the system.

use super::app_actions::ProcessHistory;
use super::clock::{BootNs, SECOND};

/// Interval in nanoseconds after which a running process collects garbage by itself.
pub(crate) const COLLECTION_EVERY: u64 = 10 * SECOND;

/// Duration of a process's startup in nanoseconds.
pub(crate) const STARTUP: u64 = 2 * SECOND;
/// Maximum number of stored events of each kind; older ones are dropped.
const MAX_COUNT: usize = 1_000;

/// Levels of `onTrimMemory` at which apps empty their caches.
const EMPTIES_CACHES: [u32; 5] = [10, 15, 40, 60, 80];
/// Minimum level that means the app is in the background.
const IN_THE_BACK: u32 = 20;

/// An event of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// None of its threads run any more, or they run again.
    Asleep(bool),
    /// A garbage collection was requested.
    Collection(Request),
}

/// Reason for a requested collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// `System.gc()`, SIGUSR1, or a command that counts objects.
    Explicit,
    /// The last attempt before an OutOfMemoryError.
    Alloc,
}

/// Events of one process.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) started: BootNs,
    /// Start of the simulated life. A process that ran before the phone appeared had only started
    /// by then.
    pub(crate) begins: BootNs,
    sleeps: Vec<(BootNs, bool)>,
    requests: Vec<(BootNs, Request)>,
    /// Actions of the screen and the system.
    deeds: ProcessHistory,
}

fn bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() < MAX_COUNT {
        list.push(item);
    } else if let Some(last) = list.last_mut() {
        *last = item;
    }
}

impl History {
    /// Creates the history of a process that existed when the phone appeared, or started later.
    pub(crate) fn new(started: BootNs, appeared: BootNs, asleep: bool) -> History {
        History {
            started,
            begins: started.max(appeared),
            sleeps: vec![(0, asleep)],
            requests: Vec::new(),
            deeds: ProcessHistory::default(),
        }
    }

    /// Creates the history of a running process that started after the phone appeared.
    #[cfg(test)]
    pub(crate) fn for_tests(started: BootNs) -> History {
        History::new(started, 0, false)
    }

    /// Adds an event; an event that arrives late is placed after the last one of its kind.
    pub(crate) fn note(&mut self, at: BootNs, event: Event) {
        match event {
            Event::Asleep(asleep) => {
                let last = self.sleeps.last().copied().unwrap_or_default();
                if last.1 != asleep {
                    bounded(&mut self.sleeps, (at.max(last.0), asleep));
                }
            }
            Event::Collection(request) => {
                let after = self.requests.last().map_or(0, |(t, _)| t + 1);
                bounded(&mut self.requests, (at.max(after), request));
            }
        }
    }

    /// Returns the spans up to `now` in which its threads ran, in order.
    pub(crate) fn spans(&self, now: BootNs) -> Vec<(BootNs, BootNs)> {
        let mut spans = Vec::new();
        let slept_always = self.sleeps.first().is_some_and(|s| s.1);
        if !slept_always && self.started < self.begins {
            spans.push((self.started, (self.started + STARTUP).min(self.begins)));
        }
        for (i, (from, asleep)) in self.sleeps.iter().enumerate() {
            let to = self.sleeps.get(i + 1).map_or(now, |next| next.0).min(now);
            let from = (*from).max(self.begins);
            if !asleep && from < to {
                spans.push((from, to));
            }
        }
        spans
    }

    /// Returns its running time since the phone appeared, in nanoseconds.
    pub(crate) fn awake(&self, at: BootNs) -> u64 {
        let spans = self.spans(at);
        let shown = spans.iter().filter(|s| s.0 >= self.begins);
        shown.map(|(from, to)| to - from).sum()
    }

    /// Returns the time at which it had run for `awake` nanoseconds; `None` if that is after `now`.
    pub(crate) fn moment(&self, awake: u64, now: BootNs) -> Option<BootNs> {
        let mut left = awake;
        for (from, to) in self.spans(now) {
            if from < self.begins {
                continue;
            }
            if left <= to - from {
                return Some(from + left);
            }
            left -= to - from;
        }
        None
    }

    fn last<T: Copy>(list: &[(BootNs, T)], at: BootNs) -> Option<(BootNs, T)> {
        list.iter().rev().find(|(t, _)| *t <= at).copied()
    }

    /// Returns the last requested collection up to `at`.
    pub(crate) fn last_request(&self, at: BootNs) -> Option<BootNs> {
        Self::last(&self.requests, at).map(|(t, _)| t)
    }

    /// Returns all requested collections in order.
    pub(crate) fn requests(&self) -> &[(BootNs, Request)] {
        &self.requests
    }

    /// Sets the actions of the screen and the system so far.
    pub(crate) fn set_deeds(&mut self, deeds: ProcessHistory) {
        self.deeds = deeds;
    }

    /// Returns when the app last emptied its caches; a sleeping app does not empty them.
    pub(crate) fn last_trim(&self, at: BootNs) -> Option<BootNs> {
        let mut trims = self.deeds.trims(at);
        let emptied = trims.find(|(t, level)| EMPTIES_CACHES.contains(level) && !self.asleep(*t));
        emptied.map(|(t, _)| t)
    }

    /// Returns the number of activities destroyed so far.
    pub(crate) fn destroyed(&self, at: BootNs) -> u64 {
        self.deeds.destroyed(at)
    }

    /// Returns when it went to the background; its start if unknown.
    pub(crate) fn hidden_since(&self, at: BootNs) -> BootNs {
        let told = self
            .deeds
            .trims(at)
            .find(|(_, level)| *level >= IN_THE_BACK);
        told.map_or(self.started, |(t, _)| t)
    }

    /// Returns whether none of its threads have run since `begins`.
    pub(crate) fn asleep(&self, at: BootNs) -> bool {
        Self::last(&self.sleeps, at).is_some_and(|(_, asleep)| asleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app_actions::AppAction;

    #[test]
    fn sleep_stops_its_clock() {
        let mut history = History::new(10 * SECOND, 100 * SECOND, false);
        history.note(110 * SECOND, Event::Asleep(true));
        history.note(120 * SECOND, Event::Asleep(false));
        assert_eq!(history.awake(105 * SECOND), 5 * SECOND);
        assert_eq!(history.awake(115 * SECOND), 10 * SECOND);
        assert_eq!(history.awake(130 * SECOND), 20 * SECOND);
        assert_eq!(
            history.moment(12 * SECOND, 200 * SECOND),
            Some(122 * SECOND)
        );
        assert_eq!(history.moment(12 * SECOND, 121 * SECOND), None);
        assert_eq!(history.spans(105 * SECOND)[0], (10 * SECOND, 12 * SECOND));
    }

    #[test]
    fn a_cache_gives_way_only_where_memory_is_low() {
        let mut history = History::new(0, 0, false);
        let mut deeds = ProcessHistory::default();
        deeds.note(5, AppAction::Trimmed(5));
        deeds.note(6, AppAction::Destroyed);
        history.set_deeds(deeds.clone());
        assert_eq!((history.last_trim(9), history.destroyed(9)), (None, 1));
        deeds.note(7, AppAction::Trimmed(40));
        history.set_deeds(deeds);
        assert_eq!(
            (history.last_trim(9), history.last_trim(6)),
            (Some(7), None)
        );
    }
}
