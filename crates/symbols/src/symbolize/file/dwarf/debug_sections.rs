//! Sections of a file with debug information, several read in parallel with other work.

use super::super::elf::Elf;
use super::super::notes::Notes;
use super::super::sections::{Loan, read_debug};
use super::tasks::in_parallel;
use super::unit::{Parts, Slice};
use gimli::{
    DebugAddr, DebugLineStr, DebugRanges, DebugRngLists, DebugStr, DebugStrOffsets, DwarfFileType,
    LittleEndian, RangeLists,
};
use heaptap_base::bytes::Bytes;
use std::num::NonZero;

/// Sections of one file, decompressed.
#[derive(Clone, Default)]
pub(super) struct Sections([Bytes; NAMES.len()]);

/// File with sections, and where their memory and notes go.
#[derive(Clone, Copy)]
pub(super) struct Origin<'run> {
    pub bytes: &'run Bytes,
    pub elf: &'run Elf,
    /// End of the names of the sections.
    pub suffix: &'static str,
    pub loan: &'run Loan<'run>,
    pub threads: NonZero<usize>,
    pub notes: &'run Notes,
}

/// Other work while sections are decompressed.
#[derive(Clone, Copy)]
pub(super) struct Meanwhile<'run> {
    /// Begins with the sections.
    pub first: Option<&'run (dyn Fn() + Sync)>,
    /// Called with each number below `more` after the sections, because the largest one usually
    /// takes longer than all others together.
    pub work: &'run (dyn Fn(usize) + Sync),
    pub more: usize,
}

impl Meanwhile<'_> {
    pub const NOTHING: Meanwhile<'static> = Meanwhile {
        first: None,
        work: &|_| {},
        more: 0,
    };
}

/// Section names in descending order of typical size, for decompression in parallel.
pub(super) const NAMES: [&str; 10] = [
    "info",
    "str",
    "line",
    "rnglists",
    "ranges",
    "abbrev",
    "line_str",
    "aranges",
    "addr",
    "str_offsets",
];

impl Sections {
    /// Reads these sections, several in parallel, with other work.
    pub fn read(&mut self, names: &[&str], from: &Origin<'_>, meanwhile: Meanwhile<'_>) {
        let notes = from.notes;
        let read = |name: &str| {
            let name = format!("debug_{name}{}", from.suffix);
            let section = read_debug(from.bytes, from.elf, &name, from.loan)?;
            section.map_err(|note| notes.add(note)).ok()
        };
        let first = usize::from(meanwhile.first.is_some());
        let count = first + names.len() + meanwhile.more;
        let found = in_parallel(count, from.threads, |numbers| {
            let read = numbers.filter_map(|number| {
                let Some(at) = number.checked_sub(first) else {
                    meanwhile.first.inspect(|work| work());
                    return None;
                };
                let Some(&short) = names.get(at) else {
                    (meanwhile.work)(at - names.len());
                    return None;
                };
                let name = format!(".debug_{short}");
                Some((short, notes.catch_panic(&name, || read(short))??))
            });
            read.collect::<Vec<_>>()
        });
        for (name, section) in found.into_iter().flatten() {
            *self.get_mut(name) = section;
        }
    }

    pub fn get(&self, name: &str) -> &[u8] {
        let at = NAMES.iter().position(|known| *known == name);
        &self.0[at.expect("only names of the list are requested")]
    }

    pub fn get_mut(&mut self, name: &str) -> &mut Bytes {
        let at = NAMES.iter().position(|known| *known == name);
        &mut self.0[at.expect("only names of the list are requested")]
    }

    pub fn size(&self) -> u64 {
        self.0.iter().map(|section| section.len() as u64).sum()
    }

    pub fn parts<'data>(&'data self, supplement: Option<&'data Sections>) -> Parts<'data> {
        let slice = |name| self.get(name);
        Parts {
            info: slice("info"),
            info_start: 0,
            abbrev: slice("abbrev"),
            line: slice("line"),
            line_str: DebugLineStr::new(slice("line_str"), LittleEndian),
            str: DebugStr::new(slice("str"), LittleEndian),
            str_offsets: DebugStrOffsets::from(Slice::new(slice("str_offsets"), LittleEndian)),
            addr: DebugAddr::from(Slice::new(slice("addr"), LittleEndian)),
            ranges: RangeLists::new(
                DebugRanges::new(slice("ranges"), LittleEndian),
                DebugRngLists::new(slice("rnglists"), LittleEndian),
            ),
            supplement_str: DebugStr::new(
                supplement.map_or(&[], |sections| sections.get("str")),
                LittleEndian,
            ),
            file_type: DwarfFileType::Main,
        }
    }
}
