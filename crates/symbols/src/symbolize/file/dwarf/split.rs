//! Split DWARF: the file contains only a skeleton of each unit (line table and ranges); functions
//! are in a separate `.dwo` file, or together with those of other units in a `.dwp` package.
//! Supports DWARF 5 and its GNU predecessor in DWARF 4.

use super::debug_sections::{Meanwhile, NAMES, Origin, Sections};
use super::error::{DwarfError, note_of};
use super::unit::{Parts, Slice, Unit};
use super::units::{File, Units};
use super::work::{Share, Work};
use crate::symbolize::file::companions::{SupplementaryFiles, SupplementaryRef};
use crate::symbolize::file::elf::Elf;
use crate::symbolize::file::notes::{Note, Notes};
use crate::symbolize::file::sections::{Allowance, Loan, read_debug};
use gimli::{DebugCuIndex, DwarfFileType, IndexSectionId, LittleEndian, UnitIndex};
use heaptap_base::bytes::Bytes;
use heaptap_base::parallel::lock;
use std::cell::{Cell, RefCell};
use std::collections::HashSet;
use std::num::NonZero;
use std::sync::{Arc, Mutex, OnceLock};

/// Lookup of split units.
pub(super) struct Splits<'run> {
    companions: &'run [Arc<dyn SupplementaryFiles>],
    allowance: &'run Allowance,
    work: &'run Work,
    notes: &'run Notes,
    package: OnceLock<Option<Package<'run>>>,
    /// Split units whose size was added to the work limit: each once, even if several skeletons
    /// refer to it.
    counted: Mutex<HashSet<u64>>,
}

/// `.dwp` file.
struct Package<'run> {
    sections: SplitSections<'run>,
    /// `.debug_cu_index`: assigns parts of the sections to units.
    index: Bytes,
    _index_loan: Loan<'run>,
}

impl<'run> Splits<'run> {
    pub fn new(
        companions: &'run [Arc<dyn SupplementaryFiles>],
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
            counted: Mutex::default(),
        }
    }

    /// Returns the sections that contain the unit of a skeleton; `None`, with a note, if they are
    /// not found.
    pub fn find(&self, skeleton: &Unit<'_>) -> Option<SplitSections<'run>> {
        let (name, id) = (skeleton.dwo_name?, skeleton.dwo_id?);
        let name = String::from_utf8_lossy(name);
        let package = self.package.get_or_init(|| self.find_package()).as_ref();
        if let Some(sections) = package.and_then(|package| self.in_package(package, id)) {
            return Some(sections);
        }
        let directory = String::from_utf8_lossy(skeleton.comp_dir);
        let reference = SupplementaryRef::Split {
            name: &name,
            directory: &directory,
        };
        let found = RefCell::new(None);
        let gave_up = Cell::new(false);
        let fits = |bytes: &Bytes| {
            let sections = self.read(bytes, None).filter(|sections| {
                let start = sections.unit(id, &self.work.share());
                gave_up.set(gave_up.get() || start == Err(DwarfError::TooMuchWork));
                let Ok(Some(start)) = start else { return false };
                self.count(id, sections.size_of(start));
                true
            });
            let fits = sections.is_some();
            found.replace(sections);
            fits
        };
        for companions in self.companions {
            if companions.find(&reference, &fits).is_some() {
                return found.into_inner();
            }
        }
        if gave_up.get() {
            self.notes.add(Note::TooMuchWork);
            return None;
        }
        self.notes.add(Note::NeedsSplit {
            name: name.into_owned(),
        });
        None
    }

    /// Adds the work allowed for a unit of this size in bytes.
    fn count(&self, id: u64, size: u64) {
        let mut counted = lock(&self.counted);
        if counted.insert(id) {
            self.work.add_debug_info(size);
        }
    }

    fn find_package(&self) -> Option<Package<'run>> {
        let is_package = |bytes: &Bytes| {
            Elf::read(bytes).is_ok_and(|elf| elf.section(bytes, ".debug_cu_index").is_some())
        };
        let found = self.companions.iter();
        let found = found
            .filter_map(|c| c.find(&SupplementaryRef::Package, &is_package))
            .next()?;
        let elf = Elf::read(&found.bytes).ok()?;
        let loan = self.allowance.loan();
        let index = read_debug(&found.bytes, &elf, "debug_cu_index", &loan)?;
        let index = index.map_err(|note| self.notes.add(note)).ok()?;
        let sections = self.read(&found.bytes, Some(&elf))?;
        self.work.add_debug_info(sections.sections.size());
        Some(Package {
            sections,
            index,
            _index_loan: loan,
        })
    }

    fn read(&self, bytes: &Bytes, elf: Option<&Elf>) -> Option<SplitSections<'run>> {
        let own;
        let elf = match elf {
            Some(elf) => elf,
            None => {
                own = Elf::read(bytes).ok()?;
                &own
            }
        };
        let loan = self.allowance.loan();
        let mut sections = Sections::default();
        let origin = Origin {
            bytes,
            elf,
            suffix: ".dwo",
            loan: &loan,
            threads: NonZero::<usize>::MIN,
            notes: self.notes,
        };
        sections.read(&NAMES, &origin, Meanwhile::NOTHING);
        Some(SplitSections {
            sections,
            _loan: Some(loan),
        })
    }

    /// Returns the parts of a package that belong to a unit.
    fn in_package(&self, package: &Package<'run>, id: u64) -> Option<SplitSections<'run>> {
        let index = DebugCuIndex::new(&package.index, LittleEndian).index();
        let index: UnitIndex<Slice<'_>> = match index {
            Ok(index) => index,
            Err(error) => {
                self.notes.add(note_of(".debug_cu_index", error.into()));
                return None;
            }
        };
        let row = index.find(id)?;
        let mut sections = package.sections.sections.clone();
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
        let sections = SplitSections {
            sections,
            _loan: None,
        };
        match sections.unit(id, &self.work.share()) {
            Ok(start) => start.map(|_| sections),
            Err(error) => {
                self.notes.add(note_of(".debug_info.dwo", error));
                None
            }
        }
    }
}

/// Sections of a split unit.
pub(super) struct SplitSections<'run> {
    sections: Sections,
    /// Memory of the sections of a `.dwo` file; parts of a package belong to the package.
    _loan: Option<Loan<'run>>,
}

impl SplitSections<'_> {
    /// Returns the units of the sections; missing sections come from the skeleton's file.
    pub fn file<'data>(&'data self, skeleton: Option<&Parts<'data>>) -> File<'data> {
        let mut parts = self.sections.parts(None);
        parts.file_type = DwarfFileType::Dwo;
        if let Some(skeleton) = skeleton {
            parts.addr = skeleton.addr;
            parts
                .ranges
                .set_debug_ranges(*skeleton.ranges.debug_ranges());
        }
        // Damage is reported when the units are read.
        let (units, _) = Units::read(parts.info);
        File { parts, units }
    }

    /// Returns the start of the unit with this ID.
    ///
    /// # Errors
    /// Returns an error if the search exceeds the work limit; unreadable units are skipped.
    pub fn unit(&self, id: u64, work: &Share<'_>) -> Result<Option<usize>, DwarfError> {
        let file = self.file(None);
        for start in file.units.with_code() {
            match file.root(start, work) {
                Ok(root) if root.dwo_id == Some(id) => return Ok(Some(start)),
                Err(DwarfError::TooMuchWork) => return Err(DwarfError::TooMuchWork),
                _ => {}
            }
        }
        Ok(None)
    }

    /// Returns the size in bytes of the unit that starts there.
    fn size_of(&self, start: usize) -> u64 {
        Units::read(self.sections.get("info")).0.size_of(start) as u64
    }
}
