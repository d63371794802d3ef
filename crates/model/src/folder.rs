//! Names of files in a recording's folder, as far as several crates must know them.

/// The trace as it came from the phone.
pub const RAW_TRACE: &str = "raw-trace";
/// The trace, with symbols and what was renamed behind it.
pub const SYMBOLIZED_TRACE: &str = "symbolized-trace";
/// Symbols alone.
pub const SYMBOLS: &str = "symbols";
/// What was renamed, alone.
pub const DEOBFUSCATION: &str = "deobfuscation-packets";
/// Says which session the folder is for.
pub const MARKER: &str = ".heaptap-session";
/// How names begin of files that are heaptap's own for a while: the marker, unfinished files.
pub const OWN_PREFIX: &str = ".heaptap-";
/// How names begin of files of results that are not finished.
pub const UNFINISHED_PREFIX: &str = ".heaptap-part-";
