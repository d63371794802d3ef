-- Macros, functions and views of Perfetto's library, written for heaptap. The comment before each
-- one has its module, if it is of one, and its meaning in one line. `$work` stands for a program.

-- module graphs.search
-- Nodes reachable from the start nodes, breadth first, each with its predecessor.
CREATE PERFETTO MACRO graph_reachable_bfs(graph_table TableOrSubquery, start_nodes TableOrSubquery)
RETURNS TableOrSubquery AS $work;

-- module graphs.search
-- Nodes reachable from the start nodes, depth first, each with its predecessor.
CREATE PERFETTO MACRO graph_reachable_dfs(graph_table TableOrSubquery, start_nodes TableOrSubquery)
RETURNS TableOrSubquery AS $work;

-- module graphs.dominator_tree
-- Nodes reachable from a root, each with its immediate dominator.
CREATE PERFETTO MACRO graph_dominator_tree(graph_table TableOrSubquery, root_node_id Expr)
RETURNS TableOrSubquery AS $work;

-- module graphs.partition
-- A tree split by group: the parent of a node is its nearest ancestor of the same group.
CREATE PERFETTO MACRO tree_structural_partition_by_group(tree_table TableOrSubquery)
RETURNS TableOrSubquery AS $work;

-- module graphs.scan
-- Values passed along edges, step by step.
CREATE PERFETTO MACRO _graph_scan(
  graph_table TableOrSubquery, init_table TableOrSubquery, scan_columns ColumnNameList,
  step_query TableOrSubquery)
RETURNS TableOrSubquery AS $work;

-- module graphs.scan
-- Values passed along edges and aggregated at each node.
CREATE PERFETTO MACRO _graph_aggregating_scan(
  graph_table TableOrSubquery, init_table TableOrSubquery, agg_columns ColumnNameList,
  agg_query TableOrSubquery)
RETURNS TableOrSubquery AS $work;

-- module graphs.hierarchy
-- The given nodes of a tree and all their ancestors, without duplicates.
CREATE PERFETTO MACRO _tree_reachable_ancestors_or_self(tree TableOrSubquery, start_nodes TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH RECURSIVE
    tree_above AS MATERIALIZED (SELECT id, parent_id FROM $tree),
    reached (id) AS (
      SELECT id FROM $start_nodes
      UNION
      SELECT t.parent_id FROM reached r JOIN tree_above t ON t.id = r.id
      WHERE t.parent_id IS NOT NULL)
  SELECT id FROM reached);

-- module graphs.search
-- Nodes, each with its next sibling.
CREATE PERFETTO MACRO graph_next_sibling(graph_table TableOrSubquery)
RETURNS TableOrSubquery AS (
  SELECT node_id,
         lead(node_id) OVER (PARTITION BY node_parent_id ORDER BY sort_key) AS next_node_id
  FROM $graph_table);

-- module android.memory.heap_graph.class_relationship
-- The given classes with all their descendants.
CREATE PERFETTO MACRO android_heap_graph_class_find_descendants(ancestor_class_ids TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH RECURSIVE descends (id, ancestor_class_id) AS (
    SELECT id, id FROM $ancestor_class_ids
    UNION
    SELECT c.id, d.ancestor_class_id
    FROM descends d JOIN heap_graph_class c ON c.superclass_id = d.id)
  SELECT d.id, d.ancestor_class_id, c.name AS ancestor_class_name
  FROM descends d JOIN heap_graph_class c ON c.id = d.ancestor_class_id);

-- module callstacks.stack_profile
-- Callstacks of the sampled callsites, including all callers.
CREATE PERFETTO MACRO _callstacks_for_stack_profile_samples(spc_samples TableOrSubquery)
RETURNS TableOrSubquery AS (
  SELECT f.id, f.parent_id, f.callsite_id, f.name, m.name AS mapping_name,
         f.source_file, f.line_number, f.inlined, f.is_leaf_function_in_callsite_frame
  FROM _tree_reachable_ancestors_or_self!(
    _callstack_spc_forest,
    (SELECT leaf.id
     FROM $spc_samples sample
     JOIN _callstack_spc_forest leaf ON leaf.callsite_id = sample.callsite_id
     WHERE leaf.is_leaf_function_in_callsite_frame)) reached
  JOIN _callstack_spc_forest f ON f.id = reached.id
  JOIN stack_profile_mapping m ON m.id = f.mapping_id);

-- module callstacks.stack_profile
-- Callstacks, each with the number of samples that end in it.
CREATE PERFETTO MACRO _callstacks_for_callsites(samples TableOrSubquery)
RETURNS TableOrSubquery AS (
  SELECT id, parent_id, name, mapping_name, source_file, line_number, self_value AS self_count
  FROM _callstacks_for_callsites_weighted!((SELECT callsite_id, 1 AS value FROM $samples)));

-- module callstacks.stack_profile
-- Callstacks, each with the sum of the values of samples that end in it.
CREATE PERFETTO MACRO _callstacks_for_callsites_weighted(samples TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH sampled AS MATERIALIZED (
    SELECT callsite_id, sum(value) AS self_value FROM $samples GROUP BY callsite_id)
  SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
         iif(c.is_leaf_function_in_callsite_frame, coalesce(s.self_value, 0), 0)
           AS self_value
  FROM _callstacks_for_stack_profile_samples!(sampled) c
  LEFT JOIN sampled s ON s.callsite_id = c.callsite_id);

-- module callstacks.stack_profile
-- Callstacks, each with the sum of `self_count` over it and all callstacks below.
CREATE PERFETTO MACRO _callstacks_self_to_cumulative(callstacks TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH RECURSIVE
    given AS MATERIALIZED (SELECT id, parent_id, self_count FROM $callstacks),
    handed (id, self_count) AS (
      SELECT id, self_count FROM given WHERE self_count <> 0
      UNION ALL
      SELECT g.parent_id, h.self_count FROM handed h JOIN given g ON g.id = h.id
      WHERE g.parent_id IS NOT NULL)
  SELECT g.id, coalesce(sum(h.self_count), 0) AS cumulative_count
  FROM given g LEFT JOIN handed h ON h.id = g.id GROUP BY g.id);

-- module android.memory.heap_profile.callstacks
-- Callstacks, each with the unreleased and allocated memory of the given allocations.
CREATE PERFETTO MACRO _android_heap_profile_callstacks_for_allocations(allocations TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH sampled AS MATERIALIZED (
    SELECT callsite_id, sum(size) AS self_size, sum(count) AS self_count,
           sum(alloc_size) AS self_alloc_size, sum(alloc_count) AS self_alloc_count
    FROM $allocations GROUP BY callsite_id)
  SELECT c.id, c.parent_id, c.name, c.mapping_name, c.source_file, c.line_number,
         coalesce(s.self_size, 0) AS self_size, coalesce(s.self_count, 0) AS self_count,
         coalesce(s.self_alloc_size, 0) AS self_alloc_size,
         coalesce(s.self_alloc_count, 0) AS self_alloc_count
  FROM _callstacks_for_stack_profile_samples!(sampled) c
  LEFT JOIN sampled s ON s.callsite_id = c.callsite_id);

-- module counters.intervals
-- Values of counters as intervals up to the next value. Of a run of equal values, the first two and the last are kept.
CREATE PERFETTO MACRO counter_leading_intervals(counter_table TableOrSubquery)
RETURNS TableOrSubquery AS (
  WITH changed AS (
    SELECT id, ts, track_id, CAST(value AS REAL) AS value,
           value IS lag(value) OVER o AND value IS lag(value, 2) OVER o
             AND coalesce(lead(value) OVER o, value) IS value AS is_same
    FROM $counter_table WINDOW o AS (PARTITION BY track_id ORDER BY ts))
  SELECT id, ts, lead(ts, 1, trace_end()) OVER w - ts AS dur, track_id, value,
         lead(value) OVER w AS next_value, value - lag(value) OVER w AS delta_value
  FROM changed WHERE NOT is_same
  WINDOW w AS (PARTITION BY track_id ORDER BY ts));

-- The value as an integer.
CREATE PERFETTO MACRO cast_int(value Expr)
RETURNS Expr AS CAST($value AS INT);

-- The value as a floating-point number.
CREATE PERFETTO MACRO cast_double(value Expr)
RETURNS Expr AS CAST($value AS REAL);

-- The value as text.
CREATE PERFETTO MACRO cast_string(value Expr)
RETURNS Expr AS CAST($value AS TEXT);

-- module android.memory.heap_graph.excluded_refs
-- Reference classes that do not keep their referents alive.
CREATE PERFETTO VIEW _ref_type_ids AS
SELECT id AS type_id FROM heap_graph_class
WHERE kind IN ('KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE',
               'KIND_PHANTOM_REFERENCE');

-- module android.memory.heap_graph.excluded_refs
-- References that do not keep their targets alive.
CREATE PERFETTO VIEW _excluded_refs AS
SELECT id
FROM heap_graph_reference
WHERE field_name = 'java.lang.ref.Reference.referent'
  AND owner_id IN (
    SELECT o.id FROM heap_graph_class c JOIN heap_graph_object o ON o.type_id = c.id
    WHERE c.kind IN (
      'KIND_WEAK_REFERENCE', 'KIND_FINALIZER_REFERENCE', 'KIND_PHANTOM_REFERENCE'));

-- module android.memory.heap_graph.helpers
-- Hash of each class name, equal for equal names.
CREATE PERFETTO VIEW _heap_graph_class_name_hash AS
SELECT id, hash(coalesce(deobfuscated_name, name, '')) AS name_hash
FROM heap_graph_class;

-- First time in `trace_bounds`, ns of trace time.
CREATE PERFETTO FUNCTION trace_start() RETURNS LONG AS SELECT start_ts FROM trace_bounds;

-- Last time in `trace_bounds`, ns of trace time.
CREATE PERFETTO FUNCTION trace_end() RETURNS LONG AS SELECT end_ts FROM trace_bounds;

-- Time between the first and the last time in `trace_bounds`, ns.
CREATE PERFETTO FUNCTION trace_dur() RETURNS LONG AS SELECT end_ts - start_ts FROM trace_bounds;

-- Value of an argument in `args`: always NULL.
CREATE PERFETTO FUNCTION extract_arg(arg_set_id LONG, key STRING) RETURNS STRING AS SELECT NULL;

-- Values of counters with their names.
CREATE PERFETTO VIEW counters AS
SELECT c.id, c.ts, c.track_id, c.value, c.arg_set_id, t.name, t.unit
FROM counter c JOIN counter_track t ON t.id = c.track_id ORDER BY c.ts;

-- module android.memory.heap_profile.intervals
-- Dumps of native heaps as intervals since the previous dump, with the bytes that were allocated in it and those of them that are unreleased.
CREATE PERFETTO VIEW _android_heap_profile_intervals AS
WITH
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
FROM begun;

-- module linux.memory.general
-- Counters of processes as intervals up to the next value.
CREATE PERFETTO VIEW _all_counters_per_process AS
SELECT c.ts, lead(c.ts, 1, trace_end() + 1)
         OVER (PARTITION BY c.track_id ORDER BY c.ts) - c.ts AS dur,
       t.upid, c.value, c.track_id, t.name
FROM counter c JOIN process_counter_track t ON t.id = c.track_id
WHERE t.upid IS NOT NULL;

-- module linux.memory.process
-- Resident memory and swap of processes over time, bytes.
CREATE PERFETTO VIEW memory_rss_and_swap_per_process AS
WITH
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
FROM carried JOIN process USING (upid) ORDER BY upid, ts;

-- module linux.memory.high_watermark
-- Largest resident memory of processes so far, bytes.
CREATE PERFETTO VIEW memory_rss_high_watermark_per_process AS
WITH
  highest AS (
    SELECT ts, upid,
           max(coalesce(file_rss, 0) + coalesce(anon_rss, 0) + coalesce(shmem_rss, 0))
             OVER (PARTITION BY upid ORDER BY ts) AS value
    FROM memory_rss_and_swap_per_process)
SELECT ts, dur, upid, pid, name AS process_name,
       CAST(value AS INT) AS rss_high_watermark
FROM counter_leading_intervals!((SELECT 0 AS id, ts, upid AS track_id, value
                                 FROM highest)) c
JOIN process ON process.upid = c.track_id;
