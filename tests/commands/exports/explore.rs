//! `heaptap explore` as a program: its answers compared with those of other commands, who is
//! answered, how it ends.

use crate::exports::{command, fixture, heaptap};
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A running `heaptap explore`; killed when dropped.
struct Explorer {
    child: Child,
    url: String,
    directory: TempDir,
}

impl Drop for Explorer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const OWN: &str = "X-Heaptap: 1\r\n";

impl Explorer {
    fn start(input: &Path, more: &[&str]) -> Explorer {
        let more: Vec<&Path> = more.iter().map(Path::new).collect();
        Explorer::start_with(&[&[input], &more[..]].concat())
    }

    fn start_with(arguments: &[&Path]) -> Explorer {
        let directory = tempfile::tempdir().expect("a folder");
        let mut child = command(directory.path())
            .args(["explore", "--print-url"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let mut url = String::new();
        let stdout = child.stdout.as_mut().expect("it is a pipe");
        BufReader::new(stdout).read_line(&mut url).expect("a line");
        let explorer = Explorer {
            child,
            url: url.trim_end().to_owned(),
            directory,
        };
        explorer.wait(|meta| meta["heap"].is_object());
        explorer
    }

    /// Returns the state of the heap once it is as wanted.
    fn wait(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let meta = self.ask("meta");
            if is_wanted(&meta) {
                return meta;
            }
            assert!(Instant::now() < deadline, "{meta}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Returns the status and the body of an answer to a path below the page.
    fn get(&self, path: &str, headers: &str) -> (u16, String) {
        let (host, page) = self.url["http://".len()..].split_once('/').expect("a path");
        let head = format!("GET /{page}{path} HTTP/1.1\r\nHost: {host}\r\n{headers}\r\n");
        self.send(&head)
    }

    fn send(&self, head: &str) -> (u16, String) {
        let host = self.url.split('/').nth(2).expect("a host");
        let mut stream = TcpStream::connect(host).expect("it listens");
        stream.write_all(head.as_bytes()).expect("it is taken");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("it answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|code| code.parse().ok());
        (status.expect("a status"), body.to_owned())
    }

    /// Returns the document of an operation.
    fn ask(&self, operation: &str) -> Value {
        let (status, body) = self.get(&format!("api/{operation}"), OWN);
        assert_eq!(status, 200, "{operation}: {body}");
        serde_json::from_str(&body).expect("JSON")
    }

    /// Returns the document of another command on the same input.
    fn of(&self, words: &[&str]) -> Value {
        let output = heaptap(self.directory.path(), words);
        assert_eq!(output.status.code(), Some(0), "{words:?}");
        serde_json::from_slice(&output.stdout).expect("JSON")
    }
}

/// Figures of a row, of either kind of document.
fn figures(row: &Value) -> (String, [u64; 6]) {
    let number = |value: &Value| value.as_u64().unwrap_or_else(|| panic!("{row}"));
    let retained = match &row["retained"] {
        Value::Null => ["retained_count", "retained_bytes", "retained_native_bytes"]
            .map(|name| number(&row[name])),
        retained => ["count", "java_bytes", "native_bytes"].map(|name| number(&retained[name])),
    };
    let own = [
        row["count"].as_u64().unwrap_or(1),
        number(&row["shallow_bytes"]),
        number(&row["native_bytes"]),
    ];
    let name = row["name"].as_str().expect("a name").to_owned();
    let all = [
        own[0],
        own[1],
        own[2],
        retained[0],
        retained[1],
        retained[2],
    ];
    (name, all)
}

fn rows(document: &Value) -> &Vec<Value> {
    document["rows"].as_array().expect("rows")
}

const INPUTS: [&str; 3] = [
    "hprof/leaklab-after.hprof.zst",
    "hprof/android-a.hprof.gz",
    "heap_graphs/graph_10k.pftrace.zst",
];

#[test]
fn tables_and_lists_are_those_of_top() {
    for input in INPUTS {
        let path = fixture(input);
        let explorer = Explorer::start(&path, &[]);
        let file = path.to_string_lossy();
        for by in ["class", "package", "superclass", "heap", "loader"] {
            let told = explorer.of(&["top", &file, "--json", "-l", "0", "--by", by]);
            let mut expected: Vec<_> = rows(&told).iter().map(figures).collect();
            expected.sort();
            let mut found = Vec::new();
            loop {
                let page =
                    explorer.ask(&format!("classes?by={by}&limit=500&offset={}", found.len()));
                found.extend(rows(&page).iter().map(figures));
                if found.len() as u64 == page["total"].as_u64().expect("a number") {
                    break;
                }
            }
            found.sort();
            assert_eq!(found, expected, "{input} by {by}");
        }
        let told = explorer.of(&[
            "top",
            &file,
            "--json",
            "-l",
            "300",
            "--by",
            "object",
            "--every-object",
        ]);
        let sizes = |row: &Value| figures(row).1;
        let expected: Vec<_> = rows(&told).iter().map(sizes).collect();
        let found = explorer.ask("objects?limit=300");
        let retained = |all: Vec<[u64; 6]>| -> Vec<u64> {
            all.into_iter().map(|row| row[4] + row[5]).collect()
        };
        let found = rows(&found).iter().map(sizes).collect();
        assert_eq!(retained(found), retained(expected), "{input}");
    }
}

#[test]
fn an_object_is_that_of_paths() {
    for input in INPUTS {
        let path = fixture(input);
        let explorer = Explorer::start(&path, &[]);
        let file = path.to_string_lossy();
        let objects = explorer.ask("objects?limit=40");
        for row in rows(&objects).iter().step_by(13) {
            let id = row["id"].as_str().expect("an ID");
            let told = explorer.of(&["paths", &file, "--object", id, "--json", "-l", "0"]);
            let steps = |path: &Value| -> Vec<String> {
                let steps = path["steps"].as_array().expect("steps").iter();
                steps.map(|step| step["id"].to_string()).collect()
            };
            let way = explorer.ask(&format!("path?id={id}"));
            assert_eq!(
                way["root"], told["shortest"]["root"]["text"],
                "{input} {id}"
            );
            // `paths` folds repetitions.
            if !told["shortest"].to_string().contains("\"times\"") {
                assert_eq!(steps(&way), steps(&told["shortest"]), "{input} {id}");
            }
            let referrers = explorer.ask(&format!("referrers?id={id}&limit=500"));
            assert_eq!(
                referrers["total"], told["object"]["referrers_total"],
                "{input} {id}"
            );
            let fields = explorer.ask(&format!("fields?id={id}&limit=500"));
            assert_eq!(
                fields["total"], told["object"]["fields_total"],
                "{input} {id}"
            );
            let map = explorer.ask(&format!("treemap?id={id}&cells=50"));
            let whole = map["cells"][0]["bytes"].as_u64();
            let size = figures(row).1;
            assert_eq!(whole, Some(size[4] + size[5]), "{input} {id}");
        }
    }
}

#[test]
fn findings_are_those_of_leaks() {
    for input in INPUTS {
        let path = fixture(input);
        let explorer = Explorer::start(&path, &[]);
        let file = path.to_string_lossy();
        let told = explorer.of(&["leaks", &file, "--json", "-l", "50"]);
        assert_eq!(explorer.ask("leaks"), told["leaks"], "{input}");
        assert_eq!(explorer.ask("waste"), told["waste"], "{input}");
    }
}

#[test]
fn strings_and_arrays_are_those_of_query() {
    for input in INPUTS {
        let path = fixture(input);
        let explorer = Explorer::start(&path, &[]);
        let file = path.to_string_lossy();
        for (list, text, which) in [
            ("strings", "", "class = 'java.lang.String'"),
            (
                "strings",
                "java",
                "class = 'java.lang.String' AND text LIKE '%java%'",
            ),
            ("arrays", "", "class LIKE '%[]'"),
            (
                "arrays",
                "int[",
                "class LIKE '%int[]%' AND class LIKE '%[]'",
            ),
            (
                "objects",
                "Node",
                "class LIKE '%node%' AND class NOT LIKE 'class %'",
            ),
        ] {
            let mut found = Vec::new();
            let mut from = 0;
            loop {
                let answer = explorer.ask(&format!(
                    "search?in={list}&text={text}&from={from}&limit=500"
                ));
                found.extend(rows(&answer).iter().map(|row| row["id"].clone()));
                match answer["next"].as_u64() {
                    Some(next) => from = next,
                    None => break,
                }
            }
            let sql = format!(
                "SELECT printf('0x%x', address) AS id FROM heaptap_java_object \
                 WHERE distance IS NOT NULL AND class NOT LIKE 'class %' AND {which}"
            );
            let mut found: Vec<String> = found.iter().map(|id| id.to_string()).collect();
            let mut expected: Vec<String> =
                ids(&explorer.of(&["query", &file, &sql, "--json"])).collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{input}: {text} in {list}");
        }
    }
}

fn ids(document: &Value) -> impl Iterator<Item = String> + '_ {
    let rows = document.as_array().expect("rows");
    rows.iter().map(|row| row["id"].to_string())
}

#[test]
fn sql_answers_what_query_answers() {
    let sql = "SELECT id, self_size FROM heap_graph_object ORDER BY self_size DESC, id LIMIT 20";
    for input in INPUTS {
        let path = fixture(input);
        let explorer = Explorer::start(&path, &[]);
        let file = path.to_string_lossy();
        let told = explorer.of(&["query", &file, sql, "--json"]);
        let answer = explorer.ask(&format!("sql?sql={}", sql.replace(' ', "+")));
        assert_eq!(answer["columns"], serde_json::json!(["id", "self_size"]));
        let cells = rows(&answer).iter();
        let numbers: Vec<_> = cells
            .map(|row| (row[0]["value"].to_string(), row[1].to_string()))
            .collect();
        let expected: Vec<_> = told
            .as_array()
            .expect("rows")
            .iter()
            .map(|row| (row["id"].to_string(), row["self_size"].to_string()))
            .collect();
        assert_eq!(numbers, expected, "{input}");
        // The link of a row leads to the object with that size.
        for row in rows(&answer).iter().step_by(7) {
            let id = row[0]["object"].as_str().expect("an ID");
            let object = explorer.ask(&format!("object?id={id}"));
            assert_eq!(object["shallow_bytes"], row[1], "{input} {id}");
        }
    }
    let explorer = Explorer::start(&fixture(INPUTS[0]), &[]);
    let (status, body) = explorer.get("api/sql?sql=SELECT+nothing", OWN);
    assert_eq!(status, 400);
    assert!(body.contains("nothing"), "{body}");
    let (status, body) = explorer.get("api/sql?sql=ATTACH+'x'+AS+y", OWN);
    assert_eq!(status, 400, "{body}");
    let explorer = Explorer::start(&fixture(INPUTS[0]), &["--redact"]);
    let (status, body) = explorer.get("api/sql?sql=SELECT+1", OWN);
    assert_eq!(status, 400);
    assert!(body.contains("hidden"), "{body}");
}

#[test]
fn another_dump_of_the_process_can_be_shown() {
    let directory = tempfile::tempdir().expect("a folder");
    let dumps = directory.path().join("dumps.zip");
    let mut zip = zip::ZipWriter::new(std::fs::File::create(&dumps).expect("a file"));
    for name in ["android-a.hprof.gz", "android-b.hprof.gz"] {
        let dump = std::fs::read(fixture(&format!("hprof/{name}"))).expect("a dump");
        zip.start_file(name, zip::write::SimpleFileOptions::default())
            .and_then(|()| Ok(zip.write_all(&dump)?))
            .expect("it is added");
    }
    zip.finish().expect("it is whole");
    let explorer = Explorer::start(&dumps, &[]);
    let objects = |number: u64| {
        let meta = explorer.wait(|meta| meta["heap"]["number"] == number && meta["step"] == "");
        assert_eq!(meta["heap"]["dumps"], 2);
        meta["reachable"]["count"].clone()
    };
    let input = dumps.to_string_lossy();
    let of = |number: u64| {
        let told = explorer.of(&["top", &format!("{input}@{number}"), "--json"]);
        told["reachable"]["count"].clone()
    };
    let (first, second) = (of(1), of(2));
    assert!(first.is_u64() && first != second, "{first} {second}");
    assert_eq!(objects(2), second);
    explorer.ask("show?number=1");
    assert_eq!(objects(1), first);
    explorer.ask("show?number=7");
    let meta = explorer.wait(|meta| meta["error"].is_string());
    assert!(meta["error"].to_string().contains('7'), "{meta}");
}

#[test]
fn changes_are_those_of_diff() {
    let (before, after) = (
        fixture("hprof/leaklab-before.hprof.zst"),
        fixture("hprof/leaklab-after.hprof.zst"),
    );
    let after = after.to_string_lossy();
    let explorer = Explorer::start(&before, &[&after]);
    explorer.wait(|meta| !meta["before"].is_null());
    let told = explorer.of(&[
        "diff",
        &before.to_string_lossy(),
        &after,
        "--json",
        "-l",
        "0",
    ]);
    let found = explorer.ask("changes?limit=500&sort=shallow");
    let by_name = |rows: &[Value]| -> BTreeMap<String, Value> {
        let named = rows
            .iter()
            .map(|row| (row["name"].to_string(), row.clone()));
        named.collect()
    };
    let found = by_name(rows(&found));
    assert!(!found.is_empty());
    assert_eq!(found, by_name(told["classes"].as_array().expect("rows")));
    let leaks = explorer.ask("changed-leaks");
    assert_eq!(leaks, told["leaks"]);
    let leaks = leaks.as_array().expect("leaks");
    assert_eq!(leaks.len(), 4);
    assert!(
        leaks.iter().all(|leak| leak["status"] == "same"),
        "{leaks:?}"
    );
}

#[test]
fn wrong_requests_have_a_reason_and_others_learn_nothing() {
    let explorer = Explorer::start(&fixture(INPUTS[1]), &[]);
    for (operation, status, reason) in [
        ("nothing", 404, "no operation"),
        ("object?id=0x1", 404, "does not contain object 0x1"),
        ("object?id=zzz", 404, "zzz"),
        ("object", 400, "id"),
        ("classes?by=color", 400, "by cannot be"),
        ("classes?limit=many", 400, "limit"),
        ("objects?class=a&top=1", 400, "several"),
        ("search?in=nowhere", 400, "in cannot be"),
        ("flame?tree=oak", 400, "tree cannot be"),
        ("changes", 404, "no other heap"),
        ("picture?id=0x1", 404, "does not contain object 0x1"),
    ] {
        let (found, body) = explorer.get(&format!("api/{operation}"), OWN);
        assert_eq!(found, status, "{operation}: {body}");
        let body: Value = serde_json::from_str(&body).expect("JSON");
        assert!(
            body["error"]
                .as_str()
                .is_some_and(|error| error.contains(reason)),
            "{body}"
        );
    }
    let evil = format!("{OWN}Origin: https://evil.example\r\n");
    assert_eq!(explorer.get("api/meta", &evil).0, 403);
    assert_eq!(explorer.get("api/meta", "").0, 403);
    let cross = format!("{OWN}Sec-Fetch-Site: cross-site\r\n");
    assert_eq!(explorer.get("api/meta", &cross).0, 403);
    let host = explorer.url.split('/').nth(2).expect("a host");
    let other = format!("GET /0123/ HTTP/1.1\r\nHost: {host}\r\n\r\n");
    assert_eq!(explorer.send(&other).0, 404);
    assert_eq!(
        explorer
            .send("GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n")
            .0,
        421
    );
    let (status, page) = explorer.get("", "");
    assert_eq!(status, 200);
    assert!(page.contains("<title>heaptap: Java heap</title>"));
}

#[test]
fn redacted_answers_have_no_text_and_no_value() {
    let strings = "objects?class=java.lang.String&limit=50";
    let path = fixture(INPUTS[0]);
    let has_texts = |explorer: &Explorer| {
        let rows = explorer.ask(strings);
        rows["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .any(|row| !row["text"].is_null())
    };
    assert!(has_texts(&Explorer::start(&path, &[])));
    let explorer = Explorer::start(&path, &["--redact"]);
    assert_eq!(explorer.ask("meta")["contents"], false);
    assert!(!has_texts(&explorer));
    let strings = explorer.ask(strings);
    let id = strings["rows"][0]["id"].as_str().expect("an ID").to_owned();
    let fields = explorer.ask(&format!("fields?id={id}"));
    assert!(
        rows(&fields).iter().all(|field| field["value"].is_null()),
        "{fields}"
    );
    let waste = explorer.ask("waste");
    let groups = waste["strings"]["groups"].as_array().expect("groups");
    assert!(!groups.is_empty());
    assert!(groups.iter().all(|group| group["value"] == ""), "{waste}");
}

#[test]
fn no_redacted_answer_has_a_text_of_the_dump() {
    let path = fixture("hprof/leaklab-after.hprof.zst");
    // Texts with a space: others can also be names of classes and fields.
    let texts: BTreeSet<String> = {
        let explorer = Explorer::start(&path, &[]);
        let found = explorer.ask("search?in=strings&text=+&limit=500");
        let texts = rows(&found).iter().filter_map(|row| row["text"].as_str());
        let long = texts.filter(|text| text.len() >= 12 && text.is_ascii());
        long.map(str::to_owned).collect()
    };
    assert!(texts.len() > 20, "{texts:?}");
    let has = |answer: &str| {
        let found = texts.iter().find(|text| answer.contains(text.as_str()));
        found.cloned()
    };
    let answers = |explorer: &Explorer| -> Vec<(String, String)> {
        let mut all = Vec::new();
        let mut add = |operation: String| {
            let (status, body) = explorer.get(&format!("api/{operation}"), OWN);
            assert_eq!(status, 200, "{operation}: {body}");
            all.push((operation, body));
        };
        for operation in [
            "meta",
            "leaks",
            "waste",
            "treemap",
            "flame",
            "bitmaps",
            "classes",
            "objects",
            "search?in=strings",
            "search?in=arrays",
            "objects?class=java.lang.String",
        ] {
            add(operation.to_owned());
        }
        let strings = explorer.ask("objects?class=java.lang.String&limit=40");
        let largest = explorer.ask("objects?limit=40");
        let ids = rows(&strings).iter().chain(rows(&largest));
        for id in ids.map(|row| row["id"].as_str().expect("an ID")) {
            for operation in ["object", "path", "fields", "referrers"] {
                add(format!("{operation}?id={id}"));
            }
        }
        all
    };
    let shown = answers(&Explorer::start(&path, &[]));
    assert!(shown.iter().any(|(_, answer)| has(answer).is_some()));
    for (operation, answer) in answers(&Explorer::start(&path, &["--redact"])) {
        assert_eq!(has(&answer), None, "{operation}: {answer}");
    }
    let redacted = Explorer::start(&path, &["--redact"]).ask("waste");
    for list in ["strings", "arrays"] {
        for group in redacted[list]["groups"].as_array().expect("groups") {
            assert_eq!(
                (&group["value"], &group["hash"]),
                (&json!(""), &Value::Null)
            );
        }
    }
    for array in redacted["large_arrays"].as_array().expect("arrays") {
        assert_eq!(array["value"], "", "{array}");
    }
}

#[test]
fn the_copies_of_wasted_texts_are_found() {
    let explorer = Explorer::start(&fixture("hprof/leaklab-after.hprof.zst"), &[]);
    let waste = explorer.ask("waste");
    let groups = waste["strings"]["groups"].as_array().expect("groups");
    assert!(groups.len() > 10);
    for group in groups {
        let id = group["example"].as_str().expect("an ID");
        let mut count = 0;
        let mut from = 0;
        loop {
            let query = format!("search?in=strings&equal={id}&from={from}&limit=500");
            let found = explorer.ask(&query);
            count += rows(&found).len() as u64;
            match found["next"].as_u64() {
                Some(next) => from = next,
                None => break,
            }
        }
        // Waste does not count the heaps that all apps share.
        assert_eq!(Some(count), group["count"].as_u64(), "{group}");
    }
}

#[test]
fn a_heap_compared_with_itself_has_a_warning() {
    let directory = tempfile::tempdir().expect("a folder");
    let path = fixture(INPUTS[0]);
    let child = command(directory.path())
        .args(["explore", "--print-url", "--idle", "3s"])
        .args([&path, &path])
        .output()
        .expect("the binary runs");
    let told = String::from_utf8_lossy(&child.stderr);
    assert!(told.contains("both sides are the same data"), "{told}");
}

#[test]
fn redacted_answers_have_numbers_of_threads_instead_of_names() {
    let path = fixture("hprof/leaklab-after.hprof.zst");
    let roots = |explorer: &Explorer| -> BTreeSet<String> {
        let threads = explorer.ask("objects?class=java.lang.Thread&limit=50");
        let ids = rows(&threads).iter().map(|row| row["id"].clone());
        let answers = ids.flat_map(|id| {
            let id = id.as_str().expect("an ID");
            ["object", "path"].map(|operation| explorer.ask(&format!("{operation}?id={id}")))
        });
        let mut roots: BTreeSet<String> = answers
            .filter_map(|answer| answer["root"].as_str().map(str::to_owned))
            .collect();
        let holders = explorer.ask("holders?class=java.lang.Object%5B%5D");
        let of_holders = rows(&holders).iter();
        roots.extend(of_holders.filter_map(|row| row["root"].as_str().map(str::to_owned)));
        roots
    };
    let has = |roots: &BTreeSet<String>, text: &str| roots.iter().any(|root| root.contains(text));
    let named = roots(&Explorer::start(&path, &[]));
    assert!(has(&named, "thread main"), "{named:?}");
    assert!(has(&named, "thread Attach Listener"), "{named:?}");
    let redacted = roots(&Explorer::start(&path, &["--redact"]));
    assert!(has(&redacted, "thread #1"), "{redacted:?}");
    assert!(!has(&redacted, "thread main"), "{redacted:?}");
    assert!(!has(&redacted, "Attach"), "{redacted:?}");
}

#[test]
fn a_request_for_a_heap_that_was_shown_before_is_refused() {
    let explorer = Explorer::start(&fixture(INPUTS[0]), &[]);
    assert_eq!(explorer.ask("meta")["generation"], 0);
    explorer.ask("objects?generation=0&limit=1");
    explorer.ask("show?number=1");
    let (status, body) = explorer.get("api/objects?generation=0&limit=1", OWN);
    assert_eq!(status, 409, "{body}");
    assert_eq!(explorer.ask("meta")["generation"], 1);
    // Its reading goes on; requests that name no heap are answered once it is read.
    explorer.wait(|meta| meta["heap"].is_object());
    explorer.ask("objects?generation=1&limit=1");
    let (status, body) = explorer.get("api/show?generation=0&number=1", OWN);
    assert_eq!(status, 409, "{body}");
}

#[test]
fn the_heap_is_shown_if_the_earlier_one_cannot_be_read() {
    let explorer = Explorer::start_with(&[Path::new("missing.hprof"), &fixture(INPUTS[0])]);
    let meta = explorer.wait(|meta| meta["error"].is_string());
    let error = meta["error"].as_str().expect("a text");
    assert!(error.starts_with("cannot compare: "), "{error}");
    assert!(error.contains("missing.hprof"), "{error}");
    assert_eq!(explorer.get("api/changes", OWN).0, 404);
    explorer.ask("objects?limit=1");
}

#[test]
fn it_ends_when_the_page_was_closed_for_a_while() {
    let mut explorer = Explorer::start(&fixture(INPUTS[1]), &["--idle", "4s"]);
    let status = explorer.child.wait().expect("it ends");
    assert_eq!(status.code(), Some(0));
}
