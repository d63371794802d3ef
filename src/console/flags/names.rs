//! Options for symbol sources, shared by every command that symbolizes frames. This module parses
//! flags and environment; `names::options` defines their meaning.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::builder::{OsStringValueParser, TypedValueParser};
use clap::{Args, ValueEnum, ValueHint};

use crate::console::Console;
use crate::names::device_libs::PullLibs;
use crate::names::options::{MappingOption, NameOptions, VARIABLES, absolute};
use heaptap_base::error::Failure;
use heaptap_input::{Kind, detect};
use heaptap_symbols::symbolize::find::Mode;

/// The variable that lists mapping files, if set.
pub(super) fn proguard_variable() -> BTreeMap<String, String> {
    let name = "PERFETTO_PROGUARD_MAP";
    let value = std::env::var_os(name).filter(|value| !value.is_empty());
    let value = value.map(|value| (name.to_owned(), value.to_string_lossy().into_owned()));
    value.into_iter().collect()
}

/// Symbol sources.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Names of frames")]
pub struct NamesArgs {
    /// Places of symbols; may be repeated
    ///
    /// Directories, libraries, ZIPs or APKs. heaptap searches these places first. It matches files by build ID, not by name.
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_parser = existing())]
    pub symbols: Vec<PathBuf>,
    /// R8 mapping file; may be repeated
    ///
    /// The file may be packed with gzip, zstd or ZIP, or be part of an app bundle. PACKAGE=FILE names
    /// its app; otherwise it applies to the apps that no other file is for. heaptap also uses PERFETTO_PROGUARD_MAP and the
    /// names in the trace.
    #[arg(long = "mapping", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub mappings: Vec<OsString>,
    /// Project of the app [default: the one of the current directory]
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, value_parser = existing(), hide_short_help = true)]
    pub project: Option<PathBuf>,
    /// Do not search this host, ANDROID_PRODUCT_OUT, debuginfod or nearby projects
    #[arg(long, hide_short_help = true)]
    pub no_discover: bool,
    /// Use libraries without a build ID, by name, as unverified
    #[arg(long, hide_short_help = true)]
    pub allow_no_build_id: bool,
    /// Fetch libraries from the device: auto, always or never
    ///
    /// heaptap fetches each library that it finds nowhere else once, and keeps it in its cache. `auto`
    /// stops after 64 MiB or 5 s.
    #[arg(
        long,
        value_name = "WHEN",
        value_enum,
        default_value_t,
        hide_possible_values = true,
        hide_short_help = true
    )]
    pub pull_libs: PullLibsArg,
    /// Do not look up names; names in the trace stay
    #[arg(long, hide_short_help = true)]
    pub no_symbolize: bool,
}

/// When libraries are fetched from the device.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub enum PullLibsArg {
    /// Up to 64 MiB and 5 s
    #[default]
    Auto,
    /// All that are missing
    Always,
    /// None
    Never,
}

impl From<PullLibsArg> for PullLibs {
    fn from(pull: PullLibsArg) -> PullLibs {
        match pull {
            PullLibsArg::Auto => PullLibs::Cheap,
            PullLibsArg::Always => PullLibs::Always,
            PullLibsArg::Never => PullLibs::Never,
        }
    }
}

/// Parses an existing path: a typo would look like missing symbols.
pub(crate) fn existing() -> impl TypedValueParser<Value = PathBuf> {
    OsStringValueParser::new().try_map(|given| {
        let path = PathBuf::from(given);
        match std::fs::metadata(&path) {
            Ok(_) => Ok(path),
            Err(error) => Err(error.to_string()),
        }
    })
}

/// Returns the obvious error of a file given for symbols.
fn no_symbols_in(path: &Path) -> Option<String> {
    let mut start = Vec::new();
    let file = std::fs::File::open(path).ok()?;
    if !file.metadata().ok()?.is_file() {
        return None;
    }
    file.take(64).read_to_end(&mut start).ok()?;
    match detect(&start) {
        Kind::Elf | Kind::Zip => None,
        _ if start.starts_with(b"MODULE") => None,
        Kind::Empty => Some("is empty".to_owned()),
        kind @ Kind::Foreign(_) => Some(format!("is {kind}; {}", kind.help())),
        _ => Some("is neither a library nor Breakpad symbols nor a ZIP".to_owned()),
    }
}

/// Parses `[PACKAGE=]FILE`. If the whole text is an existing file, it is the file.
pub(crate) fn mapping(given: &OsStr) -> MappingOption {
    let whole = |path: &Path| MappingOption {
        package: None,
        path: absolute(path),
    };
    let path = Path::new(given);
    let Some((package, file)) = given.to_str().and_then(|given| given.split_once('=')) else {
        return whole(path);
    };
    let is_package = |c: char| c.is_alphanumeric() || c == '.' || c == '_';
    if package.is_empty() || !package.chars().all(is_package) || path.exists() {
        return whole(path);
    }
    MappingOption {
        package: Some(package.to_owned()),
        path: absolute(Path::new(file)),
    }
}

impl NamesArgs {
    /// Returns the options of these flags and the environment. Warns about unsuitable files.
    ///
    /// # Errors
    /// Returns an error if a variable has an invalid value.
    pub fn options(&self, console: &Console) -> Result<NameOptions, Failure> {
        for path in &self.symbols {
            if let Some(why) = no_symbols_in(path) {
                console.warn(format_args!("--symbols {} {why}", path.display()));
            }
        }
        let set = |name: &&str| {
            let value = std::env::var_os(name)?.to_string_lossy().into_owned();
            (!value.is_empty()).then(|| ((*name).to_owned(), value))
        };
        Ok(NameOptions {
            symbolize: !self.no_symbolize,
            symbols: self.symbols.iter().map(|path| absolute(path)).collect(),
            mappings: self.mappings.iter().map(|given| mapping(given)).collect(),
            project: self.project.as_deref().map(absolute),
            mode: mode_of(&std::env::var("PERFETTO_SYMBOLIZER_MODE").unwrap_or_default())?,
            discover: !self.no_discover,
            allow_no_build_id: self.allow_no_build_id,
            pull_libs: self.pull_libs.into(),
            cache: None,
            directory: absolute(Path::new(".")),
            variables: VARIABLES.iter().filter_map(set).collect(),
        })
    }
}

/// Returns the mode of the variable; `None` if it is empty.
fn mode_of(word: &str) -> Result<Option<Mode>, Failure> {
    match word {
        "" => Ok(None),
        "find" => Ok(Some(Mode::Find)),
        "index" => Ok(Some(Mode::Index)),
        other => Err(Failure::usage(format!(
            "PERFETTO_SYMBOLIZER_MODE is {other:?}: it is find or index"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_file_may_have_its_package_before_it() {
        let directory = tempfile::tempdir().unwrap();
        let there = directory.path().join("a=b.txt");
        std::fs::write(&there, "").unwrap();
        let here = Path::new("mapping.txt");
        let there = there.to_string_lossy().into_owned();
        for (given, package, path) in [
            ("mapping.txt", None, here),
            ("com.x.app=mapping.txt", Some("com.x.app"), here),
            ("=mapping.txt", None, Path::new("=mapping.txt")),
            ("./a=b", None, Path::new("./a=b")),
            (&there, None, Path::new(&there)),
        ] {
            let option = mapping(OsStr::new(given));
            assert_eq!(option.package.as_deref(), package, "{given}");
            assert_eq!(option.path, absolute(path), "{given}");
        }
    }

    #[test]
    fn a_file_that_cannot_hold_symbols_is_known_at_a_glance() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("lib.so");
        for (bytes, wrong) in [
            (&b""[..], true),
            (b"hello, world", true),
            (b"\x7fELF\x02\x01\x01", false),
            (b"MODULE Linux", false),
            (b"PK\x03\x04", false),
        ] {
            std::fs::write(&file, bytes).unwrap();
            assert_eq!(no_symbols_in(&file).is_some(), wrong, "{bytes:?}");
        }
        assert_eq!(
            no_symbols_in(directory.path()),
            None,
            "a folder is one of files"
        );
    }

    #[test]
    fn a_mode_that_is_none_is_refused() {
        assert_eq!(mode_of("").unwrap(), None);
        assert_eq!(mode_of("find").unwrap(), Some(Mode::Find));
        assert_eq!(mode_of("index").unwrap(), Some(Mode::Index));
        assert!(mode_of("fast").is_err());
    }
}
