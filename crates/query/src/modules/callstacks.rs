//! Callstacks with separate rows for inlined functions, below the function into which they were
//! inlined; and `android_heap_profile_summary_tree`, with the memory of each.

use std::sync::Arc;

use crate::native::NativeHeaps;
use crate::once::Once;
use crate::stop::Stop;
use crate::table::{Catalog, Cell, Column, Rows, Schema, TableError};
use heaptap_model::names::demangle;
use heaptap_model::profile::{FrameId, Line, StringId};

static FOREST: Schema = Schema {
    name: "_callstack_spc_forest",
    module: Some("callstacks.stack_profile"),
    about: "Callstacks as a tree, including inlined functions.",
    columns: &[
        Column::id(),
        Column::int("parent_id", "callstack that called it").indexed(),
        Column::text("name", "function, demangled").indexed(),
        Column::int(
            "mapping_id",
            "file that contains it: `stack_profile_mapping.id`",
        ),
        Column::text("source_file", "source file, if known"),
        Column::int("line_number", "line number, if known"),
        Column::int("column_number", "always 0"),
        Column::int("inlined", "always NULL: not recorded"),
        Column::int("callsite_id", "callsite: `stack_profile_callsite.id`").indexed(),
        Column::int(
            "is_leaf_function_in_callsite_frame",
            "1 for the innermost function of the callsite's frame",
        ),
    ],
};

static SUMMARY: Schema = Schema {
    name: "android_heap_profile_summary_tree",
    module: Some("android.memory.heap_profile.summary_tree"),
    about: "Callstacks with their unreleased and allocated memory, over all processes and dumps. \
            As in Perfetto, a callsite's own bytes count for each function inlined there.",
    columns: &[
        Column::int("id", "callstack").sorted(),
        Column::int("parent_id", "callstack that called it").indexed(),
        Column::text("name", "function, demangled").indexed(),
        Column::text("mapping_name", "file that contains it"),
        Column::text("source_file", "source file, if known"),
        Column::int("line_number", "line number, if known"),
        Column::int(
            "self_size",
            "unreleased bytes allocated by the function itself",
        ),
        Column::int(
            "cumulative_size",
            "unreleased bytes allocated by it and all functions below",
        ),
        Column::int(
            "self_alloc_size",
            "bytes allocated by the function itself, including freed ones",
        ),
        Column::int(
            "cumulative_alloc_size",
            "bytes allocated by it and all functions below",
        ),
    ],
};

pub(super) fn add(catalog: &mut Catalog, native: &Arc<NativeHeaps>) {
    let heaps = Arc::clone(native);
    let stop = catalog.stop();
    let kept = Once::new();
    let forest = move || kept.get(|| Forest::of(Arc::clone(&heaps), &stop));
    let shared = forest.clone();
    catalog.table(&FOREST, move || Ok(Arc::new(Table(shared()?))));
    let stop = catalog.stop();
    catalog.table(&SUMMARY, move || {
        Ok(Arc::new(Summary::of(forest()?, &stop)?))
    });
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
    fn of(heaps: Arc<NativeHeaps>, stop: &Stop) -> Result<Forest, TableError> {
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

struct Table(Arc<Forest>);

impl Rows for Table {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let forest = &self.0;
        match column {
            0 => row.into(),
            1 => forest.parent(row).into(),
            2 => forest.name(row),
            3 => forest.mapping_id(row),
            4 => forest.source_file(row),
            5 => forest.line_number(row),
            6 => Cell::Int(0),
            8 => forest.function(row).callsite.into(),
            9 => Cell::flag(forest.function(row).is_innermost),
            _ => Cell::Null,
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        (column == 8).then(|| self.0.starts.len())
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
    fn of(forest: Arc<Forest>, stop: &Stop) -> Result<Summary, TableError> {
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

impl Rows for Summary {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let at = self.rows[row] as usize;
        let own = || self.own[self.forest.function(at).callsite];
        match column {
            0 => at.into(),
            1 => self.forest.parent(at).into(),
            2 => self.forest.name(at),
            3 => self.forest.mapping_name(at),
            4 => self.forest.source_file(at),
            5 => self.forest.line_number(at),
            6 => own().held.into(),
            7 => self.sums[row].held.into(),
            8 => own().allocated.into(),
            _ => self.sums[row].allocated.into(),
        }
    }
}
