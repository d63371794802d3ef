//! The model of a sampled native heap: what every importer ends in and every exporter starts
//! from. Plain data; knows neither wire formats nor files.
//!
//! Shapes:
//! * [`Tables`]: strings, mappings, frames and callsites, shared by all dumps of a recording;
//! * [`Symbols`]: names that symbolization and deobfuscation add, by frame;
//! * [`NameMaps`]: what a trace says of renamed classes and members, by package;
//! * [`Recording`]: both tables, and what the trace says beside its samples;
//! * [`HeapDump`]: one heap of one process at one moment, as cumulative figures by callsite;
//! * [`Health`]: what was lost or damaged on the way here.

mod dump;
mod health;
pub mod index;
pub mod interned;
mod name_maps;
mod recording;
mod symbols;
mod tables;

pub use dump::{DumpFlags, DumpKind, DumpNumbers, Figures, HeapDump};
pub use health::{Damage, Health, LastDump, ServiceStats};
pub use name_maps::{NameMap, NameMaps, PacketLines, RenamedClass, RenamedMember};
pub use recording::{HeapRequest, Package, Process, Recording, ServiceCounter, SystemInfo};
pub use symbols::{Line, Lines, Symbols};
pub use tables::{CallsiteId, Frame, FrameId, Mapping, MappingId, StringId, Tables};
