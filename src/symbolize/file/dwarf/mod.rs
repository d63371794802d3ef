//! What DWARF says of addresses: functions with the calls inlined into them, files and lines.
//! Owns the search; sections come read and inflated from the symbol file, and names leave as
//! the bytes of those sections.
//!
//! A lookup answers many sorted addresses at once, and that is what it is fast by:
//!
//! ```text
//! addresses ──► units    .debug_aranges, else each unit's root: which unit has which address
//!                 │ one task per unit, over all threads; units without an address stay unread
//!                 ├──► functions   one pass over the unit's entries, reading of each but its
//!                 │      │         length and ranges; subtrees without an address are jumped
//!                 │      └──► names    of the functions found, following references
//!                 └──► lines       one pass over the unit's line program, keeping the row of
//!                                  each address only
//! ```
//!
//! The parsing of headers, abbreviations, range lists and tables of files is gimli's. Where
//! producers are ambiguous the answer is that of llvm-symbolizer (`docs/symbols.md`).

mod entries;
mod functions;
mod lines;
mod names;
mod paths;
mod unit;
mod units;
mod work;

use gimli::{Reader as _, Section as _};
use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use unit::{Root, Tables};
use units::{Task, Units};
use work::{Share, Work};

/// Little-endian bytes of a section.
pub(super) type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;
/// The sections of one file, inflated.
pub(super) type Sections<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;
type UnitHeader<'a> = gimli::UnitHeader<Slice<'a>>;

/// What is wrong with debug information.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(super) enum DwarfError {
    #[error(transparent)]
    Format(#[from] gimli::Error),
    #[error("a line program is for a machine with several operations an instruction")]
    Instructions,
    #[error("it repeats itself without measure")]
    TooMuchWork,
}

/// What a skeleton unit says of the unit that was split off it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SplitName {
    pub id: gimli::DwoId,
    /// The folder that the compiler ran in.
    pub comp_dir: String,
    /// Path of the `.dwo` file, relative to that.
    pub path: String,
}

/// The sections with each split unit, by its ID.
pub(super) type SplitUnits<'a> = HashMap<u64, Sections<'a>>;

/// The DWARF of one file, ready for lookups.
pub(super) struct Debug<'a> {
    sections: Sections<'a>,
    units: Units<'a>,
    /// Those of the file that dwz shares between several.
    supplement: Units<'a>,
    work: Work,
    damage: Vec<Damage>,
}

/// A section, and what is wrong with it.
pub(super) type Damage = (&'static str, DwarfError);

/// One function at an address, or one that was inlined there.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Frame<'a> {
    /// Linkage name, else the plain name.
    pub name: Option<&'a [u8]>,
    /// Index into [`Answers::files`].
    pub file: Option<u32>,
    /// 0: unknown.
    pub line: u32,
    /// 0: unknown.
    pub column: u32,
}

/// What is known of the addresses of a lookup.
#[derive(Debug, Default)]
pub(super) struct Answers<'a> {
    frames: Vec<Frame<'a>>,
    spans: Vec<(u32, u32)>,
    files: Vec<Box<str>>,
    /// What could not be read.
    pub damage: Vec<Damage>,
}

impl<'a> Answers<'a> {
    /// The frames of the address at this index, innermost first; empty where DWARF knows
    /// nothing of it.
    pub fn frames(&self, index: usize) -> &[Frame<'a>] {
        let (start, end) = self.spans[index];
        &self.frames[start as usize..end as usize]
    }

    /// Paths of files.
    pub fn files(&self) -> &[Box<str>] {
        &self.files
    }
}

impl<'a> Debug<'a> {
    /// Reads which unit has which addresses; entries stay unread.
    pub fn new(sections: Sections<'a>) -> Debug<'a> {
        let size = |sections: &Sections<'a>| {
            let info = sections.debug_info.reader().len() + sections.debug_line.reader().len();
            let ranges = &sections.ranges;
            let ranges =
                ranges.debug_ranges().reader().len() + ranges.debug_rnglists().reader().len();
            (info + ranges + sections.debug_abbrev.reader().len()) as u64
        };
        let shared = sections.sup();
        let work = Work::of(size(&sections) + shared.map_or(0, size));
        let mut damage = Vec::new();
        let share = &mut work.share();
        let note = |part, error| note(&mut damage, part, error);
        let units = Units::read(&sections, share, note);
        let note = |part, error| self::note(&mut damage, part, error);
        let supplement = shared.map_or_else(Units::none, |shared| Units::read(shared, share, note));
        Debug {
            sections,
            units,
            supplement,
            work,
            damage,
        }
    }

    /// The sections that it reads.
    pub fn sections(&self) -> &Sections<'a> {
        &self.sections
    }

    /// The split units that these addresses, which are sorted, are in.
    pub fn split_names(&self, addresses: &[u64]) -> Vec<SplitName> {
        let sections = &self.sections;
        let mut share = self.work.share();
        let mut names = Vec::new();
        for task in self.units.tasks(addresses) {
            let header = self.units.header(task.unit);
            // Before DWARF 5 only the unit's first entry tells.
            if header.version() >= 5 && !matches!(header.type_(), gimli::UnitType::Skeleton(_)) {
                continue;
            }
            // What cannot be read here cannot be read by the lookup either, which says so.
            let Ok(root) = Root::read_alone(sections, *header, &mut share) else {
                continue;
            };
            let (Some(id), Some(path)) = (root.unit.dwo_id, root.split_path(sections)) else {
                continue;
            };
            let comp_dir = root.unit.comp_dir;
            let comp_dir = comp_dir.map(|folder| folder.to_string_lossy().into_owned());
            names.push(SplitName {
                id,
                comp_dir: comp_dir.unwrap_or_default(),
                path: path.to_string_lossy().into_owned(),
            });
        }
        names
    }

    /// What is known of these addresses, which are sorted, each once.
    pub fn lookup(
        &self,
        addresses: &[u64],
        threads: NonZero<usize>,
        split: &SplitUnits<'a>,
    ) -> Answers<'a> {
        let tasks = self.units.tasks(addresses);
        let next = AtomicUsize::new(0);
        let work = || {
            let mut worker = Worker::new(self, addresses, split);
            while let Some(task) = tasks.get(next.fetch_add(1, Ordering::Relaxed)) {
                worker.answer(task);
            }
            worker.done
        };
        let threads = threads.get().min(tasks.len());
        let parts: Vec<Done<'a>> = if threads <= 1 {
            vec![work()]
        } else {
            std::thread::scope(|scope| {
                let others: Vec<_> = (1..threads).map(|_| scope.spawn(work)).collect();
                let mut parts = vec![work()];
                for other in others {
                    parts.push(other.join().unwrap_or_else(|panic| {
                        std::panic::resume_unwind(panic);
                    }));
                }
                parts
            })
        };
        let mut answers = merge(addresses.len(), parts);
        for (part, error) in &self.damage {
            note(&mut answers.damage, part, *error);
        }
        answers
    }
}

/// What it costs to keep a frame, in steps: calls can be inlined into each other without end.
const FRAME: u64 = 32;

/// What one thread found.
#[derive(Default)]
struct Done<'a> {
    frames: Vec<Frame<'a>>,
    /// Index of an address, and where its frames lie.
    spans: Vec<(u32, (u32, u32))>,
    paths: paths::Paths,
    damage: Vec<Damage>,
}

/// Notes damage; more than a few say no more than they do.
fn note(damage: &mut Vec<Damage>, part: &'static str, error: DwarfError) {
    if damage.len() < 8 && !damage.contains(&(part, error)) {
        damage.push((part, error));
    }
}

fn merge<'a>(count: usize, parts: Vec<Done<'a>>) -> Answers<'a> {
    let mut answers = Answers {
        spans: vec![(0, 0); count],
        ..Answers::default()
    };
    let mut paths = paths::Paths::default();
    for part in parts {
        let base = answers.frames.len() as u32;
        let files: Vec<u32> = part
            .paths
            .list
            .iter()
            .map(|path| paths.intern(path))
            .collect();
        answers
            .frames
            .extend(part.frames.into_iter().map(|frame| Frame {
                file: frame.file.map(|file| files[file as usize]),
                ..frame
            }));
        for (index, (start, end)) in part.spans {
            answers.spans[index as usize] = (base + start, base + end);
        }
        for (part, error) in part.damage {
            note(&mut answers.damage, part, error);
        }
    }
    answers.files = paths.list;
    answers
}

/// One thread of a lookup: what it keeps from unit to unit.
struct Worker<'d, 'a> {
    debug: &'d Debug<'a>,
    split: &'d SplitUnits<'a>,
    all: &'d [u64],
    /// The addresses of the unit at hand.
    addresses: Vec<u64>,
    share: Share<'d>,
    tables: Tables,
    functions: functions::Functions,
    lines: lines::Lines,
    names: names::Names<'a>,
    done: Done<'a>,
}

impl<'d, 'a> Worker<'d, 'a> {
    fn new(debug: &'d Debug<'a>, all: &'d [u64], split: &'d SplitUnits<'a>) -> Self {
        Worker {
            debug,
            split,
            all,
            addresses: Vec::new(),
            share: debug.work.share(),
            tables: Tables::default(),
            functions: functions::Functions::default(),
            lines: lines::Lines::default(),
            names: names::Names::default(),
            done: Done::default(),
        }
    }

    fn answer(&mut self, task: &Task) {
        self.addresses.clear();
        let indices = task.indices.iter();
        self.addresses
            .extend(indices.map(|at| self.all[*at as usize]));
        if let Err(error) = self.answer_unit(task) {
            note(&mut self.done.damage, ".debug_info", error);
        }
    }

    fn answer_unit(&mut self, task: &Task) -> Result<(), DwarfError> {
        let sections = &self.debug.sections;
        let header = *self.debug.units.header(task.unit);
        let mut root = Root::read(sections, header, &mut self.tables, &mut self.share)?;
        if let Err(error) = root.read_lines(sections, &mut self.share) {
            note(&mut self.done.damage, ".debug_line", error);
        }
        let unit = root.unit;
        let split = unit.dwo_id.and_then(|id| self.split.get(&id.0));
        if let Some(split_sections) = split {
            // Offsets of its abbreviations are its own, and no other unit has the same.
            let mut tables = Tables::default();
            let found = split_unit(split_sections, &unit, &mut tables, &mut self.share);
            if let Some(split) = found {
                return self.answer_from(task, split_sections, None, &split, &unit);
            }
        }
        let units = (&self.debug.units, &self.debug.supplement);
        self.answer_from(task, sections, Some(units), &unit, &unit)
    }

    /// `sections` and `unit` are those with the entries, `skeleton` that with the line program.
    fn answer_from(
        &mut self,
        task: &Task,
        sections: &Sections<'a>,
        units: Option<(&Units<'a>, &Units<'a>)>,
        unit: &Unit<'a>,
        skeleton: &Unit<'a>,
    ) -> Result<(), DwarfError> {
        // Functions do without lines, and lines without functions.
        let share = &mut self.share;
        if let Err(error) = self.functions.find(sections, unit, &self.addresses, share) {
            note(&mut self.done.damage, ".debug_info", error);
        }
        if let Err(error) = self.lines.find(skeleton, &self.addresses) {
            note(&mut self.done.damage, ".debug_line", error);
        }
        let tables = &mut self.tables;
        let mut names = self.names.of(tables, share, sections, units, unit);
        let mut files = paths::Files::new(&self.debug.sections, skeleton);
        let done = &mut self.done;
        for (at, index) in task.indices.iter().enumerate() {
            let row = self.lines.row(at);
            let mut function = self.functions.innermost(at);
            if function.is_none() && row.is_none() {
                continue;
            }
            let start = done.frames.len();
            let mut place = row.map_or((None, 0, 0), |row| (Some(row.file), row.line, row.column));
            loop {
                let called = function.map(|function| {
                    let (entry, parent) = self.functions.entry(function);
                    (names.details(function, entry), parent)
                });
                let (file, line, column) = place;
                done.frames.push(Frame {
                    name: called.and_then(|(details, _)| details.name),
                    file: file.and_then(|file| files.path(file, &mut done.paths)),
                    line,
                    column,
                });
                let Some((details, Some(parent))) = called else {
                    break;
                };
                place = (details.call_file, details.call_line, details.call_column);
                function = Some(parent);
            }
            names.spend((done.frames.len() - start) as u64 * FRAME)?;
            let span = (start as u32, done.frames.len() as u32);
            done.spans.push((*index, span));
        }
        Ok(())
    }
}

/// The unit that was split off a skeleton, with what the skeleton keeps for it.
fn split_unit<'a>(
    sections: &Sections<'a>,
    skeleton: &Unit<'a>,
    tables: &mut Tables,
    share: &mut Share<'_>,
) -> Option<Unit<'a>> {
    let header = find_split_unit(sections, skeleton.dwo_id?, share)?;
    let mut unit = Root::read(sections, header, tables, share).ok()?.unit;
    unit.copy_relocated_attributes(skeleton);
    Some(unit)
}

/// The unit of this ID in a `.dwo` file, or in its part of a package.
fn find_split_unit<'a>(
    sections: &Sections<'a>,
    id: gimli::DwoId,
    share: &mut Share<'_>,
) -> Option<UnitHeader<'a>> {
    let mut headers = sections.units();
    while let Ok(Some(header)) = headers.next() {
        share.spend(header.header_size() as u64).ok()?;
        let root = Root::read_alone(sections, header, share);
        if root.is_ok_and(|root| root.unit.dwo_id == Some(id)) {
            return Some(header);
        }
    }
    None
}

/// Whether these sections, of a `.dwo` file, hold the unit of this ID.
pub(super) fn has_split_unit(sections: &Sections<'_>, id: gimli::DwoId) -> bool {
    let work = Work::of(sections.debug_info.reader().len() as u64);
    find_split_unit(sections, id, &mut work.share()).is_some()
}
