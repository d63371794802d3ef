//! Headers of a 32-bit or 64-bit ELF file in a common form: segments, sections, notes. Checks that
//! they are within the file; section contents are read elsewhere.

use super::error::FileError;
use super::facts::Machine;
use heaptap_base::units::BuildId;
use object::elf::{self, FileHeader32, FileHeader64};
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader};
use object::{LittleEndian, ReadRef, SectionIndex};
use std::ops::Range;

/// Segment (program header).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segment {
    pub kind: elf::ProgramType,
    pub executable: bool,
    pub writable: bool,
    pub offset: u64,
    pub address: u64,
    pub file_size: u64,
    pub memory_size: u64,
    pub align: u64,
}

/// Section header. Its byte range is within the file; it is empty for a section without bytes
/// (`NOBITS`, as in debug-only files) or beyond the end of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Section {
    pub name: Range<usize>,
    pub kind: elf::SectionType,
    pub flags: u64,
    pub file: Range<usize>,
    /// True if the section extends beyond the end of the file.
    pub is_cut: bool,
    /// Index of the section that it refers to, such as the strings of a symbol table.
    pub link: usize,
}

impl Section {
    pub fn is_compressed(&self) -> bool {
        self.flags & elf::SHF_COMPRESSED.0 != 0
    }

    /// Returns whether the section is loaded as code, also if its bytes are not in this file.
    pub fn is_code(&self) -> bool {
        self.flags & elf::SHF_EXECINSTR.0 != 0
    }
}

/// Headers of an ELF file.
#[derive(Debug, Clone)]
pub(super) struct Elf {
    pub machine: Machine,
    pub is_64: bool,
    pub segments: Vec<Segment>,
    pub sections: Vec<Section>,
}

impl Elf {
    /// Reads the headers.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a little-endian ELF file, or if tables are outside the
    /// file.
    pub fn read(bytes: &[u8]) -> Result<Elf, FileError> {
        let Some(ident) = bytes.get(..16) else {
            return Err(if bytes.starts_with(&elf::ELFMAG) {
                FileError::Damaged("truncated ELF header".to_owned())
            } else {
                FileError::Unknown
            });
        };
        if !ident.starts_with(&elf::ELFMAG) {
            return Err(FileError::Unknown);
        }
        if ident[5] == elf::ELFDATA2MSB.0 {
            return Err(FileError::Unsupported(
                "big-endian ELF file, which Android does not support",
            ));
        }
        let class = ident[4];
        if class == elf::ELFCLASS32.0 {
            read_headers::<FileHeader32<LittleEndian>>(bytes)
        } else if class == elf::ELFCLASS64.0 {
            read_headers::<FileHeader64<LittleEndian>>(bytes)
        } else {
            Err(FileError::Damaged(format!("unknown ELF class {class}")))
        }
    }

    /// Returns the first section with this name and bytes in the file.
    pub fn section(&self, bytes: &[u8], name: &str) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| !section.file.is_empty() && section.name(bytes) == name.as_bytes())
    }

    /// Returns the first section of this type with bytes in the file.
    pub fn section_of(&self, kind: elf::SectionType) -> Option<&Section> {
        self.sections
            .iter()
            .find(|section| section.kind == kind && !section.file.is_empty())
    }

    pub fn loaded(&self) -> impl Iterator<Item = &Segment> {
        let segments = self.segments.iter();
        segments.filter(|segment| segment.kind == elf::PT_LOAD)
    }

    /// Returns the loaded segments with code.
    pub fn executable(&self) -> impl Iterator<Item = &Segment> {
        self.loaded().filter(|segment| segment.executable)
    }

    /// Returns whether the file contains its code, so that offsets and sizes of segments are valid.
    /// In debug-only files the code sections have no bytes. Files without section headers still
    /// have their code.
    pub fn keeps_code(&self) -> bool {
        let mut code = self
            .sections
            .iter()
            .filter(|section| section.is_code())
            .peekable();
        code.peek().is_none() || code.any(|section| section.kind != elf::SHT_NOBITS)
    }

    /// Returns the segment with the code mapped from this file offset: if several have code, the
    /// one that begins on the offset's page, otherwise the first.
    pub fn code_at(&self, offset: u64) -> Option<&Segment> {
        let page = |segment: &Segment, at: u64| at - at % segment.align.max(1);
        self.executable()
            .find(|segment| page(segment, segment.offset) == page(segment, offset))
            .or_else(|| self.executable().next())
    }

    /// Returns the GNU build ID: from segments, then from sections, in Perfetto's order.
    pub fn build_id(&self, bytes: &[u8]) -> BuildId {
        let notes = |kind| {
            let found = self.segments.iter().filter(move |s| s.kind == kind);
            found.filter_map(|s| {
                let start = usize::try_from(s.offset).ok()?;
                let size = usize::try_from(s.file_size).ok()?;
                Some((bytes.get(start..start.checked_add(size)?)?, s.align))
            })
        };
        let sections = self.sections.iter().filter(|s| s.kind == elf::SHT_NOTE);
        notes(elf::PT_NOTE)
            .chain(sections.filter_map(|s| Some((bytes.get(s.file.clone())?, 4))))
            .find_map(|(notes, align)| build_id_note(notes, align))
            .map_or_else(BuildId::default, |id| BuildId(id.to_vec()))
    }
}

impl Section {
    /// Returns the name, empty if it is outside the name table.
    pub fn name<'data>(&self, bytes: &'data [u8]) -> &'data [u8] {
        bytes.get(self.name.clone()).unwrap_or_default()
    }
}

fn read_headers<H: FileHeader<Endian = LittleEndian>>(bytes: &[u8]) -> Result<Elf, FileError> {
    let endian = LittleEndian;
    let damaged = |error: object::read::Error| FileError::Damaged(error.to_string());
    let header = H::parse(bytes).map_err(damaged)?;
    let segments = header.program_headers(endian, bytes).map_err(damaged)?;
    let headers = header.section_headers(endian, bytes).map_err(damaged)?;
    // Without a readable name table, sections do not have names, but the file is still usable:
    // symbol tables are found by type.
    let names = header.section_strings_index(endian, bytes).ok();
    let names = names.and_then(|SectionIndex(at)| file_range::<H>(headers.get(at)?, bytes));
    let mut sections = Vec::with_capacity(headers.len());
    for section in headers {
        let file = file_range::<H>(section, bytes);
        let name = names.clone().and_then(|names| {
            let start = names.start.checked_add(section.sh_name(endian) as usize)?;
            let text = bytes.get(start..names.end)?;
            // Toolchains do not write longer section names; this bounds the search in an
            // unterminated table.
            let text = &text[..text.len().min(256)];
            let length = text.iter().position(|byte| *byte == 0)?;
            Some(start..start + length)
        });
        sections.push(Section {
            name: name.unwrap_or(0..0),
            kind: section.sh_type(endian),
            flags: section.sh_flags(endian).0,
            is_cut: file.is_none(),
            file: file.unwrap_or(0..0),
            link: section.sh_link(endian) as usize,
        });
    }
    let segments = segments.iter().map(|segment| Segment {
        kind: segment.p_type(endian),
        executable: segment.p_flags(endian).contains(elf::PF_X),
        writable: segment.p_flags(endian).contains(elf::PF_W),
        offset: segment.p_offset(endian).into(),
        address: segment.p_vaddr(endian).into(),
        file_size: segment.p_filesz(endian).into(),
        memory_size: segment.p_memsz(endian).into(),
        align: segment.p_align(endian).into(),
    });
    Ok(Elf {
        machine: Machine::from(header.e_machine(endian)),
        is_64: header.is_type_64(),
        segments: segments.collect(),
        sections,
    })
}

/// Returns the byte range of a section; `None` if it is beyond the end of the file.
fn file_range<H: FileHeader<Endian = LittleEndian>>(
    section: &H::SectionHeader,
    bytes: &[u8],
) -> Option<Range<usize>> {
    let Some((offset, size)) = section.file_range(LittleEndian) else {
        return Some(0..0);
    };
    bytes.read_bytes_at(offset, size).ok()?;
    let start = usize::try_from(offset).ok()?;
    Some(start..start + usize::try_from(size).ok()?)
}

/// Returns the description of the note of type `NT_GNU_BUILD_ID` and name `GNU`.
fn build_id_note(mut notes: &[u8], align: u64) -> Option<&[u8]> {
    // Notes are padded to 4 bytes; linkers pad those in segments aligned to 8 bytes to 8.
    let align = if align == 8 { 8 } else { 4 };
    let word = |bytes: &[u8], at: usize| -> Option<usize> {
        let word = bytes.get(at..at + 4)?.try_into().ok()?;
        Some(u32::from_le_bytes(word) as usize)
    };
    loop {
        let (name_size, size) = (word(notes, 0)?, word(notes, 4)?);
        let kind = word(notes, 8)?;
        let name = notes.get(12..12usize.checked_add(name_size)?)?;
        let start = (12 + name_size).next_multiple_of(align);
        let end = start.checked_add(size)?;
        let description = notes.get(start..end)?;
        if kind == elf::NT_GNU_BUILD_ID.0 as usize && name.strip_suffix(b"\0") == Some(b"GNU") {
            return (!description.is_empty()).then_some(description);
        }
        notes = notes.get(end.next_multiple_of(align)..)?;
    }
}
