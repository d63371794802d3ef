//! Which unit has which addresses, without reading the units: from `.debug_aranges`, and for
//! units that are not in it from the unit's first entry.

use super::unit::Root;
use super::work::Share;
use super::{DwarfError, Sections, UnitHeader};
use gimli::UnitType;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashSet};

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
    /// Reads headers and ranges. Damage goes to `damage`, with the section that it is in: it ends
    /// the reading of that section, or of one unit.
    pub fn read(
        sections: &Sections<'a>,
        share: &mut Share<'_>,
        mut damage: impl FnMut(&'static str, DwarfError),
    ) -> Units<'a> {
        let mut units = Units::none();
        let mut headers = sections.units();
        loop {
            match headers.next() {
                Ok(Some(header)) => units.headers.push(header),
                Ok(None) => break,
                Err(error) => {
                    damage(".debug_info", error.into());
                    break;
                }
            }
        }
        let covered = units.read_aranges(sections);
        let covered = covered.unwrap_or_else(|error| {
            damage(".debug_aranges", error.into());
            // Some of it may be true; what the units say themselves is.
            units.ranges.clear();
            HashSet::new()
        });
        for unit in 0..units.headers.len() {
            let header = units.headers[unit];
            let is_type = matches!(
                header.type_(),
                UnitType::Type { .. } | UnitType::SplitType { .. }
            );
            if is_type || covered.contains(&unit) {
                continue;
            }
            let root = Root::read_alone(sections, header, share);
            let read = root.and_then(|root| {
                root.ranges(sections, share, |begin, end| units.add(unit, begin, end))
            });
            match read {
                Ok(()) => {}
                Err(DwarfError::TooMuchWork) => {
                    damage(".debug_info", DwarfError::TooMuchWork);
                    break;
                }
                Err(error) => damage(".debug_info", error),
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
    fn read_aranges(&mut self, sections: &Sections<'a>) -> gimli::Result<HashSet<usize>> {
        let mut covered = HashSet::new();
        let mut sets = sections.debug_aranges.headers();
        while let Some(set) = sets.next()? {
            let offset = set.debug_info_offset().0;
            let at = self
                .headers
                .binary_search_by_key(&offset, |header| header.offset().0);
            let Ok(unit) = at else {
                continue;
            };
            let mut entries = set.entries();
            while let Some(entry) = entries.next()? {
                let range = entry.range();
                covered.insert(unit);
                self.add(unit, range.begin, range.end);
            }
        }
        Ok(covered)
    }

    fn add(&mut self, unit: usize, begin: u64, end: u64) {
        if begin < end {
            let unit = unit as u32;
            self.ranges.push(UnitRange { begin, end, unit });
        }
    }
}
