//! heapprofd's figure, malloc_info's, meminfo's and the kernel's, of one process at one moment,
//! in one table; each difference between them named, with what usually makes it and what helps.
//! Figures are handed over by whoever read them; what nobody could read is said to be missing,
//! never guessed.

use serde::{Deserialize, Serialize};

use super::malloc_info::MallocInfo;
use super::timeline::HeapCells;
use crate::units::{ByteSize, SignedSize};

/// A figure, and which of its kin it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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
    /// Who says it, such as `dumpsys meminfo`.
    pub source: String,
    /// When, BOOTTIME ns; `None` where that is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub boot_ns: Option<u64>,
    /// What one must know to read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// What makes a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
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

/// A figure with its source and its moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct At<T> {
    /// The figure.
    pub value: T,
    /// Who says it.
    pub source: String,
    /// When, BOOTTIME ns.
    pub boot_ns: Option<u64>,
}

/// A heap as heapprofd recorded it.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Profiled {
    /// `libc.malloc`, `unknown` (the same before Android 12), `com.android.art` …
    pub heap: String,
    /// Allocated and not freed, bytes.
    pub unreleased: i64,
    /// The least and the most that are likely, where the interval is known.
    pub range: Option<(i64, i64)>,
    /// Sampling interval, bytes; 0 where it is not known.
    pub interval: u64,
    /// It was recorded from the process's start.
    pub from_startup: bool,
    /// When profiling of it began, BOOTTIME ns, where that is known.
    pub begun_ns: Option<u64>,
    /// Why the profile is not whole.
    pub incomplete: Option<String>,
    /// It is the largest the heap ever was, not what it is.
    pub at_maximum: bool,
}

impl Profiled {
    /// Whether it is what malloc serves.
    pub fn is_native(&self) -> bool {
        matches!(self.heap.as_str(), "libc.malloc" | "unknown" | "")
    }
}

/// Resident memory of the native heap, bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NativeResident {
    /// Resident; by shares (PSS) where `by_shares`.
    pub resident: u64,
    /// The source has no RSS: Android 10 and older.
    pub by_shares: bool,
    /// Private dirty pages.
    pub private_dirty: u64,
    /// In swap, before compression; `None` where the source does not tell.
    pub swapped: Option<u64>,
}

/// All that is known of a process at a moment.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Known {
    /// Its name.
    pub process: String,
    /// Its id.
    pub pid: u32,
    /// The moment.
    pub boot_ns: Option<u64>,
    /// The label set then.
    pub label: Option<String>,
    /// What heapprofd recorded.
    pub heaps: Vec<At<Profiled>>,
    /// What the allocator says.
    pub malloc_info: Option<At<MallocInfo>>,
    /// Heap Size, Alloc and Free of Native Heap.
    pub native_heap: Option<At<HeapCells>>,
    /// Resident memory of the native heap.
    pub native_resident: Option<At<NativeResident>>,
    /// Resident memory of the process, bytes.
    pub resident: Option<At<u64>>,
    /// Resident memory that is not the native heap's, by kind.
    pub elsewhere: Vec<Area>,
    /// Figures that could not be read, and why.
    pub missing: Vec<Missing>,
}

/// Moments further apart than this are told.
const FAR_NS: u64 = 2_000_000_000;
/// Free memory of a heap beyond this part of what is live is worth a remedy.
const MUCH_FREE: u64 = 2;

fn size(bytes: i64) -> String {
    SignedSize(bytes).to_string()
}

fn signed(bytes: u64) -> i64 {
    i64::try_from(bytes).unwrap_or(i64::MAX)
}

impl Table {
    /// The table of what is known.
    pub fn of(known: &Known) -> Table {
        let mut table = Table {
            process: known.process.clone(),
            pid: known.pid,
            boot_ns: known.boot_ns,
            label: known.label.clone(),
            missing: known.missing.clone(),
            ..Table::default()
        };
        table.fill(known);
        table.differ(known);
        table.elsewhere = known.elsewhere.clone();
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
            source: at.source.clone(),
            boot_ns: at.boot_ns,
            note: None,
        });
        let last = self.rows.len() - 1;
        &mut self.rows[last]
    }

    fn fill(&mut self, known: &Known) {
        for native in [true, false] {
            for heap in known.heaps.iter().filter(|h| h.value.is_native() == native) {
                let profiled = &heap.value;
                let (figure, name) = match native {
                    true => (Figure::Profiled, "heapprofd, unreleased".to_owned()),
                    false => (Figure::OtherHeaps, format!("heap {}", profiled.heap)),
                };
                let row = self.row(figure, &name, profiled.unreleased, heap);
                row.range = profiled.range;
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
        if let Some(info) = &known.malloc_info {
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
        if let Some(cells) = &known.native_heap {
            let value = cells.value;
            self.row(Figure::HeapAlloc, "Heap Alloc", signed(value.alloc), cells)
                .note = Some("what malloc gave out, block sizes".to_owned());
            self.row(Figure::HeapSize, "Heap Size", signed(value.size), cells)
                .note = Some("what malloc has from the system".to_owned());
        }
        if let Some(native) = &known.native_resident {
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
        if let Some(resident) = &known.resident {
            self.row(
                Figure::ProcessResident,
                "RSS",
                signed(resident.value),
                resident,
            )
            .note = Some("all pages of the process in memory".to_owned());
        }
    }

    /// Figures of moments that lie apart differ for that alone.
    fn moments(&self, from: Figure, to: Figure) -> Option<Cause> {
        let at = |figure| self.figure(figure).and_then(|row| row.boot_ns);
        let apart = at(from)?.abs_diff(at(to)?);
        (apart >= FAR_NS).then(|| Cause {
            kind: CauseKind::Moments,
            about: format!(
                "the two were read {:.1} s apart, while the program went on",
                apart as f64 / 1e9
            ),
            bytes: None,
            remedy: None,
        })
    }

    fn between(&mut self, from: Figure, to: Figure, about: &str, causes: Vec<Cause>) {
        let bytes = |figure| self.figure(figure).map(|row| row.bytes);
        let (Some(a), Some(b)) = (bytes(from), bytes(to)) else {
            return;
        };
        let mut causes = causes;
        causes.extend(self.moments(from, to));
        self.differences.push(Difference {
            from,
            to,
            bytes: b.saturating_sub(a),
            about: about.to_owned(),
            causes,
        });
    }

    fn differ(&mut self, known: &Known) {
        let native = known.heaps.iter().find(|heap| heap.value.is_native());
        if let Some(heap) = native {
            let to = match (&known.native_heap, &known.malloc_info) {
                (Some(_), _) => Some(Figure::HeapAlloc),
                (None, Some(_)) => Some(Figure::MallocInfo),
                (None, None) => None,
            };
            if let Some(to) = to {
                let allocated = self.figure(to).map_or(0, |row| row.bytes);
                let causes = causes_of_unprofiled(&heap.value, allocated);
                let about = match allocated >= heap.value.unreleased {
                    true => "live, and not in the profile",
                    false => "the profile says more than the allocator has",
                };
                self.between(Figure::Profiled, to, about, causes);
            }
        }
        if let (Some(info), Some(cells)) = (&known.malloc_info, &known.native_heap) {
            let mut causes = Vec::new();
            if info.value.is_of_small_only() {
                causes.push(Cause {
                    kind: CauseKind::LargeNotListed,
                    about: "Scudo lists what its primary allocator serves; larger allocations are \
                            mapped by themselves (`[anon:scudo:secondary]`) and count in Heap \
                            Alloc alone"
                        .to_owned(),
                    bytes: None,
                    remedy: None,
                });
            }
            if signed(cells.value.alloc) >= signed(info.value.live) {
                causes.push(rounding());
            }
            self.between(
                Figure::MallocInfo,
                Figure::HeapAlloc,
                "the allocator's two accounts",
                causes,
            );
        }
        if let Some(cells) = &known.native_heap {
            self.free_in_heap(cells.value);
            self.resident_heap(known, cells.value.alloc);
        }
        self.rest_of_process(known);
    }

    fn free_in_heap(&mut self, cells: HeapCells) {
        let much = cells.free > cells.alloc / MUCH_FREE && cells.free > 1 << 20;
        let causes = vec![
            Cause {
                kind: CauseKind::Fragmentation,
                about:
                    "free memory of the heap: blocks between others that are in use, and what is \
                        kept for the next allocations"
                        .to_owned(),
                bytes: Some(signed(cells.free)),
                remedy: much.then(|| {
                    "much of the heap is free: after a peak the allocator keeps it. Lower the \
                     peak (heaptap record --config peak shows who makes it), or let it go with \
                     mallopt(M_PURGE, 0) once the work is done"
                        .to_owned()
                }),
            },
            Cause {
                kind: CauseKind::ThreadCaches,
                about: "each thread keeps freed blocks for itself; more threads keep more"
                    .to_owned(),
                bytes: None,
                remedy: None,
            },
        ];
        self.between(
            Figure::HeapAlloc,
            Figure::HeapSize,
            "the allocator's own reserve",
            causes,
        );
    }

    /// Resident pages of the heap against what is allocated in it.
    fn resident_heap(&mut self, known: &Known, alloc: u64) {
        let Some(native) = &known.native_resident else {
            return;
        };
        let value = native.value;
        let swapped = value.swapped.unwrap_or(0);
        let occupied = value.resident.saturating_add(swapped);
        let mut causes = Vec::new();
        if swapped > 0 {
            causes.push(Cause {
                kind: CauseKind::Swap,
                about: "in ZRAM or swap: no part of RSS, though it still takes memory, compressed"
                    .to_owned(),
                bytes: Some(-signed(swapped)),
                remedy: Some("compare RSS with swap added, never RSS alone".to_owned()),
            });
        }
        if occupied >= alloc {
            let more = occupied - alloc;
            let much = more > alloc / MUCH_FREE && more > 4 << 20;
            causes.push(Cause {
                kind: CauseKind::Fragmentation,
                about:
                    "more pages than what is live would fill: memory comes in whole pages, and a \
                        page with one live block stays"
                        .to_owned(),
                bytes: Some(signed(more)),
                remedy: much.then(|| {
                    "that is much: the heap is fragmented, or keeps a peak. Free what lives long \
                     and what lives shortly in separate phases, use pools for many small objects, \
                     keep fewer threads that allocate; mallopt(M_PURGE, 0) gives free pages back"
                        .to_owned()
                }),
            });
        } else {
            causes.push(Cause {
                kind: CauseKind::Pages,
                about: "allocated and never touched, or given back to the system: it has no pages"
                    .to_owned(),
                bytes: Some(-signed(alloc - occupied)),
                remedy: None,
            });
        }
        if value.by_shares {
            causes.push(Cause {
                kind: CauseKind::Shares,
                about: "pages that the zygote still shares count by their share here".to_owned(),
                bytes: None,
                remedy: None,
            });
        }
        self.between(
            Figure::HeapAlloc,
            Figure::NativeResident,
            "pages that the heap has in memory, against what is live in it",
            causes,
        );
    }

    fn rest_of_process(&mut self, known: &Known) {
        let mut largest: Vec<&Area> = known.elsewhere.iter().filter(|a| a.bytes > 0).collect();
        largest.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
        let named: Vec<String> = largest
            .iter()
            .take(4)
            .map(|area| format!("{} {}", area.name, ByteSize(area.bytes)))
            .collect();
        let which = match named.is_empty() {
            true => "Java heap, code, stacks, graphics, files".to_owned(),
            false => named.join(", "),
        };
        let cause = Cause {
            kind: CauseKind::NotMalloc,
            about: format!("memory that malloc never saw: {which}"),
            bytes: None,
            remedy: Some(
                "heaptap smaps TARGET --by library tells whose it is; for the Java heap heaptap \
                 dump, for code and files mapped see docs/smaps.md"
                    .to_owned(),
            ),
        };
        self.between(
            Figure::NativeResident,
            Figure::ProcessResident,
            "resident, and not the native heap's",
            vec![cause],
        );
    }
}

fn rounding() -> Cause {
    Cause {
        kind: CauseKind::Rounding,
        about: "allocators serve blocks of fixed sizes: each is a little larger than what was \
                asked for, and has a header"
            .to_owned(),
        bytes: None,
        remedy: None,
    }
}

/// Why the profile has less than the allocator, or more.
fn causes_of_unprofiled(profiled: &Profiled, allocated: i64) -> Vec<Cause> {
    let mut causes = Vec::new();
    let short = allocated.saturating_sub(profiled.unreleased);
    if let Some(why) = &profiled.incomplete {
        causes.push(Cause {
            kind: CauseKind::Incomplete,
            about: format!("the profile is not whole: {why}"),
            bytes: None,
            remedy: Some(
                "record again with a larger buffer (--shmem-size) or interval (--interval)"
                    .to_owned(),
            ),
        });
    }
    let reach = profiled.range.map(|(low, high)| {
        let below = profiled.unreleased.saturating_sub(low);
        below.max(high.saturating_sub(profiled.unreleased))
    });
    if short < 0 {
        if profiled.at_maximum {
            causes.push(Cause {
                kind: CauseKind::Moments,
                about: "the profile shows the heap at its largest, not as it is now".to_owned(),
                bytes: None,
                remedy: None,
            });
        }
        causes.extend(reach.filter(|reach| *reach > 0).map(sampling));
        return causes;
    }
    causes.push(match profiled.from_startup {
        false => Cause {
            kind: CauseKind::BeforeRecording,
            about: "heapprofd sees what is allocated while it records: what was live before is \
                    in no profile"
                .to_owned(),
            bytes: None,
            remedy: Some(
                "start heaptap record while the app is not running, then start the app (--config \
                 startup)"
                    .to_owned(),
            ),
        },
        true => Cause {
            kind: CauseKind::BeforeZygoteInit,
            about: "what the zygote allocated, and the app before heapprofd was set up in it, is \
                    in no profile"
                .to_owned(),
            bytes: None,
            remedy: None,
        },
    });
    causes.extend(reach.filter(|reach| *reach > 0).map(sampling));
    causes.push(rounding());
    causes.push(Cause {
        kind: CauseKind::ThreadCaches,
        about: "freed blocks in caches of threads and in quarantine count as allocated with some \
                allocators (jemalloc's caches)"
            .to_owned(),
        bytes: None,
        remedy: None,
    });
    causes
}

fn sampling(reach: i64) -> Cause {
    Cause {
        kind: CauseKind::Sampling,
        about: format!(
            "the profile is an estimate: up to {} off (95 %)",
            size(reach)
        ),
        bytes: Some(reach),
        remedy: Some(
            "a smaller interval (--interval) is closer, and costs the app more".to_owned(),
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::malloc_info;

    const MIB: u64 = 1 << 20;

    fn at<T>(value: T, second: u64) -> At<T> {
        At {
            value,
            source: "a source".to_owned(),
            boot_ns: Some(second * 1_000_000_000),
        }
    }

    fn known() -> Known {
        Known {
            process: "com.example.app".to_owned(),
            pid: 7,
            heaps: vec![
                at(
                    Profiled {
                        heap: "com.android.art".to_owned(),
                        unreleased: 3 << 20,
                        interval: 4096,
                        ..Profiled::default()
                    },
                    10,
                ),
                at(
                    Profiled {
                        heap: "libc.malloc".to_owned(),
                        unreleased: 40 << 20,
                        range: Some((39 << 20, 41 << 20)),
                        interval: 4096,
                        ..Profiled::default()
                    },
                    10,
                ),
            ],
            malloc_info: Some(at(
                malloc_info::parse(
                    b"<malloc version=\"scudo-1\"><alloc size=\"1048576\" count=\"44\"/></malloc>",
                )
                .unwrap(),
                10,
            )),
            native_heap: Some(at(
                HeapCells {
                    size: 90 * MIB,
                    alloc: 50 * MIB,
                    free: 40 * MIB,
                },
                11,
            )),
            native_resident: Some(at(
                NativeResident {
                    resident: 60 * MIB,
                    by_shares: false,
                    private_dirty: 58 * MIB,
                    swapped: Some(20 * MIB),
                },
                11,
            )),
            resident: Some(at(200 * MIB, 30)),
            elsewhere: vec![
                Area {
                    name: ".so mmap".to_owned(),
                    bytes: 30 * MIB,
                },
                Area {
                    name: "Dalvik Heap".to_owned(),
                    bytes: 80 * MIB,
                },
                Area {
                    name: "Cursor".to_owned(),
                    bytes: 0,
                },
            ],
            ..Known::default()
        }
    }

    fn bytes(table: &Table, from: Figure, to: Figure) -> i64 {
        table.difference(from, to).unwrap().bytes
    }

    fn kinds(table: &Table, from: Figure, to: Figure) -> Vec<CauseKind> {
        let causes = &table.difference(from, to).unwrap().causes;
        causes.iter().map(|cause| cause.kind).collect()
    }

    #[test]
    fn every_pair_of_neighbours_has_its_difference_and_its_causes() {
        let table = Table::of(&known());
        let (profiled, alloc) = (Figure::Profiled, Figure::HeapAlloc);
        let (resident, all) = (Figure::NativeResident, Figure::ProcessResident);
        assert_eq!(bytes(&table, profiled, alloc), 10 << 20);
        assert_eq!(bytes(&table, Figure::MallocInfo, alloc), 6 << 20);
        assert_eq!(bytes(&table, alloc, Figure::HeapSize), 40 << 20);
        assert_eq!(bytes(&table, alloc, resident), 10 << 20);
        assert_eq!(bytes(&table, resident, all), 140 << 20);
        assert_eq!(
            kinds(&table, profiled, alloc),
            [
                CauseKind::BeforeRecording,
                CauseKind::Sampling,
                CauseKind::Rounding,
                CauseKind::ThreadCaches
            ]
        );
        assert_eq!(
            kinds(&table, alloc, resident),
            [CauseKind::Swap, CauseKind::Fragmentation]
        );
        // 60 resident and 20 swapped, 50 live.
        let causes = &table.difference(alloc, resident).unwrap().causes;
        assert_eq!(causes[0].bytes, Some(-(20 << 20)));
        assert_eq!(causes[1].bytes, Some(30 << 20));
        let sum: i64 = causes.iter().filter_map(|cause| cause.bytes).sum();
        assert_eq!(sum, bytes(&table, alloc, resident));
        assert!(causes[1].remedy.as_ref().unwrap().contains("M_PURGE"));
        assert_eq!(
            kinds(&table, resident, all),
            [CauseKind::NotMalloc, CauseKind::Moments]
        );
        let about = &table.difference(resident, all).unwrap().causes[0].about;
        assert!(
            about.contains("Dalvik Heap 80.0 MiB, .so mmap 30.0 MiB"),
            "{about}"
        );
        assert_eq!(table.elsewhere.len(), 2);
    }

    #[test]
    fn a_profile_from_the_start_lacks_only_what_came_before_heapprofd() {
        let mut known = known();
        known.heaps[1].value.from_startup = true;
        let table = Table::of(&known);
        let kinds = kinds(&table, Figure::Profiled, Figure::HeapAlloc);
        assert_eq!(kinds[0], CauseKind::BeforeZygoteInit);
        assert_eq!(table.rows[0].figure, Figure::Profiled);
        assert_eq!(table.rows[1].figure, Figure::OtherHeaps);
    }

    #[test]
    fn a_profile_above_the_allocator_is_not_said_to_lack_anything() {
        let mut known = known();
        known.heaps[1].value.unreleased = 52 << 20;
        known.heaps[1].value.range = Some((50 << 20, 54 << 20));
        let table = Table::of(&known);
        let (from, to) = (Figure::Profiled, Figure::HeapAlloc);
        assert_eq!(bytes(&table, from, to), -(2 << 20));
        assert_eq!(kinds(&table, from, to), [CauseKind::Sampling]);
    }

    #[test]
    fn without_meminfo_the_profile_is_held_to_malloc_info_and_nothing_is_made_up() {
        let known = Known {
            native_heap: None,
            native_resident: None,
            missing: vec![Missing {
                figure: Figure::HeapAlloc,
                why: "not read".to_owned(),
                help: None,
            }],
            ..known()
        };
        let table = Table::of(&known);
        assert_eq!(bytes(&table, Figure::Profiled, Figure::MallocInfo), 4 << 20);
        assert_eq!(table.differences.len(), 1);
        assert_eq!(table.missing.len(), 1);
        let json = serde_json::to_string(&table).unwrap();
        assert_eq!(serde_json::from_str::<Table>(&json).unwrap(), table);
        assert_eq!(Table::of(&Known::default()).differences, []);
    }

    #[test]
    fn memory_never_touched_makes_residence_smaller_than_what_is_live() {
        let mut known = known();
        known.native_resident = Some(at(
            NativeResident {
                resident: 30 * MIB,
                by_shares: true,
                private_dirty: 30 * MIB,
                swapped: None,
            },
            11,
        ));
        let table = Table::of(&known);
        assert_eq!(
            kinds(&table, Figure::HeapAlloc, Figure::NativeResident),
            [CauseKind::Pages, CauseKind::Shares]
        );
        assert!(table.figure(Figure::NativeSwapped).is_none());
        assert_eq!(
            table.figure(Figure::NativeResident).unwrap().name,
            "Native Heap PSS"
        );
    }
}
