//! A recording's directory: names of files that several crates use, and what all do with directories.

use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::Path;

use crate::bytes::open_regular;

/// The trace as fetched from the device.
pub const RAW_TRACE: &str = "raw-trace";
/// The trace with symbols and deobfuscation appended.
pub const SYMBOLIZED_TRACE: &str = "symbolized-trace";
/// Symbols alone.
pub const SYMBOLS: &str = "symbols";
/// Deobfuscation alone.
pub const DEOBFUSCATION: &str = "deobfuscation-packets";
/// File that names the session of the directory.
pub const MARKER: &str = ".heaptap-session";
/// Prefix of heaptap's own temporary files: the marker and unfinished files.
pub const OWN_PREFIX: &str = ".heaptap-";
/// Prefix of unfinished result files.
pub const UNFINISHED_PREFIX: &str = ".heaptap-part-";

/// Returns whether a file name is that of an output which is not complete.
pub fn is_unfinished(name: &OsStr) -> bool {
    name.to_string_lossy().starts_with(UNFINISHED_PREFIX)
}

/// Maximum size of the owner in a marker.
pub const MAX_MARKER_BYTES: u64 = 64;

/// Letters of a session ID: without `l`, `o` and similar digits, so that people can read it out and
/// type it.
pub const SESSION_ID_LETTERS: &[u8] = b"abcdefghijkmnpqrstuvwxyz23456789";
/// Number of letters of a session ID.
pub const SESSION_ID_LENGTH: usize = 8;

pub fn is_session_id(text: &str) -> bool {
    let is_letter = |letter| SESSION_ID_LETTERS.contains(&letter);
    text.len() == SESSION_ID_LENGTH && text.bytes().all(is_letter)
}

/// Returns the ID of the session that a directory's marker names.
pub fn session_of(directory: &Path) -> Option<String> {
    let mut text = String::new();
    let marker = open_regular(&directory.join(MARKER)).ok()?;
    marker
        .take(MAX_MARKER_BYTES)
        .read_to_string(&mut text)
        .ok()?;
    let id = text.trim_end();
    is_session_id(id).then(|| id.to_owned())
}

/// Returns the directory of a path as it was typed; `.` for a bare name.
pub fn of(path: &Path) -> &Path {
    match path.parent() {
        Some(directory) if !directory.as_os_str().is_empty() => directory,
        _ => Path::new("."),
    }
}

/// Returns whether two paths lead to the same existing file or directory, whatever their spelling.
pub fn is_same(one: &Path, other: &Path) -> bool {
    let real = |path: &Path| path.canonicalize().ok();
    real(one).is_some_and(|one| real(other) == Some(one))
}

/// Copies a file to a new name, and syncs it.
///
/// # Errors
/// Returns an error if the name exists, or a file cannot be read or written.
pub fn copy_file(from: &Path, to: &Path) -> io::Result<()> {
    let mut goal = File::create_new(to)?;
    io::copy(&mut File::open(from)?, &mut goal)?;
    goal.sync_all()
}

/// Creates a directory and its missing parents, so that their names survive a power loss. A parent
/// that cannot be opened is not synced.
///
/// # Errors
/// Returns an error if a directory cannot be created.
pub fn create(directory: &Path) -> io::Result<()> {
    let directory = &std::path::absolute(directory)?;
    let missing = directory.ancestors().take_while(|parent| !parent.exists());
    let missing = missing.count();
    std::fs::create_dir_all(directory)?;
    for made in directory.ancestors().take(missing) {
        let _ = made.parent().map(sync);
    }
    Ok(())
}

/// Makes new and removed names in a directory survive a power loss.
///
/// # Errors
/// Returns an error if the directory cannot be opened or synced.
#[cfg(unix)]
pub fn sync(directory: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()
}

/// Does nothing: Windows has no such call, and NTFS journals its names.
///
/// # Errors
/// Returns none.
#[cfg(not(unix))]
pub fn sync(_directory: &Path) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bare_name_is_in_the_current_directory() {
        for (path, directory) in [("a/b", "a"), ("a", "."), ("/a", "/"), ("/", "."), ("", ".")] {
            assert_eq!(of(Path::new(path)), Path::new(directory), "{path}");
        }
    }

    #[test]
    fn a_directory_is_created_with_its_parents_once() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("a/b/c");
        create(&deep).unwrap();
        assert!(deep.is_dir());
        create(&deep).unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        assert!(create(&dir.path().join("file/d")).is_err());
    }
}
