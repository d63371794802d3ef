//! `heap_profile` and `heap_profile_allocation`: dumps and the changes in each.

use std::sync::Arc;

use super::{NativeHeaps, time_of};
use crate::processes::Processes;
use crate::stop::Stop;
use crate::table::{Catalog, Cell, Column, Rows, Schema};

static PROFILES: Schema = Schema {
    name: "heap_profile",
    module: None,
    about: "Dumps of native heaps, one row for each dump of a heap, including empty ones.",
    columns: &[
        Column::id(),
        Column::int(
            "ts",
            "previous dump, or start of profiling; `ts_end` if unknown",
        ),
        Column::int("ts_end", "time of the dump: `heap_profile_allocation.ts`").indexed(),
        Column::int("dur", "`ts_end` minus `ts`"),
        Column::int("upid", "process").indexed(),
        Column::text(
            "heap_name",
            "`libc.malloc`, `com.android.art`, or a custom heap of the app",
        ),
    ],
};

static ALLOCATIONS: Schema = Schema {
    name: "heap_profile_allocation",
    module: None,
    about: "Changes of each callsite in each dump: one row for the allocations since the previous \
            dump, and one with negative numbers for the frees.",
    columns: &[
        Column::id(),
        Column::int("ts", "time of the dump").indexed(),
        Column::int("upid", "process").indexed(),
        Column::text("heap_name", "heap; `unknown` before Android 12"),
        Column::int("callsite_id", "callsite: `stack_profile_callsite.id`").indexed(),
        Column::int("count", "number of sampled allocations; negative for frees"),
        Column::int(
            "size",
            "estimated bytes, scaled from samples; negative for frees",
        ),
    ],
};

struct Profiles(Arc<NativeHeaps>, Arc<Processes>);
struct Allocations(Arc<NativeHeaps>, Arc<Processes>, Stop);

impl Rows for Profiles {
    fn len(&self) -> usize {
        self.0.dumps.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let dump = &self.0.dumps[row];
        let end = time_of(dump);
        let start = dump.window_ns.map_or(end, |(start, _)| start);
        match column {
            0 => row.into(),
            1 => start.into(),
            2 => end.into(),
            3 => end.saturating_sub(start).into(),
            4 => self.1.upid(dump.pid).into(),
            _ => dump.heap.as_str().into(),
        }
    }
}

impl Rows for Allocations {
    fn len(&self) -> usize {
        self.0.deltas.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let delta = &self.0.deltas[row];
        let dump = || &self.0.dumps[delta.dump as usize];
        match column {
            0 => row.into(),
            1 => time_of(dump()).into(),
            2 => self.1.upid(dump().pid).into(),
            3 => dump().heap.as_str().into(),
            // Most statements do not need it. A stopped one fails after this.
            4 => match self.0.callsites(&self.2) {
                Ok(callsites) => callsites.leaf(delta.callsite).into(),
                Err(_) => Cell::Null,
            },
            5 => delta.count.into(),
            _ => delta.size.into(),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        match column {
            1 => Some(self.0.dumps.len()),
            2 => Some(self.1.rows().len().saturating_sub(1)),
            4 => Some(self.0.recording.tables.callsite_count()),
            _ => None,
        }
    }
}

pub(super) fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>, processes: &Arc<Processes>) {
    let both = || (Arc::clone(heaps), Arc::clone(processes));
    let (h, p) = both();
    catalog.table(&PROFILES, move || {
        Ok(Arc::new(Profiles(Arc::clone(&h), Arc::clone(&p))))
    });
    let (h, p) = both();
    let stop = catalog.stop();
    catalog.table(&ALLOCATIONS, move || {
        let (heaps, processes) = (Arc::clone(&h), Arc::clone(&p));
        Ok(Arc::new(Allocations(heaps, processes, stop.clone())))
    });
}
