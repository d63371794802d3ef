//! `heaptap_dump` and `heaptap_sample`: dumps with their totals, and the memory of each by
//! callstack.

use std::sync::Arc;

use super::{Stacks, VIEWS, figure};
use crate::table::{Catalog, Cell, Column, Rows, Schema};
use heaptap_model::stacks::{Facts, NodeId};

static DUMPS: Schema = Schema {
    name: "heaptap_dump",
    module: None,
    about: "Dumps of native heaps with their totals.",
    columns: &[
        Column::id(),
        Column::int(
            "number",
            "number among the dumps of its process and heap, from 1: N in INPUT@N",
        ),
        Column::text("label", "label of its snapshot"),
        Column::int("ts", "time of the dump: `heap_profile_allocation.ts`").indexed(),
        Column::int("wall_time_ns", "time of the dump, ns since 1970"),
        Column::int("upid", "process").indexed(),
        Column::int("pid", "process ID").indexed(),
        Column::text("process", "process name"),
        Column::text("heap_name", "heap"),
        Column::int("is_last", "1 for the last one of its process and heap").indexed(),
        Column::text(
            "kind",
            "cumulative, at-maximum (the largest heap), allocations-only (frees unknown), \
             java-heap, difference",
        ),
        Column::int("sampling_interval", "bytes between samples; 0 if unknown"),
        Column::int("size", "unreleased bytes; NULL if frees are unknown"),
        Column::int("count", "unreleased sampled allocations"),
        Column::int("alloc_size", "bytes allocated since profiling began"),
        Column::int("alloc_count", "sampled allocations since profiling began"),
        Column::int("from_startup", "1 if profiling began at process start"),
        Column::int("incomplete", "1 if a part of the dump is missing"),
        Column::int(
            "disconnected",
            "1 if the process disconnected before the end",
        ),
        Column::int("buffer_overran", "1 if the shared buffer was full"),
        Column::int("buffer_corrupted", "1 if the shared buffer was corrupted"),
        Column::int("hit_guardrail", "1 if a limit of heapprofd ended profiling"),
        Column::int(
            "rejected_concurrent",
            "1 if another session was profiling the process",
        ),
    ],
};

static SAMPLES: Schema = Schema {
    name: "heaptap_sample",
    module: None,
    about: "Memory of a dump by the innermost callsite of its stacks. heaptap_tree has the sums \
            over all stacks through a callsite.",
    columns: &[
        Column::id(),
        Column::int("dump_id", "dump: `heaptap_dump.id`").sorted(),
        Column::int("stack_id", "innermost frame: `heaptap_stack.id`").indexed(),
        Column::int("size", "unreleased bytes"),
        Column::int("count", "unreleased sampled allocations"),
        Column::int("alloc_size", "bytes allocated since profiling began"),
        Column::int("alloc_count", "sampled allocations since profiling began"),
    ],
};

struct Dumps {
    stacks: Arc<Stacks>,
    last: Vec<bool>,
}

impl Rows for Dumps {
    fn len(&self) -> usize {
        self.stacks.facts.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let facts = &self.stacks.facts[row];
        let total = |at: usize| -> Cell<'_> {
            let dump = self.stacks.dump(row);
            let sum = dump.column(VIEWS[at]).map(|column| {
                column
                    .iter()
                    .fold(0i64, |sum, &value| sum.saturating_add(value))
            });
            sum.into()
        };
        let flags = &facts.flags;
        match column {
            0 => row.into(),
            1 => facts.number.into(),
            2 => facts.label.as_deref().into(),
            3 => facts.time_ns.map(Cell::bits).unwrap_or(Cell::Null),
            4 => facts.wall_time_ns.map(Cell::bits).unwrap_or(Cell::Null),
            5 => self.stacks.processes.upid(facts.pid).into(),
            6 => Cell::bits(facts.pid),
            7 => known(&facts.process).into(),
            8 => known(&facts.heap).into(),
            9 => Cell::flag(self.last[row]),
            10 => Cell::text(facts.kind.name()),
            11 => Cell::bits(facts.sampling_interval_bytes),
            12..=15 => total(column - 12),
            16 => Cell::flag(flags.from_startup),
            17 => Cell::flag(facts.unfinished),
            18 => Cell::flag(flags.disconnected),
            19 => Cell::flag(flags.buffer_overran),
            20 => Cell::flag(flags.buffer_corrupted),
            21 => Cell::flag(flags.hit_guardrail),
            _ => Cell::flag(flags.rejected_concurrent),
        }
    }
}

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

struct Samples {
    stacks: Arc<Stacks>,
    /// End of the rows of each dump.
    ends: Vec<usize>,
}

impl Rows for Samples {
    fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        if column == 0 {
            return row.into();
        }
        let dump = self.ends.partition_point(|&end| end <= row);
        if column == 1 {
            return dump.into();
        }
        let start = dump.checked_sub(1).map_or(0, |before| self.ends[before]);
        let dump = self.stacks.dump(dump);
        let at = row - start;
        match column {
            2 => stack_id(dump.values.nodes[at]),
            _ => figure(dump.column(VIEWS[column - 3]), at),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        match column {
            1 => Some(self.ends.len()),
            2 => Some(self.stacks.profile().table.node_count()),
            _ => None,
        }
    }
}

/// Returns the row of a callsite in `heaptap_stack`, which does not include the root.
fn stack_id(node: NodeId) -> Cell<'static> {
    node.0.checked_sub(1).into()
}

pub(super) fn add(catalog: &mut Catalog, stacks: &Arc<Stacks>) {
    let of = Arc::clone(stacks);
    catalog.table(&DUMPS, move || {
        let dumps = &of.facts;
        let mut last = vec![false; dumps.len()];
        for at in Facts::last_of_each(dumps.iter().enumerate()) {
            last[at] = true;
        }
        Ok(Arc::new(Dumps {
            last,
            stacks: Arc::clone(&of),
        }))
    });
    let of = Arc::clone(stacks);
    catalog.table(&SAMPLES, move || {
        let mut end = 0;
        let dumps = of.profile().dumps.iter();
        let ends = dumps.map(|dump| {
            end += dump.values.nodes.len();
            end
        });
        Ok(Arc::new(Samples {
            ends: ends.collect(),
            stacks: Arc::clone(&of),
        }))
    });
}
