//! Files for other tools: the same numbers in every format, stack by stack; each format opened by
//! its own reader. Tests of readers that may be missing are ignored; `tests/run.sh` installs those.

mod agreement;
mod consumers;
mod explore;
mod open;
mod pprof;
mod read;
mod walk;

use crate::program::fixture;
use read::{Numbers, by_view};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

/// Runs heaptap, with its state in `directory`.
fn heaptap(directory: &Path, arguments: &[&str]) -> Output {
    command(directory)
        .args(arguments)
        .output()
        .expect("the binary runs")
}

fn command(directory: &Path) -> Command {
    let mut command = crate::program::heaptap();
    command
        .current_dir(directory)
        .env("HEAPTAP_STATE_DIR", directory.join("state"))
        .env("HEAPTAP_CACHE_DIR", directory.join("cache"));
    command
}

/// Runs a conversion that can have findings, but must write its output.
fn convert(directory: &Path, input: &Path, more: &[&str]) -> Output {
    let input = input.to_string_lossy();
    let arguments = [&["convert", &input, "--no-symbolize"], more].concat();
    let output = heaptap(directory, &arguments);
    let code = output.status.code();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        matches!(code, Some(0 | 6)),
        "{arguments:?}: {code:?} {told}"
    );
    output
}

/// The numbers of a directory of gzipped pprofs.
fn of_pprofs(directory: &Path) -> Numbers {
    let mut all = Numbers::new();
    for file in read::files(directory, ".pb.gz") {
        pprof::add(&mut all, &file);
    }
    all
}

/// Compares every format of an input with its pprofs.
fn all_formats_agree(input: &Path) {
    let directory = tempfile::tempdir().expect("a folder");
    let at = |name: &str| directory.path().join(name);
    let into = |format: &str, name: &str| {
        convert(directory.path(), input, &["--format", format, "-o", name]);
    };
    into("pprof", "pprof");
    let expected = of_pprofs(&at("pprof"));
    assert!(!expected.is_empty(), "there is something to compare");
    // These formats are known by the ending.
    let into_file = |name: &str| convert(directory.path(), input, &["-o", name]);
    into_file("all.json");
    assert_same(&expected, &read::json(&at("all.json")), "json");
    into_file("all.csv");
    assert_same(&expected, &read::csv(&at("all.csv")), "csv");
    into_file("all.speedscope.json");
    assert_same(
        &expected,
        &read::speedscope(&at("all.speedscope.json")),
        "speedscope",
    );
    into("folded", "folded");
    assert_same(&expected, &read::folded(&at("folded")), "folded");
    into("parquet", "parquet");
    assert_same(&expected, &read::parquet(&at("parquet")), "parquet");
    into("svg", "svg");
    let totals: BTreeSet<(read::DumpId, String, i64)> = by_view(&expected)
        .into_iter()
        .filter(|(_, sum)| *sum >= 1024)
        .map(|((dump, view), sum)| (dump, view, sum))
        .collect();
    for (dump, view, total) in totals {
        let ending = format!(".{view}.svg");
        let file = read::files(&at("svg"), &ending)
            .into_iter()
            .find(|file| read::dump_of(file) == dump)
            .expect("a picture of each view");
        let text = std::fs::read_to_string(file).expect("it can be read");
        let digits = heaptap_base::units::thousands(total);
        assert!(text.contains("<title>all&#10;"), "{dump:?} {view}");
        let head = text
            .lines()
            .find(|line| line.contains(">all&#10;"))
            .expect("the root");
        assert!(
            head.contains(&digits),
            "{dump:?} {view}: {digits} in {head}"
        );
    }
}

fn assert_same(expected: &Numbers, found: &Numbers, format: &str) {
    if expected == found {
        return;
    }
    let keys: BTreeSet<_> = expected.keys().chain(found.keys()).collect();
    for key in keys {
        let (pprof, other) = (expected.get(key), found.get(key));
        assert_eq!(pprof, other, "{format}: {key:?}");
    }
}

#[test]
fn all_formats_have_the_numbers_of_the_pprofs() {
    for name in ["allheaps", "c_max", "c_cont", "deep"] {
        all_formats_agree(&fixture(&format!("conversions/{name}.pftrace")));
    }
}

#[test]
fn java_heaps_have_the_numbers_of_their_pprofs() {
    for name in JAVA {
        all_formats_agree(&fixture(name));
    }
}

#[test]
fn a_heap_graph_becomes_an_hprof_and_an_hprof_is_refused() {
    let directory = tempfile::tempdir().expect("a folder");
    let graph = fixture(JAVA[0]);
    let output = convert(directory.path(), &graph, &["-o", "heap.hprof"]);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains("the HPROF has zeros"), "{told}");
    assert!(told.contains("wrote heap.hprof"), "{told}");
    let written = std::fs::read(directory.path().join("heap.hprof")).expect("a file");
    let piped = convert(directory.path(), &graph, &["--format", "hprof", "-o", "-"]);
    assert!(piped.stdout == written);
    // It opens as any other.
    let output = heaptap(directory.path(), &["top", "heap.hprof", "--json"]);
    assert_eq!(output.status.code(), Some(0));
    let refused = |arguments: &[&str]| {
        let output = heaptap(
            directory.path(),
            &[&["convert", "--json"], arguments].concat(),
        );
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        document["error"]["kind"].as_str().map(str::to_owned)
    };
    let graph = graph.to_string_lossy();
    for flags in [["--dominators"].as_slice(), &["--view", "space"]] {
        refused(&[&[&*graph, "-o", "other.hprof"], flags].concat());
    }
    let kind = refused(&["heap.hprof", "-o", "other.hprof"]);
    assert_eq!(kind.as_deref(), Some("bad-value"));
    let kind = refused(&["heap.hprof", "-o", "heap.hprof", "--force"]);
    assert_eq!(kind.as_deref(), Some("output-is-input"));
    assert!(!directory.path().join("other.hprof").exists());
}

const JAVA: [&str; 2] = [
    "heap_graphs/graph_10k.pftrace.zst",
    "hprof/android-a.hprof.gz",
];

#[test]
fn one_dump_and_one_view_go_to_a_file_or_standard_output() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/allheaps.pftrace");
    convert(
        directory.path(),
        &input,
        &["--format", "folded", "-o", "all"],
    );
    let output = convert(directory.path(), &input, &["--format", "folded", "-o", "-"]);
    let all = directory.path().join("all");
    let spaces = read::files(&all, ".libc.malloc.space.folded");
    let last = spaces
        .iter()
        .max_by_key(|file| read::dump_of(file))
        .expect("one");
    let expected = std::fs::read(last).expect("it can be read");
    assert!(!expected.is_empty());
    assert_eq!(
        output.stdout, expected,
        "the last dump of malloc, its default view"
    );
    let one = [
        "--format",
        "folded",
        "--heap",
        "libc.malloc",
        "--view",
        "objects",
    ];
    convert(
        directory.path(),
        &input,
        &[&one[..], &["-o", "one.folded"]].concat(),
    );
    let found = std::fs::read(directory.path().join("one.folded")).expect("it is there");
    let objects = last.to_string_lossy().replace(".space.", ".objects.");
    assert_eq!(found, std::fs::read(objects).expect("it can be read"));
    // Existing files are not overwritten without `--force`.
    let input = input.to_string_lossy();
    let again = [&["convert", &input][..], &one, &["-o", "one.folded"]].concat();
    let refused = heaptap(directory.path(), &again);
    assert_eq!(refused.status.code(), Some(2));
    let forced = heaptap(directory.path(), &[&again[..], &["--force"]].concat());
    assert_eq!(forced.status.code(), Some(0));
}

#[test]
fn what_cannot_be_is_refused_in_words() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/allheaps.pftrace");
    let input = input.to_string_lossy();
    std::fs::write(directory.path().join("text"), "no heap").expect("it can be written");
    for (arguments, code, kind) in [
        (
            &[&*input, "--format", "parquet", "-o", "-"][..],
            2,
            "needs-directory",
        ),
        (&[&*input, "-o", "one.pb.gz"], 2, "needs-directory"),
        (&[&*input, "-o", "one.htm"], 2, "bad-value"),
        (&[&*input, "-o", "one.foldd"], 2, "bad-value"),
        (&[&*input, "-o", "one.speedscop.json"], 2, "bad-value"),
        (
            &[&*input, "--format", "csv", "--view", "none"],
            2,
            "no-such-view",
        ),
        (
            &[&*input, "--format", "csv", "--at", "99"],
            2,
            "no-such-dump",
        ),
        (
            &[&*input, "--format", "csv", "--pid", "1"],
            2,
            "none-selected",
        ),
        (&[&*input, "--format", "csv", "-o", "-"], 2, "usage"),
        (&[&*input, "--view", "space"], 2, "usage"),
        (&["text", "--format", "csv"], 8, "not-a-heap"),
        (&["none", "--format", "csv"], 8, "input-unreadable"),
    ] {
        let arguments = [&["convert", "--json"], arguments].concat();
        let output = heaptap(directory.path(), &arguments);
        let document: serde_json::Value =
            serde_json::from_slice(&output.stdout).expect("a document");
        assert_eq!(document["error"]["kind"], kind, "{arguments:?}");
        assert_eq!(output.status.code(), Some(code), "{arguments:?}");
    }
    let left = std::fs::read_dir(directory.path()).expect("it can be read");
    let left: Vec<_> = left
        .map(|entry| entry.expect("an entry").file_name())
        .collect();
    let files = left
        .iter()
        .filter(|name| *name != "state" && *name != "cache");
    assert_eq!(files.count(), 1, "nothing is left: {left:?}");
}

#[test]
fn pprofs_of_any_tool_are_converted_too() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    convert(directory.path(), &input, &["-o", "pprof"]);
    for file in read::files(&directory.path().join("pprof"), ".pb.gz") {
        let mut expected = Numbers::new();
        // A profile keeps its number.
        pprof::add(&mut expected, &file);
        convert(
            directory.path(),
            &file,
            &["--format", "json", "-o", "x.json", "--force"],
        );
        let found = read::json(&directory.path().join("x.json"));
        assert_same(&expected, &found, "json");
        convert(
            directory.path(),
            &file,
            &["--format", "speedscope", "-o", "y", "--force"],
        );
        assert_same(
            &expected,
            &read::speedscope(&directory.path().join("y")),
            "speedscope",
        );
    }
}

#[test]
fn a_stream_is_as_good_as_a_file() {
    let directory = tempfile::tempdir().expect("a folder");
    let input = fixture("conversions/c_cont.pftrace");
    convert(
        directory.path(),
        &input,
        &["--format", "csv", "-o", "file.csv"],
    );
    let output = command(directory.path())
        .args([
            "convert",
            "-",
            "--no-symbolize",
            "--format",
            "csv",
            "-o",
            "-",
        ])
        .stdin(std::fs::File::open(&input).expect("it can be read"))
        .output()
        .expect("the binary runs");
    let file = std::fs::read(directory.path().join("file.csv")).expect("it is there");
    assert_eq!(output.stdout, file);
    let nothing = command(directory.path())
        .args(["convert", "-", "--format", "csv", "-o", "-"])
        .stdin(std::process::Stdio::null())
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&nothing.stderr);
    assert!(said.starts_with("error: standard input"), "{said}");
    let elsewhere = command(directory.path())
        .args(["convert", "-", "--format", "csv", "-o", "-", "--at", "99"])
        .stdin(std::fs::File::open(&input).expect("it can be read"))
        .output()
        .expect("the binary runs");
    let said = String::from_utf8_lossy(&elsewhere.stderr);
    assert!(
        said.starts_with("error: - does not have a dump `99`"),
        "{said}"
    );
    let heap = fixture(JAVA[0]);
    let of_java = |input: &str| {
        let output = command(directory.path())
            .args(["convert", input, "--format", "csv", "-o", "-", "--at", "1"])
            .stdin(std::fs::File::open(&heap).expect("it can be read"))
            .output();
        output.expect("the binary runs").stdout
    };
    let rows = of_java("-");
    assert!(!rows.is_empty() && rows == of_java(&heap.to_string_lossy()));
}
