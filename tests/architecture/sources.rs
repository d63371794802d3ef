//! The sources that the rules check: every file without its comments and tests, and the paths named
//! by its code.

use super::tables::{MODULES, table};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

/// A source file, without comments and tests.
pub struct Source {
    /// Name of its crate, as in [`packages`]; empty for the program itself.
    pub package: String,
    /// Relative to the crate's `src/`, with forward slashes.
    pub path: String,
    /// Relative to the repository, with forward slashes.
    pub place: String,
    pub code: String,
}

/// The rows of the program's modules: its rooms, and parts of them that may import something else.
static ROWS: LazyLock<BTreeSet<String>> = LazyLock::new(|| table(MODULES).into_keys().collect());

/// The row for `names`, a path below the program's `src/`.
fn row_of<'a>(mut names: impl Iterator<Item = &'a str>) -> String {
    let top = names.next().unwrap_or_default();
    let part = format!("{top}/{}", names.next().unwrap_or_default());
    match ROWS.contains(&part) {
        true => part,
        false => top.to_owned(),
    }
}

impl Source {
    /// Its row in the table of the program's modules; empty for other crates.
    pub fn module(&self) -> String {
        if !self.package.is_empty() {
            return String::new();
        }
        row_of(self.path.trim_end_matches(".rs").split('/'))
    }
}

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The crates of the workspace, by their directories below `crates/`, and `proto`.
pub fn packages() -> Vec<String> {
    let entries = fs::read_dir(root().join("crates")).expect("crates/ can be read");
    let names = entries.map(|entry| entry.expect("crates/ can be read").file_name());
    let mut names: Vec<String> = names
        .map(|name| name.into_string().expect("UTF-8"))
        .collect();
    names.push("proto".to_owned());
    names.sort();
    names
}

/// Directory of a crate of [`packages`].
pub fn directory_of(package: &str) -> PathBuf {
    match package {
        "proto" => root().join(package),
        _ => root().join("crates").join(package),
    }
}

pub fn sources() -> Vec<Source> {
    let mut found = sources_below("", &root().join("src"));
    assert!(found.len() > 20, "src/ was found");
    for package in packages() {
        let below = sources_below(&package, &directory_of(&package).join("src"));
        assert!(!below.is_empty(), "{package} has sources");
        found.extend(below);
    }
    found.sort_by(|a, b| a.place.cmp(&b.place));
    found
}

fn sources_below(package: &str, src: &Path) -> Vec<Source> {
    let mut found = Vec::new();
    let mut directories = vec![src.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("src/ can be read") {
            let path = entry.expect("src/ can be read").path();
            if path.is_dir() {
                directories.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let slashes = |path: &Path| path.to_string_lossy().replace('\\', "/");
                let relative = slashes(path.strip_prefix(src).expect("below src/"));
                if is_test_file(&relative) {
                    continue;
                }
                let text = fs::read_to_string(&path).expect("sources are UTF-8");
                found.push(Source {
                    package: package.to_owned(),
                    path: relative,
                    place: slashes(path.strip_prefix(root()).expect("in the repository")),
                    code: without_tests_and_comments(&text),
                });
            }
        }
    }
    found
}

/// Files that are compiled for tests only.
fn is_test_file(path: &str) -> bool {
    let path = format!("/{path}");
    let names = ["/tests.rs", "/scripted.rs", "/testing.rs", "/made.rs"];
    path.contains("/tests/") || names.iter().any(|name| path.ends_with(name))
}

/// Lines up to the test module at the end, without comments.
fn without_tests_and_comments(text: &str) -> String {
    let mut code = String::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        let trimmed = line.trim();
        let next = lines.peek().map(|l| l.trim()).unwrap_or_default();
        if trimmed == "#[cfg(test)]" && next.starts_with("mod ") && next.ends_with('{') {
            break;
        }
        if !trimmed.starts_with("//") {
            code.push_str(line);
            code.push('\n');
        }
    }
    code
}

/// Rows of the modules named after `crate::` in `code`, also within `use crate::{a, b::c}`.
pub fn imports(code: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        // `$crate::`, `other_crate::`
        let before = code[..at].chars().next_back().unwrap_or(' ');
        if before.is_alphanumeric() || before == '_' {
            continue;
        }
        let rest = &code[at + "crate::".len()..];
        let paths = paths_at(rest).into_iter();
        found.extend(paths.map(|path| row_of(path.iter().map(String::as_str))));
    }
    found.remove("");
    found
}

/// The continuations of a path: those of a group, or the single one, and the rest of the code.
fn members(code: &str) -> Vec<&str> {
    let Some(group) = code.strip_prefix('{') else {
        return vec![code];
    };
    let mut members = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' if depth > 0 => depth -= 1,
            '}' => {
                members.push(&group[start..at]);
                break;
            }
            ',' if depth == 0 => {
                members.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    members
}

pub fn first_word(text: &str) -> String {
    text.trim_start()
        .chars()
        .take_while(|c| c.is_alphanumeric() || *c == '_')
        .collect()
}

/// The paths that begin here, as lists of names: a single path, or those of a group.
pub fn paths_at(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    for member in members(code) {
        let name = first_word(member);
        let rest = member.trim_start().strip_prefix(name.as_str());
        match rest.and_then(|rest| rest.strip_prefix("::")) {
            Some(rest) => {
                for mut path in paths_at(rest) {
                    path.insert(0, name.clone());
                    paths.push(path);
                }
            }
            None => paths.push(vec![name]),
        }
    }
    paths
}

/// The first `most` names of each path that begins here: of a single path, or of each in a group.
pub fn names_at(code: &str, most: usize) -> Vec<String> {
    let firsts = |path: Vec<String>| path.into_iter().take(most).rev().collect::<Vec<_>>();
    paths_at(code).into_iter().flat_map(firsts).collect()
}

#[test]
fn imports_are_found_in_every_form() {
    let code = "use crate::units::Pid;\nuse crate::{device::{Device, Command}, error};\n\
                let x = crate::proto::A; pub(crate) fn f() {} mycrate::no::x(); $crate::session!()";
    let found: Vec<String> = imports(code).into_iter().collect();
    assert_eq!(found, ["device", "error", "proto", "session", "units"]);
    let parts = imports("crate::console::{Console, flags::heap}; crate::page::net::Site");
    let parts: Vec<String> = parts.into_iter().collect();
    assert_eq!(parts, ["console", "console/flags", "page/net"]);
    assert!(Path::new("docs").exists(), "tests run at the root");
    assert_eq!(names_at("gc::view::show(a)", 2), ["view", "gc"]);
    let group = "{args, run::{a, b},\n    view}; x";
    let names = BTreeSet::from_iter(names_at(group, 1));
    assert_eq!(Vec::from_iter(names), ["args", "run", "view"]);
    let below = BTreeSet::from_iter(names_at("gc::{\n    args, run\n};", 2));
    assert_eq!(Vec::from_iter(below), ["args", "gc", "run"]);
}
