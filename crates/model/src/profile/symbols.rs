//! Names that came on top of what the unwinder recorded: symbolized lines and deobfuscated
//! names, by frame. Side tables: the profile itself never changes.

use super::tables::{FrameId, StringId};
use std::collections::HashMap;

/// One source line of a frame; a frame with inlined calls has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    /// Function, already demangled by the symbolizer.
    pub function: StringId,
    /// The function's linkage name; equal to `function` where only that is known, as in traces
    /// that somebody else symbolized.
    pub linkage: StringId,
    /// Source file; empty where unknown.
    pub file: StringId,
    /// Line; 0 where unknown.
    pub line: u32,
}

/// What symbolization and deobfuscation add to the frames of a recording.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// Lines of all frames; frames with the same share them.
    table: Vec<Line>,
    lines: HashMap<FrameId, Lines>,
    names: HashMap<FrameId, StringId>,
}

/// A row of lines, for any number of frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lines {
    start: u32,
    end: u32,
}

impl Symbols {
    /// Enters a row of lines, innermost first. `None` where there is no room for more.
    pub fn add_lines(&mut self, innermost_first: &[Line]) -> Option<Lines> {
        let start = u32::try_from(self.table.len()).ok()?;
        let end = u32::try_from(self.table.len() + innermost_first.len()).ok()?;
        self.table.extend_from_slice(innermost_first);
        Some(Lines { start, end })
    }

    /// Sets the lines of a frame; a later call wins.
    pub fn set_lines(&mut self, frame: FrameId, lines: Lines) {
        self.lines.insert(frame, lines);
    }

    /// The row of lines a frame has.
    pub fn row(&self, frame: FrameId) -> Option<Lines> {
        self.lines.get(&frame).copied()
    }

    /// Whether a frame's lines say what `other` does not: where the code was written.
    pub fn knows_more(&self, frame: FrameId, other: Lines) -> bool {
        let has_file = |lines: &[Line]| lines.iter().any(|l| l.file != StringId::default());
        let is_named = |lines: &[Line]| lines.iter().any(|l| l.function != StringId::default());
        let own = self.lines(frame);
        is_named(own) && (has_file(own) || !has_file(self.of_row(other)))
    }

    /// How many lines are held, shared ones once.
    pub fn held(&self) -> usize {
        self.table.len()
    }

    /// Sets the deobfuscated name of a frame.
    pub fn set_name(&mut self, frame: FrameId, name: StringId) {
        self.names.insert(frame, name);
    }

    /// The symbolized lines of a frame, innermost first; empty where there are none.
    pub fn lines(&self, frame: FrameId) -> &[Line] {
        self.row(frame).map_or(&[], |lines| self.of_row(lines))
    }

    fn of_row(&self, lines: Lines) -> &[Line] {
        &self.table[lines.start as usize..lines.end as usize]
    }

    /// The deobfuscated name of a frame.
    pub fn name(&self, frame: FrameId) -> Option<StringId> {
        self.names.get(&frame).copied()
    }
}
