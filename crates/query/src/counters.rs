//! Memory counters of the trace in Perfetto's tables: `counter`, `counter_track`,
//! `process_counter_track`. The trace is read when a query first needs them.

use std::sync::Arc;

use super::once::read_once;
use super::processes::Processes;
use super::table::{Catalog, Cell, Schema, TableError, columns, schema};
use heaptap_model::counter::{Counters, Track, Value};

static COUNTER: Schema = schema! {
    "counter": "Values of the counters in `counter_track`.";
    id int row: "number of the row";
    ts int sorted: "time of the value, ns of trace time";
    track_id int indexed: "the counter: `counter_track.id`";
    value real: "bytes, except for `oom_score_adj`, `runtime.*` and `Heap size (KB)`";
    arg_set_id int: "always NULL";
};

static TRACK: Schema = schema! {
    "counter_track":
        "Memory counters of the trace, of processes and of the device. Perfetto also lists \
         other counters.";
    id int row: "number of the row";
    name text indexed: "name of the counter";
    parent_id int: "always NULL";
    type text indexed: "kind of counter: process_memory, meminfo …";
    dimension_arg_set_id int: "always NULL";
    source_arg_set_id int: "always NULL";
    machine_id int: "always 0: a trace has one device";
    unit text: "as in Perfetto: `bytes` for `meminfo`, otherwise NULL";
    description text: "always NULL";
};

static PROCESS_TRACK: Schema = schema! {
    "process_counter_track": "Counters in `counter_track` that belong to a process.";
    id int row: "number of the row";
    name text indexed: "name of the counter";
    type text indexed: "kind of counter: process_memory, meminfo …";
    parent_id int: "always NULL";
    source_arg_set_id int: "always NULL";
    machine_id int: "always 0: a trace has one device";
    unit text: "as in Perfetto: `bytes` for `meminfo`, otherwise NULL";
    description text: "always NULL";
    upid int indexed: "process; NULL if it is known only from the size of its Java heap";
};

/// Counters, those of processes first, so that both track tables use the same numbers.
struct Sorted {
    tracks: Vec<Track>,
    of_processes: usize,
    values: Vec<Value>,
    processes: Arc<Processes>,
}

impl Sorted {
    fn new(counters: Counters, processes: &Arc<Processes>) -> Sorted {
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

fn value_cell(counters: &Sorted, row: usize, column: usize) -> Cell<'_> {
    let value = &counters.values[row];
    match column {
        0 => row.into(),
        1 => value.boot_ns.into(),
        2 => value.track.into(),
        3 => Cell::Real(value.value),
        _ => Cell::Null,
    }
}

fn track_cell(counters: &Sorted, row: usize, column: usize) -> Cell<'_> {
    let track = &counters.tracks[row];
    match column {
        0 => row.into(),
        1 => track.name.into(),
        3 => track.kind.word().into(),
        6 => Cell::Int(0),
        7 => track.kind.unit().into(),
        _ => Cell::Null,
    }
}

fn process_track_cell(counters: &Sorted, row: usize, column: usize) -> Cell<'_> {
    let pid = counters.tracks[row].pid;
    match column {
        0 | 1 => track_cell(counters, row, column),
        2 => track_cell(counters, row, 3),
        5 | 6 => track_cell(counters, row, column + 1),
        8 => pid
            .and_then(|pid| counters.processes.upid(pid.into()))
            .into(),
        _ => Cell::Null,
    }
}

/// Adds the tables. `read` reads the counters in order of time.
pub(super) fn add(
    catalog: &mut Catalog,
    read: impl Fn() -> Result<Counters, TableError> + Send + Sync + 'static,
    processes: &Arc<Processes>,
) {
    let processes = Arc::clone(processes);
    let counters = read_once(move || Ok(Sorted::new(read()?, &processes)));
    catalog.rows(&COUNTER, &counters, |all| all.values.len(), value_cell);
    catalog.rows(&TRACK, &counters, |all| all.tracks.len(), track_cell);
    catalog.rows(
        &PROCESS_TRACK,
        &counters,
        |all| all.of_processes,
        process_track_cell,
    );
}
