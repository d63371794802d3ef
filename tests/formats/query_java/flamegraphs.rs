//! `experimental_flamegraph` in all its forms, compared with Perfetto's results.

use super::sides::{self, Sides};
use super::{Recording, each, recordings, tables_of};
use rusqlite::Connection;
use rusqlite::types::Value;
use std::cell::RefCell;

/// The queries for Perfetto, from `queries.sql`: file and statement.
fn calls(recording: &Recording) -> Vec<(String, String)> {
    let queries = std::fs::read_to_string(tables_of(recording).join("queries.sql"));
    let mut found = Vec::new();
    let Ok(queries) = queries else { return found };
    for part in queries.split("\n-- ").skip(1) {
        let Some((title, sql)) = part.split_once('\n') else {
            continue;
        };
        let Some((file, _)) = title.split_once(".csv: rc=0") else {
            continue;
        };
        if let Some(sql) = sql.split(';').next().filter(|sql| !sql.trim().is_empty()) {
            found.push((file.to_owned(), sql.trim().to_owned()));
        }
    }
    found
}

/// Frames by their path from the root instead of by number. Perfetto has `??` and line 0 if the
/// symbolizer does not know them; heaptap omits them.
fn by_path(from: &str) -> String {
    format!(
        "WITH RECURSIVE f AS MATERIALIZED (SELECT * FROM ({from})), path (id, names) AS (
           SELECT id, name || '@' || map_name FROM f WHERE parent_id IS NULL
           UNION ALL
           SELECT f.id, p.names || ';' || f.name || '@' || f.map_name
           FROM path p JOIN f ON f.parent_id = p.id)
         SELECT p.names, depth, count, cumulative_count, size, cumulative_size, alloc_count,
                cumulative_alloc_count, alloc_size, cumulative_alloc_size,
                nullif(source_file, '??'), nullif(line_number, 0)
         FROM path p JOIN f ON f.id = p.id"
    )
}

/// The statement for the same process, which has another number here.
fn with_our_upid(sides: &Sides, sql: &str) -> String {
    let Some((start, call)) = sql.split_once("experimental_flamegraph(") else {
        return sql.to_owned();
    };
    let mut parts: Vec<&str> = call.splitn(5, ',').collect();
    let theirs = parts.get(3).map(|upid| upid.trim()).unwrap_or_default();
    let number = |connection: &Connection, sql: &str| -> i64 {
        let found = connection.query_row(sql, [], |row| row.get(0));
        found.expect("a number")
    };
    let ours = |sql: &str| match sides.ours(sql).expect("an answer")[0][0] {
        Value::Integer(number) => number,
        ref other => panic!("{other:?}"),
    };
    let upid = if sides.has("process") {
        let pid = format!("SELECT pid FROM process WHERE upid = {theirs}");
        let pid = number(&sides.theirs, &pid);
        ours(&format!("SELECT upid FROM process WHERE pid = {pid}"))
    } else {
        ours("SELECT max(upid) FROM heap_graph")
    };
    let upid = format!(" {upid}");
    parts[3] = &upid;
    format!("{start}experimental_flamegraph({}", parts.join(","))
}

fn judge(recording: &Recording, sides: &Sides) -> Vec<String> {
    let mut faults = Vec::new();
    for (file, sql) in calls(recording) {
        let Some(text) = sides::text(&tables_of(recording), &file) else {
            continue;
        };
        sides::load(&sides.theirs, &file, &text);
        let sql = with_our_upid(sides, &sql);
        let all = format!("SELECT * FROM {file}");
        let found = match file.starts_with("flamegraph") {
            true => sides.compare_with(&by_path(&sql), &by_path(&all)),
            // Callsites have other numbers.
            false if sql.contains("callsite_id") => {
                let without = "SELECT ts, (SELECT pid FROM process p WHERE p.upid = r.upid), name, rel_pc, build_id, mapping_name, space_size, space_count";
                let ours = format!("{without} FROM ({sql}) r");
                sides.compare_with(&ours, &format!("{without} FROM {file} r"))
            }
            false if sql.contains("distinct graph_sample_ts") => {
                let times = |from: &str| format!("SELECT graph_sample_ts FROM ({from})");
                sides.compare_with(&times(&sql), &times(&all))
            }
            false => sides.compare_with(&sql, &all),
        };
        faults.extend(found.into_iter().map(|fault| format!("{file}: {fault}")));
        faults.extend(other_forms(sides, &sql));
    }
    faults
}

/// The two other query forms give the same rows.
fn other_forms(sides: &Sides, sql: &str) -> Vec<String> {
    let Some((_, call)) = sql.split_once("experimental_flamegraph(") else {
        return Vec::new();
    };
    let arguments = call.split(')').next().unwrap_or_default();
    let arguments: Vec<&str> = arguments.split(',').map(str::trim).collect();
    let [sort, ts, "NULL", upid, "NULL", "NULL"] = arguments[..] else {
        return Vec::new();
    };
    let rows = |from: &str| sides.ours(&format!("SELECT * FROM {from}"));
    let six = rows(&format!(
        "experimental_flamegraph({})",
        arguments.join(", ")
    ));
    let three = rows(&format!("experimental_flamegraph({ts}, {upid}, {sort})"));
    let constraints = rows(&format!(
        "experimental_flamegraph WHERE ts = {ts} AND upid = {upid} AND profile_type = {sort}"
    ));
    let mut faults = sides::differences(three, six.clone());
    faults.extend(sides::differences(constraints, six));
    faults
}

#[test]
fn flamegraphs_are_perfettos_however_they_are_asked_for() {
    each(recordings(), judge);
}

#[test]
fn what_is_not_there_is_said() {
    let recordings = recordings();
    let graph = recordings.iter().find(|r| r.name == "graph_10k");
    let graph = graph.expect("it is a fixture");
    let database = RefCell::new(sides::open(&graph.trace));
    let rows = |call: &str| {
        let sql = format!("SELECT count(*) FROM experimental_flamegraph{call}");
        sides::ask(&mut database.borrow_mut(), &sql)
    };
    let said = |call: &str| rows(call).expect_err("it is no heap");
    assert!(said("").contains("needs arguments") || said("").contains("the type is missing"));
    assert!(said("('graph', 1, NULL, 2, NULL, NULL)").contains("heap_graph"));
    assert!(said("('native', 1, NULL, 2, NULL, NULL)").contains("heap_profile"));
    assert!(said("('perf', 1, NULL, 2, NULL, NULL)").contains("CPU"));
    assert!(said("('graph', '1', NULL, 2, NULL, NULL)").contains("integer"));
    assert!(said("('graph', NULL, NULL, 2, NULL, NULL)").contains("time"));
    let ts = "(SELECT max(graph_sample_ts) FROM heap_graph_object)";
    let upid = "(SELECT max(upid) FROM heap_graph_object)";
    let all = rows(&format!("({ts}, {upid}, 'graph')")).expect("rows");
    let focused = rows(&format!(
        "({ts}, {upid}, 'graph') WHERE focus_str = 'CLASS774'"
    ));
    let number = |rows: &[sides::Row]| match rows[0][0] {
        Value::Integer(number) => number,
        ref other => panic!("{other:?}"),
    };
    let (all, focused) = (number(&all), number(&focused.expect("rows")));
    assert!(focused > 0 && focused < all, "{focused} of {all}");
}
