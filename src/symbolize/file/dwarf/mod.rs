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
mod units;

use std::collections::HashMap;
use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use units::{Task, Units};

/// Little-endian bytes of a section.
pub(super) type Slice<'a> = gimli::EndianSlice<'a, gimli::LittleEndian>;
/// The sections of one file, inflated.
pub(super) type Sections<'a> = gimli::Dwarf<Slice<'a>>;
type Unit<'a> = gimli::Unit<Slice<'a>>;
type UnitHeader<'a> = gimli::UnitHeader<Slice<'a>>;

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
}

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
    /// Units that could not be read, and the first reason.
    pub damaged: Option<(usize, gimli::Error)>,
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
    pub fn new(mut sections: Sections<'a>) -> Debug<'a> {
        sections.populate_abbreviations_cache(gimli::AbbreviationsCacheStrategy::Duplicates);
        let units = Units::read(&sections);
        let supplement = sections.sup().map_or_else(Units::none, Units::read);
        Debug {
            sections,
            units,
            supplement,
        }
    }

    /// The sections that it reads.
    pub fn sections(&self) -> &Sections<'a> {
        &self.sections
    }

    /// The split units that these addresses, which are sorted, are in.
    pub fn split_names(&self, addresses: &[u64]) -> Vec<SplitName> {
        let mut names = Vec::new();
        for task in self.units.tasks(addresses) {
            let header = self.units.header(task.unit);
            // Before DWARF 5 only the unit's first entry tells.
            if header.version() >= 5 && !matches!(header.type_(), gimli::UnitType::Skeleton(_)) {
                continue;
            }
            let Ok(unit) = self.sections.unit(*header) else {
                continue;
            };
            let (Some(id), Ok(Some(path))) = (unit.dwo_id, unit.dwo_name()) else {
                continue;
            };
            let Ok(path) = self.sections.attr_string(&unit, path) else {
                continue;
            };
            let comp_dir = unit
                .comp_dir
                .map(|folder| folder.to_string_lossy().into_owned());
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
        merge(addresses.len(), parts)
    }
}

/// What one thread found.
#[derive(Default)]
struct Done<'a> {
    frames: Vec<Frame<'a>>,
    /// Index of an address, and where its frames lie.
    spans: Vec<(u32, (u32, u32))>,
    paths: paths::Paths,
    damaged: usize,
    error: Option<gimli::Error>,
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
        if let Some(error) = part.error {
            let (units, _) = answers.damaged.get_or_insert((0, error));
            *units += part.damaged;
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
            self.done.damaged += 1;
            self.done.error.get_or_insert(error);
        }
    }

    fn answer_unit(&mut self, task: &Task) -> gimli::Result<()> {
        let sections = &self.debug.sections;
        let unit = sections.unit(*self.debug.units.header(task.unit))?;
        let split = unit.dwo_id.and_then(|id| self.split.get(&id.0));
        let split = split.map(|sections| (sections, split_unit(sections, &unit)));
        match split {
            Some((split_sections, Some(split))) => {
                self.answer_from(task, split_sections, None, &split, &unit)
            }
            _ => {
                let units = (&self.debug.units, &self.debug.supplement);
                self.answer_from(task, sections, Some(units), &unit, &unit)
            }
        }
    }

    /// `sections` and `unit` are those with the entries, `skeleton` that with the line program.
    fn answer_from(
        &mut self,
        task: &Task,
        sections: &Sections<'a>,
        units: Option<(&Units<'a>, &Units<'a>)>,
        unit: &Unit<'a>,
        skeleton: &Unit<'a>,
    ) -> gimli::Result<()> {
        // Functions do without lines, and lines without functions.
        let found = self.functions.find(sections, unit, &self.addresses);
        let lines = self.lines.find(skeleton, &self.addresses);
        let mut names = self.names.of(sections, units, unit);
        let mut files = paths::Files::new(&self.debug.sections, skeleton);
        let done = &mut self.done;
        for (at, index) in task.indices.iter().enumerate() {
            let row = self.lines.row(at);
            let mut function = self.functions.innermost(at);
            if function.is_none() && row.is_none() {
                continue;
            }
            let start = done.frames.len() as u32;
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
            let span = (start, done.frames.len() as u32);
            done.spans.push((*index, span));
        }
        found.and(lines)
    }
}

/// The unit that was split off a skeleton, with what the skeleton keeps for it.
fn split_unit<'a>(sections: &Sections<'a>, skeleton: &Unit<'a>) -> Option<Unit<'a>> {
    let mut headers = sections.units();
    while let Ok(Some(header)) = headers.next() {
        let Ok(mut unit) = sections.unit(header) else {
            continue;
        };
        if unit.dwo_id == skeleton.dwo_id {
            unit.copy_relocated_attributes(skeleton);
            return Some(unit);
        }
    }
    None
}

/// Whether these sections, of a `.dwo` file, hold the unit of this ID.
pub(super) fn has_split_unit(sections: &Sections<'_>, id: gimli::DwoId) -> bool {
    let mut headers = sections.units();
    while let Ok(Some(header)) = headers.next() {
        let unit = sections.unit(header);
        if unit.is_ok_and(|unit| unit.dwo_id == Some(id)) {
            return true;
        }
    }
    false
}
