//! Sums over Java heaps, by class and by dump.

use std::sync::Arc;

use super::super::processes::Processes;
use super::super::table::{Catalog, Cell, Schema, columns, schema};
use super::heaps::{Heap, Heaps, LazyHeaps};
use heaptap_analyze::aggregation::{ClassSums, class_aggregation};

static BY_CLASS: Schema = schema! {
    "android_heap_graph_class_aggregation" in "android.memory.heap_graph.heap_graph_class_aggregation":
        "Sums for each class with instances, by dump.";
    upid int: "process";
    graph_sample_ts int sorted: "time of the dump in ns";
    type_id int indexed: "class: `heap_graph_class.id`";
    type_name text indexed: "class name, deobfuscated if possible";
    is_libcore_or_array int: "1 for core libraries of Java and Kotlin and for arrays of primitives";
    obj_count int: "instances";
    size_bytes int: "shallow size of the instances";
    native_size_bytes int: "native bytes owned by the instances";
    reachable_obj_count int: "reachable instances";
    reachable_size_bytes int: "shallow size of the reachable instances";
    reachable_native_size_bytes int: "native bytes owned by the reachable instances";
    dominated_obj_count int: "objects dominated by the reachable instances, including themselves";
    dominated_size_bytes int: "shallow size of the dominated objects";
    dominated_native_size_bytes int: "native bytes owned by the dominated objects";
};

static BY_DUMP: Schema = schema! {
    "android_heap_graph_stats" in "android.memory.heap_graph.heap_graph_stats":
        "Sums for each dump. Columns that need system counters are NULL.";
    upid int: "process";
    graph_sample_ts int sorted: "time of the dump in ns";
    process_uptime int: "time since the process started, ns; NULL if unknown";
    total_heap_size int: "shallow size of all objects";
    total_native_alloc_registry_size int: "native bytes owned by all objects";
    total_obj_count int: "number of objects";
    reachable_heap_size int: "shallow size of reachable objects";
    reachable_native_alloc_registry_size int: "native bytes owned by reachable objects";
    reachable_obj_count int: "number of reachable objects";
    oom_score_adj int: "always NULL: needs a system counter";
    anon_rss_and_swap_size int: "always NULL: needs a system counter";
    dmabuf_rss_size int: "always NULL: needs a system counter";
    art_bytes_allocated int: "bytes allocated, as reported by the runtime";
    is_out_of_memory_error int: "1 if an OutOfMemoryError caused the dump; NULL if unknown";
    oome_failing_allocation_size int: "bytes of the failed allocation";
    oome_remaining_art_free_bytes int: "bytes that could still be allocated at that time";
};

pub(super) fn add(catalog: &mut Catalog, heaps: &LazyHeaps, processes: &Arc<Processes>) {
    let classes = heaps.model(ByClass::from_heaps);
    catalog.rows(&BY_CLASS, &classes, |of| of.rows.len(), class_cell);
    let (lazy, processes) = (heaps.clone(), Arc::clone(processes));
    catalog.fixed(&BY_DUMP, move || {
        let heaps = lazy.get()?;
        // Dumps without objects are left out.
        let dumps = heaps.all().iter().filter(|heap| !heap.graph.is_empty());
        Ok(dumps.map(|heap| dump_row(heap, &processes)).collect())
    });
}

struct ByClass {
    heaps: Arc<Heaps>,
    /// Position of the dump, and its sums.
    rows: Vec<(usize, ClassSums)>,
}

impl ByClass {
    fn from_heaps(heaps: Arc<Heaps>) -> ByClass {
        let dumps = heaps.all().iter().enumerate();
        let rows = dumps.flat_map(|(at, heap)| {
            let sums = class_aggregation(&heap.graph, heap.dominators());
            sums.into_iter().map(move |sums| (at, sums))
        });
        let rows = rows.collect();
        ByClass { heaps, rows }
    }
}

fn class_cell(of: &ByClass, row: usize, column: usize) -> Cell<'_> {
    let (at, sums) = &of.rows[row];
    let heap = &of.heaps.all()[*at];
    let of_column = match column {
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
        5 | 8 | 11 => of_column.count.into(),
        6 | 9 | 12 => of_column.bytes.into(),
        _ => of_column.native_bytes.into(),
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

fn dump_row(heap: &Heap, processes: &Processes) -> Vec<Cell<'static>> {
    let [all, reached] = sums(heap);
    let process = processes.rows().get(heap.upid as usize);
    let started = process.and_then(|process| process.start_ns);
    let error = heap.facts.out_of_memory.as_ref();
    vec![
        heap.upid.into(),
        heap.ts().into(),
        started.map(|at| heap.facts.time_ns.wrapping_sub(at)).into(),
        all.bytes.into(),
        all.native_bytes.into(),
        all.count.into(),
        reached.bytes.into(),
        reached.native_bytes.into(),
        reached.count.into(),
        Cell::Null,
        Cell::Null,
        Cell::Null,
        heap.graph.facts.heap_bytes_allocated.into(),
        heap.facts.is_out_of_memory.then_some(1u32).into(),
        error.map(|error| error.allocation_bytes).into(),
        error.map(|error| error.free_until_oom_bytes).into(),
    ]
}
