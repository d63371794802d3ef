//! `ModuleSymbols` (trace_packet.module_symbols, field 61): names and lines that a symbolizer
//! appended to the trace, by mapping (path and build ID) and address (`Frame.rel_pc`). They
//! hold for every mapping with that path and build ID; a later packet wins.

use super::wire::{Fields, WireError};
use crate::profile::{FrameId, Line, MappingId, Recording, StringId, Tables};
use crate::units::BuildId;
use std::collections::HashMap;
use std::ops::Range;

/// All symbols of a trace, before they are attached to frames.
#[derive(Debug, Default)]
pub(super) struct ModuleSymbols {
    modules: HashMap<(StringId, BuildId), HashMap<u64, Range<usize>>>,
    /// Innermost first within an address.
    lines: Vec<Line>,
}

impl ModuleSymbols {
    /// Adds a packet.
    ///
    /// # Errors
    /// Where it is damaged; addresses before the damage are kept.
    pub(super) fn add(&mut self, message: &[u8], tables: &mut Tables) -> Result<(), WireError> {
        let (mut path, mut build_id) = (StringId::default(), BuildId::default());
        let mut fields = Fields::new(message);
        let mut addresses = Vec::new();
        let outcome = loop {
            match fields.next() {
                Ok(Some((1, value))) => path = tables.intern_bytes(value.bytes()),
                Ok(Some((2, value))) => build_id = BuildId(value.bytes().to_vec()),
                Ok(Some((3, value))) => addresses.push(value.bytes()),
                Ok(Some(_)) => {}
                Ok(None) => break Ok(()),
                Err(error) => break Err(error),
            }
        };
        let module = self.modules.entry((path, build_id)).or_default();
        for message in addresses {
            let start = self.lines.len();
            let mut address = 0;
            let mut fields = Fields::new(message);
            while let Some((number, value)) = fields.next()? {
                match number {
                    1 => address = value.number(),
                    2 => self.lines.push(read_line(value.bytes(), tables)?),
                    _ => {}
                }
            }
            if self.lines.len() > start {
                module.insert(address, start..self.lines.len());
            }
        }
        outcome
    }

    /// Attaches lines to all frames they are for.
    pub(super) fn apply(&self, recording: &mut Recording) {
        if self.modules.is_empty() {
            return;
        }
        let tables = &recording.tables;
        let modules: Vec<_> = tables
            .mappings()
            .iter()
            .map(|mapping| self.modules.get(&(mapping.path, mapping.build_id.clone())))
            .collect();
        for (at, frame) in tables.frames().iter().enumerate() {
            let Some(MappingId(mapping)) = frame.mapping else {
                continue;
            };
            if let Some(module) = modules[mapping as usize]
                && let Some(range) = module.get(&frame.rel_pc)
            {
                let lines = self.lines[range.clone()].to_vec();
                recording.symbols.set_lines(FrameId(at as u32), lines);
            }
        }
    }
}

fn read_line(message: &[u8], tables: &mut Tables) -> Result<Line, WireError> {
    let mut line = Line {
        function: StringId::default(),
        file: StringId::default(),
        line: 0,
    };
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => line.function = tables.intern_bytes(value.bytes()),
            2 => line.file = tables.intern_bytes(value.bytes()),
            3 => line.line = value.number() as u32,
            _ => {}
        }
    }
    Ok(line)
}
