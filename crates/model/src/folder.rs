//! A recording's directory: names of files that several crates use, and its sync.

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

/// Makes new and removed names in a directory survive a power loss.
///
/// # Errors
/// Returns an error if the directory cannot be opened or synced.
#[cfg(unix)]
pub fn sync(folder: &Path) -> io::Result<()> {
    std::fs::File::open(folder)?.sync_all()
}

/// Does nothing: Windows has no such call, and NTFS journals its names.
///
/// # Errors
/// Returns none.
#[cfg(not(unix))]
pub fn sync(_folder: &Path) -> io::Result<()> {
    Ok(())
}
