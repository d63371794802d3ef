//! Symbolization options as plain values: symbol files, searched places, environment. Decides what
//! a session's journal stores, so that collecting a recording symbolizes its frames as intended at
//! its start.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize, Serializer};

use super::device_libs::PullLibs;
use heaptap_symbols::symbolize::debuginfod::without_password;
use heaptap_symbols::symbolize::find::Mode;

/// Environment variables with symbol sources. Others are not stored.
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

/// An R8 mapping as given by the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct MappingOption {
    /// Its app; `None` applies it to the profiled apps without a file of their own.
    pub package: Option<String>,
    /// Absolute path.
    #[serde(serialize_with = "path")]
    pub path: PathBuf,
}

/// Symbolization options.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NameOptions {
    /// If false, skip symbolization.
    pub symbolize: bool,
    /// Files and directories with symbols, in search order; absolute.
    #[serde(serialize_with = "paths")]
    pub symbols: Vec<PathBuf>,
    /// R8 mappings; the first one that contains a name is used.
    #[serde(default)]
    pub mappings: Vec<MappingOption>,
    /// Project of the app; absolute. By default, searched from `directory` upwards.
    #[serde(serialize_with = "optional_path")]
    pub project: Option<PathBuf>,
    /// Lookup mode of `PERFETTO_BINARY_PATH`, if given.
    pub mode: Option<Mode>,
    /// If true, search default places.
    pub discover: bool,
    /// If true, match files without a build ID by name, marked as unverified.
    pub allow_no_build_id: bool,
    /// Mode of fetching libraries from the device.
    #[serde(default)]
    pub pull_libs: PullLibs,
    /// Cache directory, if not the user's default. For this process only.
    #[serde(skip)]
    pub cache: Option<PathBuf>,
    /// Working directory of the command, for relative paths in `variables`.
    #[serde(serialize_with = "path")]
    #[serde(rename = "folder")]
    pub directory: PathBuf,
    /// Variables of [`VARIABLES`] that are set and not empty.
    #[serde(serialize_with = "without_passwords")]
    pub variables: BTreeMap<String, String>,
}

impl Default for NameOptions {
    /// Returns the options without flags, in an empty environment.
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
            directory: PathBuf::new(),
            variables: BTreeMap::new(),
        }
    }
}

impl NameOptions {
    /// Merges the options of a recording's start with those of collecting it: added files come
    /// first, and switches remain set.
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
            directory: if self.directory.as_os_str().is_empty() {
                added.directory.clone()
            } else {
                self.directory.clone()
            },
            variables,
        }
    }

    /// Returns the value of a variable, if it is set.
    pub fn variable(&self, name: &str) -> Option<&str> {
        self.variables.get(name).map(String::as_str)
    }
}

/// Passwords of debuginfod servers are not stored on disk; the collecting process has them in its
/// environment.
fn without_passwords<S: Serializer>(
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

pub fn absolute(path: &Path) -> PathBuf {
    // This fails for an empty path, and without a current directory.
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

// Paths as text. Non-Unicode parts are lost, which is acceptable because a journal is only read
// after a crash.

fn paths<S: Serializer>(paths: &[PathBuf], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(paths.iter().map(|path| path.to_string_lossy()))
}

fn path<S: Serializer>(path: &Path, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&path.to_string_lossy())
}

fn optional_path<S: Serializer>(path: &Option<PathBuf>, to: S) -> Result<S::Ok, S::Error> {
    path.as_ref()
        .map(|path| path.to_string_lossy())
        .serialize(to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_gives_the_options_back() {
        let options = NameOptions {
            symbols: vec!["/a/symbols".into(), "/b.so".into()],
            project: Some("/project".into()),
            mode: Some(Mode::Find),
            allow_no_build_id: true,
            directory: "/here".into(),
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
            mode: Some(Mode::Index),
            directory: "/there".into(),
            ..NameOptions::default()
        };
        let collects = NameOptions {
            symbols: vec!["/new".into()],
            discover: false,
            directory: "/here".into(),
            ..NameOptions::default()
        };
        let both = began.with(&collects);
        assert_eq!(both.symbols, [PathBuf::from("/new"), "/old".into()]);
        assert_eq!(both.mode, Some(Mode::Index));
        assert_eq!((both.discover, both.symbolize), (false, true));
        assert_eq!(both.directory, PathBuf::from("/there"));
    }
}
