//! Mapping files of Gradle builds, `<module>/build/outputs/mapping/<variant>/mapping.txt`, with the
//! package from the build's metadata of the variant. The search through the project does not follow
//! links and is bounded. Whether an R8 mapping fits a trace is decided elsewhere.

use super::json;
use serde_json::Value;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Maximum number of directories to search.
const MAX_DIRECTORIES: usize = 5_000;
/// Maximum nesting of modules.
const MAX_DEPTH: u32 = 4;
/// Maximum bytes read of a build's output metadata.
const MAX_NOTE_SIZE: u64 = 1 << 20;
/// Directories that do not contain modules.
const NO_MODULES: [&str; 6] = ["build", "src", "gradle", "node_modules", "out", "target"];

/// Mapping file of a build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Discovered {
    pub path: PathBuf,
    /// Build variant, such as `release` or `paidRelease`.
    pub variant: String,
    /// When it was written.
    pub modified: SystemTime,
    /// Package of the app, if the build metadata has it.
    pub package: Option<String>,
}

/// Returns all mapping files of a project's builds, newest first.
pub fn discover(project: &Path) -> Vec<Discovered> {
    let mut found = Vec::new();
    let mut directories = vec![(project.to_owned(), 0)];
    let mut looked_at = 0;
    while let Some((directory, depth)) = directories.pop() {
        looked_at += 1;
        if looked_at > MAX_DIRECTORIES {
            break;
        }
        let outputs = directory.join("build").join("outputs");
        if outputs.join("mapping").is_dir() {
            variants(&outputs, &mut found);
        }
        if depth < MAX_DEPTH {
            directories.extend(
                subdirectories(&directory)
                    .into_iter()
                    .filter(|(_, name)| !NO_MODULES.contains(&name.as_str()))
                    .map(|(path, _)| (path, depth + 1)),
            );
        }
    }
    found.sort_by(|a, b| {
        b.modified
            .cmp(&a.modified)
            .then_with(|| a.path.cmp(&b.path))
    });
    found
}

/// Returns the subdirectories of a directory with their names, without links and hidden ones.
fn subdirectories(directory: &Path) -> Vec<(PathBuf, String)> {
    let mut found: Vec<(PathBuf, String)> = fs::read_dir(directory)
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let entry = entry.ok()?;
            let name = entry.file_name().into_string().ok()?;
            let real = entry.file_type().ok()?.is_dir() && !name.starts_with('.');
            real.then(|| (entry.path(), name))
        })
        .take(MAX_DIRECTORIES)
        .collect();
    found.sort();
    found
}

/// Adds the R8 mappings of all variants of a module. Old builds have a directory for the flavor,
/// with one for the build type in it.
fn variants(outputs: &Path, found: &mut Vec<Discovered>) {
    let mut add = |directory: &Path, variant: String| {
        let path = directory.join("mapping.txt");
        let Ok(metadata) = fs::metadata(&path) else {
            return;
        };
        if metadata.is_file() {
            found.push(Discovered {
                path,
                modified: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                package: package(outputs, &variant),
                variant,
            });
        }
    };
    for (directory, name) in subdirectories(&outputs.join("mapping")) {
        for (inner, build_type) in subdirectories(&directory) {
            let mut variant = name.clone();
            let mut letters = build_type.chars();
            variant.extend(letters.next().into_iter().flat_map(char::to_uppercase));
            variant.extend(letters);
            add(&inner, variant);
        }
        add(&directory, name);
    }
}

/// Returns the package of a variant from the build's metadata of its APKs.
fn package(outputs: &Path, variant: &str) -> Option<String> {
    let mut directories = vec![(outputs.join("apk"), 0)];
    while let Some((directory, depth)) = directories.pop() {
        if let Some(note) = read_note(&directory.join("output-metadata.json"))
            && note.get("variantName").and_then(Value::as_str) == Some(variant)
            && let Some(package) = note.get("applicationId").and_then(Value::as_str)
        {
            return Some(package.to_owned());
        }
        if depth < 3 {
            let inner = subdirectories(&directory).into_iter();
            directories.extend(inner.map(|(path, _)| (path, depth + 1)));
        }
    }
    None
}

fn read_note(path: &Path) -> Option<Value> {
    let file = fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_NOTE_SIZE).read_to_string(&mut text).ok()?;
    json::parse(&text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn write(path: &Path, text: &str, age: u64) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
        let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 - age);
        fs::File::options()
            .write(true)
            .open(path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    }

    #[test]
    fn the_maps_of_all_modules_and_variants_are_found_newest_first() {
        let project = tempfile::tempdir().unwrap();
        let at = |path: &str| project.path().join(path);
        write(&at("app/build/outputs/mapping/release/mapping.txt"), "", 9);
        write(
            &at("features/chat/build/outputs/mapping/paid/debug/mapping.txt"),
            "",
            3,
        );
        write(&at("app/build/outputs/mapping/debug/seeds.txt"), "", 0);
        write(
            &at("app/src/build/outputs/mapping/release/mapping.txt"),
            "",
            0,
        );
        write(&at(".git/build/outputs/mapping/release/mapping.txt"), "", 0);
        write(
            &at("app/build/outputs/apk/release/output-metadata.json"),
            "{\n \"version\": 3,\n \"applicationId\": \"com.example.app\",\n \"variantName\": \"release\",\n \"elements\": []\n}\n",
            0,
        );
        let found = discover(project.path());
        let shown: Vec<_> = found
            .iter()
            .map(|map| {
                let path = map.path.strip_prefix(project.path()).unwrap();
                let path = path.to_string_lossy().replace('\\', "/");
                (path, map.variant.as_str(), map.package.as_deref())
            })
            .collect();
        let expected = [
            (
                "features/chat/build/outputs/mapping/paid/debug/mapping.txt".to_owned(),
                "paidDebug",
                None,
            ),
            (
                "app/build/outputs/mapping/release/mapping.txt".to_owned(),
                "release",
                Some("com.example.app"),
            ),
        ];
        assert_eq!(shown, expected);
    }

    #[test]
    fn a_directory_without_builds_holds_none() {
        let project = tempfile::tempdir().unwrap();
        assert!(discover(project.path()).is_empty());
        assert!(discover(&project.path().join("nowhere")).is_empty());
    }
}
