//! Comments of the pprofs that heaptap writes, as far as it reads them again.

/// Beginning of the comment of a dump of [`DumpKind::AtMaximum`](super::DumpKind::AtMaximum).
pub const AT_MAXIMUM: &str = "space and objects are from the time when the heap was largest";
/// Between version and process in the first comment of a Java heap: `heaptap 0.1.0: Java heap of
/// pid 2050, com.example.app`.
pub const OF_JAVA_HEAP: &str = ": Java heap of pid ";
/// Beginning of the comment of a difference: `difference: REC@after minus REC@before`.
pub const DIFFERENCE: &str = "difference: ";
/// The process was not profiled from its start.
pub const ATTACHED: &str = "attached after start; earlier allocations are missing";
/// Prefix of the reasons for missing data: `flags: disconnected, unfinished`.
pub const FLAGS: &str = "flags: ";
/// The last part of the dump is missing, so it is not an iteration of a series.
pub const UNFINISHED: &str = "unfinished";
