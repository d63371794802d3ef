//! The tables that all dumps of a recording share: strings, mappings, frames, callsites.

use crate::units::BuildId;

/// Index of an interned string in [`Tables`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct StringId(pub u32);
/// Index of a [`Mapping`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MappingId(pub u32);
/// Index of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);
/// Index of a distinct callstack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallsiteId(pub u32);

/// A file mapped into a process, as the unwinder saw it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Mapping {
    /// Path as Perfetto composes it (leading `/`), possibly empty.
    pub path: StringId,
    /// GNU build ID; empty where unknown.
    pub build_id: BuildId,
    /// First address.
    pub start: u64,
    /// Address after the last.
    pub end: u64,
    /// File offset of this mapping.
    pub exact_offset: u64,
    /// File offset at which the ELF starts (nonzero inside an APK).
    pub start_offset: u64,
    /// libunwindstack's load bias: p_vaddr - p_offset of the executable segment.
    pub load_bias: u64,
}

/// A code location: identity is (mapping, rel_pc, recorded name).
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Frame {
    /// The mapping, where there is one.
    pub mapping: Option<MappingId>,
    /// ELF virtual address (dex offset for dex frames).
    pub rel_pc: u64,
    /// Name as recorded: mangled, a Java method, or empty.
    pub name: StringId,
}

/// Strings, mappings, frames and callsites. Append-only: an id once given stays valid.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    _private: (),
}
