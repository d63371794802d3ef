//! Recordings without an observer: detached ones, or those whose heaptap was killed. The collecting
//! heaptap reads the remaining garbage collections from the log buffer; missing times become gaps,
//! and are reported.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use super::file::TimelineFile;
use super::leftovers;
use super::logcat::{self, LogcatFile};
use super::summary::FoundTimeline;
use crate::recording::companion_options::{CompanionOptions, Source};
use crate::recording::plan::Plan;
use heaptap_capture::observe;
use heaptap_capture::session::{self, Session, SessionState};
use heaptap_model::timeline::{self, Gap, Label, Missed, MissedReason, Observation, Timeline};

/// Age of the last entry, in ns, from which the end counts as not observed.
const SLACK_NS: u64 = 30_000_000_000;
/// The same if the observing process was killed: samples come once per second.
const SLACK_OF_KILLED_NS: u64 = 3_000_000_000;
/// Maximum number of processes whose log is read.
const PROCESSES: usize = 16;

/// Completes the timeline of a session that has ended: with the files of a killed recorder and, if
/// the device has not restarted, as far as it has the data. Failures do not affect the recording.
/// Returns a conflicting file, if any.
pub(crate) async fn complete(
    session: &Session,
    plan: &Plan,
    has_restarted: bool,
) -> Option<PathBuf> {
    if plan.companions.is_empty() {
        return None;
    }
    let (state, is_resumed) = (session.state().clone(), session.is_resumed());
    // After days of a recording the timeline has millions of entries.
    let known = tokio::task::spawn_blocking(move || {
        let mut known = known(&state.header.output)?;
        if is_resumed {
            list_left(&state, &mut known);
        }
        Ok(known)
    });
    match known.await {
        _ if has_restarted => None,
        Ok(Ok(known)) => {
            complete_own(session, known, plan.companions, plan.duration_ms).await;
            None
        }
        Ok(Err(foreign)) => Some(foreign),
        // Without it no collection can be attributed to heaptap.
        Err(_) => None,
    }
}

/// Lists the complete files of a killed recorder that it had not listed.
fn list_left(state: &SessionState, known: &mut Timeline) {
    let directory = &state.header.output;
    let (Some(started_ns), Ok(timeline)) = (state.started_ns, TimelineFile::timeline_in(directory))
    else {
        return;
    };
    let labels = state.labels.iter();
    let labels = labels.map(|label| (label.label.as_str(), label.boot_ns));
    let end = ("", end_of(known, started_ns, state));
    let moments: Vec<_> = labels.chain([end]).collect();
    let pids = state.seen.keys().chain(&state.header.pids);
    leftovers::adopt(
        directory,
        &moments,
        &pids.copied().collect(),
        known,
        &timeline,
    );
    // Unwritten lines are missing in the summary.
    let _ = timeline.finish();
}

/// Returns the time of the end, BOOTTIME in ns: that of the last observation or label.
fn end_of(known: &Timeline, started_ns: u64, state: &SessionState) -> u64 {
    let last_ns = last_sight(known).unwrap_or(started_ns);
    let labels = state.labels.iter().map(|label| label.boot_ns);
    labels.fold(last_ns, u64::max)
}

/// Returns the timeline so far. Blocks.
///
/// # Errors
/// Returns the path of another program's file that has the name of the timeline or the log.
fn known(directory: &Path) -> Result<Timeline, PathBuf> {
    let found = FoundTimeline::read(directory);
    let path = directory.join(timeline::FILE);
    let log = directory.join(logcat::FILE);
    match found {
        Some(found) if found.is_ours() => Ok(found.timeline),
        Some(found) if found.is_foreign() => Err(path),
        // Something that is not a file of lines, or cannot be read.
        None if std::fs::symlink_metadata(&path).is_ok() => Err(path),
        _ if std::fs::metadata(&log).is_ok_and(|file| file.len() > 0) => Err(log),
        _ => Ok(Timeline::default()),
    }
}

async fn complete_own(
    session: &Session,
    known: Timeline,
    companions: CompanionOptions,
    duration_ms: Option<u64>,
) {
    let session_state = session.state();
    let Some(started_ns) = session_state.started_ns else {
        return;
    };
    let Ok(timeline) = TimelineFile::timeline_in(&session_state.header.output) else {
        return;
    };
    note_labels(session_state, &known, &timeline);
    let mut cut_short = false;
    if session.is_resumed() {
        let records = LabelRecords::from_known(&known);
        cut_short = !took_end(&records, companions);
        let end_ns = end_of(&known, started_ns, session_state);
        for (at_ns, missed) in untaken(session_state, &records, end_ns, companions) {
            timeline.see(at_ns, 0, Observation::Missed(missed));
        }
    }
    if !companions.observes() {
        let _ = timeline.finish();
        return;
    }
    let Ok(now) = session::moment(session.device()).await else {
        return;
    };
    if now.boot_id != session_state.header.boot_id {
        return;
    }
    let planned = duration_ms.map(|ms| started_ns.saturating_add(ms.saturating_mul(1_000_000)));
    let until_ns = planned.map_or(now.boot_ns, |planned| planned.min(now.boot_ns));
    let from_ns = last_sight(&known).unwrap_or(started_ns);
    let slack_ns = match cut_short {
        true => SLACK_OF_KILLED_NS,
        false => SLACK_NS,
    };
    if until_ns.saturating_sub(from_ns) <= slack_ns && last_sight(&known).is_some() {
        return;
    }
    let gap = Gap {
        until_ns,
        why: "heaptap did not follow the recording".to_owned(),
    };
    timeline.see(from_ns, 0, Observation::Gap(gap));
    if companions.gc {
        read_log(session, (from_ns, until_ns), &timeline).await;
    }
    // Unwritten entries are missing in the summary.
    let _ = timeline.finish();
}

async fn read_log(session: &Session, (from_ns, until_ns): (u64, u64), timeline: &TimelineFile) {
    let session_state = session.state();
    let mut pids: Vec<u32> = session_state.header.pids.clone();
    pids.extend(session_state.seen.keys());
    pids.sort_unstable();
    pids.dedup();
    pids.truncate(PROCESSES);
    let Ok(ring) = observe::read_ring(session.device(), &pids, (from_ns, until_ns)).await else {
        return;
    };
    if let Some(oldest) = ring.oldest_ns.filter(|oldest| *oldest > from_ns) {
        let gap = Gap {
            until_ns: oldest.min(until_ns),
            why: "the log buffer of the device had already overwritten it".to_owned(),
        };
        timeline.see(from_ns, 0, Observation::Gap(gap));
    }
    for entry in &ring.entries {
        timeline.add(entry);
    }
    if !ring.lines.is_empty()
        && let Ok(logcat) = LogcatFile::open(&session_state.header.output)
    {
        logcat.add_missing(&ring.lines);
        // Its garbage collections are in the timeline.
        let _ = logcat.finish();
    }
}

/// Adds labels that were set without an observer.
fn note_labels(session_state: &SessionState, known: &Timeline, timeline: &TimelineFile) {
    let noted = known.entries.iter().filter_map(|entry| match &entry.seen {
        Observation::Label(of) => Some((entry.boot_ns, of.label.as_str())),
        _ => None,
    });
    let noted: HashSet<(u64, &str)> = noted.collect();
    for label in &session_state.labels {
        if !noted.contains(&(label.boot_ns, label.label.as_str())) {
            let label_of = Label {
                label: label.label.clone(),
            };
            timeline.see(label.boot_ns, 0, Observation::Label(label_of));
        }
    }
}

/// Returns captures that are neither done nor recorded as missed at each label and at the end,
/// because the heaptap responsible for them no longer existed. Each has its time, BOOTTIME in ns.
fn untaken(
    session_state: &SessionState,
    records: &LabelRecords<'_>,
    end_ns: u64,
    companions: CompanionOptions,
) -> Vec<(u64, Missed)> {
    let reason = match session_state.detached {
        true => MissedReason::Detached,
        false => MissedReason::Stopped,
    };
    let labels = session_state
        .labels
        .iter()
        .map(|l| (l.label.as_str(), l.boot_ns));
    let mut untaken = Vec::new();
    for (number, (label, at_ns)) in (1..).zip(labels.chain([("", end_ns)])) {
        for source in companions.at_labels() {
            if is_expected(source, label) && !records.has(source, number, label) {
                let missed = Missed {
                    what: source.word().to_owned(),
                    label: label.to_owned(),
                    number,
                    reason: Some(reason),
                    why: reason.why().to_owned(),
                };
                untaken.push((at_ns, missed));
            }
        }
    }
    untaken
}

/// Entries of a timeline about captures at labels and at the end: source, label and label number.
/// The end has no label, and its number is ignored.
struct LabelRecords<'a>(HashSet<(&'a str, &'a str, u32)>);

impl<'a> LabelRecords<'a> {
    fn from_known(known: &'a Timeline) -> LabelRecords<'a> {
        let records = known.entries.iter().filter_map(|entry| {
            let (word, label, number) = match &entry.seen {
                Observation::Captured(kept) => (word_of(&kept.what), &kept.label, kept.number),
                Observation::Missed(missed) => (missed.what.as_str(), &missed.label, missed.number),
                _ => return None,
            };
            Some(LabelRecords::key(word, label, number))
        });
        LabelRecords(records.collect())
    }

    fn key<'k>(word: &'k str, label: &'k str, number: u32) -> (&'k str, &'k str, u32) {
        match label {
            "" => (word, label, 0),
            _ => (word, label, number),
        }
    }

    /// Returns whether there is an entry of `source` at a label, or at the end if `label` is empty.
    fn has(&self, source: Source, number: u32, label: &str) -> bool {
        self.0
            .contains(&LabelRecords::key(source.word(), label, number))
    }
}

/// Returns the source name for a kind of file.
fn word_of(kept_as: &str) -> &str {
    let source = Source::ALL
        .iter()
        .find(|source| source.kept_as() == kept_as);
    source.map_or(kept_as, |source| source.word())
}

/// Returns whether the recording was observed until the captures of its end were done.
fn took_end(records: &LabelRecords<'_>, companions: CompanionOptions) -> bool {
    companions
        .at_labels()
        .filter(|source| is_expected(*source, ""))
        .all(|source| records.has(source, 0, ""))
}

/// Returns whether a missing capture of `source` at a label is recorded here. The last list of Java
/// allocations has its own warning, with the consequences for the app.
fn is_expected(source: Source, label: &str) -> bool {
    source != Source::Allocations || !label.is_empty()
}

/// Returns the time of the last observation of a process.
fn last_sight(known: &Timeline) -> Option<u64> {
    let seen = known.entries.iter().rev().find(|entry| {
        matches!(
            entry.seen,
            Observation::Resident(_)
                | Observation::Parts(_)
                | Observation::Gone
                | Observation::Cost(_)
                | Observation::Gap(_)
        )
    })?;
    Some(match &seen.seen {
        Observation::Gap(gap) => gap.until_ns,
        _ => seen.boot_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::super::summary::section;
    use super::*;

    #[test]
    fn whose_the_log_is_is_the_same_for_who_completes_it_and_for_the_manifest() {
        let companions: CompanionOptions = [Source::Gc].into_iter().collect();
        let gone = timeline_line();
        for (timeline, log, foreign, listed) in [
            (None, None, None, false),
            (None, Some("mine"), Some(logcat::FILE), false),
            (Some(""), None, None, false),
            // An empty timeline does not identify a log as heaptap's.
            (Some(""), Some("mine"), Some(logcat::FILE), false),
            (Some("\n\n"), None, Some(timeline::FILE), false),
            (Some("mine"), Some("mine"), Some(timeline::FILE), false),
            (Some("mine\n"), None, Some(timeline::FILE), false),
            (Some(&*gone), Some("line"), None, true),
            (Some(&*gone), None, None, false),
        ] {
            let case = format!("{timeline:?} {log:?}");
            let directory = tempfile::tempdir().unwrap();
            for (name, text) in [(timeline::FILE, timeline), (logcat::FILE, log)] {
                if let Some(text) = text {
                    std::fs::write(directory.path().join(name), text).unwrap();
                }
            }
            let found = known(directory.path()).err();
            assert_eq!(
                found,
                foreign.map(|name| directory.path().join(name)),
                "{case}"
            );
            let section = section(directory.path(), companions).unwrap();
            assert_eq!(section.log.is_some(), listed, "{case}");
            let is_ours = timeline.is_some() && foreign != Some(timeline::FILE);
            assert_eq!(section.timeline.is_some(), is_ours, "{case}");
        }
    }

    #[test]
    fn a_record_is_of_its_source_its_label_and_its_number() {
        let entry = |seen| timeline::Entry {
            boot_ns: 1,
            pid: 7,
            cost: None,
            seen,
        };
        let kept = |what: &str, label: &str, number| {
            entry(Observation::Captured(timeline::Kept {
                what: what.to_owned(),
                label: label.to_owned(),
                number,
                file: String::new(),
            }))
        };
        let missed = |what: &str, label: &str, number| {
            entry(Observation::Missed(Missed {
                what: what.to_owned(),
                label: label.to_owned(),
                number,
                reason: None,
                why: String::new(),
            }))
        };
        let known = Timeline {
            entries: vec![
                kept("java-heap", "before", 1),
                missed("java", "before", 2),
                kept("meminfo", "", 3),
            ],
        };
        let records = LabelRecords::from_known(&known);
        for (source, number, label, expected) in [
            (Source::Java, 1, "before", true),
            (Source::Java, 2, "before", true),
            (Source::Java, 3, "before", false),
            (Source::Java, 1, "after", false),
            (Source::Java, 0, "", false),
            (Source::Meminfo, 1, "before", false),
            // For any number of the end.
            (Source::Meminfo, 0, "", true),
        ] {
            let has = records.has(source, number, label);
            assert_eq!(has, expected, "{source} {number} {label:?}");
        }
    }

    fn timeline_line() -> String {
        let entry = timeline::Entry {
            boot_ns: 1,
            pid: 7,
            cost: None,
            seen: Observation::Gone,
        };
        entry.line()
    }
}
