//! Reading past the entries of a unit as fast as they can be passed: an abbreviation becomes a
//! short list of steps, in which attributes of a fixed size are one step together, and only the
//! few attributes that say where code lies are kept.

use gimli::{Abbreviation, Abbreviations, Encoding, Error, Format, constants as dw};
use std::collections::HashMap;

/// What an entry is to the search for functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// `DW_TAG_subprogram`, a function or its declaration.
    Function,
    /// `DW_TAG_inlined_subroutine`.
    Inlined,
    /// A lexical block: functions may be inlined in it, within its addresses.
    Block,
    /// A type, a call site, …: the code of functions that are declared in it lies elsewhere, as
    /// a rule.
    Aside,
    /// A namespace, a unit, …
    Other,
}

/// One step past attributes.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// So many bytes.
    Skip(u32),
    /// A LEB128 number.
    Leb,
    /// Text up to its zero byte.
    Text,
    /// A block after its length of so many bytes.
    Block(u8),
    /// A block after its length in LEB128.
    LebBlock,
    /// A form, and a value of that form.
    Indirect,
    /// Something to keep.
    Keep(Slot, Width),
    /// Something to keep whose value stands in the abbreviation.
    Constant(Slot, u64),
}

/// Which value is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Slot {
    Low = 0,
    High = 1,
    Ranges = 2,
    Sibling = 3,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Width {
    Bytes(u8),
    Leb,
}

/// How to pass the entries of one abbreviation, and what they tell.
#[derive(Debug, Clone, Copy)]
pub(super) struct Plan {
    pub kind: Kind,
    pub children: bool,
    /// Forms of the kept values (0: it has none).
    pub forms: [u16; 4],
    first: u32,
    steps: u32,
}

impl Plan {
    /// Whether its entries say where their code lies.
    pub fn has_code(&self) -> bool {
        self.has(Slot::Low) || self.has(Slot::Ranges)
    }

    pub fn has(&self, slot: Slot) -> bool {
        self.forms[slot as usize] != 0
    }
}

/// The plans of a unit's abbreviations, made when first wanted.
#[derive(Debug, Default)]
pub(super) struct Plans {
    dense: Vec<Option<Plan>>,
    sparse: HashMap<u64, Plan>,
    steps: Vec<Step>,
}

/// Codes are given in order from 1; who skips this many does so to make readers allocate.
const DENSE: u64 = 1 << 14;

impl Plans {
    /// Forgets the plans of the last unit.
    pub fn clear(&mut self) {
        self.dense.clear();
        self.sparse.clear();
        self.steps.clear();
    }

    #[inline]
    pub fn get(
        &mut self,
        code: u64,
        abbreviations: &Abbreviations,
        encoding: Encoding,
    ) -> Result<Plan, Error> {
        match self.dense.get(code as usize) {
            Some(Some(plan)) => Ok(*plan),
            _ => self.make(code, abbreviations, encoding),
        }
    }

    #[cold]
    fn make(
        &mut self,
        code: u64,
        abbreviations: &Abbreviations,
        encoding: Encoding,
    ) -> Result<Plan, Error> {
        if let Some(plan) = self.sparse.get(&code) {
            return Ok(*plan);
        }
        let abbreviation = abbreviations.get(code);
        let abbreviation = abbreviation.ok_or(Error::InvalidAbbreviationCode(code))?;
        let plan = self.plan(abbreviation, encoding)?;
        if code < DENSE {
            let at = code as usize;
            if self.dense.len() <= at {
                self.dense.resize(at + 1, None);
            }
            self.dense[at] = Some(plan);
        } else {
            self.sparse.insert(code, plan);
        }
        Ok(plan)
    }

    fn plan(&mut self, abbreviation: &Abbreviation, encoding: Encoding) -> Result<Plan, Error> {
        let first = self.steps.len();
        let mut forms = [0; 4];
        let kind = match abbreviation.tag() {
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
        };
        for attribute in abbreviation.attributes() {
            let slot = match attribute.name() {
                dw::DW_AT_sibling => Some(Slot::Sibling),
                dw::DW_AT_low_pc => Some(Slot::Low),
                dw::DW_AT_high_pc => Some(Slot::High),
                dw::DW_AT_ranges => Some(Slot::Ranges),
                _ => None,
            };
            // Once: constants take no bytes of an entry, so there could be any number of them.
            let slot = slot.filter(|slot| forms[*slot as usize] == 0);
            let form = attribute.form();
            let step = match (step(form, encoding)?, slot) {
                (Step::Skip(size @ (1 | 2 | 4 | 8)), Some(slot)) => {
                    Step::Keep(slot, Width::Bytes(size as u8))
                }
                (Step::Leb, Some(slot)) => Step::Keep(slot, Width::Leb),
                (Step::Skip(0), Some(slot)) if form == dw::DW_FORM_implicit_const => {
                    let value = attribute.implicit_const_value();
                    Step::Constant(slot, value.unwrap_or(0) as u64)
                }
                (step, _) => {
                    self.push(first, step);
                    continue;
                }
            };
            if let Some(slot) = slot {
                forms[slot as usize] = form.0;
            }
            self.push(first, step);
        }
        Ok(Plan {
            kind,
            children: abbreviation.has_children(),
            forms,
            first: first as u32,
            steps: (self.steps.len() - first) as u32,
        })
    }

    /// Appends a step to those from `first` on, joined to the last where both skip.
    fn push(&mut self, first: usize, step: Step) {
        match (self.steps[first..].last_mut(), step) {
            (_, Step::Skip(0)) => {}
            (Some(Step::Skip(last)), Step::Skip(more)) => *last += more,
            _ => self.steps.push(step),
        }
    }

    /// Passes the attributes of an entry.
    #[inline]
    pub fn pass(
        &self,
        plan: &Plan,
        cursor: &mut Cursor<'_>,
        encoding: Encoding,
    ) -> Result<[u64; 4], Error> {
        let mut kept = [0; 4];
        let first = plan.first as usize;
        for step in &self.steps[first..first + plan.steps as usize] {
            match *step {
                Step::Keep(slot, Width::Bytes(4)) => kept[slot as usize] = cursor.word()?.into(),
                Step::Keep(slot, Width::Bytes(size)) => {
                    kept[slot as usize] = cursor.number(size)?;
                }
                Step::Keep(slot, Width::Leb) => kept[slot as usize] = cursor.leb()?,
                Step::Constant(slot, value) => kept[slot as usize] = value,
                step => cursor.skip(step, encoding)?,
            }
        }
        Ok(kept)
    }
}

/// How to pass a value of this form.
fn step(form: gimli::DwForm, encoding: Encoding) -> Result<Step, Error> {
    let offset = match encoding.format {
        Format::Dwarf32 => 4,
        Format::Dwarf64 => 8,
    };
    Ok(match form {
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
        dw::DW_FORM_sec_offset
        | dw::DW_FORM_strp
        | dw::DW_FORM_line_strp
        | dw::DW_FORM_strp_sup
        | dw::DW_FORM_GNU_ref_alt
        | dw::DW_FORM_GNU_strp_alt => Step::Skip(offset),
        // In DWARF 2 it was as wide as an address.
        dw::DW_FORM_ref_addr if encoding.version > 2 => Step::Skip(offset),
        dw::DW_FORM_ref_addr | dw::DW_FORM_addr => Step::Skip(encoding.address_size.into()),
        dw::DW_FORM_udata
        | dw::DW_FORM_sdata
        | dw::DW_FORM_ref_udata
        | dw::DW_FORM_strx
        | dw::DW_FORM_addrx
        | dw::DW_FORM_loclistx
        | dw::DW_FORM_rnglistx
        | dw::DW_FORM_GNU_str_index
        | dw::DW_FORM_GNU_addr_index => Step::Leb,
        dw::DW_FORM_string => Step::Text,
        dw::DW_FORM_block1 => Step::Block(1),
        dw::DW_FORM_block2 => Step::Block(2),
        dw::DW_FORM_block4 => Step::Block(4),
        dw::DW_FORM_block | dw::DW_FORM_exprloc => Step::LebBlock,
        dw::DW_FORM_indirect => Step::Indirect,
        form => return Err(Error::UnknownForm(form)),
    })
}

/// Bytes and how far they are read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cursor<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
}

/// The bytes end within a value.
const CUT: Error = Error::UnexpectedEof(gimli::ReaderOffsetId(0));

impl Cursor<'_> {
    #[inline]
    pub fn byte(&mut self) -> Result<u8, Error> {
        let byte = *self.bytes.get(self.at).ok_or(CUT)?;
        self.at += 1;
        Ok(byte)
    }

    /// An unsigned LEB128 number; bits beyond the 64th are dropped.
    #[inline]
    pub fn leb(&mut self) -> Result<u64, Error> {
        let byte = self.byte()?;
        if byte < 0x80 {
            return Ok(byte.into());
        }
        let mut value = u64::from(byte & 0x7f);
        let mut shift = 7;
        loop {
            let byte = self.byte()?;
            if shift < 64 {
                value |= u64::from(byte & 0x7f) << shift;
            }
            shift += 7;
            if byte < 0x80 {
                return Ok(value);
            }
        }
    }

    /// A signed LEB128 number.
    #[inline]
    pub fn signed_leb(&mut self) -> Result<i64, Error> {
        let start = self.at;
        let value = self.leb()?;
        let bits = 7 * (self.at - start).min(10);
        let last = self.bytes[self.at - 1];
        let negative = last & 0x40 != 0 && bits < 64;
        Ok(if negative {
            (value | u64::MAX << bits) as i64
        } else {
            value as i64
        })
    }

    #[inline]
    pub fn half(&mut self) -> Result<u16, Error> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    #[inline]
    fn word(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    #[inline]
    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let found = self
            .bytes
            .get(self.at..)
            .and_then(|rest| rest.first_chunk());
        let found = *found.ok_or(CUT)?;
        self.at += N;
        Ok(found)
    }

    /// A number of up to 8 bytes.
    #[inline]
    pub fn number(&mut self, size: u8) -> Result<u64, Error> {
        Ok(match size {
            1 => self.byte()?.into(),
            2 => self.half()?.into(),
            4 => self.word()?.into(),
            _ => u64::from_le_bytes(self.array()?),
        })
    }

    /// Moves on; where that is beyond the end, the next read fails.
    #[inline]
    pub fn forward(&mut self, size: u64) {
        self.at = usize::try_from(size).map_or(usize::MAX, |size| self.at.saturating_add(size));
    }

    #[inline]
    fn skip(&mut self, step: Step, encoding: Encoding) -> Result<(), Error> {
        match step {
            Step::Skip(size) => self.forward(size.into()),
            Step::Leb => while self.byte()? >= 0x80 {},
            Step::Text => {
                let rest = self.bytes.get(self.at..).ok_or(CUT)?;
                self.at += rest.iter().position(|byte| *byte == 0).ok_or(CUT)? + 1;
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
                let form = u16::try_from(self.leb()?).map_err(|_| CUT)?;
                match self::step(gimli::DwForm(form), encoding)? {
                    // No producer nests them; gimli does not read that either.
                    Step::Indirect => return Err(Error::UnknownForm(dw::DW_FORM_indirect)),
                    step => self.skip(step, encoding)?,
                }
            }
            Step::Keep(..) | Step::Constant(..) => {}
        }
        Ok(())
    }
}
