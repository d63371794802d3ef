//! Abbreviation tables (DWARF 5, 7.5.3), optimized for skipping entries: most entries of a unit are
//! types and variables, of which only the length matters. An abbreviation becomes a few steps.
//! Adjacent attributes of fixed size share a step, and only four attributes are kept: three for the
//! location of code, and one for the next sibling.

use super::error::DwarfError;
use super::work::Share;
use gimli::constants::{self as dw, DwAt, DwForm, DwTag};
use gimli::{AttributeSpecification, Encoding};
use std::collections::HashMap;
use std::ops::Range;

/// Abbreviations of one unit.
#[derive(Debug, Default)]
pub(super) struct Abbrevs {
    /// Codes from 1 on, as assigned by compilers.
    dense: Vec<Abbrev>,
    sparse: HashMap<u64, Abbrev>,
    attributes: Vec<AttributeSpecification>,
    steps: Vec<Step>,
}

/// Shape of a debugging information entry.
#[derive(Debug, Clone)]
pub(super) struct Abbrev {
    pub kind: Kind,
    pub has_children: bool,
    /// Forms of the kept values; 0 for an attribute that is not present.
    pub forms: [u16; 4],
    attributes: Range<u32>,
    steps: Range<u32>,
}

/// Role of an entry in the search for functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `DW_TAG_subprogram`, a function or its declaration.
    Function,
    /// `DW_TAG_inlined_subroutine`.
    Inlined,
    /// A lexical block: it can contain inlined functions within its addresses.
    Block,
    /// A type, a call site, …: the code of functions declared in it is usually elsewhere.
    Aside,
    /// A namespace, a unit, …
    Other,
}

/// Attribute whose value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    /// `DW_AT_low_pc`.
    Low = 0,
    /// `DW_AT_high_pc`.
    High = 1,
    /// `DW_AT_ranges`.
    Ranges = 2,
    /// `DW_AT_sibling`.
    Sibling = 3,
}

/// Step that skips or keeps attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    /// Skips a number of bytes.
    Skip(u32),
    /// Skips a LEB128 number.
    Leb,
    /// Skips text up to its zero byte.
    Text,
    /// Skips a block after its length, which has this number of bytes.
    Block(u8),
    /// Skips a block after its length in LEB128.
    LebBlock,
    /// `DW_FORM_indirect`: the form comes before the value.
    Indirect,
    /// Keeps a number of this number of bytes.
    Keep(Slot, u8),
    /// Keeps a LEB128 number.
    KeepLeb(Slot),
}

impl Abbrev {
    pub fn has(&self, slot: Slot) -> bool {
        self.forms[slot as usize] != 0
    }

    pub fn form(&self, slot: Slot) -> DwForm {
        DwForm(self.forms[slot as usize])
    }

    /// Returns whether entries have the location of their code.
    pub fn has_code(&self) -> bool {
        self.has(Slot::Low) || self.has(Slot::Ranges)
    }
}

impl Abbrevs {
    /// Reads the table at `offset` for a unit of this encoding; with `until`, only up to that code.
    pub fn read(
        section: &[u8],
        offset: usize,
        encoding: Encoding,
        until: Option<u64>,
        work: &Share<'_>,
    ) -> Result<Abbrevs, DwarfError> {
        let mut cursor = Cursor {
            bytes: section,
            at: offset,
        };
        let mut table = Abbrevs::default();
        loop {
            let start = cursor.at;
            let code = cursor.leb().ok_or(DwarfError::AbbrevCut)?;
            if code == 0 {
                return Ok(table);
            }
            let before = table.memory();
            let abbrev = table.read_one(&mut cursor, encoding)?;
            // With an offset into another table, work and memory are needed twice, and the memory
            // is several times the number of bytes read.
            let memory = table.memory() - before + size_of::<Abbrev>();
            work.take(cursor.at - start + memory)?;
            if code == table.dense.len() as u64 + 1 {
                table.dense.push(abbrev);
            } else {
                table.sparse.entry(code).or_insert(abbrev);
            }
            if until == Some(code) {
                return Ok(table);
            }
        }
    }

    /// Returns the memory of the table in bytes.
    pub fn memory(&self) -> usize {
        (self.dense.len() + self.sparse.len()) * size_of::<Abbrev>()
            + size_of_val(&*self.attributes)
            + size_of_val(&*self.steps)
    }

    fn read_one(
        &mut self,
        cursor: &mut Cursor<'_>,
        encoding: Encoding,
    ) -> Result<Abbrev, DwarfError> {
        let tag = cursor.leb().ok_or(DwarfError::AbbrevCut)?;
        let has_children = cursor.byte().ok_or(DwarfError::AbbrevCut)? != 0;
        let first_attribute = self.attributes.len() as u32;
        let first_step = self.steps.len();
        let mut forms = [0; 4];
        loop {
            let name = cursor.leb().ok_or(DwarfError::AbbrevCut)?;
            let form = cursor.leb().ok_or(DwarfError::AbbrevCut)?;
            if (name, form) == (0, 0) {
                break;
            }
            // Attributes beyond 16 bits are not defined.
            let name = DwAt(u16::try_from(name).unwrap_or(u16::MAX));
            let form = DwForm(u16::try_from(form).map_err(|_| DwarfError::Form(form))?);
            let constant = match form {
                dw::DW_FORM_implicit_const => {
                    Some(cursor.signed_leb().ok_or(DwarfError::AbbrevCut)?)
                }
                _ => None,
            };
            let spec = AttributeSpecification::new(name, form, constant);
            self.attributes.push(spec);
            let slot = match name {
                dw::DW_AT_low_pc => Some(Slot::Low),
                dw::DW_AT_high_pc => Some(Slot::High),
                dw::DW_AT_ranges => Some(Slot::Ranges),
                dw::DW_AT_sibling => Some(Slot::Sibling),
                _ => None,
            };
            let step = step(form, encoding).ok_or(DwarfError::Form(u64::from(form.0)))?;
            let step = match (slot, step) {
                (Some(slot), Step::Skip(size @ (1 | 2 | 4 | 8))) => Step::Keep(slot, size as u8),
                (Some(slot), Step::Leb) => Step::KeepLeb(slot),
                (_, step) => {
                    self.add(first_step, step);
                    continue;
                }
            };
            if let Some(slot) = slot {
                forms[slot as usize] = form.0;
            }
            self.add(first_step, step);
        }
        Ok(Abbrev {
            kind: kind(DwTag(u16::try_from(tag).unwrap_or(u16::MAX))),
            has_children,
            forms,
            attributes: first_attribute..self.attributes.len() as u32,
            steps: first_step as u32..self.steps.len() as u32,
        })
    }

    /// Adds a step to those from `first` on, and merges adjacent skips.
    fn add(&mut self, first: usize, step: Step) {
        match (self.steps[first..].last_mut(), step) {
            (_, Step::Skip(0)) => {}
            (Some(Step::Skip(last)), Step::Skip(more)) => *last = last.saturating_add(more),
            _ => self.steps.push(step),
        }
    }

    /// Returns the abbreviation with this code.
    #[inline]
    pub fn get(&self, code: u64) -> Option<&Abbrev> {
        match self.dense.get((code as usize).wrapping_sub(1)) {
            Some(abbrev) if code <= self.dense.len() as u64 => Some(abbrev),
            _ => self.sparse.get(&code),
        }
    }

    /// Returns names and forms of the attributes of an entry.
    pub fn attributes(&self, abbrev: &Abbrev) -> &[AttributeSpecification] {
        &self.attributes[abbrev.attributes.start as usize..abbrev.attributes.end as usize]
    }

    /// Skips the attributes of an entry and returns the kept values, by [`Slot`].
    #[inline]
    pub fn pass(
        &self,
        abbrev: &Abbrev,
        cursor: &mut Cursor<'_>,
        encoding: Encoding,
    ) -> Option<[u64; 4]> {
        let mut kept = [0; 4];
        for step in &self.steps[abbrev.steps.start as usize..abbrev.steps.end as usize] {
            match *step {
                Step::Skip(size) => cursor.forward(size.into()),
                Step::Keep(slot, size) => kept[slot as usize] = cursor.number(size)?,
                Step::KeepLeb(slot) => kept[slot as usize] = cursor.leb()?,
                step => cursor.skip(step, encoding)?,
            }
        }
        Some(kept)
    }
}

fn kind(tag: DwTag) -> Kind {
    match tag {
        dw::DW_TAG_subprogram => Kind::Function,
        dw::DW_TAG_inlined_subroutine => Kind::Inlined,
        dw::DW_TAG_lexical_block | dw::DW_TAG_try_block | dw::DW_TAG_catch_block => Kind::Block,
        dw::DW_TAG_array_type
        | dw::DW_TAG_class_type
        | dw::DW_TAG_enumeration_type
        | dw::DW_TAG_interface_type
        | dw::DW_TAG_structure_type
        | dw::DW_TAG_subroutine_type
        | dw::DW_TAG_union_type
        | dw::DW_TAG_call_site
        | dw::DW_TAG_GNU_call_site
        | dw::DW_TAG_GNU_formal_parameter_pack
        | dw::DW_TAG_GNU_template_parameter_pack => Kind::Aside,
        _ => Kind::Other,
    }
}

/// Returns the step for a value of this form (DWARF 5, 7.5.6); `None` if the form is unknown.
fn step(form: DwForm, encoding: Encoding) -> Option<Step> {
    let offset = u32::from(encoding.format.word_size());
    let address = u32::from(encoding.address_size);
    Some(match form {
        dw::DW_FORM_flag_present | dw::DW_FORM_implicit_const => Step::Skip(0),
        dw::DW_FORM_data1
        | dw::DW_FORM_ref1
        | dw::DW_FORM_flag
        | dw::DW_FORM_strx1
        | dw::DW_FORM_addrx1 => Step::Skip(1),
        dw::DW_FORM_data2 | dw::DW_FORM_ref2 | dw::DW_FORM_strx2 | dw::DW_FORM_addrx2 => {
            Step::Skip(2)
        }
        dw::DW_FORM_strx3 | dw::DW_FORM_addrx3 => Step::Skip(3),
        dw::DW_FORM_data4
        | dw::DW_FORM_ref4
        | dw::DW_FORM_strx4
        | dw::DW_FORM_addrx4
        | dw::DW_FORM_ref_sup4 => Step::Skip(4),
        dw::DW_FORM_data8 | dw::DW_FORM_ref8 | dw::DW_FORM_ref_sig8 | dw::DW_FORM_ref_sup8 => {
            Step::Skip(8)
        }
        dw::DW_FORM_data16 => Step::Skip(16),
        dw::DW_FORM_addr => Step::Skip(address),
        // In DWARF 2 it has the size of an address.
        dw::DW_FORM_ref_addr if encoding.version == 2 => Step::Skip(address),
        dw::DW_FORM_ref_addr
        | dw::DW_FORM_sec_offset
        | dw::DW_FORM_strp
        | dw::DW_FORM_line_strp
        | dw::DW_FORM_strp_sup
        | dw::DW_FORM_GNU_ref_alt
        | dw::DW_FORM_GNU_strp_alt => Step::Skip(offset),
        dw::DW_FORM_udata
        | dw::DW_FORM_sdata
        | dw::DW_FORM_ref_udata
        | dw::DW_FORM_strx
        | dw::DW_FORM_addrx
        | dw::DW_FORM_loclistx
        | dw::DW_FORM_rnglistx
        | dw::DW_FORM_GNU_addr_index
        | dw::DW_FORM_GNU_str_index => Step::Leb,
        dw::DW_FORM_string => Step::Text,
        dw::DW_FORM_block1 => Step::Block(1),
        dw::DW_FORM_block2 => Step::Block(2),
        dw::DW_FORM_block4 => Step::Block(4),
        dw::DW_FORM_block | dw::DW_FORM_exprloc => Step::LebBlock,
        dw::DW_FORM_indirect => Step::Indirect,
        _ => return None,
    })
}

/// Reading position in bytes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'bytes> {
    pub bytes: &'bytes [u8],
    pub at: usize,
}

impl<'bytes> Cursor<'bytes> {
    #[inline]
    pub fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    /// Reads an unsigned LEB128 number; bits beyond the 64th are dropped.
    #[inline]
    pub fn leb(&mut self) -> Option<u64> {
        let byte = self.byte()?;
        if byte < 0x80 {
            return Some(byte.into());
        }
        let mut value = u64::from(byte & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
                shift += 7;
            }
            if byte < 0x80 {
                return Some(value);
            }
        }
    }

    /// Reads a signed LEB128 number.
    #[inline]
    pub fn signed_leb(&mut self) -> Option<i64> {
        let start = self.at;
        let value = self.leb()?;
        let bits = 7 * (self.at - start).min(10);
        let is_negative = self.bytes[self.at - 1] & 0x40 != 0;
        Some(if is_negative && bits < 64 {
            (value | u64::MAX << bits) as i64
        } else {
            value as i64
        })
    }

    #[inline]
    pub fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let found = *self.bytes.get(self.at..)?.first_chunk()?;
        self.at += N;
        Some(found)
    }

    /// Reads a little-endian number of 1, 2, 4 or 8 bytes.
    #[inline]
    pub fn number(&mut self, size: u8) -> Option<u64> {
        Some(match size {
            1 => self.byte()?.into(),
            2 => u16::from_le_bytes(self.array()?).into(),
            4 => u32::from_le_bytes(self.array()?).into(),
            _ => u64::from_le_bytes(self.array()?),
        })
    }

    /// Reads text up to its zero byte.
    pub fn text(&mut self) -> Option<&'bytes [u8]> {
        let rest = self.bytes.get(self.at..)?;
        let text = &rest[..rest.iter().position(|byte| *byte == 0)?];
        self.at += text.len() + 1;
        Some(text)
    }

    /// Splits off the next bytes.
    pub fn split(&mut self, size: u64) -> Option<&'bytes [u8]> {
        let end = self.at.checked_add(usize::try_from(size).ok()?)?;
        let part = self.bytes.get(self.at..end)?;
        self.at = end;
        Some(part)
    }

    /// Moves forward; beyond the end, the next read fails.
    #[inline]
    fn forward(&mut self, size: u64) {
        let size = usize::try_from(size).unwrap_or(usize::MAX);
        self.at = self.at.saturating_add(size);
    }

    fn skip(&mut self, step: Step, encoding: Encoding) -> Option<()> {
        match step {
            Step::Skip(size) => self.forward(size.into()),
            Step::Leb | Step::KeepLeb(_) => while self.byte()? >= 0x80 {},
            Step::Text => {
                self.text()?;
            }
            Step::Block(size) => {
                let size = self.number(size)?;
                self.forward(size);
            }
            Step::LebBlock => {
                let size = self.leb()?;
                self.forward(size);
            }
            Step::Indirect => {
                let form = DwForm(u16::try_from(self.leb()?).ok()?);
                // An indirect form cannot be indirect again; no producer writes that.
                let step = self::step(form, encoding).filter(|step| *step != Step::Indirect)?;
                self.skip(step, encoding)?;
            }
            Step::Keep(_, size) => self.forward(size.into()),
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::work::Work;
    use super::*;
    use gimli::Format;

    const ENCODING: Encoding = Encoding {
        address_size: 8,
        format: Format::Dwarf32,
        version: 5,
    };

    fn cursor(bytes: &[u8]) -> Cursor<'_> {
        Cursor { bytes, at: 0 }
    }

    #[test]
    fn numbers_are_read_and_their_surplus_bits_dropped() {
        assert_eq!(cursor(&[0xe5, 0x8e, 0x26]).leb(), Some(624_485));
        assert_eq!(cursor(&[0xff; 9]).leb(), None);
        let mut long = [0xff; 12];
        long[11] = 0x7f;
        assert_eq!(cursor(&long).leb(), Some(u64::MAX));
        assert_eq!(cursor(&[0x7f]).signed_leb(), Some(-1));
        assert_eq!(cursor(&[0x80, 0x7f]).signed_leb(), Some(-128));
        assert_eq!(cursor(&[0x3f]).signed_leb(), Some(63));
    }

    #[test]
    fn attributes_are_passed_by_their_forms() {
        // Code 1: a subprogram with name (string), low_pc, location (exprloc), external.
        // Code 7: a base type without children, of two bytes.
        let section = [
            1, 0x2e, 1, 0x03, 0x08, 0x11, 0x01, 0x02, 0x18, 0x3f, 0x19, 0, 0, //
            7, 0x24, 0, 0x0b, 0x0b, 0x3e, 0x21, 0x05, 0x88, 0x01, 0x0b, 0, 0, 0,
        ];
        let work = Work::from_steps(1 << 20);
        let work = work.share();
        let table = Abbrevs::read(&section, 0, ENCODING, None, &work).unwrap();
        let function = table.get(1).unwrap();
        assert_eq!(function.kind, Kind::Function);
        assert!(function.has_children && function.has_code());
        assert_eq!(table.attributes(function).len(), 4);
        let entry = *b"main\0\x01\x02\x03\x04\x05\x06\x07\x08\x02\x91\x00rest";
        let mut at = cursor(&entry);
        let kept = table.pass(function, &mut at, ENCODING).unwrap();
        assert_eq!((kept[0], at.at), (0x0807_0605_0403_0201, 16));
        let mut cut = cursor(&entry[..9]);
        assert_eq!(table.pass(function, &mut cut, ENCODING), None);
        let mut at = cursor(&entry);
        let base = table.get(7).unwrap();
        table.pass(base, &mut at, ENCODING).unwrap();
        assert_eq!((base.kind, at.at), (Kind::Other, 2));
        assert!(table.get(2).is_none() && table.get(0).is_none());
        let first = Abbrevs::read(&section, 0, ENCODING, Some(1), &work).unwrap();
        assert!(first.get(7).is_none());
        let cut = Abbrevs::read(&section[..9], 0, ENCODING, None, &work);
        assert_eq!(cut.unwrap_err(), DwarfError::AbbrevCut);
    }

    #[test]
    fn tables_that_are_read_without_end_are_refused() {
        let section = [1, 0x2e, 0, 0x3f, 0x19, 0, 0, 0];
        let work = Work::from_steps(10_000);
        let work = work.share();
        let read = || Abbrevs::read(&section, 0, ENCODING, None, &work);
        assert!(read().is_ok());
        let refused = (0..10_000).find_map(|_| read().err());
        assert_eq!(refused, Some(DwarfError::TooMuchWork));
    }
}
