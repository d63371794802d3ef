//! Where the units of a file are, and what it takes to read the root entry of one.

use super::abbrev::{Abbrevs, Cursor};
use super::error::DwarfError;
use super::unit::{Parts, Slice, Unit};
use super::work::Share;
use gimli::{DebugInfo, DebugInfoOffset, Encoding, LittleEndian, UnitHeader, UnitType};
use std::collections::HashMap;
use std::sync::Arc;

/// Where the units of `.debug_info` are.
#[derive(Debug, Default)]
pub(super) struct Units {
    /// Of each unit where it starts and ends, in order; type units too.
    spans: Vec<Span>,
}

#[derive(Debug, Clone, Copy)]
struct Span {
    start: usize,
    end: usize,
    /// Whether code belongs to it.
    has_code: bool,
}

impl Units {
    /// Reads the headers of all units. Those before a damaged one are kept.
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

    /// Where the unit starts that holds this offset of the section.
    pub fn start_of(&self, offset: usize) -> Option<usize> {
        let after = self.spans.partition_point(|span| span.start <= offset);
        let span = self.spans[..after].last()?;
        (offset < span.end).then_some(span.start)
    }

    /// Where units with code start.
    pub fn with_code(&self) -> impl Iterator<Item = usize> {
        self.spans
            .iter()
            .filter(|span| span.has_code)
            .map(|span| span.start)
    }

    /// The bytes of the unit that starts here.
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
    /// The header of the unit at this offset.
    pub fn header(&self, offset: usize) -> Result<UnitHeader<Slice<'data>>, DwarfError> {
        let info = DebugInfo::new(self.parts.info, LittleEndian);
        Ok(info.header_from_offset(DebugInfoOffset(offset))?)
    }

    /// The unit at this offset with the abbreviation of its root entry only.
    pub fn root(&self, offset: usize, work: &Share<'_>) -> Result<Unit<'data>, DwarfError> {
        self.root_with(offset, &mut Roots::new(), work)
    }

    /// The same; `known` keeps what was read for other units.
    pub fn root_with(
        &self,
        offset: usize,
        known: &mut Roots,
        work: &Share<'_>,
    ) -> Result<Unit<'data>, DwarfError> {
        let header = self.header(offset)?;
        let mut root = Cursor {
            bytes: self.parts.info,
            at: offset + header.header_size(),
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
                if known.len() >= MOST_KEPT {
                    known.clear();
                }
                known.insert(key, Arc::clone(&abbrevs));
                abbrevs
            }
        };
        Unit::read(&self.parts, &header, abbrevs, work)
    }
}

/// Beginnings of tables of abbreviations, by offset and last code: units of one table have their
/// roots in common.
pub(super) type Roots = HashMap<(usize, u64, Encoding), Arc<Abbrevs>>;
const MOST_KEPT: usize = 64;
