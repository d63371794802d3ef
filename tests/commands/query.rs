//! `heaptap query` as a program: its output, its exit codes, and a copy that SQLite's own shell
//! opens.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{Ended, assert_contains, fixture};

fn trace() -> PathBuf {
    fixture("conversions/c_cont.pftrace")
}

fn query(input: &Path, arguments: &[&str], stdin: &str) -> Ended {
    let mut heaptap = crate::program::heaptap();
    let mut child = heaptap
        .arg("query")
        .arg(input)
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("heaptap runs");
    let mut pipe = child.stdin.take().expect("a pipe");
    // Stdin is not read if the statements come from elsewhere.
    let _ = pipe.write_all(stdin.as_bytes());
    drop(pipe);
    Ended::new(&heaptap, child.wait_with_output().expect("it ends"))
}

const TOTALS: &str = "SELECT heap_name, NULL AS absent, sum(size) AS size \
                      FROM heap_profile_allocation GROUP BY 1";

#[test]
fn a_database_is_not_named_like_a_file_of_rows() {
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("sums.CSV");
    query(&trace(), &[TOTALS, "-o", file.to_str().expect("UTF-8")], "")
        .assert_code(2)
        .assert_stderr("--csv > FILE");
    assert!(!file.exists());
}

#[test]
fn an_invalid_statement_has_no_warnings_before_its_error() {
    query(&trace(), &[TOTALS], "").assert_stderr("warning: ");
    let invalid = query(&trace(), &["SELECT siz FROM heap_profile_allocation"], "");
    assert!(invalid.stderr.starts_with("error: no such column: siz"));
    assert!(!invalid.stderr.contains("warning: "), "{invalid}");
}

#[test]
fn tables_above_the_memory_limit_exceed_it() {
    query(&trace(), &[TOTALS, "--memory", "1kb"], "").assert_code(9);
}

#[test]
fn a_process_of_a_trace_has_one_upid_in_every_selection() {
    const UPIDS: &str = "SELECT DISTINCT pid, upid FROM heap_profile_allocation \
                         JOIN process USING (upid) ORDER BY pid";
    let trace = fixture("symbolize/multi.pftrace");
    let rows = |selection: &[&str]| -> Vec<String> {
        let arguments = [&[UPIDS, "--csv"], selection].concat();
        let output = query(&trace, &arguments, "");
        output.assert_code(0);
        let rows = output.stdout.lines().skip(1);
        rows.map(str::to_owned).collect()
    };
    let all = rows(&[]);
    assert_eq!(all.len(), 3, "{all:?}");
    for row in &all {
        let (pid, _) = row.split_once(',').expect("two columns");
        assert_eq!(rows(&["-p", pid]), [row.as_str()]);
    }
}

#[test]
fn rows_come_as_tables_json_lines_and_csv() {
    let table = query(&trace(), &[TOTALS], "");
    table.assert_code(0);
    let words: Vec<&str> = table.stdout.split_whitespace().collect();
    assert_eq!(
        words,
        [
            "heap_name",
            "absent",
            "size",
            "libc.malloc",
            "NULL",
            "19376904"
        ]
    );
    let row = serde_json::json!({"heap_name": "libc.malloc", "absent": null, "size": 19_376_904});
    let json = query(&trace(), &["--json", TOTALS], "");
    let rows = json.json();
    assert_eq!(rows, serde_json::json!([row]));
    let two = query(
        &trace(),
        &["--json", "SELECT 1 AS a; SELECT 2 AS b WHERE 0"],
        "",
    );
    let rows = two.json();
    assert_eq!(rows, serde_json::json!([[{"a": 1}], []]));
    let lines = query(&trace(), &["--json-lines", TOTALS], "");
    let line = lines.json();
    assert_eq!(line, row);
    let csv = query(&trace(), &["--csv", TOTALS], "");
    assert_eq!(csv.stdout, "heap_name,absent,size\nlibc.malloc,,19376904\n");
}

#[test]
fn statements_come_from_a_file_and_from_standard_input() {
    let directory = tempfile::tempdir().expect("a folder");
    let file = directory.path().join("a.sql");
    std::fs::write(&file, "SELECT count(*) AS n FROM heap_profile; -- end").expect("a file");
    let name = file.to_str().expect("UTF-8");
    for (arguments, stdin) in [
        (&["--csv", "--file", name][..], ""),
        (&["--csv"][..], "SELECT count(*) AS n FROM heap_profile"),
        (
            &["--csv", "--file", "-"][..],
            "SELECT count(*) AS n FROM heap_profile;",
        ),
    ] {
        let output = query(&trace(), arguments, stdin);
        assert_eq!(output.stdout, "n\n11\n", "{output}");
    }
}

#[test]
fn what_is_wrong_ends_with_2_and_says_where() {
    for (sql, said) in [
        ("SELECT siz FROM heap_profile", "       ^ line 1, column 8"),
        ("ATTACH 'x' AS y", "ATTACH is not supported"),
        ("SELECT 1; DELETE FROM process", "DELETE is not supported"),
        ("INCLUDE PERFETTO MODULE no.such", "no such module: no.such"),
        ("CREATE VIRTUAL TABLE s USING SPAN_JOIN(a, b)", "SPAN_JOIN"),
    ] {
        query(&trace(), &[sql], "")
            .assert_code(2)
            .assert_stderr(said);
    }
    let output = query(&trace(), &["--json", "SELECT siz FROM heap_profile"], "");
    let document = output.json();
    assert_eq!(document["error"]["kind"], "sql");
    let endless = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) \
                   SELECT count(*) FROM n";
    let output = query(&trace(), &["--json", "--timeout", "50ms", endless], "");
    let document = output.json();
    assert_eq!(document["error"]["kind"], "query-time");
    let whole = format!("{}@3", trace().display());
    query(Path::new(&whole), &["SELECT 1"], "").assert_code(2);
}

#[test]
fn damaged_and_lossy_traces_are_asked_like_others() {
    let sql = "SELECT count(*) FROM heaptap_live; SELECT count(*) FROM stack_profile_callsite; \
               WITH RECURSIVE up(id, n) AS (SELECT id, 0 FROM stack_profile_callsite UNION ALL \
               SELECT c.parent_id, n + 1 FROM up JOIN stack_profile_callsite c ON c.id = up.id \
               WHERE c.parent_id IS NOT NULL) SELECT max(n) FROM up";
    for name in [
        "c_cont_cut2",
        "c_cont_zero4k",
        "c_cont_noint0",
        "c_cont_seqswap",
        "c_cont_shuffled",
        "corrupt_data",
    ] {
        let trace = fixture(&format!("conversions/{name}.pftrace"));
        let output = query(&trace, &["--csv", "--timeout", "60s", sql], "");
        let code = output.code();
        assert!(matches!(code, Some(0 | 6)), "{name}: {}", output.stderr);
        assert!(output.stdout.contains("max(n)"), "{name}");
    }
}

#[test]
fn other_inputs_have_tables_of_their_own() {
    let pprof = std::fs::read_dir(fixture("conversions/c_cont"))
        .expect("the fixture")
        .map(|file| file.expect("a file").path())
        .find(|file| file.to_string_lossy().ends_with(".pb.gz"))
        .expect("a pprof");
    let sql = "SELECT sum(size) > 0 AS ok FROM heaptap_function";
    let output = query(&pprof, &["--csv", sql], "");
    assert_eq!(output.stdout, "ok\n1\n", "{output}");
    let graph = fixture("heap_graphs/graph_10k.pftrace.zst");
    let sql = "SELECT count(*) AS n FROM heap_graph_object";
    let output = query(&graph, &["--csv", sql], "");
    assert_eq!(output.stdout, "n\n10000\n", "{output}");
}

#[test]
fn a_copy_is_written_once_and_alone() {
    let directory = tempfile::tempdir().expect("a folder");
    let copy = directory.path().join("copy.sqlite");
    let name = copy.to_str().expect("UTF-8");
    let output = query(&trace(), &["-o", name], "");
    output.assert_code(0);
    query(&trace(), &["-o", name], "")
        .assert_code(2)
        .assert_stderr("--force");
    query(&trace(), &["-o", name, "--force"], "").assert_code(0);
    let others = std::fs::read_dir(directory.path())
        .expect("the folder")
        .count();
    assert_eq!(others, 1, "nothing else is left");
    if cfg!(unix) {
        let pipe = directory.path().join("pipe");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("it runs");
        assert!(made.success());
        query(
            &trace(),
            &["-o", pipe.to_str().expect("UTF-8"), "--force"],
            "",
        )
        .assert_code(11);
        assert!(!pipe.is_file(), "a pipe stays");
    }
}

#[test]
#[ignore = "needs sqlite3: tests/run.sh runs it"]
fn judged_by_sqlite3_a_copy_opens_in_its_shell() {
    crate::judge::sqlite3();
    let directory = tempfile::tempdir().expect("a folder");
    let copy = directory.path().join("copy.sqlite");
    let name = copy.to_str().expect("UTF-8");
    let output = query(&trace(), &["-o", name], "");
    output.assert_code(0);
    let asked = Command::new("sqlite3").arg(&copy).arg(TOTALS).output();
    let asked = asked.expect("it runs");
    assert_eq!(asked.stdout, b"libc.malloc||19376904\n", "{asked:?}");
    let plan = "EXPLAIN QUERY PLAN SELECT * FROM stack_profile_callsite WHERE parent_id = 5";
    let asked = Command::new("sqlite3")
        .arg(&copy)
        .arg(plan)
        .output()
        .expect("it runs");
    let asked = String::from_utf8(asked.stdout).expect("UTF-8");
    assert_contains(&asked, "USING INDEX");
    let asked = Command::new("sqlite3")
        .arg(&copy)
        .arg("PRAGMA integrity_check")
        .output()
        .expect("it runs");
    assert_eq!(asked.stdout, b"ok\n");
}

/// The first half of an HPROF.
fn cut_dump(directory: &Path) -> PathBuf {
    let packed = std::fs::read(fixture("hprof/android-a.hprof.gz")).expect("the fixture is there");
    let mut whole = Vec::new();
    std::io::Read::read_to_end(&mut flate2::read::GzDecoder::new(&packed[..]), &mut whole)
        .expect("gzip");
    let cut = directory.join("cut.hprof");
    std::fs::write(&cut, &whole[..whole.len() / 2]).expect("it can be written");
    cut
}

#[test]
fn a_dump_that_breaks_off_is_told_once_a_statement_reads_it() {
    let directory = tempfile::tempdir().expect("a folder");
    let cut = cut_dump(directory.path());
    let told = query(&cut, &["SELECT count(*) FROM heap_graph_object"], "");
    told.assert_code(6);
    told.assert_stderr("the HPROF is truncated");
    assert!(!told.stdout.is_empty());
    let statements = "SELECT count(*) FROM heap_graph_object; SELECT nothing FROM nowhere";
    let failed = query(&cut, &[statements], "");
    failed.assert_code(2);
    for said in ["the HPROF is truncated", "nowhere"] {
        failed.assert_stderr(said);
    }
    query(&cut, &["SELECT 1"], "").assert_code(0);
}

/// Returns the rows of a query over an HPROF of the fixtures, as CSV without the header.
fn hprof_rows(name: &str, sql: &str) -> Vec<String> {
    let asked = query(&fixture(name), &["--csv", sql], "");
    asked.assert_code(0);
    let rows = asked.stdout.lines().skip(1);
    rows.map(str::to_owned).collect()
}

#[test]
fn fields_of_an_hprof_have_values() {
    let android = |sql: &str| hprof_rows("hprof/android-a.hprof.gz", sql);
    // Inherited, with and without its class, and of other classes.
    let destroyed = android(
        "SELECT heaptap_field(o.id, 'mDestroyed'),
                heaptap_field(o.id, 'android.app.Activity.mDestroyed'),
                heaptap_field(o.id, 'java.lang.String.value'),
                heaptap_field(o.id, 'length')
         FROM heap_graph_object o JOIN heap_graph_class c ON c.id = o.type_id
         WHERE c.name = 'com.example.app.MainActivity' ORDER BY 1",
    );
    assert_eq!(destroyed, ["0,0,,", "1,1,,", "1,1,,", "1,1,,"]);
    // No class has such a field: a check of it must not look clean.
    for (name, nearest) in [
        ("mDestroyd", "mDestroyed"),
        ("Activity.mDestroyed", "android.app.Activity.mDestroyed"),
        (
            "com.example.app.MainActivity.mDestroyed",
            "android.app.Activity.mDestroyed",
        ),
        (
            "android.app.Activity.mDestroyd",
            "android.app.Activity.mDestroyed",
        ),
    ] {
        let sql = format!("SELECT count(heaptap_field(id, '{name}')) FROM heap_graph_object");
        let asked = query(&fixture("hprof/android-a.hprof.gz"), &[&sql], "");
        asked.assert_code(2);
        let message = format!("no class has the field `{name}`; did you mean `{nearest}`?");
        asked.assert_stderr(&message);
    }
    // The same values as the table of primitives has, of all types.
    let differing = "SELECT p.field_name, p.field_type FROM heap_graph_primitive p
         WHERE heaptap_field(p.field_set_id, p.field_name) IS NOT coalesce(
           p.bool_value, p.byte_value, p.char_value, p.short_value, p.int_value, p.long_value,
           p.float_value, p.double_value)";
    assert!(android(differing).is_empty());
    let types = "SELECT count(DISTINCT field_type) FROM heap_graph_primitive";
    assert_eq!(android(types), ["8"]);
    let ask = |sql: &str| hprof_rows("hprof/leaklab-after.hprof.zst", sql);
    assert!(ask(differing).is_empty());
    // Objects, except for strings, by their IDs.
    let objects = "SELECT count(*), count(heaptap_field(r.owner_id, r.field_name)),
             sum(heaptap_field(r.owner_id, r.field_name) IS NOT r.owned_id)
         FROM heap_graph_reference r WHERE r.field_name = 'java.util.HashMap$Node.next'";
    assert_eq!(ask(objects), ["635,635,0"]);
    let texts = "SELECT count(*) > 100, sum(heaptap_field(r.owner_id, 'key') IS NOT d.value_string)
         FROM heap_graph_reference r JOIN heap_graph_object_data d ON d.id = r.owned_id
         WHERE r.field_name = 'java.util.HashMap$Node.key' AND d.value_string IS NOT NULL";
    assert_eq!(ask(texts), ["1,0"]);
    let lengths =
        "SELECT count(*) > 100, sum(heaptap_field(id, 'length') IS NOT array_element_count)
         FROM heap_graph_object_data WHERE array_element_count IS NOT NULL";
    assert_eq!(ask(lengths), ["1,0"]);
}

#[test]
fn elements_of_an_hprof_have_indexes() {
    let ask = |sql: &str| hprof_rows("hprof/leaklab-after.hprof.zst", sql);
    // No two elements of an array have the same index, and all are below its length.
    let wrong = "SELECT r.owner_id FROM heap_graph_reference r
         JOIN heap_graph_object o ON o.id = r.owner_id JOIN heap_graph_class c ON c.id = o.type_id
         WHERE c.name LIKE '%[]' GROUP BY 1
         HAVING count(DISTINCT r.field_name) < count(*) OR max(
           CAST(trim(r.field_name, '[]') AS INT)) >= heaptap_field(r.owner_id, 'length')";
    assert!(ask(wrong).is_empty());
    // An element of a hash table is at the position of its hash.
    let nodes = "SELECT count(*) > 100, sum(CAST(trim(r.field_name, '[]') AS INT)
             <> (heaptap_field(r.owned_id, 'hash') & heaptap_field(r.owner_id, 'length') - 1))
         FROM heap_graph_reference r
         JOIN heap_graph_object o ON o.id = r.owner_id JOIN heap_graph_class c ON c.id = o.type_id
         WHERE c.name = 'java.util.HashMap$Node[]'";
    assert_eq!(ask(nodes), ["1,0"]);
}

#[test]
fn elements_after_a_missing_object_keep_their_indexes() {
    let packed = std::fs::File::open(fixture("hprof/android-a.hprof.gz")).unwrap();
    let mut dump = Vec::new();
    let mut unpacked = flate2::read::GzDecoder::new(packed);
    std::io::Read::read_to_end(&mut unpacked, &mut dump).unwrap();
    let elements = "SELECT r.owner_id, j.address, r.field_name FROM heap_graph_reference r
         JOIN heaptap_java_object j ON j.id = r.owned_id
         WHERE r.field_name IN ('[1]', '[2]') AND r.owner_id = (
           SELECT owner_id FROM heap_graph_reference
           WHERE field_name IN ('[0]', '[1]', '[2]') GROUP BY 1 HAVING count(*) = 3 LIMIT 1)
         ORDER BY 3";
    let whole = hprof_rows("hprof/android-a.hprof.gz", elements);
    let ids: Vec<u32> = whole
        .iter()
        .map(|row| row.split(',').nth(1).unwrap().parse().unwrap())
        .collect();
    // The element before these two becomes that of an object that is not in the dump.
    let both = [ids[0].to_be_bytes(), ids[1].to_be_bytes()].concat();
    let at = dump.windows(8).position(|bytes| bytes == both).unwrap();
    dump[at - 4..at].copy_from_slice(&[1, 2, 3, 4]);
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("dangling.hprof");
    std::fs::write(&file, dump).unwrap();
    let asked = query(&file, &["--csv", elements], "");
    let rows: Vec<String> = asked.stdout.lines().skip(1).map(str::to_owned).collect();
    let places = |rows: &[String]| -> Vec<String> {
        let place = |row: &String| row.split_once(',').unwrap().1.to_owned();
        rows.iter().map(place).collect()
    };
    assert_eq!(places(&rows), places(&whole), "{asked}");
}

#[test]
fn fields_of_a_heap_graph_have_no_values() {
    query(
        &fixture("heap_graphs/graph_10k.pftrace.zst"),
        &["SELECT heaptap_field(id, 'size') FROM heap_graph_object"],
        "",
    )
    .assert_code(2)
    .assert_stderr("heaptap dump --hprof");
}

#[test]
fn unknown_functions_name_an_alternative() {
    for (sql, alternative) in [
        (
            "SELECT RUN_METRIC('android/java_heap_stats.sql')",
            "android_heap_graph_stats",
        ),
        (
            "SELECT CREATE_FUNCTION('f()', 'INT', 'SELECT 1')",
            "CREATE PERFETTO FUNCTION",
        ),
        ("SELECT nowhere(1)", "pragma_function_list"),
        ("DROP FUNCTION f", "CREATE OR REPLACE PERFETTO"),
    ] {
        let refused = query(&trace(), &[sql], "");
        refused.assert_code(2);
        let told = refused.stderr;
        assert_contains(&told, "help: ");
        assert_contains(&told, alternative);
    }
}

#[test]
fn paths_find_the_addresses_that_queries_print() {
    let name = "hprof/android-a.hprof.gz";
    let address = hprof_rows(
        name,
        "SELECT address, printf('0x%x', address) FROM heaptap_java_object
         WHERE class = 'com.example.app.LeakyFragment'",
    );
    let [address] = &address[..] else {
        panic!("{address:?}");
    };
    let (decimal, hexadecimal) = address.split_once(',').expect("two columns");
    let paths = |id: &str| {
        let mut paths = crate::program::heaptap();
        paths.arg("paths").arg(fixture(name)).args(["--object", id]);
        Ended::from_command(&mut paths)
    };
    let (one, other) = (paths(decimal), paths(hexadecimal));
    one.assert_code(0);
    assert_eq!(one.stdout, other.stdout);
    paths("18446744073709551616").assert_code(2);
}

#[test]
fn table_of_events_that_are_not_read_says_so() {
    use heaptap_proto::perfetto as pb;
    use prost::Message as _;
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trace");
    let source = pb::DataSourceConfig {
        name: Some("linux.ftrace".to_owned()),
        ..pb::DataSourceConfig::default()
    };
    let config = pb::TraceConfig {
        data_sources: vec![pb::trace_config::DataSource {
            config: Some(source),
            ..pb::trace_config::DataSource::default()
        }],
        ..pb::TraceConfig::default()
    };
    let packet = pb::TracePacket {
        trace_config: Some(config),
        ..pb::TracePacket::default()
    };
    let events = pb::Trace {
        packet: vec![packet],
    };
    let native = std::fs::read(trace()).unwrap();
    // The first config is that of the recording.
    std::fs::write(&path, [events.encode_to_vec(), native].concat()).unwrap();
    for (path, is_unread) in [(path, true), (trace(), false)] {
        let output = query(&path, &["--csv", "SELECT count(*) AS n FROM slice"], "");
        assert_eq!(output.stdout, "n\n0\n", "{output}");
        let warning = "slice is empty: heaptap does not read the events of linux.ftrace";
        let found = output.stderr;
        assert_eq!(found.contains(warning), is_unread, "{found}");
        assert_eq!(found.contains("trace processor"), is_unread, "{found}");
    }
}

#[test]
fn an_hprof_that_is_not_readable_is_an_error_whatever_is_asked() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("wide.hprof");
    let ids = 16_u32.to_be_bytes();
    std::fs::write(&path, [b"JAVA PROFILE 1.0.2\0", &ids[..], &[0; 8]].concat()).unwrap();
    let copy = directory.path().join("copy.sqlite");
    let (path, copy) = (path.to_str().unwrap(), copy.to_str().unwrap());
    for args in [
        &["query", path, "SELECT 1"][..],
        &["query", path, "SELECT count(*) FROM heap_graph_object"],
        &["query", path, "-o", copy],
    ] {
        let output = crate::program::run(args);
        output.assert_code(8);
        assert!(output.stdout.is_empty(), "{output}");
        output.assert_stderr("its IDs have 16 bytes");
    }
}
