//! A recording's directory: names of files that several crates use, and what all do with directories.

use std::fs::File;
use std::io;
use std::path::Path;

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

/// Makes new and removed names in a directory survive a power loss.
///
/// # Errors
/// Returns an error if the directory cannot be opened or synced.
#[cfg(unix)]
pub fn sync(folder: &Path) -> io::Result<()> {
    File::open(folder)?.sync_all()
}

/// Does nothing: Windows has no such call, and NTFS journals its names.
///
/// # Errors
/// Returns none.
#[cfg(not(unix))]
pub fn sync(_folder: &Path) -> io::Result<()> {
    Ok(())
}
