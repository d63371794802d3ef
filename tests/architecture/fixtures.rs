//! `fixtures/MANIFEST.toml` lists what the tests do not make themselves: hashes and origins.

use crate::sources::root;
use sha2::{Digest as _, Sha256};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Directories in which every file has to be listed. The others have sources and scripts, too.
const COMPLETE: [&str; 8] = [
    "conversions",
    "gclog",
    "heap_graphs",
    "hprof",
    "mapping",
    "meminfo",
    "query",
    "symbolize",
];

/// All files below a directory, in order of their paths.
fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut directories = vec![directory.to_owned()];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(&directory).expect("the folder can be read") {
            let path = entry.expect("the folder can be read").path();
            match path.is_dir() {
                true => directories.push(path),
                false => found.push(path),
            }
        }
    }
    found.sort();
    found
}

/// The files of an entry: those of a directory, or a file and, if it has several, those of the directory
/// of its stem.
fn files_of(path: &Path, count: &str) -> Vec<PathBuf> {
    if path.is_dir() {
        return files_below(path);
    }
    let mut files = vec![path.to_owned()];
    if count != "1" {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let stem = name.split('.').next().unwrap_or_default();
        files.extend(files_below(&path.with_file_name(stem)));
    }
    files
}

#[test]
fn the_manifest_lists_every_fixture_with_its_hash() {
    let fixtures = root().join("fixtures");
    let text = fs::read_to_string(fixtures.join("MANIFEST.toml")).expect("the manifest");
    let mut listed = BTreeSet::new();
    for block in text.split("[[fixture]]").skip(1) {
        let value = |key: &str| {
            let value = block.lines().find_map(|line| line.strip_prefix(key));
            let value = value.and_then(|value| value.strip_prefix(" = "));
            let value = value.unwrap_or_else(|| panic!("{key} in {block}"));
            // A hash has a comment behind it.
            let value = value.split(" # of all").next().unwrap_or_default();
            value.trim_matches('"').to_owned()
        };
        let (path, count) = (value("path"), value("files"));
        let files = files_of(&fixtures.join(&path), &count);
        let mut hash = Sha256::new();
        for file in &files {
            hash.update(fs::read(file).unwrap_or_else(|e| panic!("{}: {e}", file.display())));
        }
        let hex: String = hash.finalize().iter().map(|b| format!("{b:02x}")).collect();
        assert_eq!(files.len().to_string(), count, "{path}");
        assert_eq!(hex, value("sha256"), "{path}");
        assert!(!value("origin").is_empty() && !value("what").is_empty());
        listed.extend(files);
    }
    for directory in COMPLETE {
        for file in files_below(&fixtures.join(directory)) {
            assert!(listed.contains(&file), "{} is not listed", file.display());
        }
    }
}
