//! Native heaps: callstacks, with inlined functions as separate frames, outermost first. All heaps
//! of a process and all its dumps up to a time are added up. As in Perfetto, every frame of the
//! trace is present, even if nothing was allocated in it by then.

use std::sync::{Arc, OnceLock};

use super::arguments::Asked;
use super::tree::{Figures, Flamegraph, Label, Layout, Order};
use crate::native::{NativeHeaps, time_of};
use crate::processes::Processes;
use crate::stop::Stop;
use crate::table::TableError;
use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::profile::interned::Texts;
use heaptap_model::profile::{FrameId, Recording, StringId};

/// Callstacks of a trace.
pub(super) struct Stacks {
    heaps: Arc<NativeHeaps>,
    processes: Arc<Processes>,
    tree: OnceLock<Tree>,
}

struct Tree {
    layout: Arc<Layout>,
    /// Innermost node of each row of the callsites.
    innermost: Vec<u32>,
}

impl Stacks {
    pub(super) fn new(heaps: &Arc<NativeHeaps>, processes: &Arc<Processes>) -> Stacks {
        Stacks {
            heaps: Arc::clone(heaps),
            processes: Arc::clone(processes),
            tree: OnceLock::new(),
        }
    }

    /// Returns the unreleased and allocated memory of a process up to a time.
    pub(super) fn flamegraph(&self, asked: &Asked, stop: &Stop) -> Result<Flamegraph, TableError> {
        let dumps = self.heaps.dumps.iter();
        let wanted = dumps.map(|dump| {
            let upid = self.processes.upid(dump.pid);
            time_of(dump) <= asked.ts && upid.is_some_and(|upid| asked.upids.contains(&upid.into()))
        });
        let wanted: Vec<bool> = wanted.collect();
        if !wanted.contains(&true) {
            return Err(TableError(format!(
                "experimental_flamegraph: no native heap of upid {} was dumped at or before {}; \
                 run SELECT upid, ts_end FROM heap_profile",
                asked.upids.first().copied().unwrap_or_default(),
                asked.ts
            )));
        }
        let tree = match self.tree.get() {
            Some(tree) => tree,
            None => {
                let tree = Tree::new(&self.heaps, stop)?;
                self.tree.get_or_init(|| tree)
            }
        };
        let mut own = vec![Figures::default(); tree.layout.parents.len()];
        let callsites = self.heaps.callsites(stop)?;
        for (at, delta) in self.heaps.deltas.iter().enumerate() {
            stop.check_at(at)?;
            let row = callsites.leaf(delta.callsite);
            let Some(row) = row.filter(|_| wanted[delta.dump as usize]) else {
                continue;
            };
            let figures = &mut own[tree.innermost[row as usize] as usize];
            figures.add(Figures {
                count: delta.count,
                size: delta.size,
                alloc_count: delta.count.max(0),
                alloc_size: delta.size.max(0),
            });
        }
        let layout = Arc::clone(&tree.layout);
        let focus = asked.focus.as_deref();
        Flamegraph::new(layout, own, focus, Order::Given, stop)
    }
}

impl Tree {
    fn new(heaps: &NativeHeaps, stop: &Stop) -> Result<Tree, TableError> {
        let recording = &heaps.recording;
        let mut layout = Layout::default();
        let frames = 0..heaps.frames().len() as u32;
        let expanded: Vec<Vec<Label>> = frames
            .map(|frame| expand(recording, FrameId(frame), &mut layout.texts))
            .collect();
        let seed = Seed::default();
        let mut index = Index::default();
        let callsites = heaps.callsites(stop)?.rows();
        let mut innermost: Vec<u32> = Vec::with_capacity(callsites.len());
        for (at, callsite) in callsites.iter().enumerate() {
            stop.check_at(at)?;
            let mut node = callsite.parent.map(|parent| innermost[parent as usize]);
            for &label in &expanded[callsite.frame.0 as usize] {
                let above = node.unwrap_or(u32::MAX);
                let names = u64::from(label.name) << 32 | u64::from(label.map_name);
                let hash = seed.number(names ^ seed.number(above.into()));
                let next = layout.parents.len() as u32;
                let same = |at: u32| {
                    let known = layout.labels[at as usize];
                    layout.parents[at as usize] == node
                        && (known.name, known.map_name) == (label.name, label.map_name)
                };
                let (at, there) = index.find_or_insert(hash, next, same);
                if !there {
                    layout.parents.push(node);
                    layout.labels.push(label);
                }
                node = Some(at);
            }
            innermost.push(node.unwrap_or_default());
        }
        layout.texts.seal();
        Ok(Tree {
            layout: Arc::new(layout),
            innermost,
        })
    }
}

/// Returns the functions of a frame, outermost first: at least one.
fn expand(recording: &Recording, frame: FrameId, texts: &mut Texts) -> Vec<Label> {
    let of_frame = recording.tables.frame(frame);
    let mapping = of_frame
        .mapping
        .map(|mapping| recording.tables.mapping(mapping));
    let path = mapping.map_or(StringId::default(), |mapping| mapping.path);
    let mut number = |text| texts.id(recording.tables.string(text));
    let map_name = number(path);
    let lines = recording.symbols.lines(frame);
    if lines.is_empty() {
        let name = recording.symbols.name(frame).unwrap_or(of_frame.name);
        return vec![Label {
            name: number(name),
            map_name,
            source_file: None,
            line: None,
        }];
    }
    let lines = lines.iter().rev();
    let labels = lines.map(|line| Label {
        name: number(line.function),
        map_name,
        source_file: (line.file != StringId::default()).then(|| number(line.file)),
        line: (line.line > 0).then_some(line.line),
    });
    labels.collect()
}
