//! Memory counters of the trace in Perfetto's tables: `counter`, `counter_track`,
//! `process_counter_track`. The trace is read when a query first needs them.

use std::sync::Arc;

use super::once::Once;
use super::processes::Processes;
use super::table::{Catalog, Cell, Column, Rows, Schema, TableError};
use heaptap_model::counter::{Counters, Track, Value};

static COUNTER: Schema = Schema {
    name: "counter",
    module: None,
    about: "Values of the counters in `counter_track`.",
    columns: &[
        Column::id(),
        Column::int("ts", "time of the value, ns of trace time").sorted(),
        Column::int("track_id", "the counter: `counter_track.id`").indexed(),
        Column::real(
            "value",
            "bytes, except for `oom_score_adj`, `runtime.*` and `Heap size (KB)`",
        ),
        Column::int("arg_set_id", "always NULL"),
    ],
};

// Columns of both track tables, in Perfetto's order.
const NAME: Column = Column::text("name", "name of the counter").indexed();
const TYPE: Column = Column::text("type", "kind of counter: process_memory, meminfo …").indexed();
const PARENT: Column = Column::int("parent_id", "always NULL");
const SOURCE: Column = Column::int("source_arg_set_id", "always NULL");
const MACHINE: Column = Column::int("machine_id", "always 0: a trace has one device");
const UNIT: Column = Column::text(
    "unit",
    "as in Perfetto: `bytes` for `meminfo`, otherwise NULL",
);
const DESCRIPTION: Column = Column::text("description", "always NULL");

static TRACK: Schema = Schema {
    name: "counter_track",
    module: None,
    about: "Memory counters of the trace, of processes and of the device. Perfetto also lists \
             other counters.",
    columns: &[
        Column::id(),
        NAME,
        PARENT,
        TYPE,
        Column::int("dimension_arg_set_id", "always NULL"),
        SOURCE,
        MACHINE,
        UNIT,
        DESCRIPTION,
    ],
};

static PROCESS_TRACK: Schema = Schema {
    name: "process_counter_track",
    module: None,
    about: "Counters in `counter_track` that belong to a process.",
    columns: &[
        Column::id(),
        NAME,
        TYPE,
        PARENT,
        SOURCE,
        MACHINE,
        UNIT,
        DESCRIPTION,
        Column::int(
            "upid",
            "process; NULL if it is known only from the size of its Java heap",
        )
        .indexed(),
    ],
};

/// Counters, those of processes first, so that both track tables use the same numbers.
struct Sorted {
    tracks: Vec<Track>,
    of_processes: usize,
    values: Vec<Value>,
    processes: Arc<Processes>,
}

impl Sorted {
    fn of(counters: Counters, processes: &Arc<Processes>) -> Sorted {
        let mut places: Vec<usize> = (0..counters.tracks.len()).collect();
        places.sort_by_key(|&place| {
            let track = counters.tracks[place];
            (track.pid.is_none(), track)
        });
        let mut new_places = vec![0; places.len()];
        for (new, &old) in (0u32..).zip(&places) {
            new_places[old] = new;
        }
        let mut values = counters.values;
        for value in &mut values {
            value.track = new_places[value.track as usize];
        }
        let tracks: Vec<Track> = places.iter().map(|&place| counters.tracks[place]).collect();
        Sorted {
            of_processes: tracks.partition_point(|track| track.pid.is_some()),
            tracks,
            values,
            processes: Arc::clone(processes),
        }
    }
}

struct Values(Arc<Sorted>);
struct Tracks(Arc<Sorted>);
struct ProcessTracks(Arc<Sorted>);

impl Rows for Values {
    fn len(&self) -> usize {
        self.0.values.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let value = &self.0.values[row];
        match column {
            0 => row.into(),
            1 => Cell::bits(value.boot_ns),
            2 => value.track.into(),
            3 => Cell::Real(value.value),
            _ => Cell::Null,
        }
    }
}

impl Rows for Tracks {
    fn len(&self) -> usize {
        self.0.tracks.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let track = &self.0.tracks[row];
        match column {
            0 => row.into(),
            1 => track.name.into(),
            3 => track.kind.word().into(),
            6 => Cell::Int(0),
            7 => track.kind.unit().into(),
            _ => Cell::Null,
        }
    }
}

impl Rows for ProcessTracks {
    fn len(&self) -> usize {
        self.0.of_processes
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let track = &self.0.tracks[row];
        let upid = |pid: u32| self.0.processes.upid(pid.into());
        match column {
            0 => row.into(),
            1 => track.name.into(),
            2 => track.kind.word().into(),
            5 => Cell::Int(0),
            6 => track.kind.unit().into(),
            8 => track.pid.and_then(upid).into(),
            _ => Cell::Null,
        }
    }
}

/// Adds the tables. `read` reads the counters in order of time.
pub(super) fn add(
    catalog: &mut Catalog,
    read: impl Fn() -> Result<Counters, TableError> + Send + Sync + 'static,
    processes: &Arc<Processes>,
) {
    let counters = {
        let once = Once::new();
        let processes = Arc::clone(processes);
        Arc::new(move || once.get(|| Ok(Sorted::of(read()?, &processes))))
    };
    let of = Arc::clone(&counters);
    catalog.table(&COUNTER, move || Ok(Arc::new(Values(of()?))));
    let of = Arc::clone(&counters);
    catalog.table(&TRACK, move || Ok(Arc::new(Tracks(of()?))));
    catalog.table(&PROCESS_TRACK, move || {
        Ok(Arc::new(ProcessTracks(counters()?)))
    });
}
