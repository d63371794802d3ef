//! heapprofd's figure, malloc_info's, meminfo's and the kernel's, of one process at one moment,
//! in one table; each difference between them named, with what usually makes it and what helps.
//! Figures are handed over by whoever read them; what nobody could read is said to be missing,
//! never guessed.
//!
//! | file | owns |
//! |---|---|
//! | `input` | what is handed over |
//! | `differences` | what lies between the figures, and why |

mod differences;
mod input;

pub use input::{At, Estimated, NativeResident, Profiled, ReconcileInput};

use std::time::Duration;

use serde::{Deserialize, Serialize};

use heaptap_model::units::{ByteSize, HumanDuration, SignedSize};

/// A figure, and which of its kin it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Figure {
    /// What heapprofd saw allocated and not freed: the native heap.
    Profiled,
    /// Other heaps that heapprofd recorded.
    OtherHeaps,
    /// What the allocator lists as live.
    MallocInfo,
    /// Heap Alloc of Native Heap: what malloc gave out.
    HeapAlloc,
    /// Heap Size of Native Heap: what malloc has from the system.
    HeapSize,
    /// Resident memory of the native heap.
    NativeResident,
    /// What of the native heap is in swap.
    NativeSwapped,
    /// Resident memory of the process.
    ProcessResident,
}

/// A line of the table.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Row {
    /// Which figure.
    pub figure: Figure,
    /// What it is called in a list.
    pub name: String,
    /// The figure, bytes.
    pub bytes: i64,
    /// Where it is sampled: the least and the most that are likely (95 %).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<(i64, i64)>,
    /// The figure with its reach, as tables of the profile have it.
    #[serde(skip)]
    pub estimated: Option<String>,
    /// Who says it, such as `dumpsys meminfo`.
    pub source: String,
    /// When, BOOTTIME ns; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_ns: Option<u64>,
    /// How far from the moment of the table it was read, ms, where that is more than 2 s; before
    /// it is negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub apart_ms: Option<i64>,
    /// What one must know to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Moments further apart than this are told.
pub const FAR_NS: u64 = 2_000_000_000;

/// How far `at` is from `moment`, ms, where that is far.
fn apart(at: u64, moment: u64) -> Option<i64> {
    let apart = at.abs_diff(moment);
    let ms = i64::try_from(apart / 1_000_000).unwrap_or(i64::MAX);
    (apart > FAR_NS).then_some(if at < moment { -ms } else { ms })
}

/// What makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CauseKind {
    /// Allocated before the recording began, and live since.
    BeforeRecording,
    /// Allocated before heapprofd is set up in a process that the zygote forks.
    BeforeZygoteInit,
    /// The profile is an estimate.
    Sampling,
    /// The profile lacks data.
    Incomplete,
    /// Blocks are larger than what was asked for.
    Rounding,
    /// Freed blocks that caches of threads hold.
    ThreadCaches,
    /// Allocations too large for what malloc_info lists.
    LargeNotListed,
    /// Free memory between blocks that are in use, or kept for the next.
    Fragmentation,
    /// Pages of which only a part is used; allocated pages that nobody touched.
    Pages,
    /// Compressed in memory, or on disk.
    Swap,
    /// Memory that never was malloc's.
    NotMalloc,
    /// Figures of other moments.
    Moments,
    /// The figure is by shares, since the source has no other.
    Shares,
}

/// What may make a difference, and what helps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Which it is.
    pub kind: CauseKind,
    /// In a sentence, with this process's own figures where there are any.
    pub about: String,
    /// How much of the difference it makes, bytes, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<i64>,
    /// What usually helps, or tells more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

/// Two figures that differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// The figure that one would expect to be the smaller.
    pub from: Figure,
    /// The other.
    pub to: Figure,
    /// `to` less `from`, bytes.
    pub bytes: i64,
    /// What it means.
    pub about: String,
    /// What makes it, the surest first.
    pub causes: Vec<Cause>,
}

/// A figure that could not be had.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Missing {
    /// Which.
    pub figure: Figure,
    /// Why.
    pub why: String,
    /// What would be needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

/// Resident memory that is not the native heap's, by kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Area {
    /// A row of meminfo.
    pub name: String,
    /// Resident bytes (or by shares, where the table's figures are).
    pub bytes: u64,
}

/// The figures of a process at a moment, and what lies between them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Table {
    /// The process.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// The moment, BOOTTIME ns, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_ns: Option<u64>,
    /// The label set at that moment.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The figures, from what the program asked for to what the process takes.
    pub rows: Vec<Row>,
    /// What lies between them, in the same order.
    pub differences: Vec<Difference>,
    /// Where the rest of the process's memory is, the largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub elsewhere: Vec<Area>,
    /// What could not be had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub missing: Vec<Missing>,
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Row {
    /// When it was read, where that is not the moment of the table: `4.5 s before`.
    pub fn apart(&self) -> Option<String> {
        let ms = self.apart_ms?;
        let apart = HumanDuration(Duration::from_millis(ms.unsigned_abs()));
        let side = if ms < 0 { "before" } else { "after" };
        Some(format!("{apart} {side}"))
    }

    /// The figure, with its reach where it is sampled: `40.0 MiB ± 1.0`.
    pub fn amount(&self) -> String {
        match &self.estimated {
            Some(estimated) => estimated.clone(),
            None => SignedSize(self.bytes).to_string(),
        }
    }

    /// Who says it, and what one must know to read it.
    pub fn remark(&self) -> String {
        match &self.note {
            Some(note) => format!("{}: {note}", self.source),
            None => self.source.clone(),
        }
    }
}

impl Difference {
    /// What it amounts to, with its sign: `+10.0 MiB`.
    pub fn amount(&self) -> String {
        let sign = if self.bytes < 0 { "" } else { "+" };
        format!("{sign}{}", SignedSize(self.bytes))
    }
}

impl Cause {
    /// In a sentence, with the bytes that it makes where they are known: `+5.0 MiB …`.
    pub fn words(&self) -> String {
        let bytes = match self.bytes {
            // Its reach stands in the sentence.
            _ if self.kind == CauseKind::Sampling => return self.about.clone(),
            Some(bytes) if bytes > 0 => format!("+{} ", SignedSize(bytes)),
            Some(bytes) if bytes < 0 => format!("{} ", SignedSize(bytes)),
            _ => String::new(),
        };
        format!("{bytes}{}", self.about)
    }
}

impl Figure {
    /// What it is called where it is missing.
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
    /// What a figure of it is called; empty where it has none.
    pub fn name_of(&self, figure: Figure) -> &str {
        self.figure(figure).map_or("", |row| row.name.as_str())
    }

    /// The table of what is handed over.
    pub fn of(input: &ReconcileInput) -> Table {
        let mut table = Table {
            process: input.process.clone(),
            pid: input.pid,
            boot_ns: input.boot_ns,
            label: input.label.clone(),
            missing: input.missing.clone(),
            ..Table::default()
        };
        table.fill(input);
        let moment = table.boot_ns;
        for row in &mut table.rows {
            row.apart_ms = row
                .boot_ns
                .zip(moment)
                .and_then(|(at, moment)| apart(at, moment));
        }
        table.differ(input);
        table.elsewhere = input.elsewhere.clone();
        table.elsewhere.retain(|area| area.bytes > 0);
        table
            .elsewhere
            .sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        table
    }

    /// A figure of it.
    pub fn figure(&self, figure: Figure) -> Option<&Row> {
        self.rows.iter().find(|row| row.figure == figure)
    }

    /// A difference of it.
    pub fn difference(&self, from: Figure, to: Figure) -> Option<&Difference> {
        let mut all = self.differences.iter();
        all.find(|difference| (difference.from, difference.to) == (from, to))
    }

    fn row<T>(&mut self, figure: Figure, name: &str, bytes: i64, at: &At<T>) -> &mut Row {
        self.rows.push(Row {
            figure,
            name: name.to_owned(),
            bytes,
            range: None,
            estimated: None,
            source: at.source.clone(),
            boot_ns: at.boot_ns,
            apart_ms: None,
            note: None,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    fn fill(&mut self, input: &ReconcileInput) {
        for native in [true, false] {
            for heap in input.heaps.iter().filter(|h| h.value.is_native() == native) {
                let profiled = &heap.value;
                let (figure, name) = match native {
                    true => (Figure::Profiled, "heapprofd, unreleased".to_owned()),
                    false => (Figure::OtherHeaps, format!("heap {}", profiled.heap)),
                };
                let row = self.row(figure, &name, profiled.unreleased, heap);
                row.range = profiled.range;
                row.estimated = profiled.words.as_ref().map(|words| words.amount.clone());
                let interval = match profiled.interval {
                    0 => "sampling interval not known".to_owned(),
                    1 => "every allocation".to_owned(),
                    bytes => format!("sampled every {}", ByteSize(bytes)),
                };
                let most = match profiled.at_maximum {
                    true => "; the most it ever was",
                    false => "",
                };
                let apart = match native {
                    true => "",
                    false => "; a heap of its own, no part of the native heap's figures",
                };
                row.note = Some(format!("{interval}{most}{apart}"));
            }
        }
        if let Some(info) = &input.malloc_info {
            let row = self.row(
                Figure::MallocInfo,
                "malloc_info, live",
                signed(info.value.live),
                info,
            );
            let version = info.value.version.name();
            row.note = Some(match (info.value.cut, info.value.is_of_small_only()) {
                (true, _) => format!("{version}; cut off: too low"),
                (false, true) => format!("{version}: large allocations are not in it"),
                (false, false) => version.to_owned(),
            });
        }
        if let Some(cells) = &input.native_heap {
            let value = cells.value;
            self.row(Figure::HeapAlloc, "Heap Alloc", signed(value.alloc), cells)
                .note = Some("what malloc gave out, block sizes".to_owned());
            self.row(Figure::HeapSize, "Heap Size", signed(value.size), cells)
                .note = Some("what malloc has from the system".to_owned());
        }
        if let Some(native) = &input.native_resident {
            let value = native.value;
            let (name, note) = match value.by_shares {
                true => ("Native Heap PSS", "this Android has no RSS by kind"),
                false => ("Native Heap RSS", "pages of malloc in memory"),
            };
            self.row(Figure::NativeResident, name, signed(value.resident), native)
                .note = Some(format!(
                "{note}; private dirty {}",
                ByteSize(value.private_dirty)
            ));
            if let Some(swapped) = value.swapped {
                self.row(
                    Figure::NativeSwapped,
                    "Native Heap swapped",
                    signed(swapped),
                    native,
                )
                .note = Some("in ZRAM or swap, before compression".to_owned());
            }
        }
        if let Some(resident) = &input.resident {
            self.row(
                Figure::ProcessResident,
                "RSS",
                signed(resident.value),
                resident,
            )
            .note = Some(match input.resident_by_meminfo {
                true => "TOTAL RSS, without the memory that graphics drivers count".to_owned(),
                false => "all pages of the process in memory".to_owned(),
            });
        }
    }
}

#[cfg(test)]
mod tests;
