//! Locations of the units in a file, and reading of root entries.

use super::abbrev::{Abbrevs, Cursor};
use super::error::DwarfError;
use super::unit::{Parts, Slice, Unit};
use super::work::Share;
use gimli::{DebugInfo, DebugInfoOffset, Encoding, LittleEndian, UnitHeader, UnitType};
use std::collections::HashMap;
use std::ops::Range;
use std::sync::Arc;

/// Locations of the units in `.debug_info`.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Start and end of each unit, including type units, in order.
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    /// True if the unit can have code.
    has_code: bool,
}

impl Units {
    /// Reads the headers of all units. Units before a damaged one are kept.
    pub fn read(info: &[u8]) -> (Units, Result<(), DwarfError>) {
        let mut units = Units::default();
        let mut headers = DebugInfo::new(info, LittleEndian).units();
        loop {
            match headers.next() {
                Ok(None) => return (units, Ok(())),
                Err(error) => return (units, Err(error.into())),
                Ok(Some(header)) => {
                    let start = header.offset().0;
                    units.spans.push(Span {
                        start,
                        end: start + header.length_including_self(),
                        has_code: !matches!(
                            header.type_(),
                            UnitType::Type { .. } | UnitType::SplitType { .. }
                        ),
                    });
                }
            }
        }
    }

    /// Makes a list of one unit, which takes these bytes of the section.
    pub fn of_one(bytes: Range<usize>) -> Units {
        let mut units = Units::default();
        units.add(bytes, true);
        units
    }

    /// Adds a unit that follows the others.
    pub fn add(&mut self, bytes: Range<usize>, has_code: bool) {
        self.spans.push(Span {
            start: bytes.start,
            end: bytes.end,
            has_code,
        });
    }

    /// Returns the start of the unit that contains this offset of the section.
    pub fn start_of(&self, offset: usize) -> Option<usize> {
        let after = self.spans.partition_point(|span| span.start <= offset);
        let span = self.spans[..after].last()?;
        (offset < span.end).then_some(span.start)
    }

    /// Returns the starts of units that can have code.
    pub fn with_code(&self) -> impl Iterator<Item = usize> {
        self.spans
            .iter()
            .filter(|span| span.has_code)
            .map(|span| span.start)
    }

    /// Returns the size in bytes of the unit that starts here.
    pub fn size_of(&self, start: usize) -> usize {
        let found = self.spans.binary_search_by_key(&start, |span| span.start);
        found.map_or(0, |at| self.spans[at].end - start)
    }
}

/// Debug information of one file.
pub(super) struct File<'data> {
    pub parts: Parts<'data>,
    pub units: Units,
}

impl<'data> File<'data> {
    /// Returns the header of the unit at this offset.
    pub fn header(&self, offset: usize) -> Result<UnitHeader<Slice<'data>>, DwarfError> {
        let info = DebugInfo::new(self.parts.info, LittleEndian);
        let at = offset.checked_sub(self.parts.info_start);
        let at = DebugInfoOffset(at.ok_or(DwarfError::Offset)?);
        Ok(info.header_from_offset(at)?)
    }

    /// Returns the unit at this offset, with only the abbreviation of its root entry.
    pub fn root(&self, offset: usize, work: &Share<'_>) -> Result<Unit<'data>, DwarfError> {
        self.root_with(offset, &mut Roots::new(), work)
    }

    /// Returns the unit at this offset; `known` caches abbreviations for other units.
    pub fn root_with(
        &self,
        offset: usize,
        known: &mut Roots,
        work: &Share<'_>,
    ) -> Result<Unit<'data>, DwarfError> {
        let header = self.header(offset)?;
        let mut root = Cursor {
            bytes: self.parts.info,
            at: header.offset().0 + header.header_size(),
        };
        let code = root.leb().ok_or(DwarfError::Cut)?;
        let table = header.debug_abbrev_offset().0;
        let key = (table, code, header.encoding());
        let abbrevs = match known.get(&key) {
            Some(abbrevs) => Arc::clone(abbrevs),
            None => {
                let read =
                    |until| Abbrevs::read(self.parts.abbrev, table, header.encoding(), until, work);
                let abbrevs = Arc::new(read(Some(code))?);
                if known.len() >= MAX_KEPT {
                    known.clear();
                }
                known.insert(key, Arc::clone(&abbrevs));
                abbrevs
            }
        };
        Unit::read(&self.parts, &header, abbrevs, work)
    }
}

/// Beginnings of abbreviation tables, by offset and last code. Units with the same table usually
/// have the same abbreviation for their roots.
pub(super) type Roots = HashMap<(usize, u64, Encoding), Arc<Abbrevs>>;
const MAX_KEPT: usize = 64;
