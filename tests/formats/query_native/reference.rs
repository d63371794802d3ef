//! Answers that Perfetto's trace processor gives to queries which users copy from its docs.

use heaptap_query::Database;

use super::content::select;
use super::{database, fixtures};

/// Rows as text, with `-` for NULL.
fn ask(database: &mut Database, columns: &[&str], sql: &str) -> Vec<String> {
    let rows = select(database, sql);
    let line = |row: &std::collections::BTreeMap<String, Option<String>>| {
        let cells = columns.iter().map(|column| match row.get(*column) {
            Some(Some(cell)) => cell.as_str(),
            Some(None) => "-",
            None => panic!("{sql}: no column {column}"),
        });
        cells.collect::<Vec<_>>().join(" ")
    };
    rows.iter().map(line).collect()
}

#[test]
fn native_profiles_are_answered_as_by_perfetto() {
    let mut database = database(&fixtures().join("conversions/c_cont.pftrace"));
    let mut ask = |columns: &[&str], sql: &str| ask(&mut database, columns, sql);
    let windows = ask(
        &["ts", "ts_end", "dur"],
        "SELECT ts, ts_end, dur FROM heap_profile LIMIT 3",
    );
    let expected = [
        "1187355565329 1188335565283 979999954",
        "1188335565283 1189311565237 975999954",
        "1189311565237 1190345481753 1033916516",
    ];
    assert_eq!(windows, expected);
    let bounds = ask(&["start_ts", "end_ts"], "SELECT * FROM trace_bounds");
    assert_eq!(bounds, ["1188335565283 1197357481425"]);
    let bounds = ask(
        &["trace_start()", "trace_end()", "trace_dur()"],
        "SELECT trace_start(), trace_end(), trace_dur()",
    );
    assert_eq!(bounds, ["1188335565283 1197357481425 9021916142"]);
    let facts = ask(
        &["name", "str_value", "int_value"],
        "SELECT * FROM metadata WHERE name IN ('trace_type', 'trace_size_bytes')",
    );
    assert_eq!(facts, ["trace_type proto -", "trace_size_bytes - 14888"]);
    let idle = ask(
        &["utid", "tid", "name"],
        "SELECT * FROM thread WHERE tid = 0",
    );
    assert_eq!(idle, ["0 0 swapper"]);
    let median = ask(
        &["p"],
        "SELECT CAST(PERCENTILE(size, 50) AS INT) AS p FROM heap_profile_allocation",
    );
    assert_eq!(median, ["20000"]);
    let callers = ask(
        &["n", "first", "last"],
        "SELECT count(*) AS n, min(id) AS first, max(id) AS last
         FROM experimental_ancestor_stack_profile_callsite(40)",
    );
    assert_eq!(callers, ["15 0 39"]);
    let none = "SELECT * FROM experimental_ancestor_stack_profile_callsite(NULL)";
    assert!(ask(&[], none).is_empty());
}

#[test]
fn intervals_and_conversions_agree_with_the_tables() {
    let mut database = database(&fixtures().join("conversions/c_cont.pftrace"));
    let mut ask = |columns: &[&str], sql: &str| ask(&mut database, columns, sql);
    let same = ask(
        &["n", "tiled", "allocated", "delta"],
        "INCLUDE PERFETTO MODULE android.memory.heap_profile.intervals;
         SELECT count(*) AS n, sum(dur) = max(ts + dur) - min(ts) AS tiled,
                sum(allocated) = (SELECT sum(max(size, 0)) FROM heap_profile_allocation)
                  AS allocated,
                sum(delta) = (SELECT sum(size) FROM heap_profile_allocation) AS delta
         FROM _android_heap_profile_intervals",
    );
    assert_eq!(same, ["11 1 1 1"]);
    let times = ask(
        &["s", "ms", "days", "none"],
        "INCLUDE PERFETTO MODULE time.conversion;
         SELECT time_from_s(2) AS s, time_to_ms(1999999) AS ms, time_from_days(1) AS days,
                time_to_min(NULL) AS none",
    );
    assert_eq!(times, ["2000000000 1 86400000000000 -"]);
}

#[test]
fn counters_become_intervals() {
    let mut database = database(&fixtures().join("conversions/c_cont.pftrace"));
    let mut ask = |columns: &[&str], sql: &str| ask(&mut database, columns, sql);
    let rows = ask(
        &["id", "ts", "dur", "value", "next_value", "delta_value"],
        "INCLUDE PERFETTO MODULE counters.intervals;
         WITH c(id, ts, track_id, value) AS (
           VALUES (0, trace_end() - 50, 1, 5), (1, trace_end() - 40, 1, 5),
                  (2, trace_end() - 30, 1, 5), (3, trace_end() - 20, 1, 5),
                  (4, trace_end() - 10, 1, 7))
         SELECT id, ts - trace_end() AS ts, dur, CAST(value AS INT) AS value,
                CAST(next_value AS INT) AS next_value, CAST(delta_value AS INT) AS delta_value
         FROM counter_leading_intervals!(c)",
    );
    // Of the equal values, the third does not count.
    let expected = [
        "0 -50 10 5 5 -",
        "1 -40 20 5 5 0",
        "3 -20 10 5 7 0",
        "4 -10 10 7 - 2",
    ];
    assert_eq!(rows, expected);
    for table in [
        "counters",
        "memory_rss_and_swap_per_process",
        "memory_rss_high_watermark_per_process",
        "args",
        "instant JOIN process_track ON instant.track_id = process_track.id JOIN process USING (upid)",
    ] {
        assert!(
            ask(&[], &format!("SELECT * FROM {table}")).is_empty(),
            "{table}"
        );
    }
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

fn number(field: u64, value: u64) -> Vec<u8> {
    [varint(field << 3), varint(value)].concat()
}

fn bytes(field: u64, value: &[u8]) -> Vec<u8> {
    [
        varint(field << 3 | 2),
        varint(value.len() as u64),
        value.to_vec(),
    ]
    .concat()
}

#[test]
fn an_out_of_memory_error_without_a_graph_has_its_rows() {
    let frame = |method: &[u8]| bytes(1, &[bytes(1, method), number(3, 42)].concat());
    let stack = [
        "int a.Cache.grow(int)",
        "void a.Main.work()",
        "void a.Main.run()",
    ];
    let stack = stack.map(|method| frame(method.as_bytes())).concat();
    let process = [
        number(1, 77),
        bytes(3, b"a.app"),
        number(5, 4096),
        bytes(8, &stack),
    ];
    let error = [number(8, 1234), bytes(131, &process.concat())].concat();
    let size = |kb| bytes(1, &[number(1, 77), number(4, kb)].concat());
    let stats = |at, kb| [number(8, at), bytes(9, &size(kb))].concat();
    let config = bytes(33, &bytes(2, &bytes(1, &bytes(1, b"linux.ftrace"))));
    let packets = [
        config,
        error,
        stats(2000, 3),
        stats(3000, 2),
        stats(4000, 2),
    ];
    let directory = tempfile::tempdir().expect("a directory");
    let trace = directory.path().join("oom.pftrace");
    std::fs::write(&trace, packets.map(|packet| bytes(1, &packet)).concat()).expect("written");
    let mut database = database(&trace);
    let mut ask = |columns: &[&str], sql: &str| ask(&mut database, columns, sql);
    let columns = ["id", "ts", "upid", "dump_reason", "heap_size", "truncated"];
    assert_eq!(
        ask(&columns, "SELECT * FROM heap_graph"),
        ["0 1234 1 OOME - 0"]
    );
    let columns = ["id", "heap_graph_id", "utid", "callsite_id"];
    let thrown = ask(&columns, "SELECT * FROM heap_graph_thread_callsite");
    assert_eq!(thrown, ["0 0 1 2"]);
    let frames = ask(
        &["depth", "name", "mapping", "line_number"],
        "SELECT c.depth, f.name, m.name AS mapping, s.line_number
         FROM stack_profile_callsite c JOIN stack_profile_frame f ON f.id = c.frame_id
         JOIN stack_profile_mapping m ON m.id = f.mapping
         JOIN stack_profile_symbol s USING (symbol_set_id) ORDER BY c.id",
    );
    let expected = [
        "0 a.Main.run art_process_metadata 42",
        "1 a.Main.work art_process_metadata 42",
        "2 a.Cache.grow art_process_metadata 42",
    ];
    assert_eq!(frames, expected);
    let details = ask(
        &["name", "allocation_size_bytes"],
        "SELECT * FROM heap_graph_java_oome_details d JOIN heap_graph g ON g.id = d.heap_graph_id
         JOIN process p USING (upid)",
    );
    assert_eq!(details, ["a.app 4096"]);
    let none = "SELECT * FROM android_heap_graph_stats";
    assert!(ask(&[], none).is_empty());
    let bounds = ask(&["start_ts", "end_ts"], "SELECT * FROM trace_bounds");
    assert_eq!(bounds, ["1234 4000"]);
    let anonymous = ask(
        &["ts", "dur", "anon_rss"],
        "SELECT * FROM memory_rss_and_swap_per_process",
    );
    assert_eq!(
        anonymous,
        ["2000 1000 3072", "3000 1000 2048", "4000 1 2048"]
    );
    let highest = ask(
        &["ts", "dur", "rss_high_watermark"],
        "SELECT * FROM memory_rss_high_watermark_per_process",
    );
    assert_eq!(highest, ["2000 1000 3072", "3000 1000 3072"]);
}
