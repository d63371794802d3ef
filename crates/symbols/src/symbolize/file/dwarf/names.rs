//! Names and call sites of functions: reads the entries that were found, and follows their
//! references to the entries with the names, in any unit and in the dwz file.

use super::abbrev::Abbrevs;
use super::error::DwarfError;
use super::unit::{Parts, Slice, Unit};
use super::units::File;
use super::work::Share;
use gimli::constants as dw;
use gimli::{AttributeValue, Encoding, UnitHeader};
use std::collections::HashMap;
use std::sync::Arc;

/// File that contains an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Home {
    /// The file itself, or the split one.
    Own,
    /// The dwz file.
    Supplement,
}

/// Facts from the entry of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Details<'data> {
    /// Linkage name, otherwise the name in the source.
    pub name: Option<&'data [u8]>,
    /// Location of the call of an inlined function: number of the file, line, column.
    pub call_file: u64,
    pub call_line: u32,
    pub call_column: u32,
}

/// Reader of units and names, with caches.
pub(super) struct Reader<'run, 'data> {
    own: &'run File<'data>,
    supplement: Option<&'run File<'data>>,
    pub work: Share<'run>,
    tables: Tables,
    /// True if an entry of another unit of the own file was needed and is not there.
    pub is_incomplete: bool,
    units: HashMap<(Home, usize), Arc<Unit<'data>>>,
    /// Functions of the current unit, by offset of the entry in the section.
    details: HashMap<usize, Details<'data>>,
    /// Names of entries that others refer to, by offset.
    named: HashMap<(Home, usize), Named<'data>>,
}

/// Cached abbreviation tables.
#[derive(Default)]
pub(super) struct Tables {
    known: HashMap<(Home, usize, Encoding), Arc<Abbrevs>>,
    /// Total memory of the tables in bytes.
    kept: usize,
}

/// Maximum length of a chain of references; a longer one is a cycle.
const MAX_REFERENCES: usize = 16;
/// Maximum number of cached tables and of cached units.
const MAX_KEPT: usize = 256;
/// Maximum memory of the cached tables in bytes; those of a unit take some hundred kilobytes.
const MAX_MEMORY: usize = 32 << 20;

impl<'run, 'data> Reader<'run, 'data> {
    pub fn new(
        own: &'run File<'data>,
        supplement: Option<&'run File<'data>>,
        work: Share<'run>,
    ) -> Reader<'run, 'data> {
        Reader {
            own,
            supplement,
            work,
            tables: Tables::default(),
            is_incomplete: false,
            units: HashMap::new(),
            details: HashMap::new(),
            named: HashMap::new(),
        }
    }

    /// Uses tables that another reader of a part of the same file has cached.
    pub fn with_tables(mut self, tables: Tables) -> Reader<'run, 'data> {
        self.tables = tables;
        self
    }

    /// Ends reading and returns the cached tables.
    pub fn into_tables(self) -> Tables {
        self.tables
    }

    fn file(&self, home: Home) -> Option<&'run File<'data>> {
        match home {
            Home::Own => Some(self.own),
            Home::Supplement => self.supplement,
        }
    }

    /// Returns the unit with its header at this offset.
    pub fn unit(&mut self, home: Home, offset: usize) -> Result<Arc<Unit<'data>>, DwarfError> {
        if let Some(unit) = self.units.get(&(home, offset)) {
            return Ok(Arc::clone(unit));
        }
        let unit = Arc::new(self.read(home, offset)?);
        if self.units.len() >= MAX_KEPT {
            self.units.clear();
        }
        self.units.insert((home, offset), Arc::clone(&unit));
        Ok(unit)
    }

    /// Reads the unit with its header at this offset.
    pub fn read(&mut self, home: Home, offset: usize) -> Result<Unit<'data>, DwarfError> {
        let file = self.file(home).ok_or(DwarfError::Offset)?;
        let header = file.header(offset)?;
        let abbrevs = self.abbrevs(home, &file.parts, &header)?;
        Unit::read(&file.parts, &header, abbrevs, &self.work)
    }

    fn abbrevs(
        &mut self,
        home: Home,
        parts: &Parts<'data>,
        header: &UnitHeader<Slice<'data>>,
    ) -> Result<Arc<Abbrevs>, DwarfError> {
        let offset = header.debug_abbrev_offset().0;
        let key = (home, offset, header.encoding());
        if let Some(abbrevs) = self.tables.known.get(&key) {
            return Ok(Arc::clone(abbrevs));
        }
        let abbrevs = Abbrevs::read(parts.abbrev, offset, header.encoding(), None, &self.work)?;
        let abbrevs = Arc::new(abbrevs);
        let tables = &mut self.tables;
        tables.kept += abbrevs.memory();
        if tables.known.len() >= MAX_KEPT || tables.kept > MAX_MEMORY {
            tables.known.clear();
            // Units hold references to the tables.
            self.units.clear();
            tables.kept = abbrevs.memory();
        }
        tables.known.insert(key, Arc::clone(&abbrevs));
        Ok(abbrevs)
    }

    /// Clears the functions of the previous unit.
    pub fn begin_unit(&mut self) {
        self.details.clear();
        self.named.clear();
    }

    /// Returns the facts about the function with its entry at `entry` in the unit. Unreadable facts
    /// are unknown, because the symbol table might have them.
    pub fn details(&mut self, unit: &Unit<'data>, entry: usize) -> Details<'data> {
        if let Some(details) = self.details.get(&entry) {
            return *details;
        }
        let details = match self.read_entry(Home::Own, unit, entry) {
            Ok(read) => {
                let named = self.named(read.named, read.reference, unit, MAX_REFERENCES);
                Details {
                    name: named.linkage.or(named.plain),
                    ..read.details
                }
            }
            Err(_) => Details::default(),
        };
        self.details.insert(entry, details);
        details
    }

    /// Returns the names of an entry: its own, or those of the entries that it refers to.
    fn named(
        &mut self,
        mut named: Named<'data>,
        reference: Option<(Home, usize)>,
        unit: &Unit<'data>,
        further: usize,
    ) -> Named<'data> {
        let Some((home, at)) = reference else {
            return named;
        };
        if named.linkage.is_some() || further == 0 {
            return named;
        }
        let key = (home, at);
        let other = match self.named.get(&key) {
            Some(other) => *other,
            None => {
                let other = self.follow(home, at, unit, further - 1).unwrap_or_default();
                self.named.insert(key, other);
                other
            }
        };
        named.linkage = other.linkage;
        named.plain = named.plain.or(other.plain);
        named
    }

    /// Returns the names of the entry at this offset of the section; `unit` refers to it.
    fn follow(
        &mut self,
        home: Home,
        at: usize,
        unit: &Unit<'data>,
        further: usize,
    ) -> Result<Named<'data>, DwarfError> {
        let inside = at
            .checked_sub(unit.offset)
            .filter(|at| *at < unit.bytes.len());
        if let Some(entry) = inside
            && home == Home::Own
        {
            let read = self.read_entry(home, unit, entry)?;
            return Ok(self.named(read.named, read.reference, unit, further));
        }
        let file = self.file(home).ok_or(DwarfError::Offset)?;
        let Some(start) = file.units.start_of(at) else {
            self.is_incomplete |= home == Home::Own;
            return Err(DwarfError::Offset);
        };
        let unit = self.unit(home, start)?;
        let read = self.read_entry(home, &unit, at - start)?;
        Ok(self.named(read.named, read.reference, &unit, further))
    }

    fn read_entry(
        &self,
        home: Home,
        unit: &Unit<'data>,
        entry: usize,
    ) -> Result<Read<'data>, DwarfError> {
        let file = self.file(home).ok_or(DwarfError::Offset)?;
        let (abbrev, at) = unit.entry(entry)?;
        let specs = unit.abbrevs.attributes(abbrev);
        // Attributes can have size zero.
        self.work.take(specs.len())?;
        let mut read = Read::default();
        let mut reader = unit.attributes_at(at)?;
        for spec in specs {
            let attribute = reader.read_attribute(*spec)?;
            let text = || {
                let text = unit.string(&file.parts, attribute.value());
                let text = text.filter(|text| !text.is_empty());
                self.work.take(text.map_or(0, <[u8]>::len))?;
                Ok::<_, DwarfError>(text)
            };
            // Numbers that are too large come from damage and count as unknown.
            let number = || attribute.udata_value().and_then(|n| u32::try_from(n).ok());
            match attribute.name() {
                dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => {
                    read.named.linkage = text()?;
                }
                dw::DW_AT_name => read.named.plain = text()?,
                dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                    read.reference = match attribute.value() {
                        AttributeValue::UnitRef(at) => {
                            unit.offset.checked_add(at.0).map(|at| (home, at))
                        }
                        AttributeValue::DebugInfoRef(at) => Some((home, at.0)),
                        AttributeValue::DebugInfoRefSup(at) => Some((Home::Supplement, at.0)),
                        _ => None,
                    };
                }
                dw::DW_AT_call_file => {
                    read.details.call_file = attribute.udata_value().unwrap_or(0);
                }
                dw::DW_AT_call_line => read.details.call_line = number().unwrap_or(0),
                dw::DW_AT_call_column => read.details.call_column = number().unwrap_or(0),
                _ => {}
            }
        }
        Ok(read)
    }
}

#[derive(Debug, Clone, Copy, Default)]
struct Named<'data> {
    linkage: Option<&'data [u8]>,
    plain: Option<&'data [u8]>,
}

/// Contents of one entry.
#[derive(Default)]
struct Read<'data> {
    named: Named<'data>,
    /// `DW_AT_abstract_origin` or `DW_AT_specification`.
    reference: Option<(Home, usize)>,
    details: Details<'data>,
}
