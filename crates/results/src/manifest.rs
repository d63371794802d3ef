//! `manifest.json`: the facts of a recording, next to the files it names. Owns the schema
//! (`docs/reference/formats.md` documents every field; a test keeps the two in sync) and atomic writing.
//! Contains plain values only.

mod companion;
mod file;
mod host;
mod java;
mod native;
mod recording;
mod symbolization;

pub use companion::{
    CompanionCost, CompanionFile, CompanionGap, CompanionMissed, CompanionTimeline,
    CompanionUnread, Companions,
};
pub use file::{
    FILE_NAME, Manifest, ManifestError, Outcome, SCHEMA_VERSION, Tool, Warning, version,
};
pub use host::HostProgram;
pub use java::{
    DumpKey, Dumps, JAVA_HEAP, JavaAllocations, JavaDump, JavaFlags, JavaKind, JavaSums,
    JavaTotals, Original, TrackedDump,
};
pub use native::{BoundLabel, Dump, DumpId, Flags, Label, LabelledDump, Totals};
pub use recording::{
    Config, Device, Eligibility, Page, Profiles, Session, Step, Target, TraceFile,
};
pub use symbolization::{
    CutLibrary, LookedIn, MappingFile, MissingLibrary, NamedLibrary, NearestFile, SymbolFile,
    Symbolization,
};

#[cfg(test)]
pub mod tests;
