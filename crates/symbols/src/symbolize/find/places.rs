//! Where symbols may lie, as plain options: what was typed and what the environment says,
//! resolved but not yet looked at. Owns the names of the environment variables; searches
//! nothing except for the project around the current folder.

use crate::symbolize::cache::Cache;
use crate::symbolize::debuginfod::Servers;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// How `PERFETTO_BINARY_PATH` is searched; named by `PERFETTO_SYMBOLIZER_MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Every file below the roots, by build ID; names do not matter. Perfetto's default.
    #[default]
    Index,
    /// The path of the mapping on this host, then five places below each root.
    Find,
}

/// Where to look for symbols. [`Places::default`] looks nowhere.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// `--symbols`: folders, libraries, archives; in their order.
    pub symbols: Vec<PathBuf>,
    /// Roots of `PERFETTO_BINARY_PATH`, in their order.
    pub binary_path: Vec<PathBuf>,
    /// How those are searched.
    pub mode: Mode,
    /// `BREAKPAD_SYMBOL_DIR`.
    pub breakpad: Option<PathBuf>,
    /// Root of a Gradle project.
    pub project: Option<PathBuf>,
    /// `ANDROID_PRODUCT_OUT`.
    pub product_out: Option<PathBuf>,
    /// Whether a mapping's own path is looked up on this host, as for programs of this host.
    pub host_paths: bool,
    /// Folders with a `.build-id` tree that belong to the system or the user.
    pub build_id_trees: Vec<PathBuf>,
    /// Servers to ask; needs a cache.
    pub debuginfod: Option<Servers>,
    /// The cache: libraries that were fetched before, and what is remembered of folders. Without
    /// it nothing is fetched, and each process walks each folder anew.
    pub cache: Option<Cache>,
    /// Whether a file without build ID is taken where its name is the library's.
    pub allow_no_build_id: bool,
}

impl Places {
    /// The places that an environment names, those that each host has, and the Gradle project
    /// around `current`. `--symbols` and the cache are for the caller to add.
    pub fn from_env(get: impl Fn(&str) -> Option<OsString>, current: &Path) -> Self {
        let set = |name: &str| get(name).filter(|value| !value.is_empty());
        let folder = |name: &str| set(name).map(PathBuf::from);
        let list = |name: &str| set(name).map_or_else(Vec::new, |value| split_list(&value));
        let mode = match set("PERFETTO_SYMBOLIZER_MODE") {
            Some(mode) if mode == OsStr::new("find") => Mode::Find,
            _ => Mode::Index,
        };
        let mut build_id_trees = Vec::new();
        if let Some(home) = folder("HOME").or_else(|| folder("USERPROFILE")) {
            build_id_trees.push(home.join(".debug"));
        }
        if cfg!(unix) {
            build_id_trees.push(PathBuf::from("/usr/lib/debug"));
        }
        Places {
            symbols: Vec::new(),
            binary_path: list("PERFETTO_BINARY_PATH"),
            mode,
            breakpad: folder("BREAKPAD_SYMBOL_DIR"),
            project: project_around(current),
            product_out: folder("ANDROID_PRODUCT_OUT"),
            host_paths: true,
            build_id_trees,
            debuginfod: Servers::from_env(&get),
            cache: None,
            allow_no_build_id: false,
        }
    }
}

/// The parts of a list of paths: `:` between them, `;` on Windows.
fn split_list(list: &OsStr) -> Vec<PathBuf> {
    std::env::split_paths(list)
        .filter(|path| !path.as_os_str().is_empty())
        .collect()
}

/// The Gradle project that `folder` belongs to: itself or the nearest folder above it that has
/// a settings file or the wrapper.
pub fn project_around(folder: &Path) -> Option<PathBuf> {
    const MARKS: [&str; 4] = [
        "settings.gradle",
        "settings.gradle.kts",
        "gradlew",
        "gradlew.bat",
    ];
    let is_project = |folder: &&Path| MARKS.iter().any(|mark| folder.join(mark).is_file());
    folder.ancestors().find(is_project).map(Path::to_owned)
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
