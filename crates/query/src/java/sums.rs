//! Sums over Java heaps, by class and by dump.

use std::sync::Arc;

use super::super::processes::Processes;
use super::super::table::{Catalog, Cell, Column, Rows, Schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_analyze::aggregation::{ClassSums, class_aggregation};

const BY_CLASS: Schema = Schema {
    name: "android_heap_graph_class_aggregation",
    module: Some("android.memory.heap_graph.heap_graph_class_aggregation"),
    about: "Sums for each class with instances, by dump.",
    columns: &[
        Column::int("upid", "process"),
        Column::int("graph_sample_ts", "time of the dump in ns").sorted(),
        Column::int("type_id", "class: `heap_graph_class.id`").indexed(),
        Column::text("type_name", "class name, deobfuscated if possible").indexed(),
        Column::int(
            "is_libcore_or_array",
            "1 for core libraries of Java and Kotlin and for arrays of primitives",
        ),
        Column::int("obj_count", "instances"),
        Column::int("size_bytes", "shallow size of the instances"),
        Column::int("native_size_bytes", "native bytes owned by the instances"),
        Column::int("reachable_obj_count", "reachable instances"),
        Column::int(
            "reachable_size_bytes",
            "shallow size of the reachable instances",
        ),
        Column::int(
            "reachable_native_size_bytes",
            "native bytes owned by the reachable instances",
        ),
        Column::int(
            "dominated_obj_count",
            "objects dominated by the reachable instances, including themselves",
        ),
        Column::int(
            "dominated_size_bytes",
            "shallow size of the dominated objects",
        ),
        Column::int(
            "dominated_native_size_bytes",
            "native bytes owned by the dominated objects",
        ),
    ],
};

const BY_DUMP: Schema = Schema {
    name: "android_heap_graph_stats",
    module: Some("android.memory.heap_graph.heap_graph_stats"),
    about: "Sums for each dump. Columns that need system counters are NULL.",
    columns: &[
        Column::int("upid", "process"),
        Column::int("graph_sample_ts", "time of the dump in ns").sorted(),
        Column::int(
            "process_uptime",
            "time since the process started, ns; NULL if unknown",
        ),
        Column::int("total_heap_size", "shallow size of all objects"),
        Column::int(
            "total_native_alloc_registry_size",
            "native bytes owned by all objects",
        ),
        Column::int("total_obj_count", "number of objects"),
        Column::int("reachable_heap_size", "shallow size of reachable objects"),
        Column::int(
            "reachable_native_alloc_registry_size",
            "native bytes owned by reachable objects",
        ),
        Column::int("reachable_obj_count", "number of reachable objects"),
        Column::int("oom_score_adj", "always NULL: needs a system counter"),
        Column::int(
            "anon_rss_and_swap_size",
            "always NULL: needs a system counter",
        ),
        Column::int("dmabuf_rss_size", "always NULL: needs a system counter"),
        Column::int(
            "art_bytes_allocated",
            "bytes allocated, as reported by the runtime",
        ),
        Column::int(
            "is_out_of_memory_error",
            "1 if an OutOfMemoryError caused the dump; NULL if unknown",
        ),
        Column::int(
            "oome_failing_allocation_size",
            "bytes of the failed allocation",
        ),
        Column::int(
            "oome_remaining_art_free_bytes",
            "bytes that could still be allocated at that time",
        ),
    ],
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps, processes: &Arc<Processes>) {
    heaps.table(catalog, &BY_CLASS, ByClass::of);
    let processes = Arc::clone(processes);
    heaps.table(catalog, &BY_DUMP, move |heaps| {
        ByDump::of(heaps, Arc::clone(&processes))
    });
}

struct ByClass {
    heaps: Arc<Heaps>,
    /// Position of the dump, and its sums.
    rows: Vec<(usize, ClassSums)>,
}

impl ByClass {
    fn of(heaps: Arc<Heaps>) -> ByClass {
        let dumps = heaps.all().iter().enumerate();
        let rows = dumps.flat_map(|(at, heap)| {
            let sums = class_aggregation(&heap.graph, heap.dominators());
            sums.into_iter().map(move |sums| (at, sums))
        });
        let rows = rows.collect();
        ByClass { heaps, rows }
    }
}

impl Rows for ByClass {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (at, sums) = &self.rows[row];
        let heap = &self.heaps.all()[*at];
        let of = match column {
            0..=7 => sums.all,
            8..=10 => sums.reachable,
            _ => sums.dominated,
        };
        match column {
            0 => heap.upid.into(),
            1 => heap.ts().into(),
            2 => heap.class_row(sums.class).into(),
            3 => Cell::text(heap.graph.class(sums.class).shown()),
            4 => Cell::flag(sums.is_libcore_or_array),
            5 | 8 | 11 => Cell::bits(of.count),
            6 | 9 | 12 => Cell::bits(of.bytes),
            _ => Cell::bits(of.native_bytes),
        }
    }
}

/// Sums over a set of objects.
#[derive(Default)]
struct Sums {
    /// Objects that were never dumped count as -1, as in `heap_graph_object`.
    bytes: i64,
    native_bytes: u64,
    count: u64,
}

struct ByDump {
    heaps: Arc<Heaps>,
    processes: Arc<Processes>,
    /// Position of each dump that has objects, with the sums over all, and over reachable ones.
    sums: Vec<(usize, [Sums; 2])>,
}

impl ByDump {
    fn of(heaps: Arc<Heaps>, processes: Arc<Processes>) -> ByDump {
        let with_objects = |(_, heap): &(usize, &Heap)| !heap.graph.is_empty();
        let dumps = heaps.all().iter().enumerate().filter(with_objects);
        let sums = dumps.map(|(at, heap)| (at, sums(heap))).collect();
        ByDump {
            heaps,
            processes,
            sums,
        }
    }
}

fn sums(heap: &Heap) -> [Sums; 2] {
    let graph = &heap.graph;
    let reachable = heap.reachable();
    let [mut all, mut reached] = <[Sums; 2]>::default();
    for object in graph.objects() {
        let bytes = match graph.is_placeholder(object) {
            true => -1,
            false => graph.shallow_bytes(object) as i64,
        };
        let native_bytes = graph.native_bytes(object);
        let add = |sums: &mut Sums| {
            sums.bytes = sums.bytes.saturating_add(bytes);
            sums.native_bytes = sums.native_bytes.saturating_add(native_bytes);
            sums.count += 1;
        };
        add(&mut all);
        if reachable.contains(object) {
            add(&mut reached);
        }
    }
    [all, reached]
}

impl Rows for ByDump {
    fn len(&self) -> usize {
        self.sums.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let (at, [all, reached]) = &self.sums[row];
        let heap = &self.heaps.all()[*at];
        let of = if column < 6 { all } else { reached };
        let error = heap.facts.out_of_memory.as_ref();
        match column {
            0 => heap.upid.into(),
            1 => heap.ts().into(),
            2 => {
                let process = self.processes.rows().get(heap.upid as usize);
                let started = process.and_then(|process| process.start_ns);
                started.map_or(Cell::Null, |at| {
                    Cell::bits(heap.facts.time_ns.wrapping_sub(at))
                })
            }
            3 | 6 => of.bytes.into(),
            4 | 7 => Cell::bits(of.native_bytes),
            5 | 8 => Cell::bits(of.count),
            12 => {
                let bytes = heap.graph.facts.heap_bytes_allocated;
                bytes.map_or(Cell::Null, Cell::bits)
            }
            13 => heap.facts.is_out_of_memory.then_some(1u32).into(),
            14 => error.map_or(Cell::Null, |error| Cell::bits(error.allocation_bytes)),
            15 => error.map_or(Cell::Null, |error| Cell::bits(error.free_until_oom_bytes)),
            _ => Cell::Null,
        }
    }
}
