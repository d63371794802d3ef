//! Places to search for symbols as plain options: command-line values and the environment, resolved
//! but not yet examined. Defines the names of the environment variables. The only search here is
//! for the project around the current directory.

use crate::symbolize::cache::Cache;
use crate::symbolize::debuginfod::Servers;
use serde::{Deserialize, Serialize};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Search mode of `PERFETTO_BINARY_PATH`, set by `PERFETTO_SYMBOLIZER_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Every file below the roots, by build ID; names do not matter. Perfetto's default.
    #[default]
    Index,
    /// The path of the memory mapping on this host, then five places below each root.
    Find,
}

/// Places to search for symbols. [`Places::default`] is empty.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `--symbols`: directories, libraries, archives, in order.
    pub symbols: Vec<PathBuf>,
    /// Roots in `PERFETTO_BINARY_PATH`, in order.
    pub binary_path: Vec<PathBuf>,
    /// Search mode of these roots.
    pub mode: Mode,
    /// `BREAKPAD_SYMBOL_DIR`.
    pub breakpad: Option<PathBuf>,
    /// Root of a Gradle project.
    pub project: Option<PathBuf>,
    /// `ANDROID_PRODUCT_OUT`.
    pub product_out: Option<PathBuf>,
    /// True if the path of a memory mapping is searched on this host, for programs that ran here.
    pub host_paths: bool,
    /// Directories of the system or the user with a `.build-id` tree.
    pub build_id_trees: Vec<PathBuf>,
    /// Servers to query; needs a cache.
    pub debuginfod: Option<Servers>,
    /// Cache of fetched libraries and directory indexes. Without it nothing is fetched, and each
    /// process walks all directories again.
    pub cache: Option<Cache>,
    /// True if a file without build ID is accepted if its name is the library's.
    pub allow_no_build_id: bool,
}

impl Places {
    /// Returns the places in an environment, those that every host has, and the Gradle project
    /// around `current`. The caller adds `--symbols` and the cache.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>, current: &Path) -> Self {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let directory = |name: &str| set(name).map(PathBuf::from);
        let list = |name: &str| set(name).map_or_else(Vec::new, |value| split_list(&value));
        let mode = match set("PERFETTO_SYMBOLIZER_MODE") {
            Some(mode) if mode == OsStr::new("find") => Mode::Find,
            _ => Mode::Index,
        };
        let mut build_id_trees = Vec::new();
        if let Some(home) = directory("HOME").or_else(|| directory("USERPROFILE")) {
            build_id_trees.push(home.join(".debug"));
        }
        if cfg!(unix) {
            build_id_trees.push(PathBuf::from("/usr/lib/debug"));
        }
        Places {
            symbols: Vec::new(),
            binary_path: list("PERFETTO_BINARY_PATH"),
            mode,
            breakpad: directory("BREAKPAD_SYMBOL_DIR"),
            project: project_around(current),
            product_out: directory("ANDROID_PRODUCT_OUT"),
            host_paths: true,
            build_id_trees,
            debuginfod: Servers::from_env(&get),
            cache: None,
            allow_no_build_id: false,
        }
    }
}

/// Splits a list of paths at `:`, or at `;` on Windows.
fn split_list(list: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(list)
        .filter(|path| !path.as_os_str().is_empty())
        .collect()
}

/// Returns the Gradle project that contains `directory`: itself, or the nearest parent with a settings
/// file or the wrapper.
pub fn project_around(directory: &Path) -> Option<PathBuf> {
    const MARKS: [&str; 4] = [
        "settings.gradle",
        "settings.gradle.kts",
        "gradlew",
        "gradlew.bat",
    ];
    let is_project = |directory: &&Path| MARKS.iter().any(|mark| directory.join(mark).is_file());
    directory.ancestors().find(is_project).map(Path::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_names_places() {
        let separator = if cfg!(windows) { ";" } else { ":" };
        let roots = format!("out{separator}{separator}more");
        let get = |name: &str| match name {
            "PERFETTO_BINARY_PATH" => Some(OsString::from(&roots)),
            "PERFETTO_SYMBOLIZER_MODE" => Some("find".into()),
            "BREAKPAD_SYMBOL_DIR" => Some("".into()),
            "ANDROID_PRODUCT_OUT" => Some("product".into()),
            "HOME" => Some("home".into()),
            _ => None,
        };
        let project = tempfile::tempdir().unwrap();
        let current = project.path().join("app/src");
        std::fs::create_dir_all(&current).unwrap();
        std::fs::write(project.path().join("settings.gradle.kts"), "").unwrap();
        let places = Places::from_env(get, &current);
        assert_eq!(places.binary_path, [Path::new("out"), Path::new("more")]);
        assert_eq!(places.mode, Mode::Find);
        assert_eq!(places.breakpad, None);
        assert_eq!(places.product_out.as_deref(), Some(Path::new("product")));
        assert_eq!(places.build_id_trees[0], Path::new("home").join(".debug"));
        assert_eq!(places.project.as_deref(), Some(project.path()));
        assert!(!places.allow_no_build_id);
        let nothing = Places::from_env(|_| None, Path::new(""));
        assert_eq!(nothing.mode, Mode::Index);
        assert!(nothing.binary_path.is_empty() && nothing.project.is_none());
    }
}
