//! docs/reference/errors.md lists exactly the exit codes and kinds that the code uses.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use heaptap_base::error::ErrorClass;

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

fn page() -> String {
    fs::read_to_string(root().join("docs/reference/errors.md")).expect("the page is there")
}

/// Rows of the section `heading`, as cells.
fn rows(heading: &str) -> Vec<Vec<String>> {
    let page = page();
    let section = page
        .split("\n## ")
        .find(|s| s.starts_with(heading))
        .expect("the section is there");
    section
        .lines()
        .filter(|l| l.starts_with("| ") && !l.starts_with("| kind") && !l.starts_with("| code"))
        .map(|l| {
            l.trim_matches('|')
                .split('|')
                .map(|c| c.trim().trim_matches('`').to_owned())
                .collect()
        })
        .collect()
}

/// The text of every source file, without its tests.
fn sources(directory: &Path, texts: &mut Vec<String>) {
    for entry in fs::read_dir(directory).expect("src/ can be read") {
        let path = entry.expect("src/ can be read").path();
        if path.is_dir() {
            sources(&path, texts);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).expect("sources are UTF-8");
            let text = text.split("#[cfg(test)]\nmod tests {").next();
            texts.push(text.unwrap_or_default().to_owned());
        }
    }
}

fn is_kind(text: &str) -> bool {
    !text.is_empty()
        && text
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// The string literal at the start of `text`, after whitespace and one brace.
fn literal(text: &str) -> Option<&str> {
    let text = text.trim_start().trim_start_matches('{').trim_start();
    text.strip_prefix('"')?.split('"').next()
}

/// The kinds passed to [`ErrorFacts::new`](heaptap_base::error::ErrorFacts::new) and
/// [`Failure::new`](heaptap_base::error::Failure::new), those in `mod kind`, and the literals behind `=>` in
/// every `fn kind`.
fn kinds_of_errors() -> BTreeSet<String> {
    let mut texts = Vec::new();
    sources(&root().join("src"), &mut texts);
    sources(&root().join("crates"), &mut texts);
    let mut kinds = BTreeSet::new();
    let mut add = |kind: Option<&str>| {
        if let Some(kind) = kind.filter(|k| is_kind(k)) {
            kinds.insert(kind.to_owned());
        }
    };
    for text in &texts {
        let mut rest = text.as_str();
        while let Some(at) = rest.find("fn kind(&self) -> &'static str {") {
            rest = &rest[at + "fn kind(&self) -> &'static str {".len()..];
            let body = rest.split("\n    }\n").next().unwrap_or_default();
            for arm in body.split("=>").skip(1) {
                add(literal(arm));
            }
        }
        let constants = text.split_once("pub mod kind {").unwrap_or_default().1;
        let constants = constants.split("\n}\n").next().unwrap_or_default();
        for literal_of in [constants.split(": &str = "), text.split(".failure(")] {
            literal_of.skip(1).for_each(|rest| add(literal(rest)));
        }
        for function in ["ErrorFacts::new(", "Failure::new(", "CaptureError::new("] {
            for call in text.split(function).skip(1) {
                // The class, then the kind.
                add(call.split_once(',').and_then(|(_, rest)| literal(rest)));
            }
        }
    }
    // Not an error, but the state of a device.
    kinds.remove("device-ready");
    kinds
}

#[test]
fn every_kind_of_error_is_on_the_page() {
    let documented: BTreeSet<String> = rows("Kinds of errors")
        .into_iter()
        .map(|row| row[0].clone())
        .collect();
    let given = kinds_of_errors();
    assert!(given.len() > 50, "kinds were found: {given:?}");
    let missing: Vec<_> = given.difference(&documented).collect();
    assert!(
        missing.is_empty(),
        "add to docs/reference/errors.md: {missing:?}"
    );
    let gone: Vec<_> = documented.difference(&given).collect();
    assert!(gone.is_empty(), "no code gives {gone:?} any more");
}

#[test]
fn each_kind_stands_there_once() {
    for heading in ["Kinds of errors", "Kinds of warnings"] {
        let mut seen = BTreeSet::new();
        for row in rows(heading) {
            for kind in row[0].split("`, `") {
                assert!(
                    seen.insert(kind.to_owned()),
                    "{kind} stands twice in {heading}"
                );
            }
        }
    }
}

#[test]
fn every_exit_code_is_on_the_page() {
    let listed: BTreeSet<(String, String)> = rows("Exit codes")
        .into_iter()
        .map(|row| (row[0].clone(), row[1].clone()))
        .collect();
    let mut expected: BTreeSet<(String, String)> = ErrorClass::BY_PRECEDENCE
        .iter()
        .map(|class| (class.exit_code().to_string(), format!("{class:?}")))
        .collect();
    expected.insert(("0".to_owned(), String::new()));
    assert_eq!(listed, expected);
    let order: Vec<String> = ErrorClass::BY_PRECEDENCE
        .iter()
        .map(|class| class.exit_code().to_string())
        .collect();
    let page = page();
    let listed = page
        .split_once("exits with the first of ")
        .and_then(|(_, rest)| rest.split_once('.'))
        .expect("the order of the codes");
    assert_eq!(listed.0.split(", ").collect::<Vec<_>>(), order);
    let codes: BTreeSet<String> = expected.into_iter().map(|(code, _)| code).collect();
    for row in rows("Kinds of errors") {
        assert!(codes.contains(&row[1]), "{row:?} has an exit code");
    }
}

/// The kinds of warnings and notes: literals of the fields, calls and constants that hold them, and
/// those of tables, where a comma follows them.
fn kinds_of_warnings() -> BTreeSet<String> {
    const BEFORE: [&str; 9] = [
        "kind: ",
        ": &str = ",
        "Finding::new(",
        "Warning::new(",
        "add(",
        "empty(",
        "find(",
        "finding(",
        "warning(",
    ];
    const TABLES: [&str; 4] = [
        "src/recording/causes.rs",
        "src/recording/finish.rs",
        "src/recording/finish/heap_files.rs",
        "crates/results/src/timeline.rs",
    ];
    let mut texts = Vec::new();
    sources(&root().join("src"), &mut texts);
    sources(&root().join("crates/results/src"), &mut texts);
    let mut kinds = BTreeSet::new();
    for text in &texts {
        for before in BEFORE {
            kinds.extend(text.split(before).skip(1).filter_map(literal));
        }
    }
    let mut tables = Vec::new();
    for path in TABLES {
        let text = fs::read_to_string(root().join(path)).expect("it is there");
        let code = text.split("#[cfg(test)]\nmod tests {").next();
        let lines = code.unwrap_or_default().lines();
        tables.push(
            lines
                .filter(|line| !line.contains("Failure::new("))
                .collect::<String>(),
        );
    }
    for text in &tables {
        let literals = text
            .split("\",")
            .filter_map(|piece| piece.rsplit('"').next());
        kinds.extend(literals);
    }
    let is_word = |kind: &&str| is_kind(kind) && (kind.contains('-') || *kind == "disconnected");
    kinds
        .into_iter()
        .filter(is_word)
        .map(str::to_owned)
        .collect()
}

#[test]
fn every_kind_of_warning_is_on_the_page() {
    let documented: BTreeSet<String> = rows("Kinds of warnings")
        .iter()
        .flat_map(|row| row[0].split("`, `").map(str::to_owned))
        .collect();
    let given = kinds_of_warnings();
    let missing: Vec<_> = given.difference(&documented).collect();
    assert!(
        missing.is_empty(),
        "add to docs/reference/errors.md: {missing:?}"
    );
    let gone: Vec<_> = documented.difference(&given).collect();
    assert!(gone.is_empty(), "no code gives {gone:?} any more");
}
