//! The debug information of a file with what it needs from others: sections decompressed in
//! parallel, the file that dwz shares between several, the units of split DWARF. Owns which
//! sections are read; what they say is [`super::dwarf`]'s.

use super::Bytes;
use super::companions::{Companions, Wanted};
use super::dwarf::{self, Answers, Debug, DwarfError, Sections, Slice, SplitName};
use super::elf::Elf;
use super::facts::Facts;
use super::notes::{Note, Notes};
use super::sections::{Allowance, read_debug};
use gimli::{DwarfPackage, SectionId};
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What a search for functions and lines reads, largest first as a rule: the longest job of a
/// parallel decompression is to begin first.
const WANTED: [SectionId; 10] = [
    SectionId::DebugInfo,
    SectionId::DebugStr,
    SectionId::DebugLine,
    SectionId::DebugRngLists,
    SectionId::DebugRanges,
    SectionId::DebugAbbrev,
    SectionId::DebugAddr,
    SectionId::DebugStrOffsets,
    SectionId::DebugAranges,
    SectionId::DebugLineStr,
];
/// The index of a package names parts of more sections than are read, and all must be there.
const WANTED_OF_PACKAGE: [SectionId; 13] = [
    SectionId::DebugInfo,
    SectionId::DebugStr,
    SectionId::DebugAbbrev,
    SectionId::DebugStrOffsets,
    SectionId::DebugRngLists,
    SectionId::DebugLine,
    SectionId::DebugCuIndex,
    SectionId::DebugTuIndex,
    SectionId::DebugLoc,
    SectionId::DebugLocLists,
    SectionId::DebugMacinfo,
    SectionId::DebugMacro,
    SectionId::DebugTypes,
];

/// A file with `.debug_info`.
pub(super) struct DebugFile {
    pub bytes: Bytes,
    pub elf: Elf,
    /// Finds what it names itself.
    pub companions: Arc<dyn Companions>,
}

impl DebugFile {
    /// Looks up sorted addresses and hands out what was found: names and paths live in the
    /// sections, which are dropped on return.
    pub fn lookup(
        &self,
        addresses: &[u64],
        threads: NonZero<usize>,
        allowance: &Allowance,
        notes: &Notes,
        take: &mut dyn FnMut(&Answers<'_>),
    ) {
        let reading = Reading {
            threads,
            allowance,
            notes,
        };
        let facts = self.elf.facts(&self.bytes);
        let own = reading.sections(&self.bytes, &self.elf, &WANTED, Suffix::None);
        let shared = self.supplement(&facts, &reading);
        let mut sections = own.dwarf();
        if let Some(shared) = &shared {
            sections.set_sup(shared.dwarf());
        }
        let debug = Debug::new(sections);
        let split = self.split_units(debug.split_names(addresses), &reading);
        let answers = debug.lookup(addresses, threads, &split.units(&debug));
        for (part, error) in &answers.damage {
            notes.add(match error {
                DwarfError::TooMuchWork => Note::TooMuchWork,
                error => Note::damaged(part, error),
            });
        }
        take(&answers);
    }

    fn supplement(&self, facts: &Facts, reading: &Reading<'_>) -> Option<Loaded> {
        let wanted = facts.supplement.as_ref()?;
        let fits = |bytes: &Bytes| {
            let elf = Elf::read(bytes);
            elf.is_ok_and(|elf| elf.build_id(bytes) == wanted.build_id)
        };
        let found = self.companions.find(&Wanted::Supplement(wanted), &fits);
        if found.is_none() {
            reading.notes.add(Note::needs_supplement(wanted));
        }
        let bytes = found?.bytes;
        let elf = Elf::read(&bytes).ok()?;
        Some(reading.sections(&bytes, &elf, &WANTED, Suffix::None))
    }

    fn split_units(&self, names: Vec<SplitName>, reading: &Reading<'_>) -> Split {
        let mut split = Split::default();
        if names.is_empty() {
            return split;
        }
        let is_package = |bytes: &Bytes| {
            let elf = Elf::read(bytes);
            elf.is_ok_and(|elf| elf.section(bytes, ".debug_cu_index").is_some())
        };
        if let Some(found) = self.companions.find(&Wanted::Package, &is_package)
            && let Ok(elf) = Elf::read(&found.bytes)
        {
            let sections = reading.sections(&found.bytes, &elf, &WANTED_OF_PACKAGE, Suffix::Dwo);
            split.package = Some(sections);
        }
        for name in names {
            let in_package = split.package.as_ref().and_then(Loaded::package);
            if in_package.is_some_and(|package| package.cu_index.find(name.id.0).is_some()) {
                split.names.push(name);
                continue;
            }
            match self.split_object(&name, reading) {
                Some(object) => {
                    split.objects.insert(name.id.0, object);
                    split.names.push(name);
                }
                None => reading.notes.add(Note::NeedsSplit {
                    name: name.path.clone(),
                }),
            }
        }
        split
    }

    /// The `.dwo` file with this unit.
    fn split_object(&self, name: &SplitName, reading: &Reading<'_>) -> Option<Loaded> {
        let load = |bytes: &Bytes| {
            let elf = Elf::read(bytes).ok()?;
            let object = reading.sections(bytes, &elf, &WANTED_OF_PACKAGE, Suffix::Dwo);
            dwarf::has_split_unit(&object.dwarf(), name.id).then_some(object)
        };
        let wanted = Wanted::Split {
            name: &name.path,
            folder: &name.comp_dir,
        };
        let found = self
            .companions
            .find(&wanted, &|bytes| load(bytes).is_some())?;
        load(&found.bytes)
    }
}

/// How the names of sections end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
    None,
    /// `.dwo`, of split DWARF.
    Dwo,
}

struct Reading<'r> {
    threads: NonZero<usize>,
    allowance: &'r Allowance,
    notes: &'r Notes,
}

impl Reading<'_> {
    /// Reads those of the wanted sections that the file has. A damaged one is as good as none.
    fn sections(&self, bytes: &Bytes, elf: &Elf, wanted: &[SectionId], suffix: Suffix) -> Loaded {
        let next = AtomicUsize::new(0);
        let loaded = Mutex::new(HashMap::new());
        let work = || {
            while let Some(id) = wanted.get(next.fetch_add(1, Ordering::Relaxed)) {
                let name = match suffix {
                    Suffix::None => Some(id.name()),
                    Suffix::Dwo => id.dwo_name(),
                };
                let name = name.unwrap_or_default().trim_start_matches('.');
                match read_debug(bytes, elf, name, self.allowance) {
                    Some(Ok(section)) => {
                        let mut loaded = loaded.lock().unwrap_or_else(PoisonError::into_inner);
                        loaded.insert(*id, section);
                    }
                    Some(Err(note)) => self.notes.add(note),
                    None => {}
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.threads.get().min(wanted.len()) {
                scope.spawn(work);
            }
            work();
        });
        let sections = loaded.into_inner().unwrap_or_else(PoisonError::into_inner);
        Loaded { sections, suffix }
    }
}

/// The sections of one file.
struct Loaded {
    sections: HashMap<SectionId, Bytes>,
    suffix: Suffix,
}

impl Loaded {
    fn section(&self, id: SectionId) -> Result<Slice<'_>, gimli::Error> {
        let bytes = self.sections.get(&id).map_or(&[][..], |bytes| bytes);
        Ok(Slice::new(bytes, gimli::LittleEndian))
    }

    fn dwarf(&self) -> Sections<'_> {
        let mut sections =
            Sections::load(|id| self.section(id)).expect("sections that are there or empty");
        if self.suffix == Suffix::Dwo {
            sections.file_type = gimli::DwarfFileType::Dwo;
        }
        sections
    }

    /// As a package; `None` where its index is damaged.
    fn package(&self) -> Option<DwarfPackage<Slice<'_>>> {
        let empty = Slice::new(&[], gimli::LittleEndian);
        DwarfPackage::load(|id| self.section(id), empty).ok()
    }
}

/// What was found of split DWARF.
#[derive(Default)]
struct Split {
    package: Option<Loaded>,
    objects: HashMap<u64, Loaded>,
    names: Vec<SplitName>,
}

impl Split {
    /// The sections with each split unit, by its ID.
    fn units<'s>(&'s self, debug: &Debug<'s>) -> HashMap<u64, Sections<'s>> {
        let package = self.package.as_ref().and_then(Loaded::package);
        let mut units = HashMap::new();
        for name in &self.names {
            let id = name.id;
            let sections = match (self.objects.get(&id.0), &package) {
                (Some(object), _) => {
                    let mut sections = object.dwarf();
                    sections.make_dwo(debug.sections());
                    Some(sections)
                }
                (None, Some(package)) => package.find_cu(id, debug.sections()).ok().flatten(),
                (None, None) => None,
            };
            if let Some(sections) = sections {
                units.insert(id.0, sections);
            }
        }
        units
    }
}
