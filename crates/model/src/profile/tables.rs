//! The tables that all dumps of a recording share: strings, mappings, frames, callsites. Each entry
//! is stored once. IDs are dense and follow the order of first appearance, so that equal input
//! gives equal IDs.

use super::index::Seed;
use super::interned::{Interned, Texts};
use super::packed::{self, PackedStacks};
use heaptap_base::units::BuildId;

/// Index of an interned string in [`Tables`]; 0 is the empty string.
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
    /// GNU build ID; empty if unknown.
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

/// A code location. Its identity is (mapping, rel_pc, recorded name), or (name, file, line) for a
/// frame without an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    /// Mapping of the frame, if it has one.
    pub mapping: Option<MappingId>,
    /// ELF virtual address (dex offset for dex frames).
    pub rel_pc: u64,
    /// Name as recorded: mangled, a Java method, or empty.
    pub name: StringId,
    /// Source file, only for a frame without an address; empty otherwise.
    pub file: StringId,
    /// Line in `file`; 0 if unknown.
    pub line: u32,
}

/// Strings, mappings, frames and callsites. Append-only: an ID stays valid.
#[derive(Debug, Clone, Default)]
pub struct Tables {
    seed: Seed,
    texts: Texts,
    mappings: Interned<Mapping>,
    frames: Interned<Frame>,
    /// Leaf first.
    callsites: PackedStacks,
}

impl Tables {
    pub fn intern_str(&mut self, text: &str) -> StringId {
        StringId(self.texts.id(text))
    }

    /// Returns the ID of a text that might not be UTF-8; invalid bytes become U+FFFD.
    pub fn intern_bytes(&mut self, text: &[u8]) -> StringId {
        self.intern_str(&String::from_utf8_lossy(text))
    }

    pub fn intern_mapping(&mut self, mapping: Mapping) -> MappingId {
        let words = [
            u64::from(mapping.path.0),
            mapping.start,
            mapping.end,
            mapping.exact_offset,
            mapping.start_offset,
            mapping.load_bias,
        ];
        let hash = words
            .iter()
            .fold(self.seed.bytes(&mapping.build_id.0), |hash, word| {
                self.seed.number(hash.rotate_left(5) ^ word)
            });
        MappingId(self.mappings.id(hash, mapping))
    }

    pub fn intern_frame(&mut self, frame: Frame) -> FrameId {
        let mapping = frame
            .mapping
            .map_or(u64::from(u32::MAX), |m| u64::from(m.0));
        let hash = self
            .seed
            .number(self.seed.number(frame.rel_pc) ^ (mapping << 32 | u64::from(frame.name.0)));
        let hash = self
            .seed
            .number(hash ^ (u64::from(frame.line) << 32 | u64::from(frame.file.0)));
        FrameId(self.frames.id(hash, frame))
    }

    /// Returns the ID of a callstack, given as raw [`FrameId`]s, leaf first.
    pub fn intern_callsite(&mut self, leaf_first: &[u32]) -> CallsiteId {
        CallsiteId(self.callsites.id(leaf_first.iter().copied()))
    }

    /// Adds a callstack as [`Tables::intern_callsite`] does, with its ID to come later; returns the
    /// number of those.
    #[inline]
    pub fn push_callsite(&mut self, leaf_first: impl IntoIterator<Item = u32>) -> usize {
        self.callsites.push(leaf_first);
        self.callsites.waiting()
    }

    /// Calls `each` with the IDs of the callstacks that were pushed, in their order.
    pub fn pushed_callsites(&mut self, mut each: impl FnMut(CallsiteId)) {
        self.callsites.give_ids(|id| each(CallsiteId(id)));
    }

    /// Returns the text of an ID of these tables.
    pub fn string(&self, id: StringId) -> &str {
        self.texts.get(id.0)
    }

    /// Returns the mapping of an ID of these tables.
    pub fn mapping(&self, id: MappingId) -> &Mapping {
        &self.mappings.all()[id.0 as usize]
    }

    /// Returns the frame of an ID of these tables.
    pub fn frame(&self, id: FrameId) -> &Frame {
        &self.frames.all()[id.0 as usize]
    }

    /// Returns the frames of a callsite, leaf first.
    pub fn callsite(&self, id: CallsiteId) -> impl Iterator<Item = FrameId> + '_ {
        let mut packed = self.packed_callsite(id);
        std::iter::from_fn(move || packed::first(&mut packed).map(FrameId))
    }

    /// Returns the frames of a callsite in their packed form: ID + 1 as a varint, leaf first.
    #[inline]
    pub fn packed_callsite(&self, id: CallsiteId) -> &[u8] {
        self.callsites.get(id.0)
    }

    /// Returns all mappings, in order of their IDs.
    pub fn mappings(&self) -> &[Mapping] {
        self.mappings.all()
    }

    /// Returns all frames, in order of their IDs.
    pub fn frames(&self) -> &[Frame] {
        self.frames.all()
    }

    /// Returns the number of distinct callsites.
    pub fn callsite_count(&self) -> usize {
        self.callsites.len()
    }

    /// Frees the memory that only interning needs, after the last entry.
    pub fn seal(&mut self) {
        self.texts.seal();
        self.mappings.seal();
        self.frames.seal();
        self.callsites.seal();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_entries_share_an_id_and_read_back() {
        let mut tables = Tables::default();
        assert_eq!(tables.intern_str(""), StringId::default());
        let name = tables.intern_str("malloc");
        assert_eq!(tables.intern_bytes(b"malloc"), name);
        let mapping = Mapping {
            path: tables.intern_str("/lib/libc.so"),
            start: 0x1000,
            end: 0x2000,
            ..Mapping::default()
        };
        let lib = tables.intern_mapping(mapping.clone());
        assert_eq!(tables.intern_mapping(mapping), lib);
        let frame = |rel_pc| Frame {
            mapping: Some(lib),
            rel_pc,
            name,
            file: StringId::default(),
            line: 0,
        };
        let leaf = tables.intern_frame(frame(16));
        let root = tables.intern_frame(frame(32));
        assert_ne!(leaf, root);
        assert_eq!(tables.intern_frame(frame(16)), leaf);
        let site = tables.intern_callsite(&[leaf.0, root.0]);
        assert_eq!(tables.intern_callsite(&[leaf.0, root.0]), site);
        assert_ne!(tables.intern_callsite(&[root.0, leaf.0]), site);
        assert_eq!(tables.callsite(site).collect::<Vec<_>>(), [leaf, root]);
        assert_eq!(tables.string(tables.frame(leaf).name), "malloc");
    }

    #[test]
    fn text_that_is_no_utf8_is_kept_as_far_as_it_is() {
        let mut tables = Tables::default();
        let id = tables.intern_bytes(b"/data/\xff.so");
        assert_eq!(tables.string(id), "/data/\u{fffd}.so");
    }
}
