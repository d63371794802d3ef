//! Names added to the unwinder's output: symbolized lines and deobfuscated names, by frame. They
//! are side tables; the profile itself never changes.

use super::tables::{FrameId, StringId};
use std::collections::HashMap;

/// One source line of a frame; a frame with inlined calls has several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Line {
    /// Function, already demangled by the symbolizer.
    pub function: StringId,
    /// The function's linkage name; equal to `function` if only that is known, as in traces that
    /// another tool symbolized.
    pub linkage: StringId,
    /// Source file; empty if unknown.
    pub file: StringId,
    /// Line number; 0 if unknown.
    pub line: u32,
}

/// Symbolized lines and deobfuscated names of a recording's frames.
#[derive(Debug, Clone, Default)]
pub struct Symbols {
    /// Lines of all frames; frames with equal lines share them.
    table: Vec<Line>,
    lines: HashMap<FrameId, Lines>,
    names: HashMap<FrameId, StringId>,
}

/// A range of lines that any number of frames can share.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Lines {
    start: u32,
    end: u32,
}

impl Symbols {
    /// Adds lines, innermost first. Returns `None` if the table is full.
    pub fn add_lines(&mut self, innermost_first: &[Line]) -> Option<Lines> {
        let start = u32::try_from(self.table.len()).ok()?;
        let end = u32::try_from(self.table.len() + innermost_first.len()).ok()?;
        self.table.extend_from_slice(innermost_first);
        Some(Lines { start, end })
    }

    /// Sets the lines of a frame; a later call overrides an earlier one.
    pub fn set_lines(&mut self, frame: FrameId, lines: Lines) {
        self.lines.insert(frame, lines);
    }

    /// Returns the range of a frame's lines.
    pub fn row(&self, frame: FrameId) -> Option<Lines> {
        self.lines.get(&frame).copied()
    }

    /// Returns whether a frame's lines have names, and source files if `other` has them.
    pub fn knows_more(&self, frame: FrameId, other: Lines) -> bool {
        let has_file = |lines: &[Line]| lines.iter().any(|l| l.file != StringId::default());
        let is_named = |lines: &[Line]| lines.iter().any(|l| l.function != StringId::default());
        let own = self.lines(frame);
        is_named(own) && (has_file(own) || !has_file(self.of_row(other)))
    }

    /// Returns the number of stored lines; shared ones count once.
    pub fn held(&self) -> usize {
        self.table.len()
    }

    /// Sets the deobfuscated name of a frame.
    pub fn set_name(&mut self, frame: FrameId, name: StringId) {
        self.names.insert(frame, name);
    }

    /// Returns the symbolized lines of a frame, innermost first; empty if unsymbolized.
    pub fn lines(&self, frame: FrameId) -> &[Line] {
        self.row(frame).map_or(&[], |lines| self.of_row(lines))
    }

    fn of_row(&self, lines: Lines) -> &[Line] {
        &self.table[lines.start as usize..lines.end as usize]
    }

    /// Returns the deobfuscated name of a frame.
    pub fn name(&self, frame: FrameId) -> Option<StringId> {
        self.names.get(&frame).copied()
    }
}
