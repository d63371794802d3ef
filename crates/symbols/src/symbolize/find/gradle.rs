//! Output directories with symbols of Gradle, the NDK's build systems and Cargo in a project.
//! Defines the names of the directories; the index reads their contents.
//!
//! | below a module | contents |
//! |---|---|
//! | `build/intermediates/merged_native_libs`, `merged_jni_libs`, `library_jni` | libraries for the APK, before they are stripped |
//! | `build/intermediates/cmake`, `cxx`, `ndkBuild`, `.cxx`, `.externalNativeBuild` | `obj/<abi>`: linker output |
//! | `build/intermediates/native_debug_metadata`, `native_symbol_tables` | `.so.dbg`, `.so.sym` split off for the store |
//! | `build/outputs/native-debug-symbols` | native-debug-symbols.zip |
//! | `build/outputs/apk`, `bundle`, `aar` | libraries in packages; a bundle's `BUNDLE-METADATA` |
//! | `build/<module>/…` | all of these, if one directory contains the builds of all modules (Flutter) |
//! | `src/main/jniLibs` | libraries built elsewhere |
//! | `target/<triple>-linux-android*` | Rust |

use std::collections::VecDeque;
use std::path::{Path, PathBuf};

/// Maximum depth of modules below the project.
const MAX_DEPTH: usize = 6;
/// Maximum number of directories of a project that are searched for modules.
const MAX_DIRECTORIES: usize = 20_000;

const OF_BUILD: [&str; 12] = [
    "intermediates/merged_native_libs",
    "intermediates/merged_jni_libs",
    "intermediates/library_jni",
    "intermediates/cmake",
    "intermediates/cxx",
    "intermediates/ndkBuild",
    "intermediates/native_debug_metadata",
    "intermediates/native_symbol_tables",
    "outputs/native-debug-symbols",
    "outputs/apk",
    "outputs/bundle",
    "outputs/aar",
];
const OF_MODULE: [&str; 3] = [".cxx", ".externalNativeBuild", "src/main/jniLibs"];

/// Directories that do not contain modules.
const NO_MODULES: [&str; 4] = ["build", "node_modules", "src", "target"];

/// Returns the directories of a project that can contain libraries with symbols. Reads the
/// project's directories down to its modules, but not the contents of the returned ones.
pub(super) fn outputs(project: &Path) -> Vec<PathBuf> {
    let mut outputs = Vec::new();
    // Breadth first: if there are too many, those nearest to the project are kept.
    let mut directories = VecDeque::from([(project.to_owned(), 0)]);
    let mut seen = 0;
    while let Some((directory, depth)) = directories.pop_front() {
        seen += 1;
        if seen > MAX_DIRECTORIES {
            break;
        }
        outputs_of(&directory, &mut outputs);
        if depth == MAX_DEPTH {
            continue;
        }
        for (name, path) in directories_in(&directory) {
            if !name.starts_with('.') && !NO_MODULES.contains(&name.as_str()) {
                directories.push_back((path, depth + 1));
            }
        }
    }
    outputs.sort_unstable();
    outputs
}

fn outputs_of(module: &Path, outputs: &mut Vec<PathBuf>) {
    let mut add = |path: PathBuf| {
        if path.is_dir() {
            outputs.push(path);
        }
    };
    for below in OF_MODULE {
        add(module.join(below));
    }
    let build = module.join("build");
    if build.is_dir() {
        for below in OF_BUILD {
            add(build.join(below));
        }
        for (name, of_module) in directories_in(&build) {
            if !matches!(
                name.as_str(),
                "intermediates" | "outputs" | "generated" | "tmp"
            ) {
                for below in OF_BUILD {
                    add(of_module.join(below));
                }
            }
        }
    }
    for (name, path) in directories_in(&module.join("target")) {
        if name.contains("-linux-android") {
            for profile in ["debug", "release"] {
                add(path.join(profile));
            }
        }
    }
}

/// Returns the subdirectories of a directory without links: modules are within their project.
fn directories_in(directory: &Path) -> Vec<(String, PathBuf)> {
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    let directories = entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()));
    let named = directories.filter_map(|e| Some((e.file_name().into_string().ok()?, e.path())));
    named.collect()
}
