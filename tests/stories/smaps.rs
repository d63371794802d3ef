//! Memory mappings of a process: on a phone, at labels of a recording, in a file; and explanations
//! of differences.

use android_memory::meminfo::{Column, Meminfo};
use heaptap_report::data::{Data, from_page};
use serde_json::Value;

use crate::lab::{APP, Lab};
use crate::program::assert_contains;

const DEBUGGABLE: &str = "android=14,build=user,speed=10";
const ROOTED: &str = "android=14,build=userdebug,speed=10";
/// An app that is neither debuggable nor profileable.
const CLOSED: &str = "com.example.closed";

fn sum(document: &Value, figure: &str) -> u64 {
    let rows = document["rows"].as_array().expect("rows");
    rows.iter()
        .filter(|row| row["is_part"] != true)
        .filter_map(|row| row["figures"][figure].as_u64())
        .sum()
}

fn row<'a>(document: &'a Value, kind: &str) -> &'a Value {
    let rows = document["rows"].as_array().expect("rows");
    let found = rows
        .iter()
        .find(|row| row["kind"] == kind && row["is_part"] != true);
    found.unwrap_or_else(|| panic!("no {kind} in {document:#}"))
}

#[test]
fn a_running_process_is_shown_by_the_rows_of_meminfo() {
    for (spec, way) in [(DEBUGGABLE, "run-as"), (ROOTED, "run-as")] {
        let lab = Lab::new(spec);
        let document = lab.expect(0, "smaps -n com.example.app --json").json();
        assert_eq!(document["process"], APP);
        assert_eq!(document["method"], way, "{spec}");
        assert_eq!(document["unknown_lines"], 0, "{document:#}");
        for figure in ["rss", "pss", "private_dirty"] {
            let total = document["total"][figure].as_u64().expect("a total");
            assert_eq!(sum(&document, figure), total, "{figure}");
            assert!(total > 0, "{figure}");
        }
        assert!(row(&document, "Native Heap")["figures"]["rss"].as_u64() > Some(0));
        assert!(row(&document, "Dalvik Heap")["figures"]["rss"].as_u64() > Some(0));
    }
    let lab = Lab::new(ROOTED);
    let shown = lab.expect(0, "smaps -n com.example.app --by library -l 0");
    for said in [APP, "private dirty", "TOTAL", "libc.so"] {
        assert!(shown.stdout.contains(said), "{said} in {shown}");
    }
    let csv = lab.expect(0, "smaps -n com.example.app --by mapping --csv");
    let lines: Vec<&str> = csv.stdout.lines().collect();
    assert!(lines[0].starts_with("kind,part,name,permissions,offset,start,mappings,size,rss"));
    let cells = lines[0].split(',').count();
    assert!(lines.len() > 4 && lines[1].split(',').count() >= cells);
}

#[test]
fn where_nobody_may_look_it_is_said_what_would_be_needed_and_what_there_is() {
    let lab = Lab::new(DEBUGGABLE);
    let none = lab.fails(4, "smaps -n com.example.none");
    assert_eq!(none["kind"], "target-not-running");
    let refused = lab.fails(4, "smaps -n surfaceflinger");
    assert_eq!(refused["kind"], "mappings-refused");
    let message = refused["message"].as_str().unwrap();
    assert_contains(&message, "Permission denied");
    let help = refused["help"].as_str().unwrap();
    for said in ["debuggable", "root", "--local"] {
        assert_contains(&help, said);
    }
}

#[test]
fn what_was_saved_is_read_again_and_compared() {
    let lab = Lab::new(DEBUGGABLE);
    let before = lab
        .expect(0, "smaps -n com.example.app --save a.smaps --json")
        .json();
    lab.expect(2, "smaps -n com.example.app --save a.smaps");
    let after = lab
        .expect(0, "smaps -n com.example.app --save b.smaps --json")
        .json();
    let again = lab.expect(0, "smaps a.smaps --json").json();
    for field in ["rows", "total", "count"] {
        assert_eq!(again[field], before[field], "{field}");
    }
    for by in ["kind", "library", "mapping"] {
        let changed = lab
            .expect(0, &format!("diff a.smaps b.smaps --by {by} --json"))
            .json();
        let figure = |document: &Value| document["total"]["private_dirty"].as_i64().unwrap();
        let grown = changed["total"]["private_dirty"].as_i64().unwrap();
        assert_eq!(grown, figure(&after) - figure(&before), "{by}");
        let rows = changed["rows"].as_array().unwrap();
        let sum: i64 = rows
            .iter()
            .filter(|row| row["is_part"] != true)
            .map(|row| row["delta"]["private_dirty"].as_i64().unwrap())
            .sum();
        assert_eq!(sum, grown, "{by}");
    }
    lab.expect(0, "diff a.smaps a.smaps").assert_stdout("TOTAL");
    lab.expect(2, "diff a.smaps b.smaps --by path")
        .assert_stderr("kind, library or mapping");
    std::fs::write(lab.work().join("none.txt"), "no mapping\n").unwrap();
    lab.expect(8, "smaps ./none.txt");
}

#[test]
fn a_directory_without_figures_gives_no_empty_table() {
    let lab = Lab::new(ROOTED);
    lab.expect(0, "dump -n com.example.app -o out --json");
    let nothing = lab.fails(7, "meminfo out --reconcile");
    assert_eq!(nothing["kind"], "nothing-to-reconcile");
    // The captured file no longer exists.
    let kept = "{\"boot_ns\":1,\"pid\":7,\"kind\":\"captured\",\"what\":\"smaps\",\
                \"file\":\"smaps/01-first.smaps.gz\",\"label\":\"first\",\"number\":1}\n";
    std::fs::write(lab.work().join("out/memory.jsonl"), kept).unwrap();
    for more in [&[][..], &["--at", "all"]] {
        let args = ("meminfo out --reconcile --json", more);
        let ended = lab.expect(7, &args);
        let error = &ended.error();
        assert_eq!(error["kind"], "nothing-to-reconcile", "{ended}");
        let help = error["help"].as_str().unwrap();
        assert!(help.contains("--with meminfo,smaps"), "{ended}");
        let message = error["message"].as_str().unwrap();
        assert!(
            message.contains("meminfo was not captured at this label"),
            "{ended}"
        );
    }
}

#[test]
fn mappings_and_the_allocators_words_are_kept_at_each_label_and_reconciled() {
    let lab = Lab::new(ROOTED);
    let mut running = lab.record("--with meminfo,smaps");
    running.until_recorded();
    lab.expect(0, "snapshot --label first");
    running.interrupted(0);
    let out = lab.work().join("out");
    assert!(out.join("smaps/01-first.smaps.gz").is_file());
    assert!(out.join("malloc-info/01-first.xml").is_file());

    let kept = lab.expect(0, "smaps out@first --json").json();
    assert_eq!(kept["label"], "first");
    assert_eq!(kept["process"], APP);
    assert_eq!(kept["origin"], "recording");
    assert!(row(&kept, "Native Heap")["figures"]["rss"].as_u64() > Some(0));
    lab.expect(2, "smaps out@nowhere").assert_stderr("first");
    lab.expect(0, "diff out@first out@end --smaps --json");

    let tables = lab.expect(0, "meminfo out@first --reconcile --json").json();
    let [table] = tables["tables"].as_array().unwrap().as_slice() else {
        panic!("{tables:#}");
    };
    assert_eq!(table["label"], "first");
    let figure = |name: &str| {
        let rows = table["rows"].as_array().unwrap();
        let found = rows.iter().find(|row| row["figure"] == name);
        found.unwrap_or_else(|| panic!("no {name} in {table:#}"))["bytes"]
            .as_i64()
            .unwrap()
    };
    let alloc = figure("heap-alloc");
    assert!(figure("profiled") > 0 && alloc > 0);
    assert_eq!(
        figure("native-resident"),
        row(&kept, "Native Heap")["figures"]["rss"]
            .as_i64()
            .unwrap()
    );
    assert!(figure("process-resident") > figure("native-resident"));
    // The allocator's own sum of live bytes, which is above that of a late profile.
    assert!(figure("malloc-info") > 0);
    let differences = table["differences"].as_array().unwrap();
    assert!(differences.len() >= 4, "{table:#}");
    for difference in differences {
        let of = |end: &str| figure(difference[end].as_str().unwrap());
        assert_eq!(difference["bytes"].as_i64(), Some(of("to") - of("from")));
        assert!(!difference["causes"].as_array().unwrap().is_empty());
    }
    let shown = lab.expect(0, "meminfo out --reconcile");
    for said in [
        "heapprofd, unreleased",
        "Heap Alloc",
        "Native Heap RSS",
        "memory not allocated by malloc",
    ] {
        assert!(shown.stdout.contains(said), "{said} in {shown}");
    }
    let all = lab
        .expect(0, "meminfo out --reconcile --at all --json")
        .json();
    let tables = all["tables"].as_array().unwrap();
    assert_eq!(tables.len(), 2, "{all:#}");

    // The page has the same, the last moment first; also without scripts.
    lab.expect(0, "report out -o page.html");
    let page = std::fs::read_to_string(lab.work().join("page.html")).unwrap();
    let data = from_page(&page).unwrap();
    let header = Data::decode(&data).unwrap().header;
    let moments: Vec<&str> = header.reconcile.iter().map(|of| of.at.as_str()).collect();
    assert_eq!(moments, ["end", "first"]);
    for (shown, table) in header.reconcile.iter().rev().zip(tables) {
        let shown: Vec<i64> = shown.rows.iter().map(|row| row.bytes).collect();
        let rows = table["rows"].as_array().unwrap().iter();
        let told: Vec<i64> = rows.filter_map(|row| row["bytes"].as_i64()).collect();
        assert_eq!(shown, told);
    }
    for part in [
        "id=\"figures\"",
        "id=\"moments\"",
        "memory not allocated by malloc",
    ] {
        let part_of = page.split("heaptap-data").next().unwrap();
        assert!(part_of.contains(part), "{part}");
    }
}

#[test]
fn a_process_that_refuses_keeps_no_other_from_its_label() {
    let lab = Lab::new("android=14,speed=20");
    // The one that refuses is asked first.
    let [other, later] = ["com.example.profileable", "com.example.legacy"];
    let both = format!("{other},{later}");
    let mut running = lab.start(&format!(
        "record -n {both} -o out --with smaps --json-lines"
    ));
    running.until_recorded();
    lab.expect(0, "snapshot --label first");
    running.interrupted(0);
    let kept = lab.expect(0, "smaps out@first --json").json();
    assert_eq!(kept["process"], later, "{kept:#}");
    let manifest = std::fs::read(lab.work().join("out/manifest.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    let missed = manifest["companion"]["missed"].as_array().unwrap();
    let at_first = |one: &&serde_json::Value| one["what"] == "smaps" && one["label"] == "first";
    let why: Vec<&str> = (missed.iter().filter(at_first))
        .filter_map(|one| one["why"].as_str())
        .collect();
    assert!(why.len() == 1 && why[0].contains(other), "{manifest:#}");
    let tables = lab
        .expect(
            0,
            &format!("meminfo out@first --reconcile -n {later} --json"),
        )
        .json();
    let missing = tables["tables"][0]["missing"].as_array().unwrap();
    let is_about = |one: &serde_json::Value| one["why"].as_str().unwrap_or("").contains(other);
    assert!(!missing.iter().any(is_about), "{tables:#}");
}

#[test]
fn a_running_process_is_reconciled_without_a_profile_and_says_so() {
    let lab = Lab::new(DEBUGGABLE);
    let tables = lab
        .expect(0, "meminfo -n com.example.app --reconcile --json")
        .json();
    let table = &tables["tables"][0];
    let figures: Vec<&str> = table["rows"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|row| row["figure"].as_str())
        .collect();
    for figure in [
        "malloc-info",
        "heap-alloc",
        "native-resident",
        "process-resident",
    ] {
        assert!(figures.contains(&figure), "{figure} in {table:#}");
    }
    let missing = table["missing"].as_array().unwrap();
    assert_eq!(missing[0]["figure"], "profiled");
    let left = lab.phone.list("/data/local/tmp");
    assert!(
        !left.iter().any(|file| file.contains("malloc_info")),
        "{left:?}"
    );
}

#[test]
fn mappings_of_a_java_dump_are_read_from_its_trace() {
    let lab = Lab::new(ROOTED);
    lab.expect(0, "dump -n com.example.app -o out --dump-smaps");
    let document = lab.expect(0, "smaps out --by library --json").json();
    assert_eq!(document["origin"], "trace");
    assert_contains(
        document["remark"].as_str().unwrap(),
        "only sizes, RSS and swap",
    );
    let total = document["total"]["size"].as_u64().unwrap();
    assert!(total > 0);
    let unsaved = lab.fails(2, "smaps out --save a.smaps");
    assert_eq!(unsaved["kind"], "nothing-to-save", "{unsaved}");
    // The mappings are those of the phone's own file: only shares differ.
    let now = lab
        .expect(0, "smaps -n com.example.app --by library --json")
        .json();
    let names = |document: &Value| -> Vec<String> {
        let rows = document["rows"].as_array().unwrap().iter();
        let mut names: Vec<String> = rows.map(|r| r["name"].to_string()).collect();
        names.sort();
        names
    };
    assert_eq!(names(&document), names(&now));
    let rows = lab.expect(
        0,
        &[
            "query",
            "out",
            "SELECT sum(size_kb) * 1024 AS size, count(*) AS n FROM profiler_smaps JOIN process \
             USING (upid) WHERE name = 'com.example.app'",
            "--json",
        ],
    );
    let rows = rows.json();
    assert_eq!(rows[0]["size"].as_u64(), Some(total), "{rows:#}");
}

#[test]
fn a_recording_that_cannot_have_mappings_says_so_once_at_its_begin() {
    let lab = Lab::new("android=14,build=user,speed=10");
    let mut running = lab.start(&format!(
        "record -n {CLOSED} -o out --with smaps --no-check --json-lines"
    ));
    let warning = running.until("warning");
    let text = warning["text"].as_str().unwrap_or_default();
    assert!(text.contains("--with smaps"), "{warning}");
    running.signal("INT");
    running.end();
}

#[test]
fn sums_by_kind_are_the_rows_of_the_phones_own_meminfo() {
    for android in [10, 12, 14, 16] {
        let lab = Lab::new(&format!(
            "android={android},build=userdebug,speed=1,app=idle"
        ));
        let running = lab.record("--with meminfo,smaps");
        running.signal("INT");
        // An app that does nothing leaves no samples.
        assert_eq!(running.end().code(), Some(7));
        let document = lab.expect(0, "smaps out --json").json();
        let text = lab.work().join("out/meminfo/01-end.txt");
        let text = std::fs::read_to_string(text).unwrap();
        let meminfo = Meminfo::parse(&text);
        let process = meminfo.processes().next().unwrap();
        let table = process.table().unwrap();
        let mut compared = 0;
        for row in table.parts() {
            // Graphics driver memory has no mapping.
            if row.label.ends_with("mtrack") {
                continue;
            }
            let ours = row_of(&document, &row.label);
            for (column, figure) in [
                (Column::Pss, "pss"),
                (Column::PrivateDirty, "private_dirty"),
                (Column::PrivateClean, "private_clean"),
            ] {
                let theirs = table.value(row, &column).unwrap();
                let ours = ours.map_or(0, |row| row["figures"][figure].as_i64().unwrap());
                // The runtime allocates a little even in an idle app.
                let near = 256 << 10;
                assert!(
                    (theirs - ours).abs() <= near,
                    "Android {android}, {} {figure}: {ours} against {theirs}",
                    row.label
                );
                compared += usize::from(theirs > 0);
            }
        }
        assert!(compared > 15, "Android {android}: {compared}");
        for row in document["rows"].as_array().unwrap() {
            let kind = row["kind"].as_str().unwrap();
            assert!(
                table.row(kind).is_some(),
                "Android {android} knows no {kind}"
            );
        }
    }
}

fn row_of<'a>(document: &'a Value, kind: &str) -> Option<&'a Value> {
    let mut rows = document["rows"].as_array().unwrap().iter();
    rows.find(|row| row["kind"] == kind && row["is_part"] != true)
}

#[test]
fn what_an_allocator_said_beside_a_heap_file_is_shown_too() {
    let lab = Lab::new(ROOTED);
    lab.expect(0, "dump -n com.example.app -o out --hprof --malloc-info");
    let tables = lab.expect(0, "meminfo out --reconcile --json").json();
    let table = &tables["tables"][0];
    assert_eq!(table["process"], APP, "{table:#}");
    assert_eq!(table["rows"][0]["figure"], "malloc-info");
    assert!(table["rows"][0]["bytes"].as_i64() > Some(0));
    let missing = table["missing"].as_array().unwrap();
    assert_eq!(missing[0]["figure"], "profiled", "{table:#}");
}

#[test]
fn an_app_that_does_not_answer_keeps_nobody_from_the_rest() {
    let lab = Lab::new("android=14,build=userdebug,speed=100,app=frozen");
    let tables = lab
        .expect(0, "meminfo -n com.example.app --reconcile --json")
        .json();
    let table = &tables["tables"][0];
    let missing = table["missing"].as_array().unwrap();
    let of_allocator = missing.iter().find(|m| m["figure"] == "malloc-info");
    let why = of_allocator.expect("it is missing")["why"]
        .as_str()
        .unwrap();
    assert_contains(&why, "frozen or stuck");
    let rows = table["rows"].as_array().unwrap();
    assert!(rows.iter().any(|row| row["figure"] == "native-resident"));
    let left = lab.phone.list("/data/local/tmp");
    assert!(
        !left.iter().any(|file| file.contains("malloc_info")),
        "{left:?}"
    );
}

#[test]
fn an_interrupt_while_an_app_does_not_answer_leaves_no_file_on_the_device() {
    // Slow, because the interrupt has to come while the app has some seconds left to answer.
    let lab = Lab::new("android=14,build=userdebug,speed=2,app=frozen");
    let running = lab.start("meminfo -n com.example.app --reconcile");
    let left = |lab: &Lab| {
        let files = lab.phone.list("/data/local/tmp");
        files.iter().any(|file| file.contains("malloc_info"))
    };
    lab.until("the allocator is asked", left);
    running.signal("INT");
    let ended = running.end();
    assert_ne!(ended.code(), Some(0), "{ended}");
    lab.until("nothing is left", |lab| !left(lab));
}

#[test]
fn what_an_allocator_said_is_shown_without_a_recording() {
    let lab = Lab::new(ROOTED);
    let xml = "<malloc version=\"scudo-1\"><alloc size=\"1024\" count=\"3\"/></malloc>\n";
    std::fs::write(lab.work().join("said.xml"), xml).unwrap();
    let tables = lab.expect(0, "meminfo said.xml --reconcile --json").json();
    let row = &tables["tables"][0]["rows"][0];
    assert_eq!(
        (row["figure"].as_str(), row["bytes"].as_i64()),
        (Some("malloc-info"), Some(3072))
    );
    let text = lab.expect(0, "meminfo said.xml --reconcile").stdout;
    assert_contains(&text, "3.0 KiB");
    assert_contains(&text, "without large allocations");
}
