//! The model of a sampled native heap: every importer produces it and every exporter reads it.
//! Plain data; does not depend on wire formats or files.
//!
//! Types:
//! * [`Tables`]: strings, mappings, frames and callsites, shared by all dumps of a recording;
//! * [`Symbols`]: names from symbolization and deobfuscation, by frame;
//! * [`NameMaps`]: the trace's original names of classes and members, by package;
//! * [`Recording`]: both tables, and the facts of the trace other than samples;
//! * [`HeapDump`]: one heap of one process at one time, as cumulative figures by callsite;
//! * [`Health`]: loss and damage on the way here.

pub mod comments;
mod dump;
mod health;
pub mod index;
pub mod interned;
mod name_maps;
pub mod packed;
mod recording;
mod symbols;
mod tables;

pub use dump::{
    ART_HEAP, COMMON_HEAPS, DumpFlags, DumpKind, DumpNumbers, Figures, HeapDump, MALLOC_HEAP,
    UNNAMED_HEAP, is_heap, known_heap, meant_heap,
};
pub use health::{Damage, Health, LastDump, ServiceStats};
pub use name_maps::{NameMap, NameMaps, PacketLines, RenamedClass, RenamedMember};
pub use recording::{
    HeapRequest, MetadataValue, Package, Process, Recording, ServiceCounter, SystemInfo,
};
pub use symbols::{Line, Lines, Symbols};
pub use tables::{CallsiteId, Frame, FrameId, Mapping, MappingId, StringId, Tables};
