//! heaptap's own tables of memory besides heaps, from the trace and the companion data. The
//! counters of the trace are in `counters`. The sources are read when a query first needs them.

use std::collections::HashMap;
use std::sync::Arc;

use super::counters;
use super::once::read_once;
use super::processes::Processes;
use super::table::{Catalog, Cell, Schema, TableError, columns, schema};
use heaptap_model::counter::Counters;
use heaptap_model::timeline::{Observation, Source, Timeline};

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

static MEMORY: Schema = schema! {
    "heaptap_memory": "Memory of processes and of the device over time, by source and part.";
    id int row: "number of the row";
    ts int sorted: "time of the reading, ns of trace time";
    upid int indexed: "process; NULL for the device";
    pid int indexed: "PID on the device; NULL for the device itself";
    process text: "process name, if known";
    source text indexed:
        "status, meminfo, meminfo-local, smaps, gfxinfo, dmabuf, process-stats, sys-stats, ftrace";
    part text indexed: "rss, rss.anon, native, java, pss, gpu …";
    bytes int: "size in bytes";
};

static GC: Schema = schema! {
    "heaptap_gc": "Garbage collections of Java heaps from the log or the trace. A collection in \
        both is one row.";
    id int row: "number of the row";
    ts int sorted: "end of the GC, ns of trace time";
    upid int indexed: "process";
    pid int indexed: "PID on the device";
    process text: "process name, if known";
    source text: "log or ftrace";
    reason text indexed: "Background, Alloc, Explicit …";
    collector text indexed: "name of the collector; NULL if unknown";
    freed_bytes int: "bytes freed without large objects; NULL if unknown";
    freed_large_bytes int: "bytes of freed large objects; NULL if unknown";
    live_bytes int: "live set; NULL if unknown";
    total_bytes int: "heap size after the GC; NULL if unknown";
    longest_pause_ns int: "longest pause; NULL if unknown";
    duration_ns int: "duration of the GC; NULL if unknown";
    ours int: "1 if heaptap caused it, otherwise 0";
};

/// Timeline, with its rows and an index of process names.
struct Seens {
    timeline: Timeline,
    figures: Vec<Figure>,
    /// Positions of the garbage collections.
    collections: Vec<usize>,
    /// Times and positions of the entries that name each process, in order of time.
    names: HashMap<u32, Vec<(u64, usize)>>,
    processes: Arc<Processes>,
}

/// Figure with the position of its entry.
struct Figure {
    place: u32,
    source: Source,
    part: &'static str,
    bytes: i64,
}

impl Seens {
    fn new(timeline: Timeline, processes: &Arc<Processes>) -> Seens {
        let (mut figures, mut collections) = (Vec::new(), Vec::new());
        let mut names: HashMap<u32, Vec<(u64, usize)>> = HashMap::new();
        for (place, entry) in timeline.entries.iter().enumerate() {
            match entry.seen {
                Observation::Process(_) => {
                    let named = names.entry(entry.pid).or_default();
                    named.push((entry.boot_ns, place));
                }
                Observation::Collection(_) => collections.push(place),
                _ => parts(&entry.seen, |source, part, bytes| {
                    figures.push(Figure {
                        place: place as u32,
                        source,
                        part,
                        bytes,
                    });
                }),
            }
        }
        Seens {
            timeline,
            figures,
            collections,
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
            (1, _) => entry.boot_ns.into(),
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

fn figure_cell(seen: &Seens, row: usize, column: usize) -> Cell<'_> {
    let figure = &seen.figures[row];
    match column {
        0 => row.into(),
        1..=4 => seen.whose(figure.place as usize, column),
        5 => figure.source.word().into(),
        6 => figure.part.into(),
        _ => figure.bytes.into(),
    }
}

fn collection_cell(seen: &Seens, row: usize, column: usize) -> Cell<'_> {
    let place = seen.collections[row];
    let Observation::Collection(gc) = &seen.timeline.entries[place].seen else {
        return Cell::Null;
    };
    match column {
        0 => row.into(),
        1..=4 => seen.whose(place, column),
        5 => gc.source.map(Source::word).into(),
        6 => told(&gc.reason).into(),
        7 => told(&gc.collector).into(),
        8 => gc.freed_bytes.into(),
        9 => gc.freed_large.map(|(_, bytes)| bytes).into(),
        10 => gc.live.into(),
        11 => gc.total.into(),
        12 => gc.pauses.iter().copied().max().into(),
        13 => gc.duration.into(),
        _ => Cell::flag(gc.ours),
    }
}

fn told(text: &str) -> Option<&str> {
    (!text.is_empty()).then_some(text)
}

/// Adds the tables.
pub fn add(catalog: &mut Catalog, source: &Arc<dyn MemorySource>, processes: &Arc<Processes>) {
    let of_counters = Arc::clone(source);
    counters::add(catalog, move || of_counters.counters(), processes);
    let (source, processes) = (Arc::clone(source), Arc::clone(processes));
    let seen = read_once(move || Ok(Seens::new(source.timeline()?, &processes)));
    catalog.rows(&MEMORY, &seen, |seen| seen.figures.len(), figure_cell);
    catalog.rows(&GC, &seen, |seen| seen.collections.len(), collection_cell);
}
