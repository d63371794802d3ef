//! Macros and views of the library, written in SQL for heaptap.

use crate::functions::failure;
use crate::table::{Catalog, LibraryMacro, MacroBody, Scalar, View};
use rusqlite::types::Value;

/// References that do not keep their target alive: referents of weak, finalizer and phantom
/// references.
const EXCLUDED: &str = "
    SELECT id
    FROM heap_graph_reference
    WHERE field_name = 'java.lang.ref.Reference.referent'
      AND owner_id IN (
        SELECT o.id FROM heap_graph_class c JOIN heap_graph_object o ON o.type_id = c.id
        WHERE c.kind IN (
          'KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE'))";

const VIEWS: [View; 3] = [
    View {
        name: "_ref_type_ids",
        module: Some("android.memory.heap_graph.excluded_refs"),
        about: "Reference classes that do not keep their referents alive.",
        sql: "SELECT id AS type_id FROM heap_graph_class
              WHERE kind IN ('KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE',
                             'KIND_PHANTOM_REFERENCE')",
    },
    View {
        name: "_excluded_refs",
        module: Some("android.memory.heap_graph.excluded_refs"),
        about: "References that do not keep their targets alive.",
        sql: EXCLUDED,
    },
    View {
        name: "_heap_graph_class_name_hash",
        module: Some("android.memory.heap_graph.helpers"),
        about: "Hash of each class name, equal for equal names.",
        sql: "SELECT id, hash(coalesce(deobfuscated_name, name, '')) AS name_hash
              FROM heap_graph_class",
    },
];

/// Views over native heaps and counters of a trace.
const OF_TRACE: [View; 5] = [
    View {
        name: "counters",
        module: None,
        about: "Values of counters with their names.",
        sql: "SELECT c.id, c.ts, c.track_id, c.value, c.arg_set_id, t.name, t.unit
              FROM counter c JOIN counter_track t ON t.id = c.track_id ORDER BY c.ts",
    },
    View {
        name: "_android_heap_profile_intervals",
        module: Some("android.memory.heap_profile.intervals"),
        about: "Dumps of native heaps as intervals since the previous dump, with the bytes that \
                were allocated in it and those of them that are unreleased.",
        sql: "WITH
            by_callsite AS (
              SELECT min(id) AS id, upid, heap_name, ts, sum(count) AS count, sum(size) AS size,
                     sum(max(size, 0)) AS allocated
              FROM heap_profile_allocation GROUP BY upid, heap_name, ts, callsite_id),
            dumped AS (
              SELECT min(a.id) AS id, a.upid, a.heap_name, a.ts AS ts_end, p.ts AS began,
                     sum(iif(a.count > 0, a.size, 0)) AS retained, sum(a.allocated) AS allocated,
                     sum(a.size) AS delta
              FROM by_callsite a
              JOIN heap_profile p
                ON p.upid = a.upid AND p.ts_end = a.ts AND p.heap_name = a.heap_name
              GROUP BY a.upid, a.heap_name, a.ts),
            begun AS (
              SELECT *, iif(began < ts_end, began, min(ts_end, 1 + lag(ts_end, 1, trace_start())
                       OVER (PARTITION BY upid, heap_name ORDER BY ts_end))) AS ts
              FROM dumped)
          SELECT id, upid, heap_name, ts, ts_end - ts AS dur, retained, allocated, delta
          FROM begun",
    },
    View {
        name: "_all_counters_per_process",
        module: Some("linux.memory.general"),
        about: "Counters of processes as intervals up to the next value.",
        sql: "SELECT c.ts, lead(c.ts, 1, trace_end() + 1)
                       OVER (PARTITION BY c.track_id ORDER BY c.ts) - c.ts AS dur,
                     t.upid, c.value, c.track_id, t.name
              FROM counter c JOIN process_counter_track t ON t.id = c.track_id
              WHERE t.upid IS NOT NULL",
    },
    View {
        name: "memory_rss_and_swap_per_process",
        module: Some("linux.memory.process"),
        about: "Resident memory and swap of processes over time, bytes.",
        // The values of a moment, each carried on from its last change.
        sql: "WITH
            moment AS (
              SELECT t.upid, c.ts,
                     max(iif(t.name = 'mem.rss.anon', c.value, NULL)) AS anon,
                     max(iif(t.name = 'mem.rss.file', c.value, NULL)) AS file,
                     max(iif(t.name = 'mem.rss.shmem', c.value, NULL)) AS shmem,
                     max(iif(t.name = 'mem.swap', c.value, NULL)) AS swap
              FROM counter c JOIN process_counter_track t ON t.id = c.track_id
              WHERE t.upid IS NOT NULL
                AND t.name IN ('mem.rss.anon', 'mem.rss.file', 'mem.rss.shmem', 'mem.swap')
              GROUP BY t.upid, c.ts),
            changed AS (
              SELECT *, count(anon) OVER w AS anon_at, count(file) OVER w AS file_at,
                     count(shmem) OVER w AS shmem_at, count(swap) OVER w AS swap_at,
                     lead(ts, 1, trace_end() + 1) OVER w - ts AS dur
              FROM moment WINDOW w AS (PARTITION BY upid ORDER BY ts)),
            carried AS (
              SELECT ts, dur, upid,
                     CAST(max(anon) OVER (PARTITION BY upid, anon_at) AS INT) AS anon_rss,
                     CAST(max(file) OVER (PARTITION BY upid, file_at) AS INT) AS file_rss,
                     CAST(max(shmem) OVER (PARTITION BY upid, shmem_at) AS INT) AS shmem_rss,
                     CAST(max(swap) OVER (PARTITION BY upid, swap_at) AS INT) AS swap
              FROM changed)
          SELECT ts, dur, upid, pid, name AS process_name, anon_rss, file_rss, shmem_rss,
                 file_rss + anon_rss + coalesce(shmem_rss, 0) AS rss, swap,
                 anon_rss + coalesce(swap, 0) AS anon_rss_and_swap,
                 anon_rss + file_rss + coalesce(shmem_rss, 0) + coalesce(swap, 0) AS rss_and_swap
          FROM carried JOIN process USING (upid) ORDER BY upid, ts",
    },
    View {
        name: "memory_rss_high_watermark_per_process",
        module: Some("linux.memory.high_watermark"),
        about: "Largest resident memory of processes so far, bytes.",
        sql: "WITH
            highest AS (
              SELECT ts, upid,
                     max(coalesce(file_rss, 0) + coalesce(anon_rss, 0) + coalesce(shmem_rss, 0))
                       OVER (PARTITION BY upid ORDER BY ts) AS value
              FROM memory_rss_and_swap_per_process)
          SELECT ts, dur, upid, pid, name AS process_name,
                 CAST(value AS INT) AS rss_high_watermark
          FROM counter_leading_intervals!((SELECT 0 AS id, ts, upid AS track_id, value
                                           FROM highest)) c
          JOIN process ON process.upid = c.track_id",
    },
];

/// Functions of the module `time.conversion`: unit and its nanoseconds.
const UNITS: [(&str, &str, i64); 7] = [
    ("time_from_ns", "time_to_ns", 1),
    ("time_from_us", "time_to_us", 1_000),
    ("time_from_ms", "time_to_ms", 1_000_000),
    ("time_from_s", "time_to_s", 1_000_000_000),
    ("time_from_min", "time_to_min", 60_000_000_000),
    ("time_from_hours", "time_to_hours", 3_600_000_000_000),
    ("time_from_days", "time_to_days", 86_400_000_000_000),
];

fn add_conversions(catalog: &mut Catalog) {
    catalog.module("time.conversion");
    let mut add = |name, about, convert: Box<dyn Fn(i64) -> Option<i64> + Send>| {
        catalog.scalar(Scalar {
            name,
            about,
            arguments: &["time"],
            value: Box::new(move |context| {
                let time: Option<i64> = context.get(0)?;
                let Some(time) = time else {
                    return Ok(Value::Null);
                };
                let converted = convert(time).map(Value::Integer);
                converted.ok_or_else(|| failure(&format!("{name}: the time is too large")))
            }),
        });
    };
    for (from, to, nanoseconds) in UNITS {
        add(
            from,
            "Nanoseconds of a time in the unit of the name. Module `time.conversion`.",
            Box::new(move |time| time.checked_mul(nanoseconds)),
        );
        add(
            to,
            "Whole units of the name in a time in nanoseconds. Module `time.conversion`.",
            Box::new(move |time| Some(time / nanoseconds)),
        );
    }
}

pub(super) const MACROS: [LibraryMacro; 12] = [
    LibraryMacro {
        name: "_tree_reachable_ancestors_or_self",
        module: Some("graphs.hierarchy"),
        about: "The given nodes of a tree and all their ancestors, without duplicates.",
        arguments: &["tree", "start_nodes"],
        body: MacroBody::Text(
            "(
          WITH RECURSIVE
            tree_above AS MATERIALIZED (SELECT id, parent_id FROM $tree),
            reached (id) AS (
              SELECT id FROM $start_nodes
              UNION
              SELECT t.parent_id FROM reached r JOIN tree_above t ON t.id = r.id
              WHERE t.parent_id IS NOT NULL)
          SELECT id FROM reached)",
        ),
    },
    LibraryMacro {
        name: "graph_next_sibling",
        module: Some("graphs.search"),
        about: "Nodes, each with its next sibling.",
        arguments: &["graph_table"],
        body: MacroBody::Text(
            "(
          SELECT node_id,
                 lead(node_id) OVER (PARTITION BY node_parent_id ORDER BY sort_key) AS next_node_id
          FROM $graph_table)",
        ),
    },
    LibraryMacro {
        name: "android_heap_graph_class_find_descendants",
        module: Some("android.memory.heap_graph.class_relationship"),
        about: "The given classes with all their descendants.",
        arguments: &["ancestor_class_ids"],
        body: MacroBody::Text(
            "(
          WITH RECURSIVE descends (id, ancestor_class_id) AS (
            SELECT id, id FROM $ancestor_class_ids
            UNION
            SELECT c.id, d.ancestor_class_id
            FROM descends d JOIN heap_graph_class c ON c.superclass_id = d.id)
          SELECT d.id, d.ancestor_class_id, c.name AS ancestor_class_name
          FROM descends d JOIN heap_graph_class c ON c.id = d.ancestor_class_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_for_stack_profile_samples",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks of the sampled callsites, including all callers.",
        arguments: &["spc_samples"],
        body: MacroBody::Text(
            "(
          SELECT f.id, f.parent_id, f.callsite_id, f.name, m.name AS mapping_name,
                 f.source_file, f.line_number, f.inlined, f.is_leaf_function_in_callsite_frame
          FROM _tree_reachable_ancestors_or_self!(
            _callstack_spc_forest,
            (SELECT leaf.id
             FROM $spc_samples sample
             JOIN _callstack_spc_forest leaf ON leaf.callsite_id = sample.callsite_id
             WHERE leaf.is_leaf_function_in_callsite_frame)) reached
          JOIN _callstack_spc_forest f ON f.id = reached.id
          JOIN stack_profile_mapping m ON m.id = f.mapping_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_for_callsites",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks, each with the number of samples that end in it.",
        arguments: &["samples"],
        body: MacroBody::Text(
            "(
          WITH sampled AS MATERIALIZED (
            SELECT callsite_id, count() AS self_count FROM $samples GROUP BY callsite_id)
          SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
                 iif(c.is_leaf_function_in_callsite_frame, coalesce(s.self_count, 0), 0)
                   AS self_count
          FROM _callstacks_for_stack_profile_samples!(sampled) c
          LEFT JOIN sampled s ON s.callsite_id = c.callsite_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_for_callsites_weighted",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks, each with the sum of the values of samples that end in it.",
        arguments: &["samples"],
        body: MacroBody::Text(
            "(
          WITH sampled AS MATERIALIZED (
            SELECT callsite_id, sum(value) AS self_value FROM $samples GROUP BY callsite_id)
          SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
                 iif(c.is_leaf_function_in_callsite_frame, coalesce(s.self_value, 0), 0)
                   AS self_value
          FROM _callstacks_for_stack_profile_samples!(sampled) c
          LEFT JOIN sampled s ON s.callsite_id = c.callsite_id)",
        ),
    },
    LibraryMacro {
        name: "_callstacks_self_to_cumulative",
        module: Some("callstacks.stack_profile"),
        about: "Callstacks, each with the sum of `self_count` over it and all callstacks below.",
        arguments: &["callstacks"],
        body: MacroBody::Text(
            "(
          WITH RECURSIVE
            given AS MATERIALIZED (SELECT id, parent_id, self_count FROM $callstacks),
            handed (id, self_count) AS (
              SELECT id, self_count FROM given WHERE self_count <> 0
              UNION ALL
              SELECT g.parent_id, h.self_count FROM handed h JOIN given g ON g.id = h.id
              WHERE g.parent_id IS NOT NULL)
          SELECT g.id, coalesce(sum(h.self_count), 0) AS cumulative_count
          FROM given g LEFT JOIN handed h ON h.id = g.id GROUP BY g.id)",
        ),
    },
    LibraryMacro {
        name: "_android_heap_profile_callstacks_for_allocations",
        module: Some("android.memory.heap_profile.callstacks"),
        about: "Callstacks, each with the unreleased and allocated memory of the given \
                allocations.",
        arguments: &["allocations"],
        body: MacroBody::Text(
            "(
          WITH sampled AS MATERIALIZED (
            SELECT callsite_id, sum(size) AS self_size, sum(count) AS self_count,
                   sum(alloc_size) AS self_alloc_size, sum(alloc_count) AS self_alloc_count
            FROM $allocations GROUP BY callsite_id)
          SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
                 coalesce(s.self_size, 0) AS self_size, coalesce(s.self_count, 0) AS self_count,
                 coalesce(s.self_alloc_size, 0) AS self_alloc_size,
                 coalesce(s.self_alloc_count, 0) AS self_alloc_count
          FROM _callstacks_for_stack_profile_samples!(sampled) c
          LEFT JOIN sampled s ON s.callsite_id = c.callsite_id)",
        ),
    },
    LibraryMacro {
        name: "counter_leading_intervals",
        module: Some("counters.intervals"),
        about: "Values of counters as intervals up to the next value. Of a run of equal values, \
                the first two and the last are kept.",
        arguments: &["counter_table"],
        body: MacroBody::Text(
            "(
          WITH changed AS (
            SELECT id, ts, track_id, CAST(value AS REAL) AS value,
                   value IS lag(value) OVER o AND value IS lag(value, 2) OVER o
                     AND coalesce(lead(value) OVER o, value) IS value AS is_same
            FROM $counter_table WINDOW o AS (PARTITION BY track_id ORDER BY ts))
          SELECT id, ts, lead(ts, 1, trace_end()) OVER w - ts AS dur, track_id, value,
                 lead(value) OVER w AS next_value, value - lag(value) OVER w AS delta_value
          FROM changed WHERE NOT is_same
          WINDOW w AS (PARTITION BY track_id ORDER BY ts))",
        ),
    },
    LibraryMacro {
        name: "cast_int",
        module: None,
        about: "The value as an integer.",
        arguments: &["value"],
        body: MacroBody::Text("CAST($value AS INT)"),
    },
    LibraryMacro {
        name: "cast_double",
        module: None,
        about: "The value as a floating-point number.",
        arguments: &["value"],
        body: MacroBody::Text("CAST($value AS REAL)"),
    },
    LibraryMacro {
        name: "cast_string",
        module: None,
        about: "The value as text.",
        arguments: &["value"],
        body: MacroBody::Text("CAST($value AS TEXT)"),
    },
];

/// Modules without contents of their own.
const EMPTY: [&str; 3] = [
    "prelude.after_eof.memory",
    "android.memory.heap_graph.experimental_flamegraph",
    "android.memory.heap_graph.class_tree",
];

/// Adds the views that need the counters or the bounds of a trace.
pub(crate) fn add_of_trace(catalog: &mut Catalog) {
    for view in OF_TRACE {
        catalog.view(view);
    }
}

pub(super) fn add(catalog: &mut Catalog) {
    add_conversions(catalog);
    for module in OF_TRACE.iter().filter_map(|view| view.module) {
        catalog.module(module);
    }
    for module in EMPTY {
        catalog.module(module);
    }
    for one in MACROS {
        catalog.library_macro(one);
    }
    for view in VIEWS {
        catalog.view(view);
    }
}
