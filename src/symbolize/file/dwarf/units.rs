//! Which unit has which addresses, without reading the units: from `.debug_aranges`, and for
//! units that are not in it from the unit's first entry.

use super::entries::Cursor;
use super::{Sections, UnitHeader};
use gimli::{
    Abbreviations, AttributeValue, DebugAbbrevOffset, DebugAddrBase, DebugLocListsBase,
    DebugRngListsBase, DebugStrOffsetsBase, Error, Section as _, UnitOffset, UnitType,
    constants as dw,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};
use std::sync::Arc;

/// The units of a file.
#[derive(Debug)]
pub(super) struct Units<'a> {
    /// In order of the section.
    headers: Vec<UnitHeader<'a>>,
    /// In order of their begin; they may overlap.
    ranges: Vec<UnitRange>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct UnitRange {
    begin: u64,
    end: u64,
    unit: u32,
}

/// A unit, and which addresses it has.
#[derive(Debug)]
pub(super) struct Task {
    pub unit: usize,
    /// Indices into the addresses of the lookup, ascending.
    pub indices: Vec<u32>,
}

impl<'a> Units<'a> {
    /// Reads headers and ranges. What is damaged ends the reading of its section, not more.
    pub fn read(sections: &Sections<'a>) -> Units<'a> {
        let mut headers = Vec::new();
        let mut units = sections.units();
        while let Ok(Some(header)) = units.next() {
            headers.push(header);
        }
        let mut units = Units {
            headers,
            ranges: Vec::new(),
        };
        let covered = units.read_aranges(sections);
        for unit in 0..units.headers.len() {
            if !covered.contains(&unit) {
                // A unit whose first entry is damaged has no addresses.
                let _ = units.read_root(sections, unit);
            }
        }
        units.ranges.sort_unstable();
        units
    }

    /// No units.
    pub fn none() -> Units<'a> {
        Units {
            headers: Vec::new(),
            ranges: Vec::new(),
        }
    }

    /// The header of this unit.
    pub fn header(&self, unit: usize) -> &UnitHeader<'a> {
        &self.headers[unit]
    }

    /// The unit that this offset of the section lies in.
    pub fn containing(&self, offset: usize) -> Option<&UnitHeader<'a>> {
        let after = self
            .headers
            .partition_point(|header| header.offset().0 <= offset);
        self.headers.get(after.checked_sub(1)?)
    }

    /// The units with any of these addresses, which are sorted. Of several units with one
    /// address it is the first, as with llvm-symbolizer. The longest units come first, so that
    /// no thread is left alone with one at the end.
    pub fn tasks(&self, addresses: &[u64]) -> Vec<Task> {
        let mut found = Vec::new();
        let mut open: BinaryHeap<Reverse<(u32, u64)>> = BinaryHeap::new();
        let mut ranges = self.ranges.iter().peekable();
        for (index, address) in addresses.iter().enumerate() {
            while let Some(range) = ranges.next_if(|range| range.begin <= *address) {
                open.push(Reverse((range.unit, range.end)));
            }
            while let Some(Reverse((unit, end))) = open.peek() {
                if address < end {
                    found.push((*unit, index as u32));
                    break;
                }
                open.pop();
            }
        }
        found.sort_unstable();
        let mut tasks: Vec<Task> = Vec::new();
        for (unit, index) in found {
            let unit = unit as usize;
            match tasks.last_mut() {
                Some(task) if task.unit == unit => task.indices.push(index),
                _ => tasks.push(Task {
                    unit,
                    indices: vec![index],
                }),
            }
        }
        tasks.sort_by_key(|task| Reverse(self.headers[task.unit].unit_length()));
        tasks
    }

    /// Returns the units that have an entry in `.debug_aranges`.
    fn read_aranges(&mut self, sections: &Sections<'a>) -> HashSet<usize> {
        let mut covered = HashSet::new();
        let mut sets = sections.debug_aranges.headers();
        while let Ok(Some(set)) = sets.next() {
            let offset = set.debug_info_offset().0;
            let at = self
                .headers
                .binary_search_by_key(&offset, |header| header.offset().0);
            let Ok(unit) = at else {
                continue;
            };
            let mut entries = set.entries();
            while let Ok(Some(entry)) = entries.next() {
                let range = entry.range();
                covered.insert(unit);
                self.add(unit, range.begin, range.end);
            }
        }
        covered
    }

    fn add(&mut self, unit: usize, begin: u64, end: u64) {
        if begin < end {
            let unit = unit as u32;
            self.ranges.push(UnitRange { begin, end, unit });
        }
    }

    /// Reads the ranges in a unit's first entry, and of the unit's abbreviations only the one of
    /// that entry: a file may have thousands of units.
    fn read_root(&mut self, sections: &Sections<'a>, unit: usize) -> gimli::Result<()> {
        let header = self.headers[unit];
        if matches!(
            header.type_(),
            UnitType::Type { .. } | UnitType::SplitType { .. }
        ) {
            return Ok(());
        }
        let abbreviations = root_abbreviation(sections, &header)?;
        let mut root = gimli::Unit {
            abbreviations: Arc::new(Abbreviations::default()),
            name: None,
            comp_dir: None,
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase(0),
            addr_base: DebugAddrBase(0),
            loclists_base: DebugLocListsBase(0),
            rnglists_base: DebugRngListsBase::default_for_encoding_and_file(
                header.encoding(),
                sections.file_type,
            ),
            line_program: None,
            dwo_id: None,
            header,
        };
        let (mut low, mut high, mut list) = (None, None, None);
        let header = root.header;
        let mut entries = header.entries_raw(&abbreviations, None)?;
        let Some(abbreviation) = entries.read_abbreviation()? else {
            return Ok(());
        };
        for spec in abbreviation.attributes() {
            let attribute = entries.read_attribute(*spec)?;
            match (attribute.name(), attribute.value()) {
                (dw::DW_AT_low_pc, value) => low = Some(value),
                (dw::DW_AT_high_pc, value) => high = Some(value),
                (dw::DW_AT_ranges, value) => list = Some(value),
                (_, AttributeValue::DebugAddrBase(base)) => root.addr_base = base,
                (dw::DW_AT_rnglists_base, AttributeValue::DebugRngListsBase(base)) => {
                    root.rnglists_base = base;
                }
                _ => {}
            }
        }
        if let Some(low) = low {
            root.low_pc = sections.attr_address(&root, low)?.unwrap_or(0);
        }
        match (low, high, list) {
            (Some(_), Some(AttributeValue::Udata(size)), _) => {
                self.add(unit, root.low_pc, root.low_pc.wrapping_add(size));
            }
            (Some(_), Some(high), _) => {
                let high = sections.attr_address(&root, high)?.unwrap_or(0);
                self.add(unit, root.low_pc, high);
            }
            (_, _, Some(list)) => {
                let Some(mut list) = sections.attr_ranges(&root, list)? else {
                    return Ok(());
                };
                while let Some(range) = list.next()? {
                    self.add(unit, range.begin, range.end);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// The abbreviation of a unit's first entry, alone.
fn root_abbreviation(
    sections: &Sections<'_>,
    header: &UnitHeader<'_>,
) -> gimli::Result<Abbreviations> {
    let entries = header.range_from(UnitOffset(header.header_size())..)?;
    let mut cursor = Cursor {
        bytes: entries.slice(),
        at: 0,
    };
    let wanted = cursor.leb()?;
    let mut table = Cursor {
        bytes: sections.debug_abbrev.reader().slice(),
        at: header.debug_abbrev_offset().0,
    };
    loop {
        let start = table.at;
        let code = table.leb()?;
        if code == 0 {
            return Err(Error::InvalidAbbreviationCode(wanted));
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
        if code == wanted {
            let mut alone = table.bytes[start..table.at].to_vec();
            alone.push(0);
            let alone = gimli::DebugAbbrev::new(&alone, gimli::LittleEndian);
            return alone.abbreviations(DebugAbbrevOffset(0));
        }
    }
}
