//! `heap_profile` and `heap_profile_allocation`: dumps and the changes in each.

use std::sync::Arc;

use super::heaps::{NativeHeaps, time_of};
use crate::once::given;
use crate::processes::Processes;
use crate::stop::Stop;
use crate::table::{Catalog, Cell, Schema, columns, schema};

static PROFILES: Schema = schema! {
    "heap_profile": "Dumps of native heaps, one row for each dump of a heap, including empty ones.";
    id int row: "number of the row";
    ts int: "previous dump, or start of profiling; `ts_end` if unknown";
    ts_end int indexed: "time of the dump: `heap_profile_allocation.ts`";
    dur int: "`ts_end` minus `ts`";
    upid int indexed: "process";
    heap_name text: "`libc.malloc`, `com.android.art`, or a custom heap of the app";
};

static ALLOCATIONS: Schema = schema! {
    "heap_profile_allocation": "Changes of each callsite in each dump: one row for the allocations \
        since the previous dump, and one with negative numbers for the frees.";
    id int row: "number of the row";
    ts int indexed: "time of the dump";
    upid int indexed: "process";
    heap_name text: "heap; `unknown` before Android 12";
    callsite_id int indexed: "callsite: `stack_profile_callsite.id`";
    count int: "number of sampled allocations; negative for frees";
    size int: "estimated bytes, scaled from samples; negative for frees";
};

/// Heaps with the processes that rows refer to.
struct Dumps {
    heaps: Arc<NativeHeaps>,
    processes: Arc<Processes>,
    stop: Stop,
}

fn profile_cell(of: &Dumps, row: usize, column: usize) -> Cell<'_> {
    let dump = &of.heaps.dumps[row];
    let end = time_of(dump);
    let start = dump.window_ns.map_or(end, |(start, _)| start);
    match column {
        0 => row.into(),
        1 => start.into(),
        2 => end.into(),
        3 => end.saturating_sub(start).into(),
        4 => of.processes.upid(dump.pid).into(),
        _ => dump.heap.as_str().into(),
    }
}

fn allocation_cell(of: &Dumps, row: usize, column: usize) -> Cell<'_> {
    let delta = &of.heaps.deltas[row];
    let dump = || &of.heaps.dumps[delta.dump as usize];
    match column {
        0 => row.into(),
        1 => time_of(dump()).into(),
        2 => of.processes.upid(dump().pid).into(),
        3 => dump().heap.as_str().into(),
        // Most statements do not need it. A stopped one fails after this.
        4 => match of.heaps.callsites(&of.stop) {
            Ok(callsites) => callsites.leaf(delta.callsite).into(),
            Err(_) => Cell::Null,
        },
        5 => delta.count.into(),
        _ => delta.size.into(),
    }
}

fn distinct_allocations(of: &Dumps, column: usize) -> Option<usize> {
    match column {
        1 => Some(of.heaps.dumps.len()),
        2 => Some(of.processes.rows().len().saturating_sub(1)),
        4 => Some(of.heaps.recording.tables.callsite_count()),
        _ => None,
    }
}

pub(super) fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>, processes: &Arc<Processes>) {
    let dumps = given(&Arc::new(Dumps {
        heaps: Arc::clone(heaps),
        processes: Arc::clone(processes),
        stop: catalog.stop(),
    }));
    catalog.rows(&PROFILES, &dumps, |of| of.heaps.dumps.len(), profile_cell);
    catalog.counted_rows(
        &ALLOCATIONS,
        &dumps,
        |of| of.heaps.deltas.len(),
        allocation_cell,
        distinct_allocations,
    );
}
