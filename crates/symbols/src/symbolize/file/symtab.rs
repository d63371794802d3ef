//! Symbol tables: the symbol at or before an address, by the rules of llvm-symbolizer.
//!
//! Functions and untyped symbols of sections with code count: data does not name code, whatever the
//! address. If several are at one address, the largest counts, and among equal ones the last in the table. The nearest one at or before the
//! address is used, unless it has a size and ends before the address. Mapping symbols (`$x`, `$a`,
//! `$t`, `$d`) do not name code. A local symbol belongs to the `STT_FILE` symbol before it.

use super::Bytes;
use super::elf::{Elf, Section};
use super::facts::Machine;
use super::sections::text;
use object::elf::{self, Sym32, Sym64};
use object::read::elf::Sym;
use object::{LittleEndian, Pod};
use std::ops::Range;

/// Symbol table with its strings.
#[derive(Debug, Clone)]
struct Table {
    bytes: Bytes,
    symbols: Range<usize>,
    strings: Range<usize>,
    /// Section indexes (`SHT_SYMTAB_SHNDX`), for files with more than 65279 sections.
    section_indexes: Range<usize>,
    /// True if the section with this index has code.
    is_code: Vec<bool>,
    machine: Machine,
    is_64: bool,
}

/// Symbol tables of a library; later ones take precedence.
#[derive(Debug, Clone, Default)]
pub(super) struct SymbolTables(Vec<Table>);

/// Symbol at an address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Symbol<'data> {
    pub name: &'data [u8],
    /// Source file of a local symbol, without directory; otherwise empty.
    pub file: &'data [u8],
}

impl SymbolTables {
    /// Adds the table in sections of this type and returns whether it has symbols.
    pub fn add(&mut self, bytes: &Bytes, elf: &Elf, kind: elf::SectionType) -> bool {
        let Some(section) = elf.section_of(kind) else {
            return false;
        };
        let strings = elf.sections.get(section.link);
        let table = Table {
            bytes: bytes.clone(),
            symbols: section.file.clone(),
            strings: strings.map_or(0..0, |strings| strings.file.clone()),
            section_indexes: elf
                .section_of(elf::SHT_SYMTAB_SHNDX)
                .filter(|_| kind == elf::SHT_SYMTAB)
                .map_or(0..0, |section| section.file.clone()),
            is_code: elf.sections.iter().map(Section::is_code).collect(),
            machine: elf.machine,
            is_64: elf.is_64,
        };
        // The first entry is empty by definition.
        let more = table.symbols.len() / table.entry_size() > 1;
        if more {
            self.0.push(table);
        }
        more
    }

    /// Returns the symbol of each of the sorted addresses.
    pub fn lookup(&self, addresses: &[u64]) -> Vec<Option<Symbol<'_>>> {
        let mut nearest = vec![None; addresses.len()];
        for table in &self.0 {
            if table.is_64 {
                table.gather::<Sym64<LittleEndian>>(addresses, &mut nearest);
            } else {
                table.gather::<Sym32<LittleEndian>>(addresses, &mut nearest);
            }
        }
        // The nearest symbol of an address stays the nearest for later ones until another begins.
        let mut last: Option<Candidate<'_>> = None;
        let found = nearest.into_iter().zip(addresses);
        found
            .map(|(candidate, address)| {
                last = candidate.or(last);
                let found = last?;
                let holds = found.size == 0 || address - found.address < found.size;
                holds.then(|| Symbol {
                    name: found.table.string(found.name),
                    file: found.file.map_or(&[], |file| found.table.string(file)),
                })
            })
            .collect()
    }
}

/// Symbol that starts at or before an address and after the previous address.
#[derive(Debug, Clone, Copy)]
struct Candidate<'table> {
    address: u64,
    size: u64,
    table: &'table Table,
    name: u32,
    file: Option<u32>,
}

impl Table {
    fn entry_size(&self) -> usize {
        if self.is_64 { 24 } else { 16 }
    }

    /// Finds, for the first address at or after each symbol, the nearest symbol.
    fn gather<'table, S>(&'table self, addresses: &[u64], nearest: &mut [Option<Candidate<'table>>])
    where
        S: Sym<Endian = LittleEndian> + Pod,
    {
        let endian = LittleEndian;
        let bytes = &self.bytes[self.symbols.clone()];
        let count = bytes.len() / size_of::<S>();
        let Ok((symbols, _)) = object::pod::slice_from_bytes::<S>(bytes, count) else {
            return;
        };
        let mut file = None;
        for (at, symbol) in symbols.iter().enumerate().skip(1) {
            let kind = symbol.st_type();
            let Some(section) = self.section_of(symbol.st_shndx(endian), at) else {
                if kind == elf::STT_FILE {
                    file = Some(symbol.st_name(endian));
                }
                continue;
            };
            let names_code =
                kind == elf::STT_FUNC || kind == elf::STT_GNU_IFUNC || kind == elf::STT_NOTYPE;
            if !names_code || !self.is_code.get(section).is_some_and(|is_code| *is_code) {
                continue;
            }
            let mut address: u64 = symbol.st_value(endian).into();
            if self.machine == Machine::Arm && kind == elf::STT_FUNC {
                // Bit 0 marks Thumb code.
                address &= !1;
            }
            let place = addresses.partition_point(|wanted| *wanted < address);
            let Some(place) = nearest.get_mut(place) else {
                continue;
            };
            let size: u64 = symbol.st_size(endian).into();
            let better = |old: &Candidate<'_>| (address, size) >= (old.address, old.size);
            let name = symbol.st_name(endian);
            if !place.as_ref().is_none_or(better) || self.is_mapping_symbol(name) {
                continue;
            }
            *place = Some(Candidate {
                address,
                size,
                table: self,
                name,
                file: file.filter(|_| symbol.st_bind() == elf::STB_LOCAL),
            });
        }
    }

    /// Returns the index of the section that contains a symbol, if there is one.
    fn section_of(&self, section: elf::SymbolSection, symbol: usize) -> Option<usize> {
        if section == elf::SHN_XINDEX {
            let indexes = self.bytes.get(self.section_indexes.clone())?;
            let index = indexes.get(symbol * 4..symbol * 4 + 4)?.try_into().ok()?;
            return Some(u32::from_le_bytes(index) as usize);
        }
        section.index().map(usize::from).filter(|index| *index != 0)
    }

    /// Returns whether a name is a mapping symbol, which separates code from data, or a label made
    /// by the assembler.
    fn is_mapping_symbol(&self, name: u32) -> bool {
        let prefixes: &[&[u8]] = match self.machine {
            Machine::Arm64 => &[b"$d", b"$x"],
            Machine::Arm => &[b"$d", b"$t", b"$a"],
            Machine::Riscv => &[b"$d", b"$x", b".L"],
            _ => return false,
        };
        let name = self.text_at(name);
        let is_nameless = matches!(name, [] | [0, ..]) && self.machine != Machine::Arm64;
        is_nameless || prefixes.iter().any(|prefix| name.starts_with(prefix))
    }

    /// Returns a string; empty if it is not terminated.
    fn string(&self, offset: u32) -> &[u8] {
        text(self.text_at(offset)).unwrap_or_default()
    }

    /// Returns the strings from this offset on.
    fn text_at(&self, offset: u32) -> &[u8] {
        let strings = self.bytes.get(self.strings.clone()).unwrap_or_default();
        strings.get(offset as usize..).unwrap_or_default()
    }
}
