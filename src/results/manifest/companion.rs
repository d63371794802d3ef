//! The manifest's account of what was recorded beside the native heap.

use serde::{Deserialize, Serialize};

use crate::timeline::MissedReason;

/// What was recorded beside the native heap (`record --with`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Companions {
    /// What was asked for: `java`, `meminfo`, `smaps`, `gc`.
    pub with: Vec<String>,
    /// What was seen over time; absent where nobody wrote it.
    pub timeline: Option<CompanionTimeline>,
    /// The collections, what log and trace tell of each joined (`gc.jsonl`); absent where none
    /// was seen.
    pub collections: Option<String>,
    /// What the targets wrote into the log, as it came (`logcat.txt`); absent where nobody
    /// followed it.
    pub log: Option<String>,
    /// What was taken at labels and at the end, in order.
    pub files: Vec<CompanionFile>,
    /// What should have been taken, and was not.
    pub missed: Vec<CompanionMissed>,
    /// When nothing was seen.
    pub gaps: Vec<CompanionGap>,
    /// What could not be read on this phone.
    pub unread: Vec<CompanionUnread>,
    /// What observing took of the phone.
    pub cost: Option<CompanionCost>,
}

/// The timeline.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompanionTimeline {
    /// Its name in the folder (`memory.jsonl`).
    pub file: String,
    /// Lines of it.
    pub entries: u64,
    /// Lines that could not be understood.
    pub strange: u64,
    /// Samples of resident memory.
    pub resident: u64,
    /// Samples of how the memory divides.
    pub parts: u64,
    /// Garbage collections of the apps themselves.
    pub collections: u64,
    /// Garbage collections that heaptap caused.
    pub collections_ours: u64,
    /// Processes that were started again.
    pub restarts: u64,
}

/// A file of one process and one moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionFile {
    /// `meminfo`, `smaps`, `java-heap`, `malloc-info` …
    pub what: String,
    /// Its name in the folder, with forward slashes.
    pub file: String,
    /// The process.
    pub pid: u32,
    /// The label; absent for the end of the recording.
    pub label: Option<String>,
    /// The label's place among the labels, from 1; the end comes after the last.
    pub number: u32,
    /// When it was taken, BOOTTIME, ns.
    pub time_ns: u64,
}

/// Something that was not taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionMissed {
    /// As in [`CompanionFile::what`].
    pub what: String,
    /// As in [`CompanionFile::label`].
    pub label: Option<String>,
    /// As in [`CompanionFile::number`].
    pub number: u32,
    /// Which of the reasons that others ask for; absent for any other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<MissedReason>,
    /// Why.
    pub why: String,
}

/// A time of which nothing is known.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionGap {
    /// Its begin, BOOTTIME, ns.
    pub from_ns: u64,
    /// Its end.
    pub until_ns: u64,
    /// Why.
    pub why: String,
}

/// A source that this phone does not give.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionUnread {
    /// `status`, `meminfo-local`, `gfxinfo`, `dmabuf`, `log` …
    pub source: String,
    /// The process; 0 for the whole phone.
    pub pid: u32,
    /// Why not.
    pub why: String,
}

/// What observing took of the phone.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompanionCost {
    /// Of one core: the loop on the phone, with the programs that it started.
    pub core: f64,
    /// Of one core, at most: services of the phone that answered.
    pub services: f64,
    /// Over the connection.
    pub bytes_per_s: f64,
    /// Rounds of the loop.
    pub rounds: u64,
    /// Commands sent for all of it.
    pub round_trips: u64,
}

/// One with every field set.
#[cfg(test)]
pub(super) fn example() -> Companions {
    Companions {
        with: vec!["meminfo".to_owned()],
        timeline: Some(CompanionTimeline {
            file: "memory.jsonl".to_owned(),
            entries: 100,
            ..CompanionTimeline::default()
        }),
        collections: Some("gc.jsonl".to_owned()),
        log: Some("logcat.txt".to_owned()),
        files: vec![CompanionFile {
            what: "meminfo".to_owned(),
            file: "meminfo/01-after-login.txt".to_owned(),
            pid: 4242,
            label: Some("after-login".to_owned()),
            number: 1,
            time_ns: 5_000_000_000,
        }],
        missed: vec![CompanionMissed {
            what: "java-heap".to_owned(),
            label: Some("after-login".to_owned()),
            number: 1,
            reason: Some(MissedReason::NoTarget),
            why: MissedReason::NoTarget.why().to_owned(),
        }],
        gaps: vec![CompanionGap {
            from_ns: 1,
            until_ns: 2,
            why: "the cable".to_owned(),
        }],
        unread: vec![CompanionUnread {
            source: "dmabuf".to_owned(),
            pid: 0,
            why: "not for the shell".to_owned(),
        }],
        cost: Some(CompanionCost {
            core: 0.002,
            services: 0.01,
            bytes_per_s: 900.0,
            rounds: 60,
            round_trips: 2,
        }),
    }
}
