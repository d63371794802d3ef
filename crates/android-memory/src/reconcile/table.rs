//! The table: its figures, the differences between them with their causes, and the figures that are
//! missing.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use heaptap_base::units::{HumanDuration, SignedSize};

/// A memory figure, by its source and meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// Unreleased allocations of the native heap, recorded by heapprofd.
    Profiled,
    /// Other heaps recorded by heapprofd.
    OtherHeaps,
    /// Live allocations listed by the allocator.
    MallocInfo,
    /// Heap Alloc of Native Heap: blocks that malloc handed out.
    HeapAlloc,
    /// Heap Size of Native Heap: memory that malloc got from the system.
    HeapSize,
    /// Resident memory of the native heap.
    NativeResident,
    /// Swapped memory of the native heap.
    NativeSwapped,
    /// Resident memory of the process.
    ProcessResident,
}

/// A row of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    pub figure: Figure,
    /// Display name.
    pub name: String,
    pub bytes: i64,
    /// The 95% confidence interval, if the figure is sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(i64, i64)>,
    /// Figure with its sampling error, as in the tables of the profile.
    #[serde(skip)]
    pub estimated: Option<String>,
    /// Source, such as `dumpsys meminfo`.
    pub source: String,
    /// Time, BOOTTIME ns, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_ns: Option<u64>,
    /// Time difference from the table in ms, if it is more than 2 s; negative if the figure was
    /// read earlier.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[serde(rename = "time_difference_ms")]
    pub apart_ms: Option<i64>,
    /// Note required to interpret the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Time difference from which it is reported, ns.
pub const FAR_NS: u64 = 2_000_000_000;

/// Type of cause of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// Allocated before the recording began, and still live.
    BeforeRecording,
    /// Allocated before heapprofd was set up in a process that the zygote forked.
    BeforeZygoteInit,
    /// The profile is an estimate.
    Sampling,
    /// The profile lacks data.
    Incomplete,
    /// Blocks are larger than the requested size.
    Rounding,
    /// Freed blocks in thread caches.
    ThreadCaches,
    /// Allocations that are too large for malloc_info to list.
    LargeNotListed,
    /// Free memory between used blocks, or kept for later allocations.
    Fragmentation,
    /// Partially used pages, and allocated pages that were never touched.
    Pages,
    /// Compressed in memory, or on disk.
    Swap,
    /// Memory not allocated by malloc.
    NotMalloc,
    /// Figures read at different times.
    #[serde(rename = "different-times")]
    Moments,
    /// The figure is proportional (PSS), because the source has no other.
    Shares,
}

/// A possible cause of a difference, with a remedy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    pub kind: CauseKind,
    /// Description, with figures of this process if available.
    #[serde(rename = "description")]
    pub about: String,
    /// Contribution to the difference in bytes, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    /// Usual remedy, or a way to find out more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Cause {
    /// Creates a cause without figures and remedies.
    pub(super) fn new(kind: CauseKind, about: impl Into<String>) -> Cause {
        Cause {
            kind,
            about: about.into(),
            bytes: None,
            remedy: None,
        }
    }
}

/// A difference between two figures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The figure that is expected to be smaller.
    pub from: Figure,
    /// The other figure.
    pub to: Figure,
    /// `to` minus `from`, bytes.
    pub bytes: i64,
    /// Meaning of the difference.
    #[serde(rename = "description")]
    pub about: String,
    /// Causes, the most certain first.
    pub causes: Vec<Cause>,
}

/// A figure that is not available.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    pub figure: Figure,
    /// Reason.
    pub why: String,
    /// Requirement for the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Resident memory outside the native heap, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// Row of meminfo.
    pub name: String,
    /// Resident bytes; proportional if the table's figures are.
    pub bytes: u64,
}

/// Figures of a process at one time, and the differences between them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// Process name.
    pub process: String,
    pub pid: u32,
    /// Time of the table, BOOTTIME ns, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_ns: Option<u64>,
    /// Label of the snapshot at that time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// Figures, from the memory that the program requested to the memory that the process uses.
    pub rows: Vec<Row>,
    /// Differences between the figures, in the same order.
    pub differences: Vec<Difference>,
    /// Location of the rest of the process's memory, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "other_areas")]
    pub elsewhere: Vec<Area>,
    /// Figures that are not available.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

pub(super) fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Row {
    /// Returns the time difference from the table if it is large, such as `4.5 s before`.
    pub fn apart(&self) -> Option<String> {
        let ms = self.apart_ms?;
        let apart = HumanDuration(Duration::from_millis(ms.unsigned_abs()));
        let side = if ms < 0 { "before" } else { "after" };
        Some(format!("{apart} {side}"))
    }

    /// Returns the figure, with its sampling error if it is sampled: `40.0 MiB ± 1.0`.
    pub fn amount(&self) -> String {
        match &self.estimated {
            Some(estimated) => estimated.clone(),
            None => SignedSize(self.bytes).to_string(),
        }
    }

    /// Returns the source and the note.
    pub fn remark(&self) -> String {
        match &self.note {
            Some(note) => format!("{}: {note}", self.source),
            None => self.source.clone(),
        }
    }
}

impl Difference {
    /// Returns the size of the difference with its sign: `+10.0 MiB`.
    pub fn amount(&self) -> String {
        let sign = if self.bytes < 0 { "" } else { "+" };
        format!("{sign}{}", SignedSize(self.bytes))
    }
}

impl Cause {
    /// Returns the description with the contributed bytes, if known: `+5.0 MiB …`.
    pub fn words(&self) -> String {
        let bytes = match self.bytes {
            // The description already contains the sampling error.
            _ if self.kind == CauseKind::Sampling => return self.about.clone(),
            Some(bytes) if bytes > 0 => format!("+{} ", SignedSize(bytes)),
            Some(bytes) if bytes < 0 => format!("{} ", SignedSize(bytes)),
            _ => String::new(),
        };
        format!("{bytes}{}", self.about)
    }
}

impl Figure {
    /// Returns the name used if the figure is missing.
    pub fn label(self) -> &'static str {
        match self {
            Figure::Profiled => "heapprofd",
            Figure::OtherHeaps => "other heaps",
            Figure::MallocInfo => "malloc_info",
            Figure::HeapAlloc | Figure::HeapSize => "Heap Alloc",
            Figure::NativeResident | Figure::NativeSwapped => "Native Heap RSS",
            Figure::ProcessResident => "RSS",
        }
    }
}

impl Table {
    /// Returns the display name of a figure; empty if the table does not have it.
    pub fn name_of(&self, figure: Figure) -> &str {
        self.figure(figure).map_or("", |row| row.name.as_str())
    }

    pub fn figure(&self, figure: Figure) -> Option<&Row> {
        self.rows.iter().find(|row| row.figure == figure)
    }

    /// Returns the difference between two figures.
    pub fn difference(&self, from: Figure, to: Figure) -> Option<&Difference> {
        let mut all = self.differences.iter();
        all.find(|difference| (difference.from, difference.to) == (from, to))
    }
}
