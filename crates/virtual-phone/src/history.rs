//! What happened to a process that its memory depends on: when it slept, when a collection was
//! asked for, and what the screen and the system did to it.

use super::clock::{BootNs, SECOND};
use super::deeds::ProcessHistory;

/// A process that runs collects by itself after so long.
pub(crate) const COLLECTION_EVERY: u64 = 10 * SECOND;

/// How long after its start a process is busy with starting.
pub(crate) const STARTUP: u64 = 2 * SECOND;
/// Of each kind, the last so many are remembered.
const MOST: usize = 1_000;

/// Levels of `onTrimMemory` at which apps empty their caches.
const EMPTIES_CACHES: [u32; 5] = [10, 15, 40, 60, 80];
/// From this level on, the app is told that it is in the back.
const IN_THE_BACK: u32 = 20;

/// Something that happened to a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Event {
    /// No thread of it runs any more, or runs again.
    Asleep(bool),
    /// A collection was asked for.
    Collection(Request),
}

/// Who asked for a collection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Request {
    /// `System.gc()`, or SIGUSR1, or what counts objects.
    Explicit,
    /// The last try before an OutOfMemoryError.
    Alloc,
}

/// What happened to one process.
#[derive(Debug, Clone)]
pub(crate) struct History {
    pub(crate) started: BootNs,
    /// From when on it lives as the phone shows it: what ran before the phone appeared did
    /// nothing but start.
    pub(crate) begins: BootNs,
    sleeps: Vec<(BootNs, bool)>,
    requests: Vec<(BootNs, Request)>,
    /// What the screen and the system did to it.
    deeds: ProcessHistory,
}

fn bounded<T>(list: &mut Vec<T>, item: T) {
    if list.len() < MOST {
        list.push(item);
    } else if let Some(last) = list.last_mut() {
        *last = item;
    }
}

impl History {
    /// Of a process that was there when the phone appeared, or started since.
    pub(crate) fn new(started: BootNs, appeared: BootNs, asleep: bool) -> History {
        History {
            started,
            begins: started.max(appeared),
            sleeps: vec![(0, asleep)],
            requests: Vec::new(),
            deeds: ProcessHistory::default(),
        }
    }

    /// Of a process that started while the phone was there, and runs.
    #[cfg(test)]
    pub(crate) fn for_tests(started: BootNs) -> History {
        History::new(started, 0, false)
    }

    /// Notes what happened; what comes late happened after the last of its kind.
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

    /// Spans up to `now` in which its threads ran, its start first.
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

    /// How long it ran since the phone shows it.
    pub(crate) fn awake(&self, at: BootNs) -> u64 {
        let spans = self.spans(at);
        let shown = spans.iter().filter(|s| s.0 >= self.begins);
        shown.map(|(from, to)| to - from).sum()
    }

    /// When it had run so long; the end of time where it has not by `now`.
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

    /// The last request for a collection up to a moment.
    pub(crate) fn last_request(&self, at: BootNs) -> Option<BootNs> {
        Self::last(&self.requests, at).map(|(t, _)| t)
    }

    /// All requests, in order.
    pub(crate) fn requests(&self) -> &[(BootNs, Request)] {
        &self.requests
    }

    /// Knows of all that the screen and the system did to it so far.
    pub(crate) fn set_deeds(&mut self, deeds: ProcessHistory) {
        self.deeds = deeds;
    }

    /// When the app last emptied its caches: one that sleeps does so no more.
    pub(crate) fn last_trim(&self, at: BootNs) -> Option<BootNs> {
        let mut trims = self.deeds.trims(at);
        let emptied = trims.find(|(t, level)| EMPTIES_CACHES.contains(level) && !self.asleep(*t));
        emptied.map(|(t, _)| t)
    }

    /// Activities that were destroyed so far.
    pub(crate) fn destroyed(&self, at: BootNs) -> u64 {
        self.deeds.destroyed(at)
    }

    /// Since when it is in the back, if it is there.
    pub(crate) fn hidden_since(&self, at: BootNs) -> BootNs {
        let told = self
            .deeds
            .trims(at)
            .find(|(_, level)| *level >= IN_THE_BACK);
        told.map_or(self.started, |(t, _)| t)
    }

    /// Whether no thread of it ran since it is known.
    pub(crate) fn asleep(&self, at: BootNs) -> bool {
        Self::last(&self.sleeps, at).is_some_and(|(_, asleep)| asleep)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::deeds::Deed;

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
        deeds.note(5, Deed::Trimmed(5));
        deeds.note(6, Deed::Destroyed);
        history.set_deeds(deeds.clone());
        assert_eq!((history.last_trim(9), history.destroyed(9)), (None, 1));
        deeds.note(7, Deed::Trimmed(40));
        history.set_deeds(deeds);
        assert_eq!(
            (history.last_trim(9), history.last_trim(6)),
            (Some(7), None)
        );
    }
}
