//! `ModuleSymbols` (trace_packet.module_symbols, field 61): names and lines that a symbolizer
//! appended to the trace, by mapping (path and build ID) and address (`Frame.rel_pc`). They are
//! valid for every mapping with that path and build ID; a later packet overrides an earlier one.

use super::allowance::pay;
use super::wire::{Fields, WireError, each};
use heaptap_base::units::{Allowance, BuildId};
use heaptap_model::profile::{FrameId, Line, Lines, MappingId, Recording, StringId, Tables};
use std::collections::HashMap;
use std::ops::Range;

/// Maximum number of calls inlined at one address; further outer ones are left out, because every
/// frame with the address gets all of them.
pub(super) const MAX_DEPTH: usize = 256;

/// Memory of a module, of an address in it, and of a line, each with its lookup entry.
const MODULE: usize = 250;
const ADDRESS: usize = 60;
const LINE: usize = 24;
/// Memory of a name without its text.
const NAME: usize = 32;

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
    /// Returns an error if the packet is damaged; addresses before the damage are kept.
    pub(super) fn add(
        &mut self,
        message: &[u8],
        tables: &mut Tables,
        allowance: &mut Allowance,
    ) -> Result<(), WireError> {
        pay(allowance, MODULE)?;
        let (mut path, mut build_id) = (StringId::default(), BuildId::default());
        let mut addresses = Vec::new();
        let outcome = each(message, |number, value| match number {
            1 => path = tables.intern_bytes(value.bytes()),
            2 => build_id = BuildId(value.bytes().to_vec()),
            3 if value.bytes().is_empty() => {}
            3 => addresses.push(value.bytes()),
            _ => {}
        });
        let module = self.modules.entry((path, build_id)).or_default();
        for message in addresses {
            let start = self.lines.len();
            let mut address = 0;
            let mut fields = Fields::new(message);
            while let Some((number, value)) = fields.next()? {
                match number {
                    1 => address = value.number(),
                    2 if self.lines.len() - start < MAX_DEPTH => {
                        pay(allowance, LINE + 2 * NAME + 3 * value.bytes().len())?;
                        self.lines.push(read_line(value.bytes(), tables)?);
                    }
                    _ => {}
                }
            }
            if self.lines.len() > start {
                pay(allowance, ADDRESS)?;
                module.insert(address, start..self.lines.len());
            }
        }
        outcome
    }

    /// Attaches lines to all their frames.
    pub(super) fn apply(&self, recording: &mut Recording) {
        if self.modules.is_empty() {
            return;
        }
        recording.has_names = true;
        let tables = &recording.tables;
        let symbols = &mut recording.symbols;
        let mut rows: HashMap<usize, Option<Lines>> = HashMap::new();
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
                let row = rows
                    .entry(range.start)
                    .or_insert_with(|| symbols.add_lines(&self.lines[range.clone()]));
                if let Some(row) = *row {
                    symbols.set_lines(FrameId(at as u32), row);
                }
            }
        }
    }
}

fn read_line(message: &[u8], tables: &mut Tables) -> Result<Line, WireError> {
    let mut line = Line {
        function: StringId::default(),
        linkage: StringId::default(),
        file: StringId::default(),
        line: 0,
    };
    let mut fields = Fields::new(message);
    while let Some((number, value)) = fields.next()? {
        match number {
            1 => {
                line.function = known(value.bytes(), tables);
                line.linkage = line.function;
            }
            2 => line.file = known(value.bytes(), tables),
            3 => line.line = value.number() as u32,
            _ => {}
        }
    }
    Ok(line)
}

/// Interns a name; empty for a symbolizer's unknown name (`??`).
fn known(name: &[u8], tables: &mut Tables) -> StringId {
    match name {
        b"??" => StringId::default(),
        name => tables.intern_bytes(name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::bytes as field;
    use heaptap_model::profile::{Frame, Mapping};

    #[test]
    fn frames_at_one_address_share_its_lines() {
        let mut recording = Recording::default();
        let tables = &mut recording.tables;
        let path = tables.intern_str("/l.so");
        let mapping = tables.intern_mapping(Mapping {
            path,
            build_id: BuildId(vec![1]),
            start: 0,
            end: 0,
            exact_offset: 0,
            start_offset: 0,
            load_bias: 0,
        });
        for n in 0..1000 {
            let name = tables.intern_str(&n.to_string());
            tables.intern_frame(Frame {
                mapping: Some(mapping),
                rel_pc: 7,
                name,
                file: StringId::default(),
                line: 0,
            });
        }
        // More lines than one address can have.
        let lines = field(2, &[0x18, 5]).repeat(1000);
        let address = field(3, &[&[0x08, 7][..], &lines].concat());
        let message = [field(1, b"/l.so"), field(2, &[1]), address].concat();
        let mut symbols = ModuleSymbols::default();
        symbols
            .add(&message, tables, &mut Allowance::default())
            .unwrap();
        symbols.apply(&mut recording);
        assert_eq!(recording.symbols.held(), MAX_DEPTH);
        for n in 0..1000 {
            let lines = recording.symbols.lines(FrameId(n));
            assert_eq!((lines.len(), lines[0].line), (MAX_DEPTH, 5));
        }
    }
}
