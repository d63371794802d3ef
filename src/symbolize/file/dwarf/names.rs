//! The name of a function and where it was called from: reads the entries found, and follows
//! their references to the entries that name them.

use super::unit::{Root, Tables};
use super::units::Units;
use super::work::Share;
use super::{DwarfError, Sections, Slice, Unit};
use gimli::{AttributeValue, DebugInfoOffset, UnitOffset, constants as dw};
use std::collections::HashMap;
use std::rc::Rc;

/// What an entry says of itself as a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Details<'a> {
    /// Linkage name, else the plain name.
    pub name: Option<&'a [u8]>,
    pub call_file: Option<u64>,
    pub call_line: u32,
    pub call_column: u32,
}

/// References from entry to entry followed for one name. An inlined function refers to its
/// abstract instance, that to a declaration; damaged ones go in circles.
const MOST_REFERENCES: usize = 8;
/// Units kept because entries of others refer to them.
const MOST_UNITS: usize = 256;

/// What is kept while the names of one unit are read.
#[derive(Default)]
pub(super) struct Names<'a> {
    /// By function.
    details: Vec<Option<Details<'a>>>,
    /// By entries that others refer to.
    named: HashMap<(Part, usize), Named<'a>>,
    /// Units that others refer to: after link-time optimisation, and with dwz.
    others: HashMap<(Part, usize), Rc<Unit<'a>>>,
    /// Abbreviations of the supplement.
    tables: Tables,
}

/// Which file an entry is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Part {
    Own,
    /// The file that dwz shares between several.
    Supplement,
}

#[derive(Debug, Clone, Copy, Default)]
struct Named<'a> {
    linkage: Option<&'a [u8]>,
    plain: Option<&'a [u8]>,
}

/// The names of one unit.
pub(super) struct UnitNames<'w, 's, 'a> {
    keep: &'w mut Names<'a>,
    tables: &'w mut Tables,
    share: &'w mut Share<'s>,
    sections: &'w Sections<'a>,
    /// Units of `sections`, and of their supplement.
    units: Option<(&'w Units<'a>, &'w Units<'a>)>,
    unit: &'w Unit<'a>,
}

impl<'a> Names<'a> {
    /// Of this unit. `units` finds those that its entries refer to, where they may.
    pub fn of<'w, 's>(
        &'w mut self,
        tables: &'w mut Tables,
        share: &'w mut Share<'s>,
        sections: &'w Sections<'a>,
        units: Option<(&'w Units<'a>, &'w Units<'a>)>,
        unit: &'w Unit<'a>,
    ) -> UnitNames<'w, 's, 'a> {
        self.details.clear();
        self.named.clear();
        if self.others.len() > MOST_UNITS {
            self.others.clear();
        }
        UnitNames {
            keep: self,
            tables,
            share,
            sections,
            units,
            unit,
        }
    }
}

impl<'a> UnitNames<'_, '_, 'a> {
    /// What the entry of a function says. `function` is its number in the unit, under which it
    /// is kept.
    pub fn details(&mut self, function: u32, entry: UnitOffset) -> Details<'a> {
        let at = function as usize;
        if let Some(Some(details)) = self.keep.details.get(at) {
            return *details;
        }
        let details = self.read_details(entry);
        if self.keep.details.len() <= at {
            self.keep.details.resize(at + 1, None);
        }
        self.keep.details[at] = Some(details);
        details
    }

    /// Spends steps of the work that the names' thread may do.
    pub fn spend(&mut self, steps: u64) -> Result<(), DwarfError> {
        self.share.spend(steps)
    }

    fn read_details(&mut self, entry: UnitOffset) -> Details<'a> {
        // What cannot be read stays unknown: the pass over the unit has met the same bytes.
        let Ok(entry) = read_entry(self.unit, entry, self.share) else {
            return Details::default();
        };
        let named = self.named(Part::Own, self.unit, &entry, MOST_REFERENCES);
        Details {
            name: named.linkage.or(named.plain),
            call_file: entry.call_file,
            call_line: entry.call_line,
            call_column: entry.call_column,
        }
    }

    /// The names of an entry, its own or those of the entries that it refers to.
    fn named(
        &mut self,
        part: Part,
        unit: &Unit<'a>,
        entry: &Entry<'a>,
        further: usize,
    ) -> Named<'a> {
        let Some(sections) = self.part(part) else {
            return Named::default();
        };
        let text = |value: Option<AttributeValue<Slice<'a>>>| {
            let text = sections.attr_string(unit, value?).ok()?;
            (!text.is_empty()).then_some(text.slice())
        };
        let linkage = text(entry.linkage);
        if linkage.is_some() {
            return Named {
                linkage,
                plain: None,
            };
        }
        let mut named = Named {
            linkage,
            plain: text(entry.name),
        };
        let Some(reference) = entry.reference.filter(|_| further > 0) else {
            return named;
        };
        if let Some(other) = self.follow(part, unit, reference, further - 1) {
            named.linkage = other.linkage;
            named.plain = named.plain.or(other.plain);
        }
        named
    }

    fn follow(
        &mut self,
        part: Part,
        unit: &Unit<'a>,
        reference: AttributeValue<Slice<'a>>,
        further: usize,
    ) -> Option<Named<'a>> {
        let (target, start) = match reference {
            AttributeValue::UnitRef(offset) => (part, unit.header.offset().0 + offset.0),
            AttributeValue::DebugInfoRef(DebugInfoOffset(offset)) => (part, offset),
            AttributeValue::DebugInfoRefSup(DebugInfoOffset(offset)) => (Part::Supplement, offset),
            _ => return None,
        };
        if let Some(named) = self.keep.named.get(&(target, start)) {
            return Some(*named);
        }
        let within = |unit: &Unit<'a>| {
            let offset = UnitOffset(start.checked_sub(unit.header.offset().0)?);
            offset.is_in_bounds(&unit.header).then_some(offset)
        };
        let named = match within(unit).filter(|_| target == part) {
            Some(offset) => {
                let entry = read_entry(unit, offset, self.share).ok()?;
                self.named(part, unit, &entry, further)
            }
            None => {
                let unit = self.other(target, start)?;
                let entry = read_entry(&unit, within(&unit)?, self.share).ok()?;
                self.named(target, &unit, &entry, further)
            }
        };
        self.keep.named.insert((target, start), named);
        Some(named)
    }

    fn part(&self, part: Part) -> Option<&Sections<'a>> {
        match part {
            Part::Own => Some(self.sections),
            Part::Supplement => self.sections.sup(),
        }
    }

    /// The unit with this offset of the section.
    fn other(&mut self, part: Part, offset: usize) -> Option<Rc<Unit<'a>>> {
        let (own, supplement) = self.units?;
        let units = match part {
            Part::Own => own,
            Part::Supplement => supplement,
        };
        let header = units.containing(offset)?;
        let key = (part, header.offset().0);
        if let Some(unit) = self.keep.others.get(&key) {
            return Some(Rc::clone(unit));
        }
        let tables = match part {
            Part::Own => &mut *self.tables,
            Part::Supplement => &mut self.keep.tables,
        };
        let sections = match part {
            Part::Own => self.sections,
            Part::Supplement => self.sections.sup()?,
        };
        let root = Root::read(sections, *header, tables, self.share).ok()?;
        let unit = Rc::new(root.unit);
        self.keep.others.insert(key, Rc::clone(&unit));
        Some(unit)
    }
}

/// The attributes of an entry that matter.
#[derive(Debug, Default)]
struct Entry<'a> {
    linkage: Option<AttributeValue<Slice<'a>>>,
    name: Option<AttributeValue<Slice<'a>>>,
    /// `DW_AT_abstract_origin` or `DW_AT_specification`.
    reference: Option<AttributeValue<Slice<'a>>>,
    call_file: Option<u64>,
    call_line: u32,
    call_column: u32,
}

fn read_entry<'a>(
    unit: &Unit<'a>,
    at: UnitOffset,
    share: &mut Share<'_>,
) -> Result<Entry<'a>, DwarfError> {
    let mut entry = Entry::default();
    let mut entries = unit.entries_raw(Some(at))?;
    let Some(abbreviation) = entries.read_abbreviation()? else {
        return Ok(entry);
    };
    share.spend(abbreviation.attributes().len() as u64)?;
    for spec in abbreviation.attributes() {
        let attribute = entries.read_attribute(*spec)?;
        let number = || {
            attribute
                .udata_value()
                .and_then(|number| u32::try_from(number).ok())
        };
        match attribute.name() {
            dw::DW_AT_linkage_name | dw::DW_AT_MIPS_linkage_name => {
                entry.linkage = Some(attribute.value());
            }
            dw::DW_AT_name => entry.name = Some(attribute.value()),
            dw::DW_AT_abstract_origin | dw::DW_AT_specification => {
                entry.reference = Some(attribute.value());
            }
            dw::DW_AT_call_file => entry.call_file = attribute.udata_value(),
            // Numbers that do not fit are damage: unknown.
            dw::DW_AT_call_line => entry.call_line = number().unwrap_or(0),
            dw::DW_AT_call_column => entry.call_column = number().unwrap_or(0),
            _ => {}
        }
    }
    Ok(entry)
}
