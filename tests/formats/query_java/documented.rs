//! Every query on heaps that Perfetto's documentation contains or contained, unchanged except for
//! times, processes and class names. If Perfetto's tables support it too, both give the same rows;
//! otherwise the rows are compared with our own tables.

use super::sides::{self, Sides};
use super::{DIRECTORIES, Recording, each, recordings};
use rusqlite::types::Value;

/// Queries on tables only: the same text runs on both sides. Queries on callsites return numbers,
/// which differ.
const PLAIN: [(&str, &str); 8] = [
    // data-sources/java-heap-profiler
    (
        "heap_graph_object",
        "select c.name, sum(o.self_size)
       from heap_graph_object o join heap_graph_class c on (o.type_id = c.id)
       where reachable = 1 group by 1 order by 2 desc",
    ),
    (
        "heap_graph_object",
        "select distinct graph_sample_ts from heap_graph_object",
    ),
    // analysis/perfetto-sql-getting-started
    (
        "heap_graph_object",
        "SELECT
  c.name AS class_name,
  SUM(o.self_size) AS total_size,
  COUNT() AS object_count
FROM heap_graph_object AS o
JOIN heap_graph_class AS c ON o.type_id = c.id
WHERE o.reachable
GROUP BY c.name
ORDER BY total_size DESC",
    ),
    (
        "alloc",
        "SELECT ts, size, count
FROM heap_profile_allocation
WHERE size > 0
ORDER BY size DESC",
    ),
    (
        "alloc",
        "SELECT
  a.ts,
  a.size,
  f.name AS function_name,
  m.name AS binary_name
FROM heap_profile_allocation AS a
JOIN stack_profile_callsite AS c ON a.callsite_id = c.id
JOIN stack_profile_frame AS f ON c.frame_id = f.id
JOIN stack_profile_mapping AS m ON f.mapping = m.id
WHERE a.size > 0",
    ),
    // data-sources/native-heap-profiler, without the numbers of callsites and processes
    (
        "alloc",
        "select a.ts, f.name, f.rel_pc, m.build_id, m.name as mapping_name,
        sum(a.size) as space_size, sum(a.count) as space_count
      from heap_profile_allocation a join
           stack_profile_callsite c ON (a.callsite_id = c.id) join
           stack_profile_frame f ON (c.frame_id = f.id) join
           stack_profile_mapping m ON (f.mapping = m.id)
      group by a.callsite_id, a.upid, 1, 2, 3, 4, 5 order by space_size desc",
    ),
    // References of a class, and frequency of sizes.
    (
        "heap_graph_reference",
        "SELECT
  c_owned.name AS owned_class_name,
  o_owned.self_size AS owned_size,
  c_owner.name AS owner_class_name,
  r.owner_id AS owner_id,
  o_owned.id AS owned_id
FROM heap_graph_object AS o_owner
JOIN heap_graph_class AS c_owner
  ON o_owner.type_id = c_owner.id
JOIN heap_graph_reference AS r
  ON r.owner_id = o_owner.id
JOIN heap_graph_object AS o_owned
  ON r.owned_id = o_owned.id
JOIN heap_graph_class AS c_owned
  ON o_owned.type_id = c_owned.id
WHERE
  c_owner.name = (SELECT min(name) FROM heap_graph_class)
  OR c_owned.name = 'Foo'",
    ),
    (
        "heap_graph_object",
        "SELECT
  hgc.name AS class_name,
  hgo.self_size AS single_object_self_size,
  COUNT(*) AS occurrence_count
FROM heap_graph_object AS hgo
JOIN heap_graph_class AS hgc
  ON hgo.type_id = hgc.id
GROUP BY
  hgc.name,
  hgo.self_size
ORDER BY
  occurrence_count DESC",
    ),
];

/// Queries on the library: the included modules and the query, which runs on both sides.
const LIBRARY: [(&str, &str, &str); 8] = [
    // data-sources/java-heap-profiler
    (
        "android_heap_graph_class_summary_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_graph.class_summary_tree;",
        "SELECT
  -- The name of the class.
  name,
  -- The sum of `self_size` of this node and all descendants of this node.
  cumulative_size
FROM android_heap_graph_class_summary_tree",
    ),
    // getting-started/memory-profiling
    (
        "android_heap_graph_class_aggregation",
        "INCLUDE PERFETTO MODULE android.memory.heap_graph.heap_graph_class_aggregation;",
        "SELECT
  -- Class name (deobfuscated if available)
  type_name,
  -- Count of class instances
  obj_count,
  -- Size of class instances
  size_bytes,
  -- Native size of class instances
  native_size_bytes,
  -- Count of reachable class instances
  reachable_obj_count,
  -- Size of reachable class instances
  reachable_size_bytes,
  -- Native size of reachable class instances
  reachable_native_size_bytes
FROM android_heap_graph_class_aggregation",
    ),
    // Without id and parent_id, which number callsites.
    (
        "android_heap_profile_summary_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_profile.summary_tree;",
        "SELECT
  -- The function name of the frame for this callstack.
  name,
  -- The name of the mapping containing the frame. This
  -- can be a native binary, library, JAR or APK.
  mapping_name,
  -- The name of the file containing the function.
  source_file,
  -- The line number in the file the function is located at.
  line_number,
  -- The amount of memory allocated and *not freed* with this
  -- function as the leaf frame.
  self_size,
  -- The amount of memory allocated and *not freed* with this
  -- function appearing anywhere on the callstack.
  cumulative_size,
  -- The amount of memory allocated with this function as the leaf
  -- frame. This may include memory which was later freed.
  self_alloc_size,
  -- The amount of memory allocated with this function appearing
  -- anywhere on the callstack. This may include memory which was
  -- later freed.
  cumulative_alloc_size
FROM android_heap_profile_summary_tree",
    ),
    // data-sources/native-heap-profiler
    (
        "android_heap_profile_summary_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_profile.summary_tree;",
        "SELECT
  -- The function name of the frame for this callstack.
  name,
  -- The name of the mapping containing the frame. This
  -- can be a native binary, library, JAR or APK.
  mapping_name AS map_name,
  -- The amount of memory allocated and *not freed* with this
  -- function appearing anywhere on the callstack.
  cumulative_size
FROM android_heap_profile_summary_tree;
order by abs(cumulative_size) desc",
    ),
    // analysis/perfetto-sql-getting-started
    (
        "android_heap_profile_summary_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_profile.summary_tree;",
        "SELECT name, mapping_name, self_size, cumulative_size
FROM android_heap_profile_summary_tree
ORDER BY cumulative_size DESC",
    ),
    // Guides to leaks.
    (
        "android_heap_graph_class_summary_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_graph.class_summary_tree;",
        "SELECT
  name AS class_name,
  root_type,
  self_count,
  self_size,
  cumulative_count,
  cumulative_size
FROM android_heap_graph_class_summary_tree
ORDER BY cumulative_size DESC",
    ),
    (
        "android_heap_graph_class_summary_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_graph.class_summary_tree;",
        "SELECT
  count(self_count) AS total_unique_paths_to_gc_root,
  name AS class_name,
  SUM(self_count) AS total_objects,
  sum(cumulative_size) AS total_objects_memory_consumption,
  MIN(self_size) AS single_object_self_size,
  MIN(cumulative_size) AS single_object_cumulative_size
FROM android_heap_graph_class_summary_tree
GROUP BY
  name
ORDER BY
  count(*) DESC",
    ),
    (
        "heap_graph_dominator_tree",
        "INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_tree;",
        "WITH suspect_objects AS (
  SELECT o.id
  FROM heap_graph_object o
  JOIN heap_graph_class c ON o.type_id = c.id
  WHERE o.graph_sample_ts = (SELECT max(graph_sample_ts) FROM heap_graph_object)
    AND c.name = 'Foo'
)
SELECT
  d.id,
  d.idom_id,
  d.dominated_obj_count,
  d.dominated_size_bytes,
  d.depth
FROM heap_graph_dominator_tree d
JOIN suspect_objects s USING (id)
ORDER BY dominated_size_bytes DESC",
    ),
];

/// Makes times in the first column relative to the first: handmade traces have clocks that Perfetto
/// maps below zero.
fn since_first(mut rows: Vec<sides::Row>) -> Vec<sides::Row> {
    let first = rows.iter().map(|row| number(&row[0])).min();
    for row in &mut rows {
        row[0] = Value::Integer(number(&row[0]) - first.unwrap_or_default());
    }
    rows
}

/// The query on a tree of callstacks, without the known differences: Perfetto names unnamed frames
/// `unknown` and files missing in symbolization `??`, demangles Rust in another style, and has no
/// file names for Java.
fn without_spellings(sql: &str) -> String {
    let table = "(SELECT
       CASE WHEN mapping_name GLOB '*rust*' OR name = 'unknown' THEN '' ELSE name END AS name,
       mapping_name, self_size, cumulative_size, self_alloc_size, cumulative_alloc_size,
       CASE WHEN mapping_name GLOB '*.apk' THEN NULL ELSE nullif(source_file, '??') END
         AS source_file,
       nullif(line_number, 0) AS line_number
     FROM android_heap_profile_summary_tree)";
    sql.replace(
        "FROM android_heap_profile_summary_tree",
        &format!("FROM {table}"),
    )
}

fn judge(_: &Recording, sides: &Sides) -> Vec<String> {
    let mut faults = Vec::new();
    let index = "CREATE INDEX IF NOT EXISTS object_class ON heap_graph_class (id);
                 CREATE INDEX IF NOT EXISTS object_id ON heap_graph_object (id);";
    if sides.has("heap_graph_object") {
        sides.theirs.execute_batch(index).expect("an index");
    }
    for (table, sql) in PLAIN {
        if sides.has(table) && (table != "alloc" || sides.has("process")) {
            let (mut ours, mut theirs) = (sides.ours(sql), sides::rows(&sides.theirs, sql));
            if table == "alloc" {
                (ours, theirs) = (ours.map(since_first), theirs.map(since_first));
            }
            let found = sides.differences(ours, theirs);
            faults.extend(found.into_iter().map(|fault| format!("{sql}: {fault}")));
        }
    }
    for (table, include, sql) in LIBRARY {
        let complete = table != "heap_graph_dominator_tree" || sides.has("heap_graph_object");
        if sides.has(table) && complete {
            let sql = match table {
                "android_heap_profile_summary_tree" => without_spellings(sql),
                _ => sql.to_owned(),
            };
            // The documentation has a semicolon before an `order by`.
            let theirs = sql.replace(";\norder by", "\norder by");
            let found = sides.compare_with(&format!("{include}\n\n{sql};"), &theirs);
            faults.extend(found.into_iter().map(|fault| format!("{sql}: {fault}")));
        }
    }
    faults
}

#[test]
#[ignore = "needs HEAPTAP_RECORDINGS, a folder of recordings and of Perfetto's tables"]
fn given_recordings_answer_documented_queries_as_perfettos_tables_imply() {
    each(crate::recordings::given(&DIRECTORIES), judge);
}

/// The largest node of each dump's dominator tree by class, and the path to it.
const TRIAGE: &str = r#"
INCLUDE PERFETTO MODULE android.memory.heap_graph.dominator_class_tree;

INCLUDE PERFETTO MODULE graphs.scan;

INCLUDE PERFETTO MODULE graphs.hierarchy;

CREATE OR REPLACE PERFETTO TABLE _top_class_nodes AS
SELECT id
FROM (
  SELECT
    id,
    ROW_NUMBER() OVER (
      PARTITION BY
        upid,
        graph_sample_ts
      ORDER BY self_size DESC
    ) AS rn
  FROM _heap_graph_dominator_class_tree
)
WHERE
  rn = 1;

CREATE OR REPLACE PERFETTO TABLE _class_ancestor_ids AS
SELECT id
FROM _tree_reachable_ancestors_or_self!((
    SELECT id, parent_id FROM _heap_graph_dominator_class_tree
  ), (SELECT id FROM _top_class_nodes));

CREATE OR REPLACE PERFETTO TABLE _class_labels AS
SELECT
  t.id,
  t.parent_id,
  IFNULL(t.name, "[Unknown]") || " [" || t.self_count || "]" AS label,
  t.root_type
FROM _heap_graph_dominator_class_tree AS t
JOIN _class_ancestor_ids AS a ON t.id = a.id;

CREATE OR REPLACE PERFETTO TABLE _class_paths AS
SELECT id, path
FROM _graph_scan!(
  (
    SELECT l.parent_id AS source_node_id, l.id AS dest_node_id
    FROM _class_labels l
    WHERE l.parent_id IS NOT NULL
  ),
  (
    SELECT l.id,
    "[" || COALESCE(l.root_type, "ROOT") || "] " || l.label AS path
    FROM _class_labels l
    WHERE l.parent_id IS NULL
  ),
  (path),
  (
    SELECT t.id, t.path || " -> " || l.label AS path
    FROM $table t
    JOIN _class_labels l ON t.id = l.id
  )
);

SELECT
  COALESCE(pr.name, "pid=" || pr.pid) AS process_name,
  t.graph_sample_ts,
  p.path,
  t.name AS class_name,
  t.self_size
FROM _top_class_nodes AS n
JOIN _heap_graph_dominator_class_tree AS t ON n.id = t.id
JOIN process AS pr ON t.upid = pr.id
LEFT JOIN _class_paths AS p ON n.id = p.id
ORDER BY
  t.self_size DESC;
"#;

/// For references, as in the documentation of the macros.
const DOMINATORS: &str = "
INCLUDE PERFETTO MODULE graphs.dominator_tree;

CREATE OR REPLACE PERFETTO VIEW dominator_compatible_heap_graph AS
-- Extract the edges from the heap graph which correspond to references
-- between objects.
SELECT
  owner_id AS source_node_id,
  owned_id as dest_node_id
FROM heap_graph_reference
JOIN heap_graph_object owner on heap_graph_reference.owner_id = owner.id
WHERE owned_id IS NOT NULL AND owner.reachable
UNION ALL
-- Since a Java heap graph is a \"forest\" structure, we need to add a dummy
-- \"root\" node which connects all the roots of the forest into a single
-- connected component.
SELECT
  (SELECT max(id) + 1 FROM heap_graph_object) as source_node_id,
  id
FROM heap_graph_object
WHERE root_type IS NOT NULL;

SELECT *
FROM graph_dominator_tree!(
  dominator_compatible_heap_graph,
  (SELECT max(id) + 1 FROM heap_graph_object)
);";

fn searched(how: &str) -> String {
    format!(
        "INCLUDE PERFETTO MODULE graphs.search;
-- Compute the reachable nodes from the first heap root.
SELECT *
FROM graph_reachable_{how}!(
  (
    SELECT
      owner_id AS source_node_id,
      owned_id as dest_node_id
    FROM heap_graph_reference
    WHERE owned_id IS NOT NULL
  ),
  (SELECT id FROM heap_graph_object WHERE root_type IS NOT NULL)
);"
    )
}

/// The documentation's query for callstacks, starting at the leaf with the most bytes.
const NATIVE_TRIAGE: &str = r#"
INCLUDE PERFETTO MODULE android.memory.heap_profile.summary_tree;
INCLUDE PERFETTO MODULE graphs.hierarchy;

WITH ancestor_ids AS (
  SELECT id
  FROM _tree_reachable_ancestors_or_self!((
      SELECT id, parent_id FROM android_heap_profile_summary_tree
    ), (SELECT id FROM android_heap_profile_summary_tree
        WHERE self_size > 0 ORDER BY self_size DESC, id LIMIT 1))
)
SELECT
  t.id,
  t.parent_id,
  t.name AS function_name,
  t.mapping_name,
  t.source_file,
  t.line_number,
  t.self_size,
  t.cumulative_size,
  t.self_alloc_size,
  t.cumulative_alloc_size
FROM android_heap_profile_summary_tree t
JOIN ancestor_ids a USING (id)
ORDER BY t.cumulative_size DESC;
"#;

fn number(value: &Value) -> i64 {
    match value {
        Value::Integer(number) => *number,
        other => panic!("{other:?} is no number"),
    }
}

fn judge_macros(_: &Recording, sides: &Sides) -> Vec<String> {
    let mut faults = Vec::new();
    let heaps = sides
        .ours("SELECT count() FROM heap_graph_object")
        .expect("a number");
    if number(&heaps[0][0]) > 0 {
        sides.count();
        faults.extend(judge_java_macros(sides).err());
    }
    let samples = "SELECT count() FROM heap_profile_allocation WHERE size > 0";
    let samples = sides.ours(samples).expect("a number");
    if number(&samples[0][0]) > 0 {
        sides.count();
        faults.extend(judge_native_macros(sides).err());
    }
    faults
}

fn judge_java_macros(sides: &Sides) -> Result<(), String> {
    // In that query, weak referrers dominate too, so only roots and their sole referrers are
    // compared.
    let dominators = sides.ours(DOMINATORS)?;
    let roots = sides.ours("SELECT id FROM heap_graph_object WHERE root_type IS NOT NULL")?;
    let root = sides.ours("SELECT max(id) + 1 FROM heap_graph_object")?[0][0].clone();
    let above = |id: &Value| {
        dominators
            .iter()
            .find(|row| row[0] == *id)
            .map(|row| &row[1])
    };
    for row in &roots {
        if above(&row[0]) != Some(&root) {
            return Err(format!("{:?} is dominated by {:?}", row[0], above(&row[0])));
        }
    }
    let [bfs, dfs] = ["bfs", "dfs"].map(searched);
    let (bfs, dfs) = (sides.ours(&bfs)?, sides.ours(&dfs)?);
    let nodes = |rows: &[Vec<Value>]| {
        let mut nodes: Vec<i64> = rows.iter().map(|row| number(&row[0])).collect();
        nodes.sort_unstable();
        nodes
    };
    if nodes(&bfs) != nodes(&dfs) {
        return Err("the searches reach different nodes".to_owned());
    }
    // The dominator tree contains the same nodes, plus its root.
    if !roots.is_empty() && dominators.len() != bfs.len() + 1 {
        return Err(format!(
            "{} dominated, {} reached",
            dominators.len(),
            bfs.len()
        ));
    }
    let tree = "SELECT count(DISTINCT graph_sample_ts || ',' || upid)
                FROM _heap_graph_dominator_class_tree";
    let dumps = number(&sides.ours(tree)?[0][0]);
    let triage = sides.ours(TRIAGE)?;
    if triage.len() as i64 != dumps {
        return Err(format!("{} paths for {dumps} dumps", triage.len()));
    }
    for row in &triage {
        let (Value::Text(path), Value::Text(class)) = (&row[2], &row[3]) else {
            return Err(format!("no path: {row:?}"));
        };
        let end = path.rsplit(" -> ").next().unwrap_or_default();
        if !path.starts_with('[') || !end.contains(class.as_str()) {
            return Err(format!("a path to {class} is {path}"));
        }
    }
    Ok(())
}

fn judge_native_macros(sides: &Sides) -> Result<(), String> {
    let stack = sides.ours(NATIVE_TRIAGE)?;
    let held = "SELECT count() FROM android_heap_profile_summary_tree WHERE self_size > 0";
    if number(&sides.ours(held)?[0][0]) == 0 {
        return Ok(());
    }
    let roots = stack.iter().filter(|row| row[1] == Value::Null).count();
    if roots != 1 {
        return Err(format!("a stack has {roots} roots"));
    }
    let parents = stack
        .iter()
        .filter(|row| row[1] == Value::Null || stack.iter().any(|above| above[0] == row[1]));
    if parents.count() != stack.len() {
        return Err("a stack has a hole".to_owned());
    }
    // The macro's samples of callsites are the samples of the table.
    let sums = sides.ours(
        "INCLUDE PERFETTO MODULE callstacks.stack_profile;
         SELECT sum(self_value) FROM _callstacks_for_callsites_weighted!(
           (SELECT callsite_id, size AS value FROM heap_profile_allocation))",
    )?;
    let all = sides.ours("SELECT sum(size) FROM heap_profile_allocation")?;
    match sums == all {
        true => Ok(()),
        false => Err(format!("{sums:?} of {all:?}")),
    }
}

#[test]
fn documented_macros_walk_over_heaps() {
    each(recordings(), judge_macros);
}
