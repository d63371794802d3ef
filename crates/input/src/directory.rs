//! Directories: the recordings, traces and known texts in them, and names of their files.

use super::detect::{self, HEAD, Kind};
use heaptap_base::bytes::open_regular;
use heaptap_base::directory::{OWN_PREFIX, RAW_TRACE, SYMBOLIZED_TRACE, is_unfinished};
use std::io::Read as _;
use std::path::{Path, PathBuf};

/// Names of the trace in a recording directory, the preferred one first.
pub(super) const IN_DIRECTORY: [&str; 2] = [SYMBOLIZED_TRACE, RAW_TRACE];

/// Returns how to read the first text in a directory whose kind is known.
pub(super) fn known_text_in(directory: &Path, members: &[String]) -> Option<String> {
    // Members of an archive are not names of files.
    let mut files = members.iter().filter(|_| directory.is_dir());
    files.find_map(|member| {
        let mut head = Vec::new();
        let file = open_regular(&directory.join(member)).ok()?;
        file.take(HEAD as u64).read_to_end(&mut head).ok()?;
        match detect::detect(&head) {
            kind @ Kind::Known(_) => Some(format!("{member} is {kind}; {}", kind.help())),
            _ => None,
        }
    })
}

/// Returns the first recording in a directory of recordings, as `run` writes them: of one device, or
/// of each.
pub(super) fn recording_in(path: &Path) -> Option<PathBuf> {
    let directories = |path: &Path| {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let directories = entries.map(|entry| entry.path()).take(MAX_DIRECTORIES);
        let mut directories: Vec<PathBuf> = directories.filter(|path| path.is_dir()).collect();
        directories.sort();
        directories
    };
    let is_recording = |path: &PathBuf| IN_DIRECTORY.iter().any(|file| path.join(file).is_file());
    let own = directories(path);
    let found = own.iter().find(|path| is_recording(path)).cloned();
    found.or_else(|| {
        own.iter()
            .flat_map(|path| directories(path))
            .find(is_recording)
    })
}

/// Returns the trace of a `record --host` that was killed: no other recording writes it where its
/// directory is.
pub(super) fn unfinished_in(path: &Path) -> Option<PathBuf> {
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let parts = entries.filter(|entry| is_unfinished(&entry.file_name()));
    let mut traces = parts.map(|part| part.path().join(RAW_TRACE));
    traces.find(|trace| {
        trace
            .metadata()
            .is_ok_and(|found| found.is_file() && found.len() > 0)
    })
}

/// Returns the names of a few files in a directory.
pub(super) fn names_in_directory(path: &Path) -> Vec<String> {
    let mut members: Vec<String> = std::fs::read_dir(path)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| !name.starts_with(OWN_PREFIX))
        .collect();
    members.sort();
    members.truncate(NAMED);
    members
}

/// Maximum number of entries of a directory among which recordings are searched.
const MAX_DIRECTORIES: usize = 200;

/// Maximum number of members that an error names.
pub(crate) const NAMED: usize = 5;
