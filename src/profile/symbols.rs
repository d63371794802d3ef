//! Names that came on top of what the unwinder recorded: symbolized lines and deobfuscated
//! names, by frame. Side tables: the profile itself never changes.

use super::tables::{FrameId, StringId};
use std::collections::HashMap;

/// One source line of a frame; a frame with inlined calls has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    /// Function, already demangled by the symbolizer.
    pub function: StringId,
    /// Source file; empty where unknown.
    pub file: StringId,
    /// Line; 0 where unknown.
    pub line: u32,
}

/// What symbolization and deobfuscation add to the frames of a recording.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    lines: HashMap<FrameId, Vec<Line>>,
    names: HashMap<FrameId, StringId>,
}

impl Symbols {
    /// Sets the lines of a frame, innermost first; a later call wins.
    pub fn set_lines(&mut self, frame: FrameId, innermost_first: Vec<Line>) {
        self.lines.insert(frame, innermost_first);
    }

    /// Sets the deobfuscated name of a frame.
    pub fn set_name(&mut self, frame: FrameId, name: StringId) {
        self.names.insert(frame, name);
    }

    /// The symbolized lines of a frame, innermost first; empty where there are none.
    pub fn lines(&self, frame: FrameId) -> &[Line] {
        self.lines.get(&frame).map_or(&[], Vec::as_slice)
    }

    /// The deobfuscated name of a frame.
    pub fn name(&self, frame: FrameId) -> Option<StringId> {
        self.names.get(&frame).copied()
    }
}
