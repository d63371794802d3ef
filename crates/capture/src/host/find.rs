//! Search for the parts of a Perfetto build: the tracing service, its client, and the preload
//! library. Places in order: a named directory, the directories of PATH, and the directory in which
//! Perfetto's scripts keep what they downloaded.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::os;
use super::request::Request;
use heaptap_base::error::{ErrorClass, Failure};

/// Archive of Perfetto's releases for this processor.
const RELEASE: &str = if cfg!(target_arch = "aarch64") {
    "linux-arm64.zip"
} else {
    "linux-amd64.zip"
};

/// Directory of Perfetto's scripts, in the home directory.
const PREBUILTS: &str = ".local/share/perfetto/prebuilts";
const LIBRARY: &str = "libheapprofd_glibc_preload";
/// Directory of `traced` on distributions, which is often not in PATH.
const SYSTEM: &str = "/usr/sbin";
/// Length of the hash in names of Perfetto's scripts.
const HASH_DIGITS: usize = 16;

/// Parts of a Perfetto build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tools {
    /// `traced`, or `tracebox` with its applet as first argument.
    pub traced: (PathBuf, Option<&'static str>),
    /// `perfetto`, likewise.
    pub perfetto: (PathBuf, Option<&'static str>),
    /// The preload library, absolute.
    pub library: PathBuf,
}

/// Finds the parts of a Perfetto build.
///
/// # Errors
/// Returns an error if a part is missing, with the searched places.
pub(super) fn find(request: &Request) -> Result<Tools, Failure> {
    let named: Vec<PathBuf> = request.perfetto_dir.iter().cloned().collect();
    let on_path = request
        .path
        .iter()
        .flat_map(|path| std::env::split_paths(path));
    let on_path: Vec<PathBuf> = on_path.chain([SYSTEM.into()]).collect();
    let prebuilts = request.home.iter().map(|home| home.join(PREBUILTS));
    let prebuilts: Vec<PathBuf> = prebuilts.collect();
    let missing = |what, several: bool| {
        let mut places: Vec<String> = named.iter().map(|p| p.display().to_string()).collect();
        if several || named.is_empty() {
            places.push(format!("PATH, {SYSTEM}"));
            places.extend(prebuilts.iter().map(|p| p.display().to_string()));
        }
        let message = format!("cannot find {what}; searched {}", places.join(", "));
        Failure::new(ErrorClass::BadInput, "host-tools-missing", message).with_help(format!(
            "{RELEASE} of Perfetto's releases (github.com/google/perfetto/releases) has tracebox \
             and libheapprofd_glibc_preload.so: unpack it, then name its directory with \
             --perfetto-dir DIR. Older releases do not have the library. `traced` and `perfetto` \
             of a distribution work too, with --preload-library LIB."
        ))
    };
    // A directory that the user named must have the service: another one would be a surprise.
    let searched: Vec<&[PathBuf]> = match named.is_empty() {
        true => vec![&on_path, &prebuilts],
        false => vec![&named],
    };
    let service = searched.iter().find_map(|directories| service(directories));
    let (traced, perfetto) =
        service.ok_or_else(|| missing("tracebox, or traced and perfetto", false))?;
    let library = match &request.library {
        Some(library) => library.clone(),
        None => [&named, &on_path, &prebuilts]
            .into_iter()
            .find_map(|directories| in_any(directories, LIBRARY, ".so", false))
            .ok_or_else(|| missing("libheapprofd_glibc_preload.so", true))?,
    };
    let library = std::path::absolute(&library).unwrap_or(library);
    Ok(Tools {
        traced,
        perfetto,
        library,
    })
}

type Tool = (PathBuf, Option<&'static str>);

/// Returns `traced` and `perfetto`: tracebox if it is there, because its parts are of one build.
fn service(directories: &[PathBuf]) -> Option<(Tool, Tool)> {
    if let Some(tracebox) = in_any(directories, "tracebox", "", true) {
        return Some((
            (tracebox.clone(), Some("traced")),
            (tracebox, Some("perfetto")),
        ));
    }
    let traced = in_any(directories, "traced", "", true)?;
    let perfetto = in_any(directories, "perfetto", "", true)?;
    Some(((traced, None), (perfetto, None)))
}

/// Returns the file in the first directory that has it.
fn in_any(directories: &[PathBuf], stem: &str, end: &str, executable: bool) -> Option<PathBuf> {
    let found = directories
        .iter()
        .filter(|directory| !directory.as_os_str().is_empty())
        .find_map(|directory| in_directory(directory, stem, end, executable));
    found.map(|path| std::path::absolute(&path).unwrap_or(path))
}

/// Returns `stem` + `end`, otherwise the newest `stem-<hash>` + `end`.
fn in_directory(directory: &Path, stem: &str, end: &str, executable: bool) -> Option<PathBuf> {
    let usable = |path: &Path| {
        let metadata = fs::metadata(path).ok()?;
        let fits = metadata.is_file() && (!executable || os::is_executable(&metadata));
        fits.then(|| metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH))
    };
    let plain = directory.join(format!("{stem}{end}"));
    if usable(&plain).is_some() {
        return Some(plain);
    }
    let hashed = |name: &OsStr| {
        let hash = name.to_str().and_then(|name| {
            name.strip_prefix(stem)?
                .strip_prefix('-')?
                .strip_suffix(end)
        });
        hash.is_some_and(|hash| {
            hash.len() == HASH_DIGITS && hash.bytes().all(|b| b.is_ascii_hexdigit())
        })
    };
    let items = fs::read_dir(directory).ok()?;
    items
        .filter_map(|item| Some(item.ok()?.path()))
        .filter(|path| path.file_name().is_some_and(hashed))
        .filter_map(|path| Some((usable(&path)?, path)))
        .max()
        .map(|(_, path)| path)
}
