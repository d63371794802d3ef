//! Split DWARF: units of which the file holds a skeleton (line table and ranges) while functions
//! are in a `.dwo` file of their own, or with those of other units in a `.dwp` package.
//! DWARF 5 and its GNU forerunner of DWARF 4.

use super::index::Units;
use super::names::File;
use super::unit::{Parts, Slice, Unit};
use super::work::{Share, Work};
use super::{Sections, note_of};
use crate::bytes::Bytes;
use crate::symbolize::file::companions::{Companions, Wanted};
use crate::symbolize::file::elf::Elf;
use crate::symbolize::file::notes::{Note, Notes};
use crate::symbolize::file::sections::{Allowance, read_debug};
use gimli::{DebugCuIndex, DwarfFileType, IndexSectionId, LittleEndian, UnitIndex};
use std::cell::RefCell;
use std::num::NonZero;
use std::sync::{Arc, OnceLock};

/// Finds split units.
pub(super) struct Splits<'run> {
    companions: &'run [Arc<dyn Companions>],
    allowance: &'run Allowance,
    work: &'run Work,
    notes: &'run Notes,
    package: OnceLock<Option<Package>>,
}

/// A `.dwp` file.
struct Package {
    sections: Sections,
    /// `.debug_cu_index`: which parts of the sections belong to a unit.
    index: Bytes,
}

impl<'run> Splits<'run> {
    pub fn new(
        companions: &'run [Arc<dyn Companions>],
        allowance: &'run Allowance,
        work: &'run Work,
        notes: &'run Notes,
    ) -> Splits<'run> {
        Splits {
            companions,
            allowance,
            work,
            notes,
            package: OnceLock::new(),
        }
    }

    /// The sections that hold the unit of a skeleton; `None`, with a note, where they are not
    /// found.
    pub fn find(&self, skeleton: &Unit<'_>) -> Option<SplitSections> {
        let (name, id) = (skeleton.dwo_name?, skeleton.dwo_id?);
        let name = String::from_utf8_lossy(name);
        let package = self.package.get_or_init(|| self.find_package()).as_ref();
        if let Some(sections) = package.and_then(|package| self.in_package(package, id)) {
            return Some(sections);
        }
        let folder = String::from_utf8_lossy(skeleton.comp_dir);
        let wanted = Wanted::Split {
            name: &name,
            folder: &folder,
        };
        let found = RefCell::new(None);
        let fits = |bytes: &Bytes| {
            let sections = self.read(bytes, None);
            let sections =
                sections.filter(|sections| sections.unit(id, &self.work.share()).is_some());
            let fits = sections.is_some();
            found.replace(sections);
            fits
        };
        for companions in self.companions {
            if companions.find(&wanted, &fits).is_some() {
                return found.into_inner();
            }
        }
        self.notes.add(Note::NeedsSplit {
            name: name.into_owned(),
        });
        None
    }

    fn find_package(&self) -> Option<Package> {
        let is_package = |bytes: &Bytes| {
            Elf::read(bytes).is_ok_and(|elf| elf.section(bytes, ".debug_cu_index").is_some())
        };
        let found = self.companions.iter();
        let found = found
            .filter_map(|c| c.find(&Wanted::Package, &is_package))
            .next()?;
        let elf = Elf::read(&found.bytes).ok()?;
        let index = read_debug(&found.bytes, &elf, "debug_cu_index", self.allowance)?;
        let index = index.map_err(|note| self.notes.add(note)).ok()?;
        let sections = self.read(&found.bytes, Some(&elf))?.0;
        Some(Package { sections, index })
    }

    fn read(&self, bytes: &Bytes, elf: Option<&Elf>) -> Option<SplitSections> {
        let own;
        let elf = match elf {
            Some(elf) => elf,
            None => {
                own = Elf::read(bytes).ok()?;
                &own
            }
        };
        let one = NonZero::<usize>::MIN;
        let sections = Sections::read(bytes, elf, ".dwo", self.allowance, one, self.notes);
        Some(SplitSections(sections))
    }

    /// The parts of a package that belong to a unit.
    fn in_package(&self, package: &Package, id: u64) -> Option<SplitSections> {
        let index = DebugCuIndex::new(&package.index, LittleEndian).index();
        let index: UnitIndex<Slice<'_>> = match index {
            Ok(index) => index,
            Err(error) => {
                self.notes.add(note_of(".debug_cu_index", error.into()));
                return None;
            }
        };
        let row = index.find(id)?;
        let mut sections = package.sections.clone();
        for part in index.sections(row).ok()? {
            let name = match part.section {
                IndexSectionId::DebugInfo => "info",
                IndexSectionId::DebugAbbrev => "abbrev",
                IndexSectionId::DebugRngLists => "rnglists",
                IndexSectionId::DebugStrOffsets => "str_offsets",
                _ => continue,
            };
            let (start, size) = (part.offset as usize, part.size as usize);
            let whole = sections.get_mut(name);
            *whole = whole.slice(start..start.checked_add(size)?)?;
        }
        let sections = SplitSections(sections);
        sections.unit(id, &self.work.share())?;
        Some(sections)
    }
}

/// The sections of a split unit.
pub(super) struct SplitSections(Sections);

impl SplitSections {
    /// The units of the sections; what stands in the skeleton's file is taken from there.
    pub fn file<'data>(&'data self, skeleton: Option<&Parts<'data>>) -> File<'data> {
        let mut parts = self.0.parts(None);
        parts.file_type = DwarfFileType::Dwo;
        if let Some(skeleton) = skeleton {
            parts.addr = skeleton.addr;
            parts
                .ranges
                .set_debug_ranges(*skeleton.ranges.debug_ranges());
        }
        // Damage shows again where the units are read.
        let (units, _) = Units::read(parts.info);
        File { parts, units }
    }

    /// Where the unit of this ID starts.
    pub fn unit(&self, id: u64, work: &Share<'_>) -> Option<usize> {
        let file = self.file(None);
        file.units.with_code().find(|start| {
            let root = file.root(*start, work);
            root.is_ok_and(|root| root.dwo_id == Some(id))
        })
    }
}
