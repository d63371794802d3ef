//! Conversion of a recording to named stacks. Time and memory are proportional to the number of
//! distinct callsites: each becomes a node once, regardless of the number of dumps; each frame is
//! named once for each of its annotations.

mod list;
mod runs;

use self::list::Packing;
pub use self::runs::ProjectOptions;
use self::runs::Runs;
use super::dump::{Dump, Facts, Measure, StackProfile, Values, View};
use super::naming::FrameNamer;
use super::table::NodeId;
use crate::profile::interned::span;
use crate::profile::{CallsiteId, DumpKind, DumpNumbers, Figures, HeapDump, Recording};

/// Converts the dumps of a recording to named stacks, numbered in their order.
pub fn project(recording: &Recording, dumps: &[HeapDump], options: ProjectOptions) -> StackProfile {
    let mut projector = Projector::new(recording, options);
    let mut numbers = DumpNumbers::default();
    for dump in dumps {
        let number = numbers.next(dump.pid, &dump.heap);
        projector.add(dump, Facts::new(dump, number));
    }
    projector.finish()
}

impl Facts {
    pub fn new(dump: &HeapDump, number: u32) -> Facts {
        Facts {
            number,
            label: None,
            pid: dump.pid,
            process: dump.process.clone(),
            heap: dump.heap.clone(),
            time_ns: dump.time_ns,
            wall_time_ns: dump.wall_time_ns,
            start_ns: dump.start_ns,
            sampling_interval_bytes: dump.sampling_interval_bytes,
            orig_sampling_interval_bytes: dump.orig_sampling_interval_bytes,
            kind: dump.kind,
            flags: dump.flags,
            unfinished: dump.unfinished,
            open: dump.open,
            is_default: false,
        }
    }
}

impl View {
    /// Returns the views of a dump, in the order of our pprofs, and the index of the default one.
    pub fn of_kind(kind: DumpKind) -> (&'static [View], usize) {
        match kind {
            DumpKind::AllocationsOnly => (&[View::AllocObjects, View::AllocSpace], 1),
            DumpKind::Cumulative
            | DumpKind::AtMaximum
            | DumpKind::JavaHeap
            | DumpKind::Difference => (
                &[
                    View::Objects,
                    View::Space,
                    View::AllocObjects,
                    View::AllocSpace,
                ],
                1,
            ),
        }
    }

    /// Returns the figure of this view.
    #[inline]
    pub fn of(self, figures: &Figures) -> i64 {
        match self {
            View::Space => figures.space,
            View::Objects => figures.objects,
            View::AllocSpace => figures.alloc_space,
            View::AllocObjects => figures.alloc_objects,
        }
    }
}

/// Number of stack frames for each allowed node, in addition to [`NODES`]. Real traces need fewer
/// nodes, because stacks share their beginnings, and a frame represents one to three functions.
const FRAMES_PER_NODE: usize = 2;
/// Nodes that any stacks can use; the same number again is reserved for functions without inlined
/// ones.
const NODES: usize = 1 << 20;
/// Maximum number of nodes.
const MAX_NODES: usize = 1 << 31;

/// Frames that are not completely in the stacks, because they would multiply beyond what any
/// program does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Unexpanded {
    /// Frames without the functions inlined into them.
    pub without_inlined: u64,
    /// Frames that are left out; their allocations count for their callers.
    pub dropped: u64,
}

/// Projects the dumps of one recording one by one, so that they need not be in memory at the same
/// time.
#[derive(Debug)]
pub struct Projector<'a> {
    runs: Runs<'a>,
    packing: Packing,
    /// Node by callsite; the root if not yet known, or for a callsite without frames.
    nodes: Vec<NodeId>,
    /// Number of nodes up to which frames are expanded.
    limit: usize,
    /// Additional nodes for functions without inlined ones.
    more: usize,
    unexpanded: Unexpanded,
    dumps: Vec<Dump>,
}

impl<'a> Projector<'a> {
    /// Creates a projector without dumps.
    pub fn new(recording: &'a Recording, options: ProjectOptions) -> Projector<'a> {
        Projector {
            runs: Runs::new(recording, options),
            packing: Packing::new(NODES),
            nodes: vec![NodeId::ROOT; recording.tables.callsite_count()],
            limit: NODES,
            more: NODES,
            unexpanded: Unexpanded::default(),
            dumps: Vec::new(),
        }
    }

    /// Adds a dump. `facts` can have more than the dump itself.
    pub fn add(&mut self, dump: &HeapDump, facts: Facts) {
        let samples = dump.samples.iter().map(|(callsite, _)| *callsite);
        let new = samples.filter(|c| self.nodes[c.0 as usize] == NodeId::ROOT);
        let new: Vec<CallsiteId> = new.collect();
        match self.runs.table.list() {
            Some(_) => {
                let without_inlined = self.packing.list(&mut self.runs, &new, &mut self.nodes);
                self.unexpanded.without_inlined += without_inlined;
            }
            None => self.enter(&new),
        }
        // Callsites that differ only in addresses become one.
        let rows = dump.samples.iter();
        let rows = rows.map(|(callsite, _)| self.nodes[callsite.0 as usize]);
        let (views, default_measure) = View::of_kind(dump.kind);
        let values = Values::sum(rows.zip(0..), views.len(), |column, row| {
            views[column].of(&dump.samples[row as usize].1)
        });
        self.dumps.push(Dump {
            facts,
            measures: views.iter().copied().map(Measure::of_view).collect(),
            default_measure,
            values,
            threads: Vec::new(),
        });
    }

    /// Returns the namer of the frames; the names of the dumps so far are demangled.
    pub fn namer(&mut self) -> &mut FrameNamer<'a> {
        &mut self.runs.namer
    }

    /// Removes the last dump. Its stacks stay in the table.
    pub fn pop(&mut self) -> Option<Dump> {
        self.dumps.pop()
    }

    /// Returns the frames of the dumps so far that are not completely in the stacks.
    pub fn unexpanded(&self) -> Unexpanded {
        self.unexpanded
    }

    /// Returns the profile of all added dumps.
    pub fn finish(mut self) -> StackProfile {
        self.runs.table.seal();
        StackProfile {
            table: self.runs.table,
            dumps: self.dumps,
        }
    }

    /// Adds callsites to the tree. All descend it together, grouped by frame at each depth, so that
    /// common beginnings are looked up once.
    fn enter(&mut self, new: &[CallsiteId]) {
        let more = self.runs.name(new) / FRAMES_PER_NODE;
        self.limit = self.limit.saturating_add(more).min(MAX_NODES);
        let mut below: Vec<_> = new
            .iter()
            .map(|&callsite| self.runs.all_frames(callsite))
            .collect();
        // Position in `new`, and in the upper half the next run of the callsite.
        let mut parted: Vec<u64> = (0..new.len() as u64).collect();
        let mut open = vec![(0..parted.len(), NodeId::ROOT)];
        while let Some((group, node)) = open.pop() {
            if let [only] = parted[group.clone()] {
                let at = only as u32 as usize;
                let mut leaf = node;
                while let Some(run) = self.runs.next_run(&mut below[at]) {
                    leaf = self.step(leaf, run);
                }
                self.nodes[new[at].0 as usize] = leaf;
                continue;
            }
            let part = &mut parted[group.clone()];
            for key in part.iter_mut() {
                let at = *key as u32;
                // 0 sorts first and means that a stack ends here.
                let run = self.runs.next_run(&mut below[at as usize]);
                *key = u64::from(run.unwrap_or(0)) << 32 | u64::from(at);
            }
            let run_of = |key: u64| (key >> 32) as u32;
            if !part.is_sorted() {
                part.sort_unstable();
            }
            let mut start = group.start;
            for part in parted[group].chunk_by(|a, b| run_of(*a) == run_of(*b)) {
                let next = start + part.len();
                match run_of(part[0]) {
                    0 => {
                        for key in part {
                            self.nodes[new[*key as u32 as usize].0 as usize] = node;
                        }
                    }
                    run => {
                        let child = self.step(node, run);
                        open.push((start..next, child));
                    }
                }
                start = next;
            }
        }
    }

    /// Returns the callsite of a run called from `node`: only its own function if the inlined ones
    /// would exceed the limit, or `node` itself if that would exceed it, too.
    fn step(&mut self, node: NodeId, run: u32) -> NodeId {
        let frames = &self.runs.run_frames[span(&self.runs.run_ends, run - 1)];
        let table = &mut self.runs.table;
        let kept = match table.node_count() {
            there if there + frames.len() <= self.limit => frames.len(),
            // Functions without inlined ones have a higher limit.
            there if there < (self.limit + self.more).min(MAX_NODES) => 1,
            _ => 0,
        };
        if kept < frames.len() {
            let count = match kept {
                0 => &mut self.unexpanded.dropped,
                _ => &mut self.unexpanded.without_inlined,
            };
            *count += 1;
        }
        frames
            .iter()
            .take(kept)
            .fold(node, |node, &frame| table.child(node, frame))
    }
}

#[cfg(test)]
mod tests {
    use super::super::table::Kind;
    use super::*;
    use crate::profile::{self, Line, Mapping, StringId};
    use std::collections::BTreeMap;

    fn frame(recording: &mut Recording, name: &str, path: &str, rel_pc: u64) -> u32 {
        let tables = &mut recording.tables;
        let path = tables.intern_str(path);
        let mapping = Some(tables.intern_mapping(Mapping {
            path,
            ..Mapping::default()
        }));
        let name = tables.intern_str(name);
        let frame = tables.intern_frame(profile::Frame {
            mapping,
            rel_pc,
            name,
            file: StringId::default(),
            line: 0,
        });
        frame.0
    }

    fn figures(space: i64) -> Figures {
        Figures {
            space,
            objects: 1,
            alloc_space: space.saturating_mul(2),
            alloc_objects: 3,
        }
    }

    /// Returns the names and kinds of a stack, leaf first.
    fn stack(profile: &StackProfile, leaf: NodeId) -> Vec<(&str, Kind, bool)> {
        let table = &profile.table;
        let frame = |node| {
            let frame = table.frames()[table.frame_of(node).unwrap().0 as usize];
            let function = &table.functions()[frame.function.0 as usize];
            (table.text_of(function.name), function.kind, frame.inlined)
        };
        table.stack(leaf).map(frame).collect()
    }

    #[test]
    fn frames_are_named_as_in_pprofs_and_inlined_ones_stand_alone() {
        let mut recording = Recording::default();
        let libapp = "/data/app/x/base.apk!libapp.so";
        let leaf = frame(&mut recording, "malloc", "/lib/libc.so", 1);
        let load = frame(&mut recording, "_ZN3app4loadEv", libapp, 2);
        let bare = frame(&mut recording, "", libapp, 0x30);
        let art = frame(&mut recording, "art_quick_invoke_stub", "/x/libart.so", 4);
        let java = frame(&mut recording, "com.x.Main.run", "/x/base.odex", 5);
        let line = |recording: &mut Recording, name: &str, line| Line {
            function: recording.tables.intern_str(name),
            linkage: recording.tables.intern_str(name),
            file: recording.tables.intern_str("load.cc"),
            line,
        };
        let lines = [
            line(&mut recording, "app::grow()", 7),
            line(&mut recording, "app::load()", 9),
        ];
        let row = recording.symbols.add_lines(&lines).unwrap();
        recording.symbols.set_lines(profile::FrameId(load), row);
        let callsite = [leaf, load, bare, art, java];
        let callsite = recording.tables.intern_callsite(&callsite);
        let dump = HeapDump {
            samples: vec![(callsite, figures(100))],
            ..HeapDump::default()
        };
        let profile = project(&recording, &[dump], ProjectOptions::default());
        let dump = &profile.dumps[0];
        assert_eq!(dump.column(View::Space), Some(&[100][..]));
        assert_eq!(dump.column(View::AllocSpace), Some(&[200][..]));
        assert_eq!(
            stack(&profile, dump.values.nodes[0]),
            [
                ("malloc", Kind::Allocator, false),
                ("app::grow()", Kind::Plain, true),
                ("app::load()", Kind::Plain, false),
                ("libapp.so+0x30", Kind::Plain, false),
                ("art_quick_invoke_stub [common-frame]", Kind::Runtime, false),
                ("com.x.Main.run [aot]", Kind::Java, false),
            ]
        );
        let plain = ProjectOptions {
            annotations: false,
            list: false,
        };
        let profile = project(&recording, &[HeapDump::default()], plain);
        assert_eq!(profile.table.node_count(), 1, "only what has numbers");
    }

    #[test]
    fn inlining_that_multiplies_beyond_measure_is_not_expanded() {
        let mut recording = Recording::default();
        let load = frame(&mut recording, "load", "/x/libapp.so", 1);
        let lines: Vec<Line> = (0..200)
            .map(|line| Line {
                function: recording.tables.intern_str("grow"),
                linkage: recording.tables.intern_str("grow"),
                file: recording.tables.intern_str("load.cc"),
                line,
            })
            .collect();
        let row = recording.symbols.add_lines(&lines).unwrap();
        recording.symbols.set_lines(profile::FrameId(load), row);
        let callsite = recording.tables.intern_callsite(&[load; 50]);
        let dump = HeapDump {
            samples: vec![(callsite, figures(100))],
            ..HeapDump::default()
        };
        let mut projector = Projector::new(&recording, ProjectOptions::default());
        projector.limit = 376;
        projector.add(&dump, Facts::new(&dump, 0));
        let unexpanded = Unexpanded {
            without_inlined: 48,
            dropped: 0,
        };
        assert_eq!(projector.unexpanded(), unexpanded);
        let profile = projector.finish();
        // The root, two frames with all inlined functions, and only the own functions of the
        // others.
        assert_eq!(profile.table.node_count(), 1 + 2 * 200 + 48);
        assert_eq!(profile.dumps[0].column(View::Space), Some(&[100][..]));
        let all = project(&recording, &[dump], ProjectOptions::default());
        assert_eq!(all.table.node_count(), 1 + 50 * 200);
    }

    #[test]
    fn functions_that_there_is_no_room_for_are_no_matter_of_inlining() {
        let mut recording = Recording::default();
        let load = frame(&mut recording, "load", "/x/libapp.so", 1);
        let callsite = recording.tables.intern_callsite(&[load; 50]);
        let dump = HeapDump {
            samples: vec![(callsite, figures(100))],
            ..HeapDump::default()
        };
        let mut projector = Projector::new(&recording, ProjectOptions::default());
        // 25 by the number of frames.
        (projector.limit, projector.more) = (0, 5);
        projector.add(&dump, Facts::new(&dump, 0));
        let dropped = Unexpanded {
            without_inlined: 0,
            dropped: 21,
        };
        assert_eq!(projector.unexpanded(), dropped);
        let profile = projector.finish();
        assert_eq!(profile.table.node_count(), 25 + 5, "the root is one");
        assert_eq!(profile.dumps[0].column(View::Space), Some(&[100][..]));
    }

    #[test]
    fn callsites_that_differ_in_addresses_alone_are_one() {
        let mut recording = Recording::default();
        let main = frame(&mut recording, "main", "/x/libapp.so", 1);
        let [one, other] = [2, 3].map(|pc| frame(&mut recording, "load", "/x/libapp.so", pc));
        let tables = &mut recording.tables;
        let sites = [
            vec![one, main],
            vec![main],
            vec![other, main],
            vec![],
            vec![main, main],
        ];
        let sites = sites.map(|frames| tables.intern_callsite(&frames));
        let dump = |space: i64, kind| HeapDump {
            samples: sites.iter().map(|&site| (site, figures(space))).collect(),
            kind,
            ..HeapDump::default()
        };
        let dumps = [
            dump(i64::MAX, DumpKind::Cumulative),
            dump(5, DumpKind::AllocationsOnly),
        ];
        let profile = project(&recording, &dumps, ProjectOptions::default());
        let table = &profile.table;
        let [first, second] = &profile.dumps[..] else {
            panic!("two dumps")
        };
        let named = |dump: &Dump, view| {
            let nodes = dump.values.nodes.iter();
            let stack = |node| table.stack(node).map(|node| table.name_of(node));
            let stacks = nodes.map(|&node| stack(node).collect::<Vec<_>>().join(" < "));
            let column = dump.column(view).unwrap().iter().copied();
            stacks.zip(column).collect::<BTreeMap<String, i64>>()
        };
        let expected = |values: [i64; 4]| {
            let stacks = ["", "main", "load < main", "main < main"].map(str::to_owned);
            stacks.into_iter().zip(values).collect::<BTreeMap<_, _>>()
        };
        let max = i64::MAX;
        assert_eq!(named(first, View::Space), expected([max, max, max, max]));
        assert_eq!(named(first, View::Objects), expected([1, 1, 2, 1]));
        assert_eq!(second.values.nodes, first.values.nodes);
        assert_eq!(second.column(View::Space), None);
        assert_eq!(named(second, View::AllocSpace), expected([10, 10, 20, 10]));
        assert_eq!(second.measures[second.default_measure].name, "alloc_space");
        assert_eq!(second.facts.number, 2);
        // A removed dump is missing and does not change the others.
        let mut projector = Projector::new(&recording, ProjectOptions::default());
        projector.add(&dumps[0], Facts::new(&dumps[0], 1));
        let taken_back = projector.pop().expect("it was added");
        assert_eq!(taken_back, *first);
        projector.add(&dumps[1], Facts::new(&dumps[1], 2));
        assert_eq!(projector.finish().dumps, std::slice::from_ref(second));
    }
}
