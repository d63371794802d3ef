//! `heaptap_dump` and `heaptap_sample`: dumps with their totals, and the memory of each by
//! callstack.

use std::sync::Arc;

use super::profile::{Stacks, VIEWS, figure};
use crate::once::read_once;
use crate::table::{Catalog, Cell, Schema, columns, schema};
use heaptap_model::stacks::{Facts, NodeId, sum};

static DUMPS: Schema = schema! {
    "heaptap_dump": "Dumps of native heaps with their totals.";
    id int row: "number of the row";
    number int: "number among the dumps of its process and heap, from 1: N in INPUT@N";
    label text: "label of its snapshot";
    ts int indexed: "time of the dump: `heap_profile_allocation.ts`";
    wall_time_ns int: "time of the dump, ns since 1970";
    upid int indexed: "process";
    pid int indexed: "process ID";
    process text: "process name";
    heap_name text: "heap";
    is_last int indexed: "1 for the last one of its process and heap";
    kind text: "cumulative, at-maximum (the largest heap), allocations-only (frees unknown), \
        java-heap, difference";
    sampling_interval int: "bytes between samples; 0 if unknown";
    size int: "unreleased bytes; NULL if frees are unknown";
    count int: "unreleased sampled allocations";
    alloc_size int: "bytes allocated since profiling began";
    alloc_count int: "sampled allocations since profiling began";
    from_startup int: "1 if profiling began at process start";
    incomplete int: "1 if a part of the dump is missing";
    disconnected int: "1 if the process disconnected before the end";
    buffer_overran int: "1 if the shared buffer was full";
    buffer_corrupted int: "1 if the shared buffer was corrupted";
    hit_guardrail int: "1 if a limit of heapprofd ended profiling";
    rejected_concurrent int: "1 if another session was profiling the process";
};

static SAMPLES: Schema = schema! {
    "heaptap_sample": "Memory of a dump by the innermost callsite of its stacks. heaptap_tree has \
        the sums over all stacks through a callsite.";
    id int row: "number of the row";
    dump_id int sorted: "dump: `heaptap_dump.id`";
    stack_id int indexed: "innermost frame: `heaptap_stack.id`";
    size int: "unreleased bytes";
    count int: "unreleased sampled allocations";
    alloc_size int: "bytes allocated since profiling began";
    alloc_count int: "sampled allocations since profiling began";
};

struct Dumps {
    stacks: Arc<Stacks>,
    last: Vec<bool>,
}

fn dump_cell(of: &Dumps, row: usize, column: usize) -> Cell<'_> {
    let facts = &of.stacks.facts[row];
    let total = |at: usize| -> Cell<'_> {
        let dump = of.stacks.dump(row);
        dump.column(VIEWS[at]).map(sum).into()
    };
    let flags = &facts.flags;
    match column {
        0 => row.into(),
        1 => facts.number.into(),
        2 => facts.label.as_deref().into(),
        3 => facts.time_ns.into(),
        4 => facts.wall_time_ns.into(),
        5 => of.stacks.processes.upid(facts.pid).into(),
        6 => facts.pid.into(),
        7 => known(&facts.process).into(),
        8 => known(&facts.heap).into(),
        9 => Cell::flag(of.last[row]),
        10 => Cell::text(facts.kind.name()),
        11 => facts.sampling_interval_bytes.into(),
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

fn known(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

struct Samples {
    stacks: Arc<Stacks>,
    /// End of the rows of each dump.
    ends: Vec<usize>,
}

fn sample_cell(of: &Samples, row: usize, column: usize) -> Cell<'_> {
    if column == 0 {
        return row.into();
    }
    let dump = of.ends.partition_point(|&end| end <= row);
    if column == 1 {
        return dump.into();
    }
    let start = dump.checked_sub(1).map_or(0, |before| of.ends[before]);
    let dump = of.stacks.dump(dump);
    let at = row - start;
    match column {
        2 => stack_id(dump.values.nodes[at]),
        _ => figure(dump.column(VIEWS[column - 3]), at),
    }
}

fn distinct_samples(of: &Samples, column: usize) -> Option<usize> {
    match column {
        1 => Some(of.ends.len()),
        2 => Some(of.stacks.profile().table.node_count()),
        _ => None,
    }
}

/// Returns the row of a callsite in `heaptap_stack`, which does not include the root.
fn stack_id(node: NodeId) -> Cell<'static> {
    node.0.checked_sub(1).into()
}

pub(super) fn add(catalog: &mut Catalog, stacks: &Arc<Stacks>) {
    let of = Arc::clone(stacks);
    let dumps = read_once(move || {
        let dumps = &of.facts;
        let mut last = vec![false; dumps.len()];
        for at in Facts::last_of_each(dumps.iter().enumerate()) {
            last[at] = true;
        }
        Ok(Dumps {
            last,
            stacks: Arc::clone(&of),
        })
    });
    catalog.rows(&DUMPS, &dumps, |of| of.last.len(), dump_cell);
    let of = Arc::clone(stacks);
    let samples = read_once(move || {
        let mut end = 0;
        let dumps = of.profile().dumps.iter();
        let ends = dumps.map(|dump| {
            end += dump.values.nodes.len();
            end
        });
        Ok(Samples {
            ends: ends.collect(),
            stacks: Arc::clone(&of),
        })
    });
    let len = |of: &Samples| of.ends.last().copied().unwrap_or(0);
    catalog.counted_rows(&SAMPLES, &samples, len, sample_cell, distinct_samples);
}
