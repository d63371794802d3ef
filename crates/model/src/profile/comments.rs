//! Comments of the pprofs that heaptap writes, as far as it reads them again.

/// Beginning of the comment of a dump of [`DumpKind::AtMaximum`](super::DumpKind::AtMaximum).
pub const AT_MAXIMUM: &str = "space and objects are from the time when the heap was largest";
/// The process was not profiled from its start.
pub const ATTACHED: &str = "attached after start; earlier allocations are missing";
/// Prefix of the reasons for missing data: `flags: disconnected, unfinished`.
pub const FLAGS: &str = "flags: ";
/// The last part of the dump is missing, so it is not an iteration of a series.
pub const UNFINISHED: &str = "unfinished";
