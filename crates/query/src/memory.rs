//! heaptap's own tables of memory besides heaps, from the trace and the companion data. The
//! counters of the trace are in `counters`. The sources are read when a query first needs them.

use std::collections::HashMap;
use std::sync::Arc;

use super::counters;
use super::once::Once;
use super::processes::Processes;
use super::table::{Catalog, Cell, Column, Rows, Schema, TableError};
use heaptap_model::counter::Counters;
use heaptap_model::timeline::{Collection, Observation, Source, Timeline};

/// Source of the recorded memory data.
pub trait MemorySource: Send + Sync {
    /// Returns the counters of the trace in order of time.
    ///
    /// # Errors
    /// Returns an error if the trace cannot be read or has more counters than the limit.
    fn counters(&self) -> Result<Counters, TableError>;

    /// Returns the data of the trace and the companion data in order of time.
    ///
    /// # Errors
    /// Returns the errors of [`MemorySource::counters`].
    fn timeline(&self) -> Result<Timeline, TableError>;
}

static MEMORY: Schema = Schema {
    name: "heaptap_memory",
    module: None,
    about: "Memory of processes and of the device over time, by source and part.",
    columns: &[
        Column::id(),
        Column::int("ts", "time of the reading, ns of trace time").sorted(),
        Column::int("upid", "process; NULL for the device").indexed(),
        Column::int("pid", "PID on the device; NULL for the device itself").indexed(),
        Column::text("process", "process name, if known"),
        Column::text(
            "source",
            "status, meminfo, meminfo-local, smaps, gfxinfo, dmabuf, process-stats, \
             sys-stats, ftrace",
        )
        .indexed(),
        Column::text("part", "rss, rss.anon, native, java, pss, gpu …").indexed(),
        Column::int("bytes", "size in bytes"),
    ],
};

static GC: Schema = Schema {
    name: "heaptap_gc",
    module: None,
    about: "Garbage collections of Java heaps from the log or the trace. A collection in both \
            is one row.",
    columns: &[
        Column::id(),
        Column::int("ts", "end of the GC, ns of trace time").sorted(),
        Column::int("upid", "process").indexed(),
        Column::int("pid", "PID on the device").indexed(),
        Column::text("process", "process name, if known"),
        Column::text("source", "log or ftrace"),
        Column::text("reason", "Background, Alloc, Explicit …").indexed(),
        Column::text("collector", "name of the collector; NULL if unknown").indexed(),
        Column::int(
            "freed_bytes",
            "bytes freed without large objects; NULL if unknown",
        ),
        Column::int(
            "freed_large_bytes",
            "bytes of freed large objects; NULL if unknown",
        ),
        Column::int("live_bytes", "live set; NULL if unknown"),
        Column::int("total_bytes", "heap size after the GC; NULL if unknown"),
        Column::int("longest_pause_ns", "longest pause; NULL if unknown"),
        Column::int("duration_ns", "duration of the GC; NULL if unknown"),
        Column::int("ours", "1 if heaptap caused it, otherwise 0"),
    ],
};

/// Timeline, with an index of process names.
struct Seens {
    timeline: Timeline,
    /// Times and positions of the entries that name each process, in order of time.
    names: HashMap<u32, Vec<(u64, usize)>>,
    processes: Arc<Processes>,
}

impl Seens {
    fn of(timeline: Timeline, processes: &Arc<Processes>) -> Seens {
        let mut names: HashMap<u32, Vec<(u64, usize)>> = HashMap::new();
        for (place, entry) in timeline.entries.iter().enumerate() {
            if matches!(entry.seen, Observation::Process(_)) {
                let named = names.entry(entry.pid).or_default();
                named.push((entry.boot_ns, place));
            }
        }
        Seens {
            timeline,
            names,
            processes: Arc::clone(processes),
        }
    }

    /// Returns the name of a process at a time: the latest one by then, otherwise its first.
    fn name(&self, pid: u32, at: u64) -> Option<&str> {
        let told = self.names.get(&pid).and_then(|named| {
            let after = named.partition_point(|(since, _)| *since <= at);
            let (_, place) = named.get(after.saturating_sub(1))?;
            match &self.timeline.entries[*place].seen {
                Observation::Process(process) => Some(process.name.as_str()),
                _ => None,
            }
        });
        told.filter(|name| !name.is_empty()).or_else(|| {
            let upid = self.processes.upid(pid.into())?;
            self.processes.rows()[upid as usize].name.as_deref()
        })
    }

    /// Returns `ts`, `upid`, `pid` or `process` of an entry, by column from 1.
    fn whose(&self, place: usize, column: usize) -> Cell<'_> {
        let entry = &self.timeline.entries[place];
        match (column, entry.pid) {
            (1, _) => Cell::bits(entry.boot_ns),
            (_, 0) => Cell::Null,
            (2, pid) => self.processes.upid(pid.into()).into(),
            (3, pid) => pid.into(),
            (_, pid) => self.name(pid, entry.boot_ns).into(),
        }
    }
}

/// Calls `each` with source, name and bytes of each part of an entry, in the order of rows.
fn parts(seen: &Observation, mut each: impl FnMut(Source, &'static str, i64)) {
    let size = |bytes: u64| i64::try_from(bytes).unwrap_or(i64::MAX);
    type Known = Vec<(&'static str, i64)>;
    type Maybe = Vec<(&'static str, Option<u64>)>;
    let (source, known, maybe): (Source, Known, Maybe) = match seen {
        Observation::Resident(r) => (
            r.source,
            vec![("rss", size(r.rss))],
            vec![
                ("rss.anon", r.anon),
                ("rss.file", r.file),
                ("rss.shmem", r.shmem),
                ("swap", r.swap),
                ("rss.peak", r.peak),
            ],
        ),
        Observation::Parts(p) => {
            let (native, java) = (p.native_heap, p.java_heap);
            (
                p.source,
                vec![
                    ("java", p.java),
                    ("native", p.native),
                    ("code", p.code),
                    ("stack", p.stack),
                    ("graphics", p.graphics),
                    ("private-other", p.private_other),
                    ("system", p.system),
                    ("pss", p.total_pss),
                ],
                vec![
                    ("rss", p.total_rss),
                    ("swap", p.swap),
                    ("native-heap.size", native.map(|heap| heap.size)),
                    ("native-heap.alloc", native.map(|heap| heap.alloc)),
                    ("native-heap.free", native.map(|heap| heap.free)),
                    ("java-heap.size", java.map(|heap| heap.size)),
                    ("java-heap.alloc", java.map(|heap| heap.alloc)),
                    ("java-heap.free", java.map(|heap| heap.free)),
                ],
            )
        }
        Observation::Graphics(g) => (g.source, vec![("gpu", size(g.bytes))], Vec::new()),
        Observation::JavaHeap(heap) => (
            heap.source,
            vec![("java-heap.alloc", size(heap.allocated))],
            Vec::new(),
        ),
        Observation::System(phone) => (
            phone.source,
            Vec::new(),
            vec![
                ("total", phone.total),
                ("available", phone.available),
                ("free", phone.free),
                ("swap-free", phone.swap_free),
            ],
        ),
        _ => return,
    };
    for (name, bytes) in known {
        each(source, name, bytes);
    }
    for (name, bytes) in maybe {
        if let Some(bytes) = bytes {
            each(source, name, size(bytes));
        }
    }
}

/// Figure with the position of its entry.
struct Figure {
    place: u32,
    source: Source,
    part: &'static str,
    bytes: i64,
}

struct MemoryRows {
    seen: Arc<Seens>,
    rows: Vec<Figure>,
}

impl MemoryRows {
    fn of(seen: Arc<Seens>) -> MemoryRows {
        let mut rows = Vec::new();
        for (place, entry) in (0u32..).zip(&seen.timeline.entries) {
            parts(&entry.seen, |source, part, bytes| {
                rows.push(Figure {
                    place,
                    source,
                    part,
                    bytes,
                });
            });
        }
        MemoryRows { seen, rows }
    }
}

impl Rows for MemoryRows {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let figure = &self.rows[row];
        match column {
            0 => row.into(),
            1..=4 => self.seen.whose(figure.place as usize, column),
            5 => figure.source.word().into(),
            6 => figure.part.into(),
            _ => figure.bytes.into(),
        }
    }
}

struct Collections {
    seen: Arc<Seens>,
    places: Vec<usize>,
}

impl Collections {
    fn of(seen: Arc<Seens>) -> Collections {
        let entries = seen.timeline.entries.iter().enumerate();
        let collections = entries.filter(|(_, e)| matches!(e.seen, Observation::Collection(_)));
        let places = collections.map(|(place, _)| place).collect();
        Collections { seen, places }
    }
}

impl Rows for Collections {
    fn len(&self) -> usize {
        self.places.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let place = self.places[row];
        let Observation::Collection(gc) = &self.seen.timeline.entries[place].seen else {
            return Cell::Null;
        };
        let size = |bytes: Option<u64>| bytes.map_or(Cell::Null, Cell::bits);
        match column {
            0 => row.into(),
            1..=4 => self.seen.whose(place, column),
            5 => gc.source.map(Source::word).into(),
            6 => told(&gc.reason).into(),
            7 => told(&gc.collector).into(),
            8 => gc.freed_bytes.into(),
            9 => gc.freed_large.map(|(_, bytes)| bytes).into(),
            10 => size(gc.live),
            11 => size(gc.total),
            12 => size(longest_pause(gc)),
            13 => size(gc.duration),
            _ => Cell::flag(gc.ours),
        }
    }
}

fn told(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

fn longest_pause(gc: &Collection) -> Option<u64> {
    gc.pauses.iter().copied().max()
}

/// Adds the tables.
pub fn add(catalog: &mut Catalog, source: &Arc<dyn MemorySource>, processes: &Arc<Processes>) {
    let of_counters = Arc::clone(source);
    counters::add(catalog, move || of_counters.counters(), processes);
    let seen = {
        let once = Once::new();
        let (source, processes) = (Arc::clone(source), Arc::clone(processes));
        Arc::new(move || once.get(|| Ok(Seens::of(source.timeline()?, &processes))))
    };
    let of = Arc::clone(&seen);
    catalog.table(&MEMORY, move || Ok(Arc::new(MemoryRows::of(of()?))));
    catalog.table(&GC, move || Ok(Arc::new(Collections::of(seen()?))));
}
