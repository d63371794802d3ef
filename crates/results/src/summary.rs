//! Terminal summary of a recording: totals and largest callsites per process and heap. Fed dump by
//! dump during conversion; keeps a few callsites per series instead of dumps. Names are resolved
//! once, at the end.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use heaptap_model::names::module;
use heaptap_model::profile::{CallsiteId, DumpKind, Figures, FrameId, HeapDump, Recording};
use heaptap_model::stacks::Kind;
use heaptap_model::stacks::annotation::Annotation;
use heaptap_model::stacks::naming::FrameNamer;

/// Callsites shown.
pub const TOP: usize = 10;
/// Number of callsites kept: callsites that differ only in addresses are shown as one.
const KEPT: usize = 256;
/// Frames named of a callsite, beyond the allocator's own.
const FRAMES: usize = 12;

/// One heap of one process over all its dumps.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeapSummary {
    /// Process id.
    pub pid: u64,
    /// Process name; empty if the trace does not have it.
    pub process: String,
    /// Heap name.
    pub heap: String,
    /// Meaning of the values.
    pub kind: DumpKind,
    /// Number of dumps.
    pub dumps: usize,
    /// Totals of the last dump.
    pub totals: Figures,
    /// Sampling interval at the end, in bytes; 0 if unknown.
    pub interval_bytes: u64,
    /// Distinct callsites of the last dump.
    pub callsites: usize,
    /// The largest callsites of the last dump, largest first; at most [`TOP`].
    pub top: Vec<TopCallsite>,
}

impl HeapSummary {
    /// Returns whether the heap reports frees; otherwise callsites are ordered by allocated bytes.
    pub fn knows_frees(&self) -> bool {
        self.kind != DumpKind::AllocationsOnly
    }

    /// Returns whether counts are of samples, not of all allocations.
    pub fn is_sampled(&self) -> bool {
        self.interval_bytes != 1
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TopCallsite {
    pub figures: Figures,
    /// Frames, innermost first, without allocator frames; never empty.
    pub frames: Vec<NamedFrame>,
}

/// A frame in readable form.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct NamedFrame {
    /// Function, or module and offset if it has no name.
    pub function: String,
    /// File name of its library; empty if unknown.
    pub module: String,
    /// True if the function calls itself: callsites that differ only in recursion depth are merged.
    pub recursive: bool,
}

/// Collects what [`HeapSummary`] shows.
#[derive(Debug, Default)]
pub struct Summarizer {
    series: BTreeMap<(u64, String), Series>,
}

#[derive(Debug)]
struct Series {
    summary: HeapSummary,
    largest: Vec<(CallsiteId, Figures)>,
}

impl Summarizer {
    /// Adds a dump. Dumps of a heap arrive in chronological order.
    pub fn add(&mut self, dump: &HeapDump) {
        let key = (dump.pid, dump.heap.clone());
        let known = self.series.get_mut(&key);
        if let Some(series) = known.filter(|_| dump.open) {
            // The previous dump is the last complete one.
            series.summary.dumps += 1;
            return;
        }
        let largest = largest(dump);
        let dumps = self.series.get(&key).map_or(0, |s| s.summary.dumps) + 1;
        let summary = HeapSummary {
            pid: dump.pid,
            process: dump.process.clone(),
            heap: dump.heap.clone(),
            kind: dump.kind,
            dumps,
            totals: dump.totals(),
            interval_bytes: dump.sampling_interval_bytes,
            callsites: dump.samples.len(),
            top: Vec::new(),
        };
        self.series.insert(key, Series { summary, largest });
    }

    /// Returns the summaries, largest first.
    pub fn finish(self, recording: &Recording) -> Vec<HeapSummary> {
        let mut namer = FrameNamer::new(recording);
        let mut summaries: Vec<HeapSummary> = self
            .series
            .into_values()
            .map(|series| HeapSummary {
                top: name(&mut namer, series.summary.kind, &series.largest),
                ..series.summary
            })
            .collect();
        summaries.sort_by_key(|s| Reverse(weight(s.kind, &s.totals)));
        summaries
    }
}

/// Returns the sort key of callsites: unreleased bytes, or allocated bytes if frees are unknown.
fn weight(kind: DumpKind, figures: &Figures) -> i64 {
    match kind {
        DumpKind::AllocationsOnly => figures.alloc_space,
        DumpKind::Cumulative | DumpKind::AtMaximum | DumpKind::JavaHeap | DumpKind::Difference => {
            figures.space
        }
    }
}

/// Returns the [`KEPT`] largest callsites of a dump, in one pass.
fn largest(dump: &HeapDump) -> Vec<(CallsiteId, Figures)> {
    let mut heap: BinaryHeap<Reverse<(i64, usize)>> = BinaryHeap::with_capacity(KEPT + 1);
    for (at, (_, figures)) in dump.samples.iter().enumerate() {
        let weight = weight(dump.kind, figures);
        if weight <= 0 {
            continue;
        }
        if heap.len() == KEPT {
            if heap
                .peek()
                .is_some_and(|Reverse((least, _))| weight <= *least)
            {
                continue;
            }
            heap.pop();
        }
        heap.push(Reverse((weight, at)));
    }
    heap.into_sorted_vec()
        .into_iter()
        .map(|Reverse((_, at))| dump.samples[at])
        .collect()
}

fn name(
    namer: &mut FrameNamer<'_>,
    kind: DumpKind,
    largest: &[(CallsiteId, Figures)],
) -> Vec<TopCallsite> {
    let mut named: BTreeMap<Vec<NamedFrame>, Figures> = BTreeMap::new();
    for (callsite, figures) in largest {
        named
            .entry(frames_of(namer, *callsite))
            .or_default()
            .add(figures);
    }
    let mut top: Vec<TopCallsite> = named
        .into_iter()
        .map(|(frames, figures)| TopCallsite { figures, frames })
        .collect();
    top.sort_by_key(|c| Reverse(weight(kind, &c.figures)));
    top.truncate(TOP);
    top
}

fn frames_of(namer: &mut FrameNamer<'_>, callsite: CallsiteId) -> Vec<NamedFrame> {
    let mut frames: Vec<NamedFrame> = Vec::new();
    let mut allocator: Option<NamedFrame> = None;
    for frame in namer.recording().tables.callsite(callsite) {
        for named in names_of(namer, frame) {
            if frames.is_empty() && named.allocates_for_callers() {
                allocator.get_or_insert(named);
                continue;
            }
            let calls_itself = frames
                .last()
                .is_some_and(|last| last.function == named.function && last.module == named.module);
            if calls_itself && let Some(last) = frames.last_mut() {
                last.recursive = true;
            } else if frames.len() == FRAMES {
                return frames;
            } else {
                frames.push(named);
            }
        }
    }
    if frames.is_empty() {
        // A stack of allocator frames only, or an empty stack.
        frames.push(allocator.unwrap_or_else(|| NamedFrame {
            function: "(no stack)".to_owned(),
            module: String::new(),
            recursive: false,
        }));
    }
    frames
}

/// Returns the names of a frame including inlined functions, innermost first.
fn names_of(namer: &mut FrameNamer<'_>, id: FrameId) -> Vec<NamedFrame> {
    let tables = &namer.recording().tables;
    let mapping = tables.frame(id).mapping.map(|id| tables.mapping(id));
    let module = module(mapping.map_or("", |mapping| tables.string(mapping.path)));
    let mut names = Vec::new();
    namer.lines(id, Annotation::None, |line| {
        names.push(NamedFrame {
            function: line.demangled_name().into_owned(),
            module: module.clone().into_owned(),
            recursive: false,
        });
    });
    names
}

impl NamedFrame {
    /// Returns whether it belongs to an allocator or the runtime.
    pub fn allocates_for_callers(&self) -> bool {
        Kind::of_function(&self.module, &self.function, "").allocates_for_callers()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_model::profile::{Frame, Mapping, StringId};

    const LIBC: &str = "/apex/com.android.runtime/lib64/bionic/libc.so";
    const APP: &str = "/data/app/x/lib/arm64/libapp.so";

    struct Stacks(Recording);

    impl Stacks {
        fn callsite(&mut self, leaf_first: &[(&str, &str, u64)]) -> CallsiteId {
            let tables = &mut self.0.tables;
            let frames: Vec<u32> = leaf_first
                .iter()
                .map(|(name, path, rel_pc)| {
                    let path = tables.intern_str(path);
                    let mapping = Some(tables.intern_mapping(Mapping {
                        path,
                        ..Mapping::default()
                    }));
                    let name = tables.intern_str(name);
                    let frame = Frame {
                        mapping,
                        rel_pc: *rel_pc,
                        name,
                        file: StringId::default(),
                        line: 0,
                    };
                    tables.intern_frame(frame).0
                })
                .collect();
            tables.intern_callsite(&frames)
        }
    }

    fn held(space: i64) -> Figures {
        Figures {
            alloc_space: space * 2,
            alloc_objects: 2,
            space,
            objects: 1,
        }
    }

    fn functions(site: &TopCallsite) -> Vec<&str> {
        site.frames.iter().map(|f| f.function.as_str()).collect()
    }

    #[test]
    fn an_empty_name_of_a_symbolizer_hides_neither_name_nor_place() {
        use heaptap_model::profile::Line;
        let mut stacks = Stacks(Recording::default());
        let site = stacks.callsite(&[("", APP, 2), ("main", APP, 3)]);
        let nothing = Line {
            function: StringId::default(),
            linkage: StringId::default(),
            file: StringId::default(),
            line: 0,
        };
        let symbols = &mut stacks.0.symbols;
        let row = symbols.add_lines(&[nothing]).unwrap();
        for frame in 0..2 {
            symbols.set_lines(FrameId(frame), row);
        }
        let frames = frames_of(&mut FrameNamer::new(&stacks.0), site);
        let shown: Vec<&str> = frames.iter().map(|f| f.function.as_str()).collect();
        assert_eq!(shown, ["libapp.so+0x2", "main"]);
    }

    #[test]
    fn the_allocators_own_frames_are_skipped() {
        let mut stacks = Stacks(Recording::default());
        type Case = (
            &'static [(&'static str, &'static str, u64)],
            &'static [&'static str],
        );
        let cases: [Case; 6] = [
            (
                &[
                    ("malloc", LIBC, 1),
                    ("_ZN3app4leakEv", APP, 2),
                    ("main", APP, 3),
                ],
                &["app::leak()", "main"],
            ),
            (
                &[
                    ("malloc", LIBC, 1),
                    ("_Znwm", "/system/lib64/libc++.so", 2),
                    ("f", APP, 3),
                ],
                &["f"],
            ),
            (
                &[("", LIBC, 0x40), ("strdup", LIBC, 2), ("g", APP, 4)],
                &["strdup", "g"],
            ),
            (
                &[
                    (
                        "art::gc::Heap::Alloc()",
                        "/apex/com.android.art/lib64/libart.so",
                        1,
                    ),
                    ("com.example.Main.onCreate", "/data/app/base.apk", 2),
                ],
                &["com.example.Main.onCreate"],
            ),
            (&[("malloc", LIBC, 1)], &["malloc"]),
            (
                &[("", APP, 0x1f0), ("main", APP, 3)],
                &["libapp.so+0x1f0", "main"],
            ),
        ];
        for (stack, expected) in cases {
            let callsite = stacks.callsite(stack);
            let frames = frames_of(&mut FrameNamer::new(&stacks.0), callsite);
            let shown: Vec<&str> = frames.iter().map(|f| f.function.as_str()).collect();
            assert_eq!(shown, expected);
        }
    }

    #[test]
    fn the_last_dump_of_each_heap_counts_and_same_names_are_one() {
        let mut stacks = Stacks(Recording::default());
        let leak = stacks.callsite(&[("leak", "/a", 1), ("main", "/a", 9)]);
        let same = stacks.callsite(&[("leak", "/a", 2), ("main", "/a", 9)]);
        let cache = stacks.callsite(&[("cache", "/a", 3)]);
        let freed = stacks.callsite(&[("freed", "/a", 4)]);
        let dump = |samples: &[(CallsiteId, Figures)]| HeapDump {
            pid: 5,
            process: "app".to_owned(),
            heap: "libc.malloc".to_owned(),
            samples: samples.to_vec(),
            ..HeapDump::default()
        };
        let mut summarizer = Summarizer::default();
        summarizer.add(&dump(&[(leak, held(1))]));
        summarizer.add(&dump(&[
            (leak, held(60)),
            (same, held(50)),
            (cache, held(100)),
            (freed, held(0)),
        ]));
        summarizer.add(&HeapDump {
            heap: "small".to_owned(),
            ..dump(&[(cache, held(7))])
        });
        let summaries = summarizer.finish(&stacks.0);
        let [malloc, small] = summaries.as_slice() else {
            panic!("two heaps: {summaries:?}");
        };
        assert_eq!((malloc.dumps, malloc.callsites), (2, 4));
        assert_eq!(malloc.totals.space, 210);
        assert_eq!(malloc.top.len(), 2, "what is freed is not shown");
        assert_eq!(functions(&malloc.top[0]), ["leak", "main"]);
        assert_eq!(malloc.top[0].figures, {
            let mut both = held(60);
            both.add(&held(50));
            both
        });
        assert_eq!(small.top[0].figures.space, 7);
    }

    #[test]
    fn recursion_of_any_depth_is_one_row() {
        let mut stacks = Stacks(Recording::default());
        let main = ("main", "/a", 9);
        let walk = ("walk", "/a", 1);
        let once = stacks.callsite(&[walk, main]);
        let twice = stacks.callsite(&[walk, walk, main]);
        let often = stacks.callsite(&[walk, ("walk", "/a", 2), walk, walk, main]);
        let mut summarizer = Summarizer::default();
        summarizer.add(&HeapDump {
            samples: vec![(once, held(1)), (twice, held(10)), (often, held(20))],
            ..HeapDump::default()
        });
        let summary = summarizer.finish(&stacks.0).remove(0);
        let shown: Vec<(i64, bool)> = summary
            .top
            .iter()
            .map(|site| (site.figures.space, site.frames[0].recursive))
            .collect();
        assert_eq!(shown, [(30, true), (1, false)]);
        assert_eq!(functions(&summary.top[0]), ["walk", "main"]);
    }

    #[test]
    fn where_frees_are_unknown_allocations_decide() {
        let mut stacks = Stacks(Recording::default());
        let a = stacks.callsite(&[("a", "/a", 1)]);
        let b = stacks.callsite(&[("b", "/a", 2)]);
        let allocated = |bytes| Figures {
            alloc_space: bytes,
            alloc_objects: 1,
            ..Figures::default()
        };
        let mut summarizer = Summarizer::default();
        summarizer.add(&HeapDump {
            kind: DumpKind::AllocationsOnly,
            samples: vec![(a, allocated(5)), (b, allocated(9))],
            ..HeapDump::default()
        });
        let summary = summarizer.finish(&stacks.0).remove(0);
        assert!(!summary.knows_frees());
        assert_eq!(functions(&summary.top[0]), ["b"]);
    }

    #[test]
    fn of_many_callsites_the_largest_are_kept() {
        let dump = HeapDump {
            samples: (0..10_000)
                .map(|i| (CallsiteId(i), held(i64::from(i) * 7 % 9973)))
                .collect(),
            ..HeapDump::default()
        };
        let kept = largest(&dump);
        let mut all: Vec<i64> = dump.samples.iter().map(|(_, f)| f.space).collect();
        all.sort_unstable_by_key(|s| Reverse(*s));
        let spaces: Vec<i64> = kept.iter().map(|(_, f)| f.space).collect();
        assert_eq!(spaces, all[..KEPT]);
    }
}
