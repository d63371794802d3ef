//! Graph macros, checked with graphs written in SQL.

use std::ops::ControlFlow;

use crate::{Catalog, Database, Sink, Value};

struct Rows(Vec<String>);

impl Sink for Rows {
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()> {
        self.0 = vec![names.join(" ")];
        ControlFlow::Continue(())
    }

    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
        let cell = |value: &Value<'_>| match value {
            Value::Null => "-".to_owned(),
            Value::Int(number) => number.to_string(),
            Value::Text(text) => String::from_utf8_lossy(text).into_owned(),
            other => format!("{other:?}"),
        };
        let cells: Vec<String> = row.iter().map(cell).collect();
        self.0.push(cells.join(" "));
        ControlFlow::Continue(())
    }

    fn end(&mut self) -> ControlFlow<()> {
        ControlFlow::Continue(())
    }
}

fn database() -> Database {
    let mut catalog = Catalog::default();
    catalog.library(super::LIBRARY, &super::graphs::WORKS);
    Database::open(catalog).unwrap()
}

fn ask(sql: &str) -> Vec<String> {
    let mut rows = Rows(Vec::new());
    let done = database().run(sql, &mut rows).unwrap();
    assert!(done.is_continue());
    rows.0
}

/// A cycle, a diamond and an unreachable node.
const GRAPH: &str = "CREATE PERFETTO TABLE graph AS
    SELECT column1 AS source_node_id, column2 AS dest_node_id
    FROM (VALUES (10, 11), (10, 12), (11, 13), (12, 13), (13, 10), (13, 14), (20, 14), (14, NULL));";

#[test]
fn searches_go_breadth_first_and_depth_first() {
    let search = |how: &str| {
        ask(&format!(
            "{GRAPH} SELECT * FROM graph_reachable_{how}!(graph, (SELECT 10 AS node_id))"
        ))
    };
    let bfs = [
        "node_id parent_node_id",
        "10 -",
        "11 10",
        "12 10",
        "13 11",
        "14 13",
    ];
    assert_eq!(search("bfs"), bfs);
    let dfs = [
        "node_id parent_node_id",
        "10 -",
        "11 10",
        "13 11",
        "14 13",
        "12 10",
    ];
    assert_eq!(search("dfs"), dfs);
}

#[test]
fn a_diamond_is_dominated_by_its_top() {
    let rows = ask(&format!(
        "{GRAPH} SELECT * FROM graph_dominator_tree!(graph, (SELECT 10)) ORDER BY 1"
    ));
    let expected = [
        "node_id dominator_node_id",
        "10 -",
        "11 10",
        "12 10",
        "13 10",
        "14 13",
    ];
    assert_eq!(rows, expected);
}

#[test]
fn trees_are_taken_apart_by_group() {
    let rows = ask("SELECT * FROM tree_structural_partition_by_group!((
           SELECT column1 AS id, column2 AS parent_id, column3 AS group_key
           FROM (VALUES (1, NULL, 1), (2, 1, 1), (3, 2, 2), (4, 2, 2), (5, 3, 1), (6, 5, 3),
                        (7, 4, 2), (8, 4, 1)))) ORDER BY id");
    let expected = [
        "id parent_id group_key",
        "1 - 1",
        "2 1 1",
        "3 - 2",
        "4 - 2",
        "5 2 1",
        "6 - 3",
        "7 4 2",
        "8 2 1",
    ];
    assert_eq!(rows, expected);
}

const TREE: &str = "CREATE PERFETTO TABLE tree AS
    SELECT column1 AS id, column2 AS parent_id, column3 AS name, column4 AS size
    FROM (VALUES (1, NULL, 'a', 1), (2, 1, 'b', 10), (3, 1, 'c', 100), (4, 3, 'd', 1000));";

#[test]
fn a_scan_hands_values_on_along_edges() {
    let rows = ask(&format!(
        "{TREE} SELECT id, path FROM _graph_scan!(
           (SELECT parent_id AS source_node_id, id AS dest_node_id FROM tree
            WHERE parent_id IS NOT NULL),
           (SELECT id, name AS path FROM tree WHERE parent_id IS NULL),
           (path),
           (SELECT t.id, t.path || '/' || n.name AS path FROM $table t JOIN tree n ON n.id = t.id)
         ) ORDER BY id"
    ));
    assert_eq!(rows, ["id path", "1 a", "2 a/b", "3 a/c", "4 a/c/d"]);
}

#[test]
fn an_aggregating_scan_sums_up_what_meets() {
    let rows = ask(&format!(
        "{TREE} SELECT * FROM _graph_aggregating_scan!(
           (SELECT id AS source_node_id, parent_id AS dest_node_id FROM tree
            WHERE parent_id IS NOT NULL),
           (SELECT id, size AS total FROM tree WHERE id NOT IN
             (SELECT parent_id FROM tree WHERE parent_id IS NOT NULL)),
           (total),
           (WITH below AS (SELECT t.id, sum(t.total) AS total FROM $table t GROUP BY t.id)
            SELECT b.id, b.total + n.size AS total FROM below b JOIN tree n USING (id))
         ) ORDER BY id"
    ));
    assert_eq!(rows, ["id total", "1 1111", "2 10", "3 1100", "4 1000"]);
    let sums = ask(&format!(
        "{TREE} SELECT * FROM _callstacks_self_to_cumulative!(
           (SELECT id, parent_id, size AS self_count FROM tree))"
    ));
    assert_eq!(
        sums,
        ["id cumulative_count", "1 1111", "2 10", "3 1100", "4 1000"]
    );
}

#[test]
fn macros_may_be_called_in_each_other_and_in_views() {
    let rows = ask(&format!(
        "{TREE} CREATE PERFETTO VIEW above AS
           SELECT id FROM _tree_reachable_ancestors_or_self!(tree, (
             SELECT node_id AS id FROM graph_reachable_bfs!(
               (SELECT id AS source_node_id, parent_id AS dest_node_id FROM tree),
               (SELECT 3 AS node_id))));
         SELECT * FROM above ORDER BY id"
    ));
    assert_eq!(rows, ["id", "1", "3"]);
    let next = ask(&format!(
        "{TREE} SELECT * FROM graph_next_sibling!(
           (SELECT id AS node_id, parent_id AS node_parent_id, id AS sort_key FROM tree))
         ORDER BY 1"
    ));
    assert_eq!(next, ["node_id next_node_id", "1 -", "2 3", "3 -", "4 -"]);
}

#[test]
fn what_was_worked_out_goes_unless_a_view_reads_it() {
    let mut database = database();
    let left = |database: &mut Database| {
        let mut rows = Rows(Vec::new());
        let sql = "SELECT count(*) AS n FROM sqlite_temp_master WHERE name GLOB '_macro_*'";
        let _ = database.run(sql, &mut rows).unwrap();
        rows.0[1].clone()
    };
    let call = "graph_reachable_bfs!((SELECT 1 AS source_node_id, 2 AS dest_node_id),
                                     (SELECT 1 AS node_id))";
    for (sql, succeeds, expected) in [
        (format!("SELECT * FROM {call}"), true, "0"),
        (
            format!("CREATE PERFETTO TABLE t AS SELECT * FROM {call}"),
            true,
            "0",
        ),
        (
            format!("CREATE OR REPLACE PERFETTO TABLE t AS SELECT * FROM {call}"),
            true,
            "0",
        ),
        (
            format!("CREATE PERFETTO TABLE t AS SELECT * FROM {call}"),
            false,
            "0",
        ),
        (format!("SELECT nothing FROM {call}"), false, "0"),
        (
            format!("SELECT * FROM {call}, graph_reachable_bfs!(nowhere, (SELECT 1 AS node_id))"),
            false,
            "0",
        ),
        (
            format!("CREATE PERFETTO VIEW v AS SELECT * FROM {call}"),
            true,
            "1",
        ),
        (
            format!("CREATE PERFETTO VIEW v AS SELECT * FROM {call}"),
            false,
            "1",
        ),
        ("SELECT * FROM v".to_owned(), true, "1"),
    ] {
        let done = database.run(&sql, &mut Rows(Vec::new()));
        assert_eq!(done.is_ok(), succeeds, "{sql}");
        assert_eq!(left(&mut database), expected, "{sql}");
    }
}

#[test]
fn arguments_name_common_tables() {
    let expected = ["node_id parent_node_id", "10 -", "12 10", "13 12", "14 13"];
    for sql in [
        "WITH edges AS (SELECT * FROM graph WHERE dest_node_id <> 11), first(node_id) AS
         MATERIALIZED (SELECT 10) SELECT * FROM graph_reachable_bfs!(edges, first)",
        "WITH edges AS (SELECT * FROM graph WHERE dest_node_id <> 11),
         found AS (SELECT * FROM graph_reachable_bfs!(edges, (SELECT 10 AS node_id)))
         SELECT * FROM found",
        "WITH edges AS (SELECT * FROM graph WHERE dest_node_id <> 11),
         found AS (SELECT * FROM graph_reachable_bfs!(edges, (SELECT 10 AS node_id))),
         again AS (SELECT * FROM graph_reachable_bfs!(edges, (SELECT node_id FROM found LIMIT 1)))
         SELECT * FROM again",
    ] {
        assert_eq!(ask(&format!("{GRAPH} {sql}")), expected, "{sql}");
    }
    let table = "CREATE PERFETTO TABLE t AS WITH first AS (SELECT 10 AS node_id)
                 SELECT * FROM graph_reachable_bfs!(graph, first); SELECT count(*) AS n FROM t";
    assert_eq!(ask(&format!("{GRAPH} {table}")), ["n", "5"]);
}

#[test]
fn what_is_wrong_in_an_argument_is_said() {
    let refused = |sql: &str| {
        let mut rows = Rows(Vec::new());
        database().run(sql, &mut rows).unwrap_err().to_string()
    };
    let missing = refused("SELECT * FROM graph_reachable_bfs!(nowhere, (SELECT 1))");
    assert!(missing.contains("nowhere"), "{missing}");
    let few = refused("SELECT * FROM graph_reachable_bfs!((SELECT 1))");
    assert!(few.contains("2 arguments"), "{few}");
    // A macro cannot be used to write.
    let writes = "SELECT * FROM graph_dominator_tree!((SELECT 1 AS source_node_id, 2 AS
                  dest_node_id), (1) FROM pragma_user_version(7))";
    assert!(!refused(writes).is_empty());
}

#[test]
fn conversions_take_aggregates_and_window_functions() {
    let mut catalog = Catalog::default();
    super::conversion::add(&mut catalog);
    let mut rows = Rows(Vec::new());
    let sql =
        "SELECT time_to_ms(sum(column1)), time_from_s(count(*)) FROM (VALUES (2000000), (3000000))
        UNION ALL SELECT time_to_us(column1 - lag(column1) OVER (ORDER BY column1)), 0
            FROM (VALUES (1000), (9000))";
    let done = Database::open(catalog).unwrap().run(sql, &mut rows);
    assert!(done.unwrap().is_continue());
    assert_eq!(rows.0[1..], ["5 2000000000", "- 0", "8 0"]);
    let mut catalog = Catalog::default();
    super::conversion::add(&mut catalog);
    let too_large = Database::open(catalog)
        .unwrap()
        .run("SELECT time_from_days(1 << 62)", &mut rows);
    assert!(too_large.unwrap_err().to_string().contains("too large"));
}
