//! Minified apps: a recording keeps the names that R8's mapping file gave its Java heaps, a heap
//! without names is reported, and `symbolize` reports what it could not change.

use std::path::Path;

use crate::lab::{APP, Lab, files};
use crate::program::{Ended, assert_contains, assert_lacks};

const PHONE: &str = "android=14,build=userdebug,speed=20,obfuscated=yes";
/// Source name of the field that references the leaked activity.
const HOLDER: &str = "Navigator.previous";
/// A class that R8 renamed.
const RENAMED: &str = "com.example.app.ui.Navigator";

/// R8's mapping file of the app, where its build stored it.
fn mapping(lab: &Lab) -> String {
    let path = lab.work().join("mapping.txt");
    std::fs::write(&path, virtual_phone::MAPPING).unwrap();
    path.display().to_string()
}

/// A mapping file of another app.
fn foreign(lab: &Lab) -> String {
    let path = lab.work().join("foreign.txt");
    std::fs::write(&path, "x.Foo -> y.Bar:\n    int a -> b\n").unwrap();
    path.display().to_string()
}

/// Every command that shows a Java heap of `input` shows names from the source.
fn shows_names(lab: &Lab, input: &str) {
    let leaks = lab.expect(0, &["leaks", "--heap", "java", input]);
    leaks.assert_stdout(HOLDER);
    let paths = lab.expect(0, &["paths", input, "--focus", "DetailActivity"]);
    paths.assert_stdout(RENAMED);
    let top = lab.expect(0, &format!("top --heap java {input} --by class --csv"));
    top.assert_stdout(RENAMED);
    let page = lab.work().join("page.html");
    lab.expect(
        0,
        &format!("report --heap java {input} -o page.html --force"),
    );
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(HOLDER), "the page");
    for shown in [leaks, paths, top] {
        assert!(!is_told_minified(&shown), "{shown}");
    }
}

fn is_told_minified(ended: &Ended) -> bool {
    told_minified(ended).next().is_some()
}

fn told_minified(ended: &Ended) -> impl Iterator<Item = &str> {
    let lines = ended.stderr.lines();
    lines.filter(|line| line.contains("minified names"))
}

#[test]
fn an_hprof_keeps_its_names_once_the_mapping_file_is_gone() {
    let lab = Lab::new(PHONE);
    let map = mapping(&lab);
    lab.expect(
        0,
        &["dump", "--hprof", "-n", APP, "--mapping", &map, "-o", "out"],
    );
    std::fs::remove_file(&map).unwrap();
    shows_names(&lab, "out");
    let manifest = lab.manifest("out");
    let used = &manifest["symbolization"]["mappings"][0];
    assert_eq!(used["path"], map.as_str(), "{manifest:#}");
    assert!(used["heap_classes"].as_u64() > Some(0), "{manifest:#}");
    // By its file, too.
    let hprof = format!("out/{}", manifest["dumps"][0]["file"].as_str().unwrap());
    lab.expect(0, &["leaks", &hprof]).assert_stdout(HOLDER);
    let sql = "SELECT COUNT(*) AS n FROM heap_graph_class WHERE deobfuscated_name IS NOT NULL";
    lab.expect(0, &["query", "out", sql, "--json"])
        .assert_stdout("\"n\":15");
}

#[test]
fn a_heap_graph_keeps_its_names_once_the_mapping_file_is_gone() {
    let lab = Lab::new(PHONE);
    let map = mapping(&lab);
    lab.expect(0, &["dump", "-n", APP, "--mapping", &map, "-o", "out"]);
    std::fs::remove_file(&map).unwrap();
    shows_names(&lab, "out");
}

#[test]
fn java_heaps_at_labels_keep_their_names_and_leave_nothing_half_done() {
    let lab = Lab::new(PHONE);
    let map = mapping(&lab);
    let mut running = lab.record(&["--with", "java", "--mapping", &map]);
    running.until_recorded();
    lab.expect(0, "snapshot --label one");
    running.until_that("captured", |of| of["label"] == "one");
    running.interrupted(0);
    // The heap of the label showed that the mapping applies, so the heap of the end is not read for
    // it.
    let trace = "out/java/raw-trace";
    let args = format!("symbolize {trace} --mapping {map} -o maps");
    lab.expect(0, &args).assert_stderr(", and at least ");
    std::fs::remove_file(&map).unwrap();
    shows_names(&lab, "out");
    lab.expect(0, "leaks --heap java out@one")
        .assert_stdout(HOLDER);
    let left = files(&lab.work().join("out/java"));
    let directories: Vec<&String> = left
        .iter()
        .filter(|name| lab.work().join("out/java").join(name).is_dir())
        .collect();
    assert!(directories.is_empty(), "{left:?}");
}

#[test]
fn a_minified_heap_without_a_mapping_says_so_in_one_line() {
    let lab = Lab::new(PHONE);
    let dumped = lab.expect(0, "dump --hprof -n com.example.app -o hprof");
    let graph = lab.expect(0, "dump -n com.example.app -o graph");
    let top = lab.expect(0, "top hprof");
    let leaks = lab.expect(0, "leaks graph");
    for told in [&dumped, &graph, &top, &leaks] {
        let lines: Vec<&str> = told_minified(told).collect();
        let [line] = &lines[..] else {
            panic!("one line: {told}");
        };
        assert_contains(&line, "--mapping");
    }
    // It has no leak, but the rules cover classes whose names are not known.
    let check = ["leaks", "graph", "--fail", "--focus", "FeedActivity"];
    lab.expect(12, &check).assert_stderr("inconclusive");
    lab.expect(0, &[&check[..], &["--mapping", &mapping(&lab)]].concat());
    // With original names there is nothing to report.
    let plain = Lab::new("android=14,build=userdebug,speed=20");
    let dumped = plain.expect(0, "dump --hprof -n com.example.app -o out");
    assert!(!is_told_minified(&dumped), "{dumped}");
}

#[test]
fn symbolize_names_a_directory_of_hprofs_and_what_lies_beside_a_recording() {
    let lab = Lab::new(PHONE);
    lab.expect(0, "dump --hprof -n com.example.app -o out");
    lab.expect(0, "record -n com.example.app -d 1s --with java -o rec");
    let before = files(&lab.work().join("out"));
    let map = mapping(&lab);
    for directory in ["out", "rec"] {
        lab.expect(0, &["symbolize", directory, "--mapping", &map]);
    }
    std::fs::remove_file(&map).unwrap();
    shows_names(&lab, "out");
    shows_names(&lab, "rec");
    let mut expected = before;
    expected.push("deobfuscation-packets".to_owned());
    expected.sort();
    assert_eq!(files(&lab.work().join("out")), expected);
    let warnings = lab.manifest("out")["warnings"].to_string();
    assert_lacks(&warnings, "mapping-missing");
}

#[test]
fn symbolize_that_changes_nothing_exits_6_and_keeps_the_names_there_are() {
    let lab = Lab::new(PHONE);
    let (map, foreign) = (mapping(&lab), foreign(&lab));
    lab.expect(
        0,
        &[
            "dump",
            "--hprof",
            "-n",
            APP,
            "-o",
            "hprof",
            "--mapping",
            &map,
        ],
    );
    lab.expect(0, &["dump", "-n", APP, "-o", "graph", "--mapping", &map]);
    std::fs::remove_file(&map).unwrap();
    for directory in ["hprof", "graph"] {
        let mappings = || lab.manifest(directory)["symbolization"]["mappings"].clone();
        let before = mappings();
        assert_eq!(before.as_array().map(Vec::len), Some(1), "{before}");
        for more in [&["--mapping", &*foreign][..], &["--only", "java"]] {
            let args = [&["symbolize", directory][..], more].concat();
            lab.expect(6, &args).assert_stderr("no Java name changed");
            shows_names(&lab, directory);
            assert_eq!(mappings(), before);
        }
    }
    let args = format!("symbolize graph/raw-trace --mapping {foreign} -o");
    lab.expect(6, &format!("{args} maps"))
        .assert_stderr("no name changed");
    let manifest = lab.manifest("hprof");
    let file = Path::new("hprof").join(manifest["dumps"][0]["file"].as_str().unwrap());
    let file = file.display().to_string();
    let args = ["symbolize", &*file, "--mapping", &*foreign, "-o", "maps"];
    lab.expect(6, &args).assert_stderr("was not changed");
}

#[test]
fn symbolize_by_the_map_of_one_app_keeps_the_names_of_another() {
    let lab = Lab::new(PHONE);
    let map = mapping(&lab);
    lab.expect(0, "dump -n com.example.app -o out");
    let of_app = format!("{APP}={map}");
    let of_other = format!("com.example.other={map}");
    lab.expect(0, &["symbolize", "out", "--mapping", &of_app]);
    let packets = || std::fs::read(lab.work().join("out/deobfuscation-packets")).unwrap();
    let before = packets();
    lab.run(&["symbolize", "out", "--mapping", &of_other]);
    shows_names(&lab, "out");
    // The same mapping again: the packets do not grow.
    lab.expect(0, &["symbolize", "out", "--mapping", &of_app]);
    assert!(packets().len() <= 2 * before.len());
    lab.expect(0, &["symbolize", "out", "--mapping", &of_app]);
    shows_names(&lab, "out");
}

#[test]
fn a_later_map_replaces_the_names_of_an_earlier_one() {
    let lab = Lab::new(PHONE);
    let map = mapping(&lab);
    let wrong = lab.work().join("wrong.txt").display().to_string();
    let other = RENAMED.replace("Navigator", "Wrong");
    std::fs::write(&wrong, virtual_phone::MAPPING.replace(RENAMED, &other)).unwrap();
    lab.expect(0, "dump -n com.example.app -o graph");
    lab.expect(0, "dump --hprof -n com.example.app -o hprof");
    for directory in ["graph", "hprof"] {
        // The right one also twice.
        for (given, wrong_ones) in [(&wrong, true), (&map, false), (&map, false)] {
            lab.expect(0, &["symbolize", directory, "--mapping", given])
                .refute_stderr("warning");
            let rows = ["top", directory, "--by", "class", "--csv", "-l", "0"];
            let shown = lab.expect(0, &[&rows[..], &["--mapping", given]].concat());
            assert_eq!(shown.stdout.contains(&other), wrong_ones, "{shown}");
            shown.refute_stderr("warning");
        }
    }
}

#[test]
fn a_damaged_file_of_java_names_ends_nothing_that_does_not_need_it() {
    let lab = Lab::new(PHONE);
    lab.expect(0, "dump -n com.example.app -o out");
    let packets = lab.work().join("out/deobfuscation-packets");
    std::fs::write(&packets, "damaged").unwrap();
    let ended = lab.run("symbolize out");
    assert_ne!(ended.code(), Some(8), "{ended}");
    ended.assert_stderr("wrote out");
    // A mapping file in use is not listed among the unreadable ones.
    let map = format!("{APP}={}", mapping(&lab));
    lab.run(&["symbolize", "out", "--mapping", &map])
        .assert_stderr("cannot write all symbols");
    assert_eq!(std::fs::read(&packets).unwrap(), b"damaged");
}
