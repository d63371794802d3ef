//! One unit of debug information: its header, the settings of its root entry, and the reading of
//! strings, addresses and ranges by these settings.

use super::abbrev::{Abbrev, Abbrevs, Cursor, Slot};
use super::error::DwarfError;
use super::work::Share;
use crate::symbolize::file::sections::{MAX_TEXT_LENGTH, text};
use gimli::constants::{self as dw, DwForm};
use gimli::{
    Abbreviations, AttributeValue, DebugAddr, DebugAddrBase, DebugAddrIndex, DebugLineOffset,
    DebugLineStr, DebugRngListsBase, DebugRngListsIndex, DebugStr, DebugStrOffsets,
    DebugStrOffsetsBase, DwarfFileType, Encoding, EndianSlice, EntriesRaw, LittleEndian,
    RangeLists, RangeListsOffset, Section as _, UnitHeader, UnitOffset, UnitType,
};
use std::sync::{Arc, LazyLock};

/// Bytes for gimli.
pub(super) type Slice<'data> = EndianSlice<'data, LittleEndian>;
pub(super) type Value<'data> = AttributeValue<Slice<'data>>;

/// Sections of one file of debug information, or of one unit of a package.
#[derive(Clone)]
pub(super) struct Parts<'data> {
    pub info: &'data [u8],
    /// Start of `info` in its section, if it is only a part of that.
    pub info_start: usize,
    pub abbrev: &'data [u8],
    pub line: &'data [u8],
    pub line_str: DebugLineStr<Slice<'data>>,
    pub str: DebugStr<Slice<'data>>,
    pub str_offsets: DebugStrOffsets<Slice<'data>>,
    pub addr: DebugAddr<Slice<'data>>,
    pub ranges: RangeLists<Slice<'data>>,
    /// Strings of the dwz file.
    pub supplement_str: DebugStr<Slice<'data>>,
    /// Marks split DWARF.
    pub file_type: DwarfFileType,
}

/// Unit with its root entry.
pub(super) struct Unit<'data> {
    /// Offset of its header in the section.
    pub offset: usize,
    /// Bytes from its header to its end.
    pub bytes: &'data [u8],
    pub encoding: Encoding,
    /// Offset of the root entry from the header.
    pub root: usize,
    pub abbrevs: Arc<Abbrevs>,
    pub low_pc: u64,
    pub str_offsets_base: DebugStrOffsetsBase<usize>,
    pub addr_base: DebugAddrBase<usize>,
    /// Base of range lists by index; in DWARF 4 the base that split units add to their offsets.
    pub ranges_base: DebugRngListsBase<usize>,
    pub line_program: Option<DebugLineOffset>,
    pub comp_dir: &'data [u8],
    /// File with the rest of a skeleton.
    pub dwo_name: Option<&'data [u8]>,
    pub dwo_id: Option<u64>,
    /// Code ranges of the whole unit.
    code: Code,
}

/// Location of an entry's code.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Code {
    forms: [u16; 4],
    kept: [u64; 4],
}

impl Code {
    /// Makes the location for an entry of this abbreviation from the values of [`Abbrevs::pass`].
    pub fn new(abbrev: &Abbrev, kept: [u64; 4]) -> Code {
        let forms = abbrev.forms;
        Code { forms, kept }
    }

    fn get(&self, slot: Slot) -> Option<(DwForm, u64)> {
        let form = DwForm(self.forms[slot as usize]);
        (form.0 != 0).then(|| (form, self.kept[slot as usize]))
    }
}

impl<'data> Unit<'data> {
    /// Reads the root entry with the given abbreviations: all of the unit's, or only as many as the
    /// root needs.
    pub fn read(
        parts: &Parts<'data>,
        header: &UnitHeader<Slice<'data>>,
        abbrevs: Arc<Abbrevs>,
        work: &Share<'_>,
    ) -> Result<Unit<'data>, DwarfError> {
        let encoding = header.encoding();
        let start = header.offset().0;
        let end = start.checked_add(header.length_including_self());
        let bytes = end.and_then(|end| parts.info.get(start..end));
        let split = parts.file_type;
        let mut unit = Unit {
            offset: parts.info_start + start,
            bytes: bytes.ok_or(DwarfError::Cut)?,
            encoding,
            root: header.header_size(),
            abbrevs: Arc::clone(&abbrevs),
            low_pc: 0,
            str_offsets_base: DebugStrOffsetsBase::default_for_encoding_and_file(encoding, split),
            addr_base: DebugAddrBase(0),
            ranges_base: DebugRngListsBase::default_for_encoding_and_file(encoding, split),
            line_program: None,
            comp_dir: &[],
            dwo_name: None,
            dwo_id: match header.type_() {
                UnitType::Skeleton(id) | UnitType::SplitCompilation(id) => Some(id.0),
                _ => None,
            },
            code: Code::default(),
        };
        let mut at = Cursor {
            bytes: unit.bytes,
            at: unit.root,
        };
        let code = at.leb().ok_or(DwarfError::Cut)?;
        let abbrev = abbrevs.get(code).ok_or(DwarfError::UnknownAbbreviation)?;
        let attributes = at.at;
        let kept = abbrevs.pass(abbrev, &mut at, encoding);
        unit.code = Code::new(abbrev, kept.ok_or(DwarfError::Cut)?);
        let specs = abbrevs.attributes(abbrev);
        work.take(specs.len())?;
        let (mut comp_dir, mut dwo_name) = (None, None);
        let (mut low_pc, mut entry_pc) = (None, None);
        let mut reader = unit.attributes_at(attributes)?;
        for spec in specs {
            let attribute = reader.read_attribute(*spec)?;
            let value = attribute.value();
            match (attribute.name(), value) {
                (dw::DW_AT_comp_dir, _) => comp_dir = Some(value),
                (dw::DW_AT_dwo_name | dw::DW_AT_GNU_dwo_name, _) => dwo_name = Some(value),
                (dw::DW_AT_low_pc, _) => low_pc = Some(value),
                (dw::DW_AT_entry_pc, _) => entry_pc = Some(value),
                (dw::DW_AT_stmt_list, AttributeValue::DebugLineRef(offset)) => {
                    unit.line_program = Some(offset);
                }
                (dw::DW_AT_str_offsets_base, AttributeValue::DebugStrOffsetsBase(base)) => {
                    unit.str_offsets_base = base;
                }
                (
                    dw::DW_AT_addr_base | dw::DW_AT_GNU_addr_base,
                    AttributeValue::DebugAddrBase(base),
                ) => unit.addr_base = base,
                (
                    dw::DW_AT_rnglists_base | dw::DW_AT_GNU_ranges_base,
                    AttributeValue::DebugRngListsBase(base),
                ) => unit.ranges_base = base,
                (dw::DW_AT_GNU_dwo_id, AttributeValue::DwoId(id)) => unit.dwo_id = Some(id.0),
                _ => {}
            }
        }
        // Values by index need the bases, which can come after them.
        let text = |value: Option<Value<'data>>| unit.string(parts, value?);
        let (comp_dir, dwo_name) = (text(comp_dir), text(dwo_name));
        let low_pc = low_pc.or(entry_pc).and_then(|low| match low {
            AttributeValue::Addr(address) => Some(address),
            AttributeValue::DebugAddrIndex(index) => unit.indexed_address(parts, index.0 as u64),
            _ => None,
        });
        unit.low_pc = low_pc.unwrap_or(0);
        unit.comp_dir = comp_dir.unwrap_or_default();
        unit.dwo_name = dwo_name;
        Ok(unit)
    }

    /// Copies the settings that a split unit does not repeat from its skeleton.
    pub fn complete_from(&mut self, skeleton: &Unit<'data>) {
        self.low_pc = skeleton.low_pc;
        self.addr_base = skeleton.addr_base;
        if self.encoding.version < 5 {
            self.ranges_base = skeleton.ranges_base;
        }
    }

    /// Returns the abbreviation of the entry at `at` (from the unit's header) and the start of its
    /// attributes.
    pub fn entry(&self, at: usize) -> Result<(&Abbrev, usize), DwarfError> {
        let bytes = self.bytes;
        let mut at = Cursor { bytes, at };
        let code = at.leb().ok_or(DwarfError::Cut)?;
        let abbrev = self
            .abbrevs
            .get(code)
            .ok_or(DwarfError::UnknownAbbreviation)?;
        Ok((abbrev, at.at))
    }

    /// Returns a reader for the attributes that begin at `at`.
    pub fn attributes_at(
        &self,
        at: usize,
    ) -> Result<EntriesRaw<'static, Slice<'data>>, DwarfError> {
        // The specifications come from the tables in `abbrev`; those of gimli are not used.
        static NONE: LazyLock<Abbreviations> = LazyLock::new(Abbreviations::default);
        let input = self.bytes.get(at..).ok_or(DwarfError::Cut)?;
        let input = EndianSlice::new(input, LittleEndian);
        Ok(EntriesRaw::new(input, self.encoding, &NONE, UnitOffset(at)))
    }

    /// Returns the text of an attribute, if it has one within its section.
    pub fn string(&self, parts: &Parts<'data>, value: Value<'data>) -> Option<&'data [u8]> {
        let (section, at) = match value {
            AttributeValue::String(text) => {
                let text = text.slice();
                return (text.len() <= MAX_TEXT_LENGTH).then_some(text);
            }
            AttributeValue::DebugStrRef(offset) => (parts.str.reader(), offset.0),
            AttributeValue::DebugLineStrRef(offset) => (parts.line_str.reader(), offset.0),
            AttributeValue::DebugStrRefSup(offset) => (parts.supplement_str.reader(), offset.0),
            AttributeValue::DebugStrOffsetsIndex(index) => {
                let format = self.encoding.format;
                let base = self.str_offsets_base;
                let offset = parts.str_offsets.get_str_offset(format, base, index);
                (parts.str.reader(), offset.ok()?.0)
            }
            _ => return None,
        };
        text(section.slice().get(at..)?)
    }

    fn indexed_address(&self, parts: &Parts<'data>, index: u64) -> Option<u64> {
        let index = DebugAddrIndex(usize::try_from(index).ok()?);
        let size = self.encoding.address_size;
        parts.addr.get_address(size, self.addr_base, index).ok()
    }

    /// Returns the address in a value of this form, if it is a form for addresses.
    #[inline]
    fn address(&self, parts: &Parts<'data>, (form, value): (DwForm, u64)) -> Option<u64> {
        match form {
            dw::DW_FORM_addr => Some(value),
            dw::DW_FORM_addrx
            | dw::DW_FORM_addrx1
            | dw::DW_FORM_addrx2
            | dw::DW_FORM_addrx4
            | dw::DW_FORM_GNU_addr_index => self.indexed_address(parts, value),
            _ => None,
        }
    }

    /// Calls `sink` with each non-empty range of an entry's code. An address of all ones marks code
    /// that the linker dropped.
    ///
    /// # Errors
    /// Returns an error if the range list is damaged or `sink` fails.
    #[inline]
    pub fn ranges(
        &self,
        parts: &Parts<'data>,
        code: &Code,
        work: &Share<'_>,
        mut sink: impl FnMut(u64, u64) -> Result<(), DwarfError>,
    ) -> Result<(), DwarfError> {
        if let (Some(low), Some(high)) = (code.get(Slot::Low), code.get(Slot::High)) {
            let dropped = u64::MAX >> (64 - 8 * u32::from(self.encoding.address_size.clamp(1, 8)));
            if let Some(low) = self.address(parts, low)
                && low != dropped
            {
                let size = || low.wrapping_add(high.1);
                let high = self.address(parts, high).unwrap_or_else(size);
                return if low < high { sink(low, high) } else { Ok(()) };
            }
        }
        let Some((form, value)) = code.get(Slot::Ranges) else {
            return Ok(());
        };
        let value = usize::try_from(value).map_err(|_| DwarfError::Offset)?;
        let offset = if form == dw::DW_FORM_rnglistx {
            let index = DebugRngListsIndex(value);
            parts
                .ranges
                .get_offset(self.encoding, self.ranges_base, index)?
        } else if parts.file_type == DwarfFileType::Dwo && self.encoding.version < 5 {
            RangeListsOffset(value.wrapping_add(self.ranges_base.0))
        } else {
            RangeListsOffset(value)
        };
        let (addr, base) = (&parts.addr, self.addr_base);
        let lists = &parts.ranges;
        let mut list = lists.ranges(offset, self.encoding, self.low_pc, addr, base)?;
        while let Some(range) = list.next()? {
            work.take(16)?;
            sink(range.begin, range.end)?;
        }
        Ok(())
    }

    /// Calls `sink` with the code ranges of the whole unit, from its root entry.
    pub fn own_ranges(
        &self,
        parts: &Parts<'data>,
        work: &Share<'_>,
        sink: impl FnMut(u64, u64) -> Result<(), DwarfError>,
    ) -> Result<(), DwarfError> {
        self.ranges(parts, &self.code, work, sink)
    }
}
