//! Names of files in a recording's directory that several crates use.

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
