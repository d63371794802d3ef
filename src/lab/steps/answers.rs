//! Answers of a recording to the snapshots that were requested.

use std::collections::BTreeSet;
use std::sync::Mutex;

use tokio::sync::oneshot;

use crate::recording::events::{CompanionEvent, RecordEvent};
use heaptap_base::error::ErrorClass;
use heaptap_base::parallel::lock;
use heaptap_capture::session::SessionEvent;

/// Outcome of a snapshot.
type Answer = Result<(), Missed>;

/// Why there is no snapshot, as the class and kind of an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Missed {
    pub why: String,
    pub class: ErrorClass,
    pub kind: &'static str,
}

/// Snapshots without an answer so far, from several steps at the same time.
#[derive(Default)]
pub(in crate::lab) struct Answers {
    waiting: Mutex<Vec<Waiting>>,
    /// Recorded processes so far.
    pids: Mutex<BTreeSet<u32>>,
}

struct Waiting {
    label: String,
    answer: oneshot::Sender<Answer>,
    /// The native heaps are dumped.
    is_dumped: bool,
    /// The companion data are captured.
    is_captured: bool,
}

impl Answers {
    /// Returns the answer to a snapshot that is requested next; with `captures`, it comes after the
    /// companion data of the label.
    pub(super) fn expect(&self, label: &str, captures: bool) -> oneshot::Receiver<Answer> {
        let (answer, receiver) = oneshot::channel();
        self.with(|waiting| {
            waiting.push(Waiting {
                label: label.to_owned(),
                answer,
                is_dumped: false,
                is_captured: !captures,
            });
        });
        receiver
    }

    /// Takes an event of the recording.
    pub(in crate::lab) fn event(&self, event: &RecordEvent) {
        match event {
            RecordEvent::Session(SessionEvent::SnapshotTaken { label, no_dump, .. }) => {
                match no_dump {
                    None => self.progress(label, |one| one.is_dumped = true),
                    Some(why) => self.failed(label, why, ErrorClass::Device, "snapshot-failed"),
                }
            }
            RecordEvent::Session(SessionEvent::SnapshotFailed {
                label,
                why,
                kind,
                class,
            }) => self.failed(label, why, *class, kind),
            RecordEvent::Companion(CompanionEvent::Captured { label, .. }) => {
                self.progress(label, |one| one.is_captured = true);
            }
            RecordEvent::Session(SessionEvent::Progress(progress)) => {
                let mut pids = lock(&self.pids);
                pids.extend(&progress.pids);
            }
            _ => {}
        }
    }

    /// Returns whether a process is or was recorded.
    pub(in crate::lab) fn has_seen(&self, pid: u32) -> bool {
        let pids = lock(&self.pids);
        pids.contains(&pid)
    }

    fn progress(&self, label: &str, change: impl Fn(&mut Waiting)) {
        self.with(|waiting| {
            waiting
                .iter_mut()
                .filter(|one| one.label == label)
                .for_each(change);
        });
        self.answer(|one| one.is_dumped && one.is_captured, &Ok(()));
    }

    fn failed(&self, label: &str, why: &str, class: ErrorClass, kind: &'static str) {
        let missed = Missed {
            why: why.to_owned(),
            class,
            kind,
        };
        self.answer(|one| one.label == label, &Err(missed));
    }

    fn answer(&self, is_over: impl Fn(&Waiting) -> bool, answer: &Answer) {
        self.with(|waiting| {
            for one in waiting.extract_if(.., |one| is_over(one)) {
                // The step can have ended by its time limit.
                let _ = one.answer.send(answer.clone());
            }
        });
    }

    fn with(&self, work: impl FnOnce(&mut Vec<Waiting>)) {
        work(&mut lock(&self.waiting));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn captured(label: &str) -> RecordEvent {
        RecordEvent::Companion(CompanionEvent::Captured {
            label: label.to_owned(),
            taken: Vec::new(),
            missed: Vec::new(),
        })
    }

    fn taken(label: &str, no_dump: Option<&str>) -> RecordEvent {
        RecordEvent::Session(SessionEvent::SnapshotTaken {
            label: label.to_owned(),
            lag: std::time::Duration::ZERO,
            waited: std::time::Duration::ZERO,
            dumps: 1,
            unreleased_bytes: 0,
            no_dump: no_dump.map(str::to_owned),
        })
    }

    #[test]
    fn a_snapshot_is_over_when_all_of_its_data_are_captured() {
        let answers = Answers::default();
        let (mut a, mut b) = (answers.expect("a", true), answers.expect("b", false));
        answers.event(&taken("a", None));
        assert!(a.try_recv().is_err() && b.try_recv().is_err());
        answers.event(&taken("b", None));
        assert_eq!(b.try_recv(), Ok(Ok(())));
        answers.event(&captured("b"));
        assert!(a.try_recv().is_err());
        answers.event(&captured("a"));
        assert_eq!(a.try_recv(), Ok(Ok(())));
        // The captures of a label can end before its dump.
        let mut c = answers.expect("c", true);
        answers.event(&captured("c"));
        assert!(c.try_recv().is_err());
        answers.event(&taken("c", Some("no process")));
        let missed = c.try_recv().unwrap().unwrap_err();
        assert_eq!(
            (missed.why.as_str(), missed.kind),
            ("no process", "snapshot-failed")
        );
    }
}
