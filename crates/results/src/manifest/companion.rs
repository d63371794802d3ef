//! Companion data in the manifest.

use serde::{Deserialize, Serialize};

use heaptap_model::timeline::MissedReason;

/// Companion data of a recording (`record --with`).
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Companions {
    /// Requested sources: `java`, `meminfo`, `smaps`, `gc`.
    pub with: Vec<String>,
    /// Observations over time; absent if none were written.
    pub timeline: Option<CompanionTimeline>,
    /// Garbage collections, joined from log and trace (`gc.jsonl`); absent if there were none.
    pub collections: Option<String>,
    /// Unmodified log output of the targets (`logcat.txt`); absent if the log was not followed.
    pub log: Option<String>,
    /// Files captured at labels and at the end, in order.
    pub files: Vec<CompanionFile>,
    /// Captures that failed.
    pub missed: Vec<CompanionMissed>,
    /// Times without observations.
    pub gaps: Vec<CompanionGap>,
    /// Sources that could not be read on this device.
    #[serde(rename = "unreadable")]
    pub unread: Vec<CompanionUnread>,
    /// Cost of observing on the device.
    pub cost: Option<CompanionCost>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct CompanionTimeline {
    /// File name in the directory (`memory.jsonl`).
    pub file: String,
    /// Lines of it.
    pub entries: u64,
    /// Lines that could not be understood.
    #[serde(rename = "unknown_lines")]
    pub strange: u64,
    /// Samples of resident memory.
    pub resident: u64,
    /// Samples of the memory breakdown.
    pub parts: u64,
    /// Garbage collections of the apps themselves.
    pub collections: u64,
    /// Garbage collections that heaptap requested.
    pub collections_by_heaptap: u64,
    /// Processes that were started again.
    pub restarts: u64,
}

/// A file captured from one process at one time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionFile {
    /// `meminfo`, `smaps`, `java-heap`, `malloc-info` …
    pub what: String,
    /// File name in the directory, with forward slashes.
    pub file: String,
    pub pid: u32,
    /// Label; absent for the end of the recording.
    pub label: Option<String>,
    /// Position of the label among all labels, from 1; the end comes after the last.
    pub number: u32,
    /// Time of the capture, BOOTTIME in ns.
    pub time_ns: u64,
}

/// A missing capture.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionMissed {
    /// As in [`CompanionFile::what`].
    pub what: String,
    /// As in [`CompanionFile::label`].
    pub label: Option<String>,
    /// As in [`CompanionFile::number`].
    pub number: u32,
    /// A reason with special handling; absent for all others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<MissedReason>,
    pub why: String,
}

/// A time without observations.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionGap {
    /// Start, BOOTTIME in ns.
    pub from_ns: u64,
    /// End, BOOTTIME in ns.
    pub until_ns: u64,
    pub why: String,
}

/// A source that is not available on this device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompanionUnread {
    /// `status`, `meminfo-local`, `gfxinfo`, `dmabuf`, `log` …
    pub source: String,
    /// Process; 0 for the whole device.
    pub pid: u32,
    pub why: String,
}

/// Cost of observing on the device.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct CompanionCost {
    /// Share of one core used by the loop on the device and the programs it started.
    pub core: f64,
    /// Upper bound of the share of one core used by the services that answered.
    pub services: f64,
    /// Over the connection.
    pub bytes_per_s: f64,
    /// Iterations of the loop.
    #[serde(rename = "polls")]
    pub rounds: u64,
    /// Commands sent for all of it.
    pub round_trips: u64,
}

/// Returns an instance with every field set.
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
