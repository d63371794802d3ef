//! The viewer's bundle is checked in, so that a build does not need node. This test compares it
//! with its sources. `viewer/build.mjs` writes the bundle and its manifest; if node is installed,
//! tests/run.sh all rebuilds both and compares.

use sha2::{Digest, Sha256};
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

fn viewer() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("viewer")
}

fn read(path: &str) -> Vec<u8> {
    std::fs::read(viewer().join(path)).unwrap_or_else(|error| panic!("viewer/{path}: {error}"))
}

fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes)
        .iter()
        .fold(String::new(), |mut text, byte| {
            write!(text, "{byte:02x}").expect("a String takes all that is written");
            text
        })
}

/// Rows of the manifest: hash, path.
fn manifest() -> Vec<(String, String)> {
    let text = String::from_utf8(read("dist/MANIFEST")).expect("the manifest is text");
    text.lines()
        .map(|line| {
            let (hash, path) = line.split_once("  ").expect("a row is a hash and a path");
            (hash.to_owned(), path.to_owned())
        })
        .collect()
}

#[test]
fn the_bundle_was_built_from_these_sources() {
    let changed: Vec<String> = manifest()
        .into_iter()
        .filter(|(hash, path)| *hash != sha256(&read(path)))
        .map(|(_, path)| path)
        .collect();
    assert!(
        changed.is_empty(),
        "changed since the bundle was built: {changed:?}; run `npm run build` in viewer/"
    );
}

#[test]
fn the_manifest_names_every_source() {
    let named: BTreeSet<String> = manifest().into_iter().map(|(_, path)| path).collect();
    for directory in ["src", "src/explore"] {
        for entry in std::fs::read_dir(viewer().join(directory)).expect("it is a folder") {
            let entry = entry.expect("its entries can be read");
            let path = format!("{directory}/{}", entry.file_name().to_string_lossy());
            let is_directory = entry.file_type().expect("its kind can be read").is_dir();
            assert!(
                named.contains(&path) || is_directory && path == "src/explore",
                "viewer/{path} is not in dist/MANIFEST"
            );
        }
    }
    for path in ["dist/report.js", "dist/report.css", "package-lock.json"] {
        assert!(
            named.contains(path),
            "viewer/{path} is not in dist/MANIFEST"
        );
    }
}

/// A page embeds the bundle between tags, so the bundle must not contain a closing tag. The content
/// policy has its hash, which must not depend on line endings.
#[test]
fn the_bundle_fits_into_a_page() {
    for path in ["dist/report.js", "dist/report.css", "dist/explore.js"] {
        let text = String::from_utf8(read(path)).expect("the bundle is UTF-8");
        let lower = text.to_ascii_lowercase();
        for bad in ["</script", "<script", "</style", "<!--", "\r"] {
            assert!(!lower.contains(bad), "viewer/{path} holds {bad:?}");
        }
        assert!(
            text.ends_with('\n'),
            "viewer/{path} ends without a line end"
        );
    }
}

#[test]
fn the_lockfile_names_no_host() {
    let text = String::from_utf8(read("package-lock.json")).expect("the lockfile is UTF-8");
    for bad in ["\"resolved\"", "http:", "https:"] {
        assert!(!text.contains(bad), "viewer/package-lock.json holds {bad}");
    }
}
