//! Recordings of a night go into an archive, once; the archive has what their manifests have.

use std::fs::{self, File};
use std::path::{Path, PathBuf};

use heaptap_archive::Table;
use heaptap_tables::{Cell, Columns};
use serde_json::Value;

use crate::lab::Lab;

const SCENARIO: &str = "\
version: 1
name: story
target: {name: com.example.app}
measure: [native, java]
repeats: 2
keep: always
steps:
- start
- snapshot: middle
";

/// Rows of a table of a store, with the column numbers.
fn rows(store: &Path, table: Table) -> (Columns, impl Fn(&str) -> usize) {
    let columns = table.columns();
    let mut rows = Columns::new(&columns);
    let mut directories = vec![store.join("v1").join(table.name())];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a partition") {
            let path = entry.expect("an entry").path();
            match path.is_dir() {
                true => directories.push(path),
                false => rows
                    .append(File::open(path).expect("a file"))
                    .expect("a table"),
            }
        }
    }
    let names: Vec<String> = columns.into_iter().map(|column| column.name).collect();
    let at = move |name: &str| names.iter().position(|n| n == name).expect("a column");
    (rows, at)
}

/// Partitions of the recordings, as paths below the table.
fn partitions(store: &Path) -> Vec<PathBuf> {
    let root = store.join("v1/recording");
    let mut found = Vec::new();
    let mut directories = vec![root.clone()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("a partition") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                directories.push(path);
            } else if !path.ends_with("empty.parquet") {
                let directory = path
                    .parent()
                    .and_then(|directory| directory.strip_prefix(&root).ok());
                found.push(directory.expect("a partition").to_owned());
            }
        }
    }
    found
}

#[test]
fn runs_of_a_night_are_archived_once_with_the_totals_of_their_manifests() {
    let lab = Lab::new("speed=8");
    fs::write(lab.work().join("s.yaml"), SCENARIO).expect("a scenario");
    lab.expect(0, "run s.yaml -o night");
    let archive = ["archive", "night", "--to", "fleet", "--json"];
    let first = lab.expect(0, &archive).json();
    assert_eq!(first["added"].as_array().map(Vec::len), Some(2), "{first}");
    let again = lab.expect(0, &archive).json();
    assert_eq!(again["known"].as_array().map(Vec::len), Some(2), "{again}");
    assert_eq!(
        (&again["added"], &again["recordings"]),
        (&Value::Array(Vec::new()), &2.into())
    );

    let store = lab.work().join("fleet");
    let result = fs::read(lab.work().join("night/result.json")).expect("results");
    let result: Value = serde_json::from_slice(&result).expect("JSON");
    let version = result["app_version"].as_str().unwrap_or("unknown");
    let build = version
        .rsplit('(')
        .next()
        .unwrap_or(version)
        .trim_end_matches(')');
    for partition in partitions(&store) {
        let text = partition.display().to_string().replace('\\', "/");
        assert!(text.starts_with("app=com.example.app/day=20"), "{text}");
        assert!(text.ends_with(&format!("/build={build}")), "{text}");
    }
    let (recordings, at) = rows(&store, Table::Recording);
    assert_eq!(recordings.text(0, at("device_class")), Some("default"));
    assert_eq!(recordings.text(0, at("verdict")), Some("within"));
    assert_eq!(recordings.text(0, at("scenario")), Some("story"));

    // Each manifest has the totals of its last native dump, and of its Java heaps.
    let manifests = ["night/run-1", "night/run-2"].map(|run| lab.manifest(run));
    let mut expected: i64 = 0;
    for manifest in &manifests {
        let dumps = manifest["dumps"].as_array().expect("dumps");
        let native = dumps.iter().rfind(|dump| dump["heap"] == "libc.malloc");
        expected += native.expect("a native dump")["totals"]["space"]
            .as_i64()
            .expect("bytes");
    }
    let (samples, at) = rows(&store, Table::Sample);
    let last = |row: &usize| samples.cell(*row, at("is_last")) == Cell::Bool(true);
    let live = |row| samples.int(row, at("live_bytes"));
    let sum: i64 = (0..samples.len()).filter(last).filter_map(live).sum();
    assert!(expected > 0);
    assert_eq!(sum, expected);
    let (dumps, at) = rows(&store, Table::Dump);
    let java = |row: &usize| dumps.text(*row, at("heap")) == Some("java");
    let objects = |row| dumps.int(row, at("live_n"));
    let objects: i64 = (0..dumps.len()).filter(java).filter_map(objects).sum();
    let (classes, at) = rows(&store, Table::Class);
    let counted: i64 = (0..classes.len())
        .filter_map(|row| classes.int(row, at("objects")))
        .sum();
    assert!(objects > 0);
    assert_eq!(counted, objects);
    // Every callsite has a name, and allocators are no leaves.
    let (names, at) = rows(&store, Table::Callsite);
    let leaf = |row| names.text(row, at("leaf")).map(str::to_owned);
    assert!((0..names.len()).all(|row| leaf(row).is_some_and(|leaf| leaf != "malloc")));

    let compacted = lab.expect(0, "archive --to fleet --compact --json").json();
    assert_eq!(compacted["recordings"], 2, "{compacted}");
    assert!(
        compacted["compacted"]["written"].as_u64() >= Some(4),
        "{compacted}"
    );
    let removed = lab.expect(0, "archive --to fleet --compact --json").json();
    assert_eq!(
        removed["compacted"]["removed"],
        compacted["compacted"]["replaced"]
    );
    let (samples, at) = rows(&store, Table::Sample);
    let last = |row: &usize| samples.cell(*row, at("is_last")) == Cell::Bool(true);
    let live = |row| samples.int(row, at("live_bytes"));
    assert_eq!(
        (0..samples.len())
            .filter(last)
            .filter_map(live)
            .sum::<i64>(),
        expected
    );
    let again = lab.expect(0, &archive).json();
    assert_eq!(again["recordings"], 2, "{again}");
}

/// Reads, changes and writes a JSON file.
fn change(path: &Path, how: impl FnOnce(&mut Value)) {
    let text = fs::read(path).expect("a file");
    let mut value = serde_json::from_slice(&text).expect("JSON");
    how(&mut value);
    fs::write(path, value.to_string()).expect("a file");
}

#[test]
fn runs_of_two_builds_on_a_stand_in_are_of_their_builds() {
    let lab = Lab::new("speed=8");
    let night = lab.work().join("night");
    fs::write(lab.work().join("s.yaml"), SCENARIO).expect("a scenario");
    lab.expect(0, "run s.yaml -o night");
    // As of `run --against` with several devices, one of which stayed away.
    let mut part = PathBuf::new();
    change(&night.join("result.json"), |result| {
        result["app_version"] = "1.43 (43)".into();
        result["old_app_version"] = "1.41 (41)".into();
        result["runs"][0]["build"] = "old".into();
        result["runs"][1]["build"] = "new".into();
        result["device"]["instead_of"] = "away".into();
        let serial = result["device"]["serial"].as_str().expect("a serial");
        part = night.join(format!("story-{serial} for away").replace(':', "_"));
        *result = Value::Array(vec![result.take()]);
    });
    fs::create_dir(&part).expect("a directory");
    for run in ["run-1", "run-2"] {
        fs::rename(night.join(run), part.join(run)).expect("a run");
    }
    let builds = |store: &str, more: &str| {
        lab.expect(0, &format!("archive night --to {store} {more}"));
        let found = partitions(&lab.work().join(store));
        let names = found.iter().filter_map(|path| path.file_name()?.to_str());
        let mut names: Vec<String> = names.map(str::to_owned).collect();
        names.sort();
        names
    };
    assert_eq!(builds("fleet", ""), ["build=41", "build=43"]);
    // `--build` is the one that the job built.
    assert_eq!(builds("typed", "--build 7"), ["build=41", "build=7"]);

    // A damaged run does not keep the others out.
    fs::write(part.join("run-1/manifest.json"), "{").expect("a file");
    let rest = lab.expect(8, "archive night --to rest --json");
    assert_eq!(rest.json()["recordings"], 1, "{rest}");
    rest.assert_stderr("run-1");
    fs::write(part.join("run-2/manifest.json"), "{").expect("a file");
    let none = lab.expect(8, "archive night --to none --json");
    assert_eq!(none.json()["recordings"], 0, "{none}");
}

#[cfg(unix)]
#[test]
fn paths_that_are_not_utf_8_are_in_json_with_replacements() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    let lab = Lab::new("speed=8");
    lab.expect(0, "record -n com.example.app -d 5s -o rec");
    let name = OsStr::from_bytes(b"r\xffc");
    fs::rename(lab.work().join("rec"), lab.work().join(name)).expect("a recording");
    let mut command = crate::program::heaptap();
    let arguments = ["archive", "--json", "--to"].map(OsStr::new);
    command.current_dir(lab.work()).args(arguments);
    let to = OsStr::from_bytes(b"fl\xffet");
    let output = command.args([to, name]).output().expect("heaptap runs");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{stderr}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(told["added"][0]["path"], "r\u{fffd}c", "{told}");
}

#[test]
fn a_recording_by_itself_is_of_the_build_that_was_typed() {
    let lab = Lab::new("speed=8");
    lab.expect(0, "record -n com.example.app -d 5s -o rec");
    lab.expect(
        0,
        &["archive", "rec", "--to", "fleet", "--build", "1.0 (7)/x"],
    );
    let found = partitions(&lab.work().join("fleet"));
    assert!(found[0].ends_with("build=1.0%20%287%29%2Fx"), "{found:?}");
    // One that cannot be read does not keep the others out.
    fs::create_dir(lab.work().join("other")).expect("a directory");
    let mixed = lab.expect(8, "archive other rec --to new --json");
    assert_eq!(mixed.json()["recordings"], 1, "{mixed}");
}

#[test]
fn the_last_java_heap_is_one_that_is_complete() {
    // Large enough for several packets, so that the cut is in a dump.
    let lab = Lab::new("speed=8,java=150000");
    let args = "dump -n com.example.app -c 2s -o rec";
    let mut running = lab.start(&format!("{args} --json-lines"));
    // Two dumps or more, also on a busy host.
    running.until_that("progress", |p| p["trace_bytes"].as_u64() >= Some(4_000_000));
    running.interrupted(0);
    let trace = File::options()
        .write(true)
        .open(lab.work().join("rec/raw-trace"))
        .expect("a trace");
    let bytes = trace.metadata().expect("a size").len();
    // Until the cut is in a dump, not between two.
    let number_of_cut = |part: u64| {
        trace
            .set_len(bytes.saturating_sub(part * 50_000))
            .expect("it is cut");
        let heap = lab.run("top rec --json").json()["heap"].take();
        let (number, dumps) = (heap["number"].as_i64()?, heap["dumps"].as_i64()?);
        (number < dumps).then_some(number)
    };
    let shown = (1..30).find_map(number_of_cut);
    lab.run("archive rec --to fleet");
    let store = lab.work().join("fleet");
    let (dumps, at) = rows(&store, Table::Dump);
    let last = |row: &usize| dumps.cell(*row, at("is_last")) == Cell::Bool(true);
    let numbers = (0..dumps.len())
        .filter(last)
        .map(|row| dumps.int(row, at("number")));
    assert!(shown.is_some(), "{bytes}");
    assert_eq!(numbers.collect::<Vec<_>>(), [shown]);
}

#[test]
fn what_is_not_a_recording_or_not_an_archive_is_refused() {
    let lab = Lab::new("speed=8");
    let work = lab.work();
    fs::create_dir(work.join("mine")).expect("a directory");
    fs::write(work.join("mine/notes.txt"), "mine").expect("a file");
    let ended = lab.fails(8, "archive mine --to fleet");
    assert_eq!(ended["kind"], "not-a-recording", "{ended}");
    let ended = lab.fails(2, "archive --to mine --compact");
    assert_eq!(ended["kind"], "not-an-archive", "{ended}");
    lab.expect(0, "archive --to fleet --compact");
    let partition = work.join("fleet/v1/recording/app=a/day=b/build=c");
    fs::create_dir_all(&partition).expect("a partition");
    fs::write(partition.join("c-0.parquet"), "damaged").expect("a file");
    let ended = lab.fails(8, "archive --to fleet --compact");
    assert_eq!(ended["kind"], "archive-unreadable", "{ended}");
}
