//! How frames are to be named, as plain values: which files were given, which places are
//! looked at, what the environment says. Owns what of this a session's journal keeps, so that
//! whoever collects a recording names its frames as whoever began it meant to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::device_libs::PullLibs;
use crate::symbolize::debuginfod::without_password;

/// How a list of folders of Perfetto's tools is looked through.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LookupMode {
    /// By path and name, in Perfetto's five places.
    Find,
    /// By build ID, whatever the files are called.
    Index,
}

/// Variables that say where names come from. Others are not kept.
pub const VARIABLES: [&str; 8] = [
    "PERFETTO_BINARY_PATH",
    "PERFETTO_PROGUARD_MAP",
    "BREAKPAD_SYMBOL_DIR",
    "ANDROID_PRODUCT_OUT",
    "DEBUGINFOD_URLS",
    "DEBUGINFOD_TIMEOUT",
    "DEBUGINFOD_MAXTIME",
    "DEBUGINFOD_MAXSIZE",
];

/// A mapping file, as it was given.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingOption {
    /// The app it is of; without it, that of the profiled apps which no other file is of.
    pub package: Option<String>,
    /// The file; absolute.
    #[serde(with = "paths::one")]
    pub path: PathBuf,
}

/// How frames are to be named.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOptions {
    /// Look names up at all.
    pub symbolize: bool,
    /// Files and folders with symbols, first looked at first; absolute.
    #[serde(with = "paths")]
    pub symbols: Vec<PathBuf>,
    /// Mapping files of R8 and ProGuard, the first that knows a name gives it.
    #[serde(default)]
    pub mappings: Vec<MappingOption>,
    /// The project the app is built in; absolute. Else it is looked for from `folder` up.
    #[serde(with = "paths::optional")]
    pub project: Option<PathBuf>,
    /// How `PERFETTO_BINARY_PATH` is looked through, where that was said.
    pub mode: Option<LookupMode>,
    /// Look at places that nobody named.
    pub discover: bool,
    /// Take files without a build ID by their name, marked as unverified.
    pub allow_no_build_id: bool,
    /// Whether libraries are fetched from the phone.
    #[serde(default)]
    pub pull_libs: PullLibs,
    /// The folder of the cache, where it is not the user's. For this process only.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
    /// The folder that the command was typed in; relative paths of `variables` begin here.
    #[serde(with = "paths::one")]
    pub folder: PathBuf,
    /// Those of [`VARIABLES`] that are set and not empty.
    #[serde(serialize_with = "without_passwords")]
    pub variables: BTreeMap<String, String>,
}

impl Default for NameOptions {
    /// What comes of no flags in an empty environment.
    fn default() -> Self {
        NameOptions {
            symbolize: true,
            symbols: Vec::new(),
            mappings: Vec::new(),
            project: None,
            mode: None,
            discover: true,
            allow_no_build_id: false,
            pull_libs: PullLibs::default(),
            cache: None,
            folder: PathBuf::new(),
            variables: BTreeMap::new(),
        }
    }
}

impl NameOptions {
    /// These options of whoever began a recording, and what whoever collects it adds: more
    /// files come first, a switch that was set stays set.
    pub fn with(&self, added: &NameOptions) -> NameOptions {
        let mut symbols = added.symbols.clone();
        symbols.extend(self.symbols.iter().cloned());
        let mut mappings = added.mappings.clone();
        mappings.extend(self.mappings.iter().cloned());
        let mut variables = self.variables.clone();
        variables.extend(added.variables.clone());
        NameOptions {
            symbolize: self.symbolize && added.symbolize,
            symbols,
            mappings,
            project: added.project.clone().or_else(|| self.project.clone()),
            mode: added.mode.or(self.mode),
            discover: self.discover && added.discover,
            allow_no_build_id: self.allow_no_build_id || added.allow_no_build_id,
            pull_libs: match added.pull_libs {
                PullLibs::Cheap => self.pull_libs,
                asked => asked,
            },
            cache: added.cache.clone().or_else(|| self.cache.clone()),
            folder: if self.folder.as_os_str().is_empty() {
                added.folder.clone()
            } else {
                self.folder.clone()
            },
            variables,
        }
    }

    /// A variable's value, where it is set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

/// No password of a debuginfod server is kept on disk; who collects has it in the environment.
fn without_passwords<S: serde::Serializer>(
    variables: &BTreeMap<String, String>,
    to: S,
) -> Result<S::Ok, S::Error> {
    to.collect_map(variables.iter().map(|(name, value)| {
        let urls: Vec<String> = match name.as_str() {
            "DEBUGINFOD_URLS" => value.split_whitespace().map(without_password).collect(),
            _ => vec![value.clone()],
        };
        (name, urls.join(" "))
    }))
}

/// `path` as it is from everywhere.
pub fn absolute(path: &Path) -> PathBuf {
    // It fails for an empty path, and where there is no current folder.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// Paths as text. What in one is no Unicode is lost, which a journal can bear: only a crash
/// brings it to be read.
mod paths {
    use std::path::PathBuf;

    use serde::{Deserialize as _, Deserializer, Serializer};

    fn text(path: &std::path::Path) -> String {
        path.to_string_lossy().into_owned()
    }

    pub(super) fn serialize<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
        to.collect_seq(paths.iter().map(|path| text(path)))
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Vec<PathBuf>, D::Error> {
        Vec::deserialize(from)
    }

    pub(super) mod one {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            path: &std::path::Path,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            to.serialize_str(&text(path))
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<PathBuf, D::Error> {
            PathBuf::deserialize(from)
        }
    }

    pub(super) mod optional {
        use super::*;

        pub(crate) fn serialize<S: Serializer>(
            path: &Option<PathBuf>,
            to: S,
        ) -> Result<S::Ok, S::Error> {
            match path {
                Some(path) => to.serialize_some(&text(path)),
                None => to.serialize_none(),
            }
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(
            from: D,
        ) -> Result<Option<PathBuf>, D::Error> {
            Option::deserialize(from)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_gives_the_options_back() {
        let options = NameOptions {
            symbols: vec!["/a/symbols".into(), "/b.so".into()],
            project: Some("/project".into()),
            mode: Some(LookupMode::Find),
            allow_no_build_id: true,
            folder: "/here".into(),
            variables: BTreeMap::from([("PERFETTO_BINARY_PATH".into(), "x".into())]),
            ..NameOptions::default()
        };
        let text = serde_json::to_string(&options).unwrap();
        assert_eq!(serde_json::from_str::<NameOptions>(&text).unwrap(), options);
    }

    #[test]
    fn no_password_stands_in_a_journal() {
        let urls = "https://me:secret@a.example/x http://b.example";
        let options = NameOptions {
            variables: BTreeMap::from([("DEBUGINFOD_URLS".into(), urls.into())]),
            ..NameOptions::default()
        };
        let kept = serde_json::to_value(&options).unwrap();
        let kept = &kept["variables"]["DEBUGINFOD_URLS"];
        assert_eq!(kept, "https://a.example/x http://b.example");
    }

    #[cfg(unix)]
    #[test]
    fn a_path_that_is_no_text_does_not_keep_a_recording_from_its_journal() {
        use std::os::unix::ffi::OsStrExt as _;
        let odd = std::ffi::OsStr::from_bytes(b"/a/\xff");
        let options = NameOptions {
            symbols: vec![odd.into()],
            ..NameOptions::default()
        };
        assert!(
            serde_json::to_string(&options)
                .unwrap()
                .contains("/a/\u{fffd}")
        );
    }

    #[test]
    fn who_collects_adds_to_what_was_meant() {
        let began = NameOptions {
            symbols: vec!["/old".into()],
            mode: Some(LookupMode::Index),
            folder: "/there".into(),
            ..NameOptions::default()
        };
        let collects = NameOptions {
            symbols: vec!["/new".into()],
            discover: false,
            folder: "/here".into(),
            ..NameOptions::default()
        };
        let both = began.with(&collects);
        assert_eq!(both.symbols, [PathBuf::from("/new"), "/old".into()]);
        assert_eq!(both.mode, Some(LookupMode::Index));
        assert_eq!((both.discover, both.symbolize), (false, true));
        assert_eq!(both.folder, PathBuf::from("/there"));
    }
}
