//! What nobody observed: a recording that ran detached, or whose heaptap was killed. Whoever
//! collects it reads what the log's ring still holds of the collections; what is lost is noted
//! as a gap, and said.

use std::path::{Path, PathBuf};

use super::TimelineFile;
use super::logcat::{self, LogcatFile};
use super::with::With;
use crate::app::plan::Plan;
use crate::observe;
use crate::session::{self, Chronicle, Session};
use crate::timeline::{self, Gap, Label, Seen, Timeline};

/// Nobody observed where the last entry is older by this, ns.
const SLACK_NS: u64 = 30_000_000_000;
/// Processes whose log is read.
const PROCESSES: usize = 16;

/// Completes the timeline of a session that has ended, as far as the phone still can. Nothing
/// that goes wrong here concerns the recording. The file that is in the way if one is.
pub(in crate::app) async fn complete(session: &Session, plan: &Plan) -> Option<PathBuf> {
    if plan.with.is_empty() {
        return None;
    }
    let foreign = foreign(&session.chronicle().opening.output);
    if foreign.is_none() {
        complete_own(session, plan.with, plan.duration_ms).await;
    }
    foreign
}

/// A file of somebody else under the name of the timeline or the log.
fn foreign(folder: &Path) -> Option<PathBuf> {
    let timeline = folder.join(timeline::FILE);
    let text = super::summary::text_of(&timeline).unwrap_or_default();
    if !Timeline::parse(&text).0.entries.is_empty() {
        return None;
    }
    // Who has observed has written entries before it wrote much of the log.
    let log = folder.join(logcat::FILE);
    let holds = |path: &PathBuf| std::fs::metadata(path).is_ok_and(|file| file.len() > 0);
    [timeline, log].into_iter().find(holds)
}

async fn complete_own(session: &Session, with: With, duration_ms: Option<u64>) {
    let chronicle = session.chronicle();
    let Some(started_ns) = chronicle.started_ns else {
        return;
    };
    let Ok(timeline) = TimelineFile::open(&chronicle.opening.output) else {
        return;
    };
    let known = read(&timeline);
    note_labels(chronicle, &known, &timeline);
    if !with.observes() {
        let _ = timeline.finish();
        return;
    }
    let Ok(now) = session::moment(session.device()).await else {
        return;
    };
    if now.boot_id != chronicle.opening.boot_id {
        return;
    }
    let planned = duration_ms.map(|ms| started_ns.saturating_add(ms.saturating_mul(1_000_000)));
    let until_ns = planned.map_or(now.boot_ns, |planned| planned.min(now.boot_ns));
    let from_ns = last_sight(&known).unwrap_or(started_ns);
    if until_ns.saturating_sub(from_ns) <= SLACK_NS && last_sight(&known).is_some() {
        return;
    }
    let gap = Gap {
        until_ns,
        why: "nobody observed it: heaptap did not follow the recording".to_owned(),
    };
    timeline.see(from_ns, 0, Seen::Gap(gap));
    if with.gc {
        read_log(session, (from_ns, until_ns), &timeline).await;
    }
    // What cannot be written is missing in the summary.
    let _ = timeline.finish();
}

async fn read_log(session: &Session, (from_ns, until_ns): (u64, u64), timeline: &TimelineFile) {
    let chronicle = session.chronicle();
    let mut pids: Vec<u32> = chronicle.opening.pids.clone();
    pids.extend(chronicle.seen.keys());
    pids.sort_unstable();
    pids.dedup();
    pids.truncate(PROCESSES);
    let Ok(ring) = observe::read_ring(session.device(), &pids, (from_ns, until_ns)).await else {
        return;
    };
    if let Some(oldest) = ring.oldest_ns.filter(|oldest| *oldest > from_ns) {
        let gap = Gap {
            until_ns: oldest.min(until_ns),
            why: "the log's ring no longer has it".to_owned(),
        };
        timeline.see(from_ns, 0, Seen::Gap(gap));
    }
    for entry in &ring.entries {
        timeline.add(entry);
    }
    if !ring.lines.is_empty()
        && let Ok(logcat) = LogcatFile::open(&chronicle.opening.output)
    {
        logcat.add_missing(&ring.lines);
        // The collections in it stand in the timeline.
        let _ = logcat.finish();
    }
}

/// Labels that somebody set where nobody observed.
fn note_labels(chronicle: &Chronicle, known: &Timeline, timeline: &TimelineFile) {
    for label in &chronicle.labels {
        let noted = known.entries.iter().any(|entry| {
            entry.boot_ns == label.boot_ns
                && matches!(&entry.seen, Seen::Label(of) if of.label == label.label)
        });
        if !noted {
            let label_of = Label {
                label: label.label.clone(),
            };
            timeline.see(label.boot_ns, 0, Seen::Label(label_of));
        }
    }
}

/// When a process was last seen by somebody.
fn last_sight(known: &Timeline) -> Option<u64> {
    let seen = known.entries.iter().rev().find(|entry| {
        matches!(
            entry.seen,
            Seen::Resident(_) | Seen::Parts(_) | Seen::Gone | Seen::Spent(_) | Seen::Gap(_)
        )
    })?;
    Some(match &seen.seen {
        Seen::Gap(gap) => gap.until_ns,
        _ => seen.boot_ns,
    })
}

/// What the file says so far; a file of another's making may be of any size.
fn read(timeline: &TimelineFile) -> Timeline {
    let text = super::summary::text_of(timeline.path()).unwrap_or_default();
    Timeline::parse(&text).0
}
