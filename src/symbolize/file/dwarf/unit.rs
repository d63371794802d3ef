//! One unit: its abbreviations, and what its first entry sets for all others. Owns the reading
//! of no more of a unit than is wanted: ranges need one abbreviation, names no line program.

use super::entries::Cursor;
use super::work::Share;
use super::{DwarfError, Sections, Slice, Unit, UnitHeader};
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrevOffset, DebugAddrBase, DebugLineOffset,
    DebugLocListsBase, DebugRngListsBase, DebugStrOffsetsBase, Error, Section as _, UnitOffset,
    UnitType, constants as dw,
};
use std::collections::HashMap;
use std::sync::Arc;

/// Tables of abbreviations, which units may share. Kept by a thread.
#[derive(Debug, Default)]
pub(super) struct Tables(HashMap<DebugAbbrevOffset, Arc<Abbreviations>>);

/// Tables kept at once: units that share one come one after the other, or are few.
const MOST_TABLES: usize = 64;

impl Tables {
    fn get(
        &mut self,
        sections: &Sections<'_>,
        header: &UnitHeader<'_>,
        share: &mut Share<'_>,
    ) -> Result<Arc<Abbreviations>, DwarfError> {
        let offset = header.debug_abbrev_offset();
        if let Some(table) = self.0.get(&offset) {
            return Ok(Arc::clone(table));
        }
        // Whoever has every unit name another part of one long table is found out by this.
        let end = scan(sections, offset, share, |_, _| false)?;
        debug_assert!(end.is_none());
        let table = Arc::new(sections.debug_abbrev.abbreviations(offset)?);
        if self.0.len() >= MOST_TABLES {
            self.0.clear();
        }
        self.0.insert(offset, Arc::clone(&table));
        Ok(table)
    }
}

/// Goes through a table of abbreviations until one is the wanted; returns its bytes.
fn scan<'a>(
    sections: &Sections<'a>,
    offset: DebugAbbrevOffset,
    share: &mut Share<'_>,
    mut is_wanted: impl FnMut(u64, &[u8]) -> bool,
) -> Result<Option<&'a [u8]>, DwarfError> {
    let bytes = sections.debug_abbrev.reader().slice();
    let mut table = Cursor {
        bytes,
        at: offset.0,
    };
    loop {
        let start = table.at;
        let code = table.leb()?;
        if code == 0 {
            share.spend(1)?;
            return Ok(None);
        }
        table.leb()?;
        table.byte()?;
        loop {
            let (name, form) = (table.leb()?, table.leb()?);
            if form == u64::from(dw::DW_FORM_implicit_const.0) {
                table.leb()?;
            }
            if (name, form) == (0, 0) {
                break;
            }
        }
        let declaration = &bytes[start..table.at];
        share.spend(declaration.len() as u64)?;
        if is_wanted(code, declaration) {
            return Ok(Some(declaration));
        }
    }
}

/// A unit and what its first entry says.
pub(super) struct Root<'a> {
    /// Without its line program.
    pub unit: Unit<'a>,
    low: Option<AttributeValue<Slice<'a>>>,
    high: Option<AttributeValue<Slice<'a>>>,
    ranges: Option<AttributeValue<Slice<'a>>>,
    lines: Option<DebugLineOffset>,
    split: Option<AttributeValue<Slice<'a>>>,
}

impl<'a> Root<'a> {
    /// Reads a unit with all of its abbreviations.
    pub fn read(
        sections: &Sections<'a>,
        header: UnitHeader<'a>,
        tables: &mut Tables,
        share: &mut Share<'_>,
    ) -> Result<Root<'a>, DwarfError> {
        let abbreviations = tables.get(sections, &header, share)?;
        Root::read_with(sections, header, abbreviations, share)
    }

    /// Reads the first entry only, with the one abbreviation it needs: a file may have
    /// thousands of units.
    pub fn read_alone(
        sections: &Sections<'a>,
        header: UnitHeader<'a>,
        share: &mut Share<'_>,
    ) -> Result<Root<'a>, DwarfError> {
        let entries = header.range_from(UnitOffset(header.header_size())..)?;
        let mut cursor = Cursor {
            bytes: entries.slice(),
            at: 0,
        };
        let wanted = cursor.leb()?;
        let offset = header.debug_abbrev_offset();
        let declaration = scan(sections, offset, share, |code, _| code == wanted)?;
        let declaration = declaration.ok_or(Error::InvalidAbbreviationCode(wanted))?;
        let mut alone = declaration.to_vec();
        alone.push(0);
        let alone = gimli::DebugAbbrev::new(&alone, gimli::LittleEndian);
        let abbreviations = alone.abbreviations(DebugAbbrevOffset(0))?;
        Root::read_with(sections, header, Arc::new(abbreviations), share)
    }

    fn read_with(
        sections: &Sections<'a>,
        header: UnitHeader<'a>,
        abbreviations: Arc<Abbreviations>,
        share: &mut Share<'_>,
    ) -> Result<Root<'a>, DwarfError> {
        let (encoding, file) = (header.encoding(), sections.file_type);
        let unit = Unit {
            abbreviations: Arc::clone(&abbreviations),
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, file),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase(0),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(encoding, file),
            line_program: None,
            dwo_id: match header.type_() {
                UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id),
                _ => None,
            },
            header,
        };
        let mut root = Root {
            unit,
            low: None,
            high: None,
            ranges: None,
            lines: None,
            split: None,
        };
        let mut comp_dir = None;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let abbreviation = entries.read_abbreviation()?;
        let attributes = abbreviation.ok_or(Error::MissingUnitDie)?.attributes();
        share.spend(attributes.len() as u64)?;
        for spec in attributes {
            let attribute = entries.read_attribute(*spec)?;
            let value = attribute.value();
            match (attribute.name(), value) {
                (dw::DW_AT_low_pc, _) => root.low = Some(value),
                (dw::DW_AT_high_pc, _) => root.high = Some(value),
                (dw::DW_AT_ranges, _) => root.ranges = Some(value),
                (dw::DW_AT_comp_dir, _) => comp_dir = Some(value),
                (dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name, _) => root.split = Some(value),
                (dw::DW_AT_stmt_list, AttributeValue::DebugLineRef(lines)) => {
                    root.lines = Some(lines);
                }
                (dw::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    root.unit.str_offsets_base = base;
                }
                (_, AttributeValue::DebugAddrBase(base)) => root.unit.addr_base = base,
                (
                    dw::DW_AT_rnglists_base | dw::DW_AT_GNU_ranges_base,
                    AttributeValue::DebugRngListsBase(base),
                ) => root.unit.rnglists_base = base,
                (dw::DW_AT_GNU_dwo_id, AttributeValue::DwoId(id)) => {
                    root.unit.dwo_id.get_or_insert(id);
                }
                _ => {}
            }
        }
        // Values by index need the bases, which may stand after them.
        let text = |value| sections.attr_string(&root.unit, value).ok();
        let comp_dir = comp_dir.and_then(text);
        let low = root.low.map(|low| sections.attr_address(&root.unit, low));
        root.unit.comp_dir = comp_dir;
        root.unit.low_pc = low.transpose()?.flatten().unwrap_or(0);
        Ok(root)
    }

    /// Calls `each` with the ranges of the unit's code.
    pub fn ranges(
        &self,
        sections: &Sections<'a>,
        share: &mut Share<'_>,
        mut each: impl FnMut(u64, u64),
    ) -> Result<(), DwarfError> {
        let unit = &self.unit;
        match (self.low, self.high, self.ranges) {
            (Some(_), Some(AttributeValue::Udata(size)), _) => {
                each(unit.low_pc, unit.low_pc.wrapping_add(size));
            }
            (Some(_), Some(high), _) => {
                let high = sections.attr_address(unit, high)?;
                each(unit.low_pc, high.unwrap_or(0));
            }
            (_, _, Some(list)) => {
                let Some(mut list) = sections.attr_ranges(unit, list)? else {
                    return Ok(());
                };
                while let Some(range) = list.next()? {
                    share.spend(RANGE)?;
                    each(range.begin, range.end);
                }
            }
            _ => {}
        }
        Ok(())
    }

    /// Reads the header of the unit's line program, with its tables of folders and files.
    pub fn read_lines(
        &mut self,
        sections: &Sections<'a>,
        share: &mut Share<'_>,
    ) -> Result<(), DwarfError> {
        let Some(offset) = self.lines else {
            return Ok(());
        };
        // Many units may have one long header, so its length is paid for before it is read.
        let bytes = sections.debug_line.reader().slice();
        let mut cursor = Cursor {
            bytes,
            at: offset.0,
        };
        let length = match cursor.number(4)? {
            0xffff_ffff => cursor.number(8)?,
            length => length,
        };
        share.spend(length.min(bytes.len() as u64))?;
        let size = self.unit.header.address_size();
        let program = sections
            .debug_line
            .program(offset, size, self.unit.comp_dir, None)?;
        self.unit.line_program = Some(program);
        Ok(())
    }

    /// The path of the file with the unit that was split off this one.
    pub fn split_path(&self, sections: &Sections<'a>) -> Option<Slice<'a>> {
        self.unit.dwo_id?;
        sections.attr_string(&self.unit, self.split?).ok()
    }
}

/// What it costs to read a range, in steps.
pub(super) const RANGE: u64 = 8;
