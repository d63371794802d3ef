//! Callstacks with separate rows for inlined functions, below the function into which they were
//! inlined; and `android_heap_profile_summary_tree`, with the memory of each.

use std::sync::Arc;

use crate::native::NativeHeaps;
use crate::once::read_once;
use crate::stop::Stop;
use crate::table::{Catalog, Cell, Schema, TableError, columns, schema};
use heaptap_model::names::demangle;
use heaptap_model::profile::{FrameId, Line, StringId};

static FOREST: Schema = schema! {
    "_callstack_spc_forest" in "callstacks.stack_profile":
        "Callstacks as a tree, including inlined functions.";
    id int row: "number of the row";
    parent_id int indexed: "callstack that called it";
    name text indexed: "function, demangled";
    mapping_id int: "file that contains it: `stack_profile_mapping.id`";
    source_file text: "source file, if known";
    line_number int: "line number, if known";
    column_number int: "always 0";
    inlined int: "always NULL: not recorded";
    callsite_id int indexed: "callsite: `stack_profile_callsite.id`";
    is_leaf_function_in_callsite_frame int: "1 for the innermost function of the callsite's frame";
};

static SUMMARY: Schema = schema! {
    "android_heap_profile_summary_tree" in "android.memory.heap_profile.summary_tree": "Callstacks \
        with their unreleased and allocated memory, over all processes and dumps. As in Perfetto, \
        a callsite's own bytes count for each function inlined there.";
    id int sorted: "callstack";
    parent_id int indexed: "callstack that called it";
    name text indexed: "function, demangled";
    mapping_name text: "file that contains it";
    source_file text: "source file, if known";
    line_number int: "line number, if known";
    self_size int: "unreleased bytes allocated by the function itself";
    cumulative_size int: "unreleased bytes allocated by it and all functions below";
    self_alloc_size int: "bytes allocated by the function itself, including freed ones";
    cumulative_alloc_size int: "bytes allocated by it and all functions below";
};

pub(super) fn add(catalog: &mut Catalog, native: &Arc<NativeHeaps>) {
    let (heaps, stop) = (Arc::clone(native), catalog.stop());
    let forest = read_once(move || Forest::new(Arc::clone(&heaps), &stop));
    let distinct = |of: &Forest, column| (column == 8).then_some(of.starts.len());
    catalog.counted_rows(&FOREST, &forest, Forest::len, Forest::cell, distinct);
    let stop = catalog.stop();
    let summary = read_once(move || Summary::new(forest()?, &stop));
    catalog.rows(&SUMMARY, &summary, |all| all.rows.len(), summary_cell);
}

/// Callsites with one row for each function of the frame, innermost first.
struct Forest {
    heaps: Arc<NativeHeaps>,
    /// Row of each callsite's first function; one entry more than callsites.
    starts: Vec<u32>,
}

/// Function of a callsite.
struct Function<'a> {
    callsite: usize,
    frame: FrameId,
    line: Option<&'a Line>,
    is_innermost: bool,
    is_outermost: bool,
}

impl Forest {
    fn new(heaps: Arc<NativeHeaps>, stop: &Stop) -> Result<Forest, TableError> {
        let callsites = heaps.callsites(stop)?.rows();
        let mut starts = Vec::with_capacity(callsites.len() + 1);
        let mut next = 0u32;
        for (at, callsite) in callsites.iter().enumerate() {
            stop.check_at(at)?;
            starts.push(next);
            let lines = heaps.recording.symbols.lines(callsite.frame).len();
            next = next.saturating_add(lines.max(1) as u32);
        }
        starts.push(next);
        Ok(Forest { heaps, starts })
    }

    fn len(&self) -> usize {
        self.starts[self.starts.len() - 1] as usize
    }

    fn function(&self, row: usize) -> Function<'_> {
        let behind = self.starts.partition_point(|&start| start as usize <= row);
        let callsite = behind - 1;
        let frame = self.heaps.made_callsites().rows()[callsite].frame;
        let lines = self.heaps.recording.symbols.lines(frame);
        let at = row - self.starts[callsite] as usize;
        Function {
            callsite,
            frame,
            line: lines.get(at),
            is_innermost: at == 0,
            is_outermost: at + 1 >= lines.len(),
        }
    }

    /// Returns the row of the function that calls it or that it was inlined into.
    fn parent(&self, row: usize) -> Option<u32> {
        let function = self.function(row);
        if !function.is_outermost {
            return Some(row as u32 + 1);
        }
        let parent = self.heaps.made_callsites().rows()[function.callsite].parent?;
        Some(self.starts[parent as usize])
    }

    fn name(&self, row: usize) -> Cell<'_> {
        let recording = &self.heaps.recording;
        let function = self.function(row);
        let name = match function.line {
            Some(line) => line.function,
            None => {
                let recorded = recording.tables.frame(function.frame).name;
                recording.symbols.name(function.frame).unwrap_or(recorded)
            }
        };
        Cell::Text(demangle(recording.tables.string(name)))
    }

    fn source_file(&self, row: usize) -> Cell<'_> {
        let file = self.function(row).line.map(|line| line.file);
        let file = file.filter(|&file| file != StringId::default());
        file.map(|file| self.heaps.recording.tables.string(file))
            .into()
    }

    fn line_number(&self, row: usize) -> Cell<'_> {
        let line = self.function(row).line.map(|line| line.line);
        line.filter(|&line| line > 0).into()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match column {
            0 => row.into(),
            1 => self.parent(row).into(),
            2 => self.name(row),
            3 => self.mapping_id(row),
            4 => self.source_file(row),
            5 => self.line_number(row),
            6 => Cell::Int(0),
            8 => self.function(row).callsite.into(),
            9 => Cell::flag(self.function(row).is_innermost),
            _ => Cell::Null,
        }
    }

    fn mapping_id(&self, row: usize) -> Cell<'_> {
        let tables = &self.heaps.recording.tables;
        // Frames without a file have a mapping after all others.
        match tables.frame(self.function(row).frame).mapping {
            Some(mapping) => mapping.0.into(),
            None => tables.mappings().len().into(),
        }
    }

    fn mapping_name(&self, row: usize) -> Cell<'_> {
        let tables = &self.heaps.recording.tables;
        let mapping = tables.frame(self.function(row).frame).mapping;
        let path = mapping.map(|mapping| tables.string(tables.mapping(mapping).path));
        Cell::text(path.unwrap_or_default())
    }
}

#[derive(Clone, Copy, Default)]
struct Bytes {
    held: i64,
    allocated: i64,
}

impl Bytes {
    fn add(&mut self, other: Bytes) {
        self.held = self.held.saturating_add(other.held);
        self.allocated = self.allocated.saturating_add(other.allocated);
    }
}

struct Summary {
    forest: Arc<Forest>,
    /// Rows of the forest on the path to a sampled callsite.
    rows: Vec<u32>,
    /// By callsite.
    own: Vec<Bytes>,
    /// By row of `rows`.
    sums: Vec<Bytes>,
}

impl Summary {
    fn new(forest: Arc<Forest>, stop: &Stop) -> Result<Summary, TableError> {
        let callsites = forest.heaps.made_callsites();
        let mut own = vec![Bytes::default(); callsites.rows().len()];
        let mut is_sampled = vec![false; own.len()];
        for delta in &forest.heaps.deltas {
            let Some(callsite) = callsites.leaf(delta.callsite) else {
                continue;
            };
            is_sampled[callsite as usize] = true;
            own[callsite as usize].add(Bytes {
                held: delta.size,
                allocated: delta.size.max(0),
            });
        }
        for at in (0..own.len()).rev() {
            if let Some(parent) = callsites.rows()[at].parent {
                is_sampled[parent as usize] |= is_sampled[at];
            }
        }
        let mut all = vec![Bytes::default(); forest.len()];
        // Callees come before callers, and inlined functions before the functions that contain
        // them.
        for callsite in (0..own.len()).rev() {
            stop.check_at(callsite)?;
            for row in forest.starts[callsite]..forest.starts[callsite + 1] {
                all[row as usize].add(own[callsite]);
                let sum = all[row as usize];
                if let Some(parent) = forest.parent(row as usize) {
                    all[parent as usize].add(sum);
                }
            }
        }
        let mut rows = Vec::new();
        for (callsite, _) in is_sampled.iter().enumerate().filter(|(_, is)| **is) {
            rows.extend(forest.starts[callsite]..forest.starts[callsite + 1]);
        }
        let sums = rows.iter().map(|&row| all[row as usize]).collect();
        Ok(Summary {
            forest,
            rows,
            own,
            sums,
        })
    }
}

fn summary_cell(of: &Summary, row: usize, column: usize) -> Cell<'_> {
    let at = of.rows[row] as usize;
    let own = || of.own[of.forest.function(at).callsite];
    match column {
        3 => of.forest.mapping_name(at),
        0..=5 => of.forest.cell(at, column),
        6 => own().held.into(),
        7 => of.sums[row].held.into(),
        8 => own().allocated.into(),
        _ => of.sums[row].allocated.into(),
    }
}
