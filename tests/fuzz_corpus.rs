//! Replays the seeds and findings of the fuzz targets, and checks that targets, corpora and the page
//! of `docs/internals` belong together. `fuzz/run.sh TARGET SECONDS` searches for more.

#[path = "../fuzz/targets/mod.rs"]
mod targets;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use targets::TARGETS;

/// Limits of one corpus, as in `fuzz/run.sh`.
const MAX_FILES: usize = 64;
const MAX_BYTES: usize = 256 << 10;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn files(target: &str) -> Vec<PathBuf> {
    let directory = root().join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&directory).expect("a corpus");
    let mut files: Vec<_> = entries.map(|e| e.expect("an entry").path()).collect();
    files.sort();
    files
}

#[allow(clippy::print_stdout, reason = "a failure shows its input")]
fn replay(name: &str) {
    let target = TARGETS.iter().find(|target| target.name == name);
    let target = target.expect("it is a target");
    let files = files(name);
    assert!(files.len() > 3, "{name} has a corpus");
    let mut total = 0;
    for path in &files {
        let bytes = fs::read(path).expect("a file");
        total += bytes.len();
        assert!(
            bytes.len() <= target.max_len,
            "{}: too long",
            path.display()
        );
        println!("{}", path.display());
        (target.run)(&bytes);
    }
    assert!(files.len() <= MAX_FILES, "{name}: {} files", files.len());
    assert!(total <= MAX_BYTES, "{name}: {total} bytes");
}

/// One test for each corpus, and the list of them.
macro_rules! replays {
    ($($name:ident)*) => {
        const REPLAYED: &[&str] = &[$(stringify!($name)),*];

        $(
            #[test]
            fn $name() {
                replay(stringify!($name));
            }
        )*
    };
}

replays! {
    adb archive arguments baseline eligibility gc_log heap_graph hprof_graph hprof_records
    hprof_tools input java_allocations journal lab_results malloc_info manifest mapping meminfo
    observation pprof provoke scenario session_answers smaps sql status symbol_file symbols_zip
    timeline_lines trace trace_config
}

#[test]
fn every_target_has_a_corpus_a_replay_and_a_row() {
    let targets: BTreeSet<String> = TARGETS.iter().map(|t| t.name.to_owned()).collect();
    assert_eq!(targets.len(), TARGETS.len(), "names are unique");
    let corpora = fs::read_dir(root().join("fuzz/corpus")).expect("the corpora");
    let corpora: BTreeSet<String> = corpora
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    assert_eq!(corpora, targets, "directories of fuzz/corpus");
    let replayed: BTreeSet<String> = REPLAYED.iter().map(|name| (*name).to_owned()).collect();
    assert_eq!(replayed, targets, "replays of this file");
    let page = fs::read_to_string(root().join("docs/internals/fuzzing.md")).expect("the page");
    let rows: BTreeSet<String> = page
        .lines()
        .filter_map(|line| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned()))
        .collect();
    assert_eq!(rows, targets, "rows of docs/internals/fuzzing.md");
    for target in TARGETS {
        let row = format!("| `{}` | {} |", target.name, target.covers);
        assert!(page.contains(&row), "no row {row}: run fuzz/run.sh table");
        for directory in target.sources.split(',') {
            assert!(
                root().join(directory).exists(),
                "{}: {directory}",
                target.name
            );
        }
    }
}

#[test]
fn every_find_of_the_ledger_became_a_test() {
    let ledger = fs::read_to_string(root().join("fuzz/ledger.csv")).expect("the ledger");
    let mut sources = String::new();
    for directory in ["src", "crates", "tests"] {
        append(&root().join(directory), &mut sources);
    }
    for line in ledger.lines().skip(1) {
        let cells: Vec<&str> = line.split(',').collect();
        assert_eq!(cells.len(), 5, "{line}");
        assert!(
            TARGETS.iter().any(|target| target.name == cells[0]),
            "{line}"
        );
        for test in cells[4].split_whitespace() {
            assert!(sources.contains(&format!("fn {test}()")), "{line}: {test}");
        }
    }
}

fn append(directory: &Path, sources: &mut String) {
    for entry in fs::read_dir(directory).expect("a directory") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            append(&path, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            sources.push_str(&fs::read_to_string(&path).expect("a text"));
        }
    }
}
