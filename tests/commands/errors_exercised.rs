//! A test names each kind of error in docs/reference/errors.md.

use std::fs;
use std::path::Path;

/// Kinds that no test names, and why.
const EXCEPTIONS: [(&str, &str); 16] = [
    (
        "adb-not-found",
        "adb is also found in fixed places of the host",
    ),
    ("gc-not-logged", "the virtual phone logs every GC"),
    ("gc-not-requested", "the virtual phone accepts every signal"),
    (
        "host-program-not-started",
        "the check finds the programs that the host cannot start",
    ),
    ("hprof-too-large", "the HPROF has more than 4 GiB"),
    (
        "keeps-dying",
        "apps of the virtual phone die only on purpose",
    ),
    ("no-listener", "a free port can always be opened"),
    ("no-log", "the virtual phone always has a log"),
    ("no-perfetto", "the virtual phone always has perfetto"),
    ("no-prompt", "needs a terminal that fails"),
    ("no-runtime", "needs a host that cannot start threads"),
    ("no-signals", "needs a host without signals"),
    ("not-finished", "depends on the time of an interrupt"),
    (
        "not-in-foreground",
        "no app of the virtual phone stays in front of another",
    ),
    ("query-setup", "SQLite accepts the tables of heaptap"),
    ("stdout-unwritable", "its JSON cannot be written either"),
];

/// The tests in the file at `path`, if it has any: all of a file of tests, otherwise its module of
/// tests.
fn tests_of(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("sources are UTF-8");
    let place = path
        .strip_prefix(env!("CARGO_MANIFEST_DIR"))
        .expect("in it");
    let mut parts = place.components();
    if parts.any(|part| part.as_os_str() == "tests") || path.ends_with("tests.rs") {
        return text;
    }
    let tests = text.split_once("#[cfg(test)]\nmod tests {");
    tests.map(|(_, tests)| tests.to_owned()).unwrap_or_default()
}

fn add_tests(directory: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("a folder of sources") {
        let path = entry.expect("a folder of sources").path();
        if path.is_dir() {
            add_tests(&path, texts);
        } else if path.extension().is_some_and(|e| e == "rs")
            && !path.ends_with("errors_page.rs")
            && !path.ends_with("errors_exercised.rs")
        {
            texts.push(tests_of(&path));
        }
    }
}

#[test]
fn every_kind_of_error_has_a_test() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let page = fs::read_to_string(root.join("docs/reference/errors.md")).expect("the page");
    let section = page
        .split("\n## ")
        .find(|s| s.starts_with("Kinds of errors"));
    let rows = section.expect("the section is there").lines();
    let kinds: Vec<&str> = rows
        .filter_map(|row| row.strip_prefix("| `")?.split('`').next())
        .collect();
    let mut texts = Vec::new();
    for directory in ["crates", "src", "tests"] {
        add_tests(&root.join(directory), &mut texts);
    }
    let printed = include_str!("printed.rs");
    let has_test = |kind: &str| {
        let literal = format!("\"{kind}\"");
        // An entry of `fails!` asserts the kind that it is named after.
        let entry = format!("\n    {}: \"", kind.replace('-', "_"));
        printed.contains(&entry) || texts.iter().any(|text| text.contains(&literal))
    };
    let excepted: Vec<&str> = EXCEPTIONS.iter().map(|(kind, _)| *kind).collect();
    assert!(kinds.len() > 100, "kinds were found: {kinds:?}");
    let mut without: Vec<&str> = kinds.into_iter().filter(|kind| !has_test(kind)).collect();
    without.sort_unstable();
    assert_eq!(
        without, excepted,
        "kinds without a test, and the exceptions"
    );
}
