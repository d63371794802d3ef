//! DWARF 2 to 5: functions, inlined calls, files and lines of addresses. Selects the sections and
//! distributes the work to threads.
//!
//! | file | contents |
//! |---|---|
//! | `units` | location of the units; the root entry of a unit |
//! | `index` | assignment of addresses to units |
//! | `unit` | header of a unit and attributes of its root entry |
//! | `abbrev` | shapes of entries, and skipping them |
//! | `functions` | the function that contains an address, and its callers if inlined |
//! | `line_header` | header of a line table and paths of its files |
//! | `lines` | the row of the line table for an address |
//! | `names` | names of functions |
//! | `demangled` | names of the symbol table, demangled beforehand |
//! | `work` | a limit on the work, relative to the file size |
//! | `split` | units with functions in `.dwo` and `.dwp` files |
//! | `error` | errors in debug information |
//!
//! gimli parses the bytes, except for the parts that take most of the time: skipped entries and
//! line programs. The rules for assigning entries to an address are those of llvm-symbolizer.

mod abbrev;
mod demangled;
mod error;
mod functions;
mod index;
mod line_header;
mod lines;
mod names;
mod split;
mod unit;
mod units;
mod work;

use self::demangled::Demangled;
use self::error::DwarfError;
use self::functions::Functions;
use self::index::{Piece, pieces};
use self::line_header::{LineHeader, Paths};
use self::lines::Lines;
use self::names::{Home, Reader};
use self::split::{SplitSections, Splits};
use self::unit::{Parts, Unit};
use self::units::{File, Units};
use self::work::Work;
use super::answers::{Answers, SourceLine};
use super::companions::{Companion, SupplementaryFiles, SupplementaryRef};
use super::elf::Elf;
use super::notes::{Note, Notes};
use super::sections::{Allowance, Loan, read_debug};
use super::symtab::Symbol;
use gimli::{
    DebugAddr, DebugLineStr, DebugRanges, DebugRngLists, DebugStr, DebugStrOffsets, DwarfFileType,
    LittleEndian, RangeLists,
};
use heaptap_model::bytes::Bytes;
use std::borrow::Cow;
use std::cmp::Reverse;
use std::collections::HashMap;
use std::num::NonZero;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Debug information of a file, not parsed yet.
pub(super) struct DebugInfo {
    bytes: Bytes,
    elf: Elf,
    companions: Vec<Arc<dyn SupplementaryFiles>>,
    supplement: Option<(Bytes, Elf)>,
}

/// Sections of one file, decompressed.
#[derive(Clone, Default)]
struct Sections([Bytes; NAMES.len()]);

/// Section names in descending order of typical size, for decompression in parallel.
const NAMES: [&str; 10] = [
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
    /// Reads the sections whose names end in `suffix`, several in parallel. The largest usually
    /// takes longer than all others together: meanwhile, `work` is called with each number below
    /// `more`.
    fn read(
        (bytes, elf): (&Bytes, &Elf),
        suffix: &str,
        loan: &Loan<'_>,
        threads: NonZero<usize>,
        notes: &Notes,
        (more, work): (usize, &(dyn Fn(usize) + Sync)),
    ) -> Sections {
        let read =
            |name: &str| match read_debug(bytes, elf, &format!("debug_{name}{suffix}"), loan)? {
                Ok(section) => Some(section),
                Err(note) => {
                    notes.add(note);
                    None
                }
            };
        let found = in_parallel(NAMES.len() + more, threads, |numbers| {
            let read = numbers.filter_map(|at| {
                let Some(&short) = NAMES.get(at) else {
                    work(at - NAMES.len());
                    return None;
                };
                let name = format!(".debug_{short}");
                Some((at, notes.catch_panic(&name, || read(short))??))
            });
            read.collect::<Vec<_>>()
        });
        let mut sections = Sections::default();
        for (at, section) in found.into_iter().flatten() {
            sections.0[at] = section;
        }
        sections
    }

    fn get(&self, name: &str) -> &[u8] {
        let at = NAMES.iter().position(|known| *known == name);
        &self.0[at.expect("only names of the list are requested")]
    }

    fn get_mut(&mut self, name: &str) -> &mut Bytes {
        let at = NAMES.iter().position(|known| *known == name);
        &mut self.0[at.expect("only names of the list are requested")]
    }

    fn size(&self) -> u64 {
        self.0.iter().map(|section| section.len() as u64).sum()
    }

    fn parts<'data>(&'data self, supplement: Option<&'data Sections>) -> Parts<'data> {
        let slice = |name| self.get(name);
        Parts {
            info: slice("info"),
            abbrev: slice("abbrev"),
            line: slice("line"),
            line_str: DebugLineStr::new(slice("line_str"), LittleEndian),
            str: DebugStr::new(slice("str"), LittleEndian),
            str_offsets: DebugStrOffsets::from(unit::Slice::new(
                slice("str_offsets"),
                LittleEndian,
            )),
            addr: DebugAddr::from(unit::Slice::new(slice("addr"), LittleEndian)),
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

/// Distributes the numbers from 0 to `count` to up to `threads` threads and returns the result of
/// each thread.
fn in_parallel<T: Send>(
    count: usize,
    threads: NonZero<usize>,
    work: impl Fn(&mut dyn Iterator<Item = usize>) -> T + Sync,
) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let take = || {
        let at = next.fetch_add(1, Ordering::Relaxed);
        (at < count).then_some(at)
    };
    let run = || work(&mut std::iter::from_fn(take));
    std::thread::scope(|scope| {
        let others: Vec<_> = (1..threads.get().min(count))
            .map(|_| scope.spawn(run))
            .collect();
        let mut made = vec![run()];
        for other in others {
            match other.join() {
                Ok(more) => made.push(more),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        made
    })
}

/// Addresses of one unit.
struct Task {
    /// Start of the unit; `None` for addresses without one.
    unit: Option<usize>,
    /// Indexes of the addresses, in order.
    addresses: Vec<usize>,
}

impl DebugInfo {
    /// Makes the debug information of a file with `.debug_info`, and finds its dwz file.
    pub fn new(
        bytes: Bytes,
        elf: Elf,
        companions: Vec<Arc<dyn SupplementaryFiles>>,
        notes: &Notes,
    ) -> DebugInfo {
        let supplement = find_supplement(&bytes, &elf, &companions, notes);
        DebugInfo {
            bytes,
            elf,
            companions,
            supplement,
        }
    }

    /// Finds functions and lines of sorted addresses; `symbols` has the symbol table's entry for
    /// each. The lines of each address are in one of the returned values.
    pub fn lookup(
        &self,
        addresses: &[u64],
        symbols: &[Option<Symbol<'_>>],
        allowance: &Allowance,
        threads: NonZero<usize>,
        notes: &Notes,
    ) -> Vec<Answers> {
        let loan = allowance.loan();
        let demangled = Demangled::new(symbols);
        let demangle = |at| {
            // What fails here fails again, and is reported, for the addresses that need it.
            let _ = Notes::default().catch_panic(".symtab", || demangled.fill(at));
        };
        let own = (&self.bytes, &self.elf);
        let meanwhile = (demangled.batches(), &demangle as &(dyn Fn(usize) + Sync));
        let sections = Sections::read(own, "", &loan, threads, notes, meanwhile);
        let supplement = self.supplement.as_ref().map(|(bytes, elf)| {
            Sections::read((bytes, elf), "", &loan, threads, notes, (0, &|_| {}))
        });
        let size = sections.size() + supplement.as_ref().map_or(0, Sections::size);
        let work = Work::for_debug_info(size);
        let (units, result) = Units::read(sections.get("info"));
        if let Err(error) = result {
            notes.add(Note::damaged(".debug_info", error));
        }
        let own = File {
            parts: sections.parts(supplement.as_ref()),
            units,
        };
        let supplement = supplement.as_ref().map(|sections| File {
            parts: sections.parts(None),
            units: Units::read(sections.get("info")).0,
        });
        let aranges = sections.get("aranges");
        let pieces = pieces(&own, aranges, &work.share(), |part, error| {
            notes.add(note_of(part, error));
        });
        let tasks = tasks(&own, &pieces, addresses);
        let splits = Splits::new(&self.companions, allowance, &work, notes);
        let run = Run {
            own: &own,
            supplement: supplement.as_ref(),
            splits: &splits,
            addresses,
            symbols,
            demangled: &demangled,
            has_symbols: symbols.iter().any(Option::is_some),
            work: &work,
            notes,
        };
        in_parallel(tasks.len(), threads, |numbers| {
            let mut worker = Worker::new(&run);
            for at in numbers {
                let done = notes.catch_panic(".debug_info", || worker.task(&tasks[at]));
                if done.is_none() {
                    worker.answers.abandon();
                }
            }
            worker.answers
        })
    }
}

/// Assigns addresses to units, large units first, so that none of them runs alone at the end.
/// Addresses without a unit form their own task.
fn tasks(file: &File<'_>, pieces: &[Piece], addresses: &[u64]) -> Vec<Task> {
    let mut tasks: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let mut at = 0;
    for (index, address) in addresses.iter().enumerate() {
        while pieces.get(at).is_some_and(|piece| piece.high <= *address) {
            at += 1;
        }
        let holding = pieces.get(at).filter(|piece| piece.low <= *address);
        // A listed unit might not exist.
        let unit = holding.map(|piece| piece.unit);
        let unit = unit.filter(|start| file.units.size_of(*start) > 0);
        tasks.entry(unit).or_default().push(index);
    }
    let mut tasks: Vec<Task> = tasks
        .into_iter()
        .map(|(unit, addresses)| Task { unit, addresses })
        .collect();
    let size = |task: &Task| task.unit.map_or(0, |start| file.units.size_of(start));
    tasks.sort_by_key(|task| (Reverse(size(task)), task.unit));
    tasks
}

fn note_of(part: &str, error: DwarfError) -> Note {
    match error {
        DwarfError::TooMuchWork => Note::TooMuchWork,
        error => Note::damaged(part, error),
    }
}

/// State shared by the threads of a lookup.
struct Run<'run, 'data> {
    own: &'run File<'data>,
    supplement: Option<&'run File<'data>>,
    splits: &'run Splits<'data>,
    addresses: &'run [u64],
    symbols: &'run [Option<Symbol<'run>>],
    demangled: &'run Demangled<'run>,
    /// True if the file has a symbol table.
    has_symbols: bool,
    work: &'run Work,
    notes: &'run Notes,
}

/// Thread of a lookup, with buffers reused for all units.
struct Worker<'run, 'data> {
    run: &'run Run<'run, 'data>,
    reader: Reader<'run, 'data>,
    /// Addresses of the current unit.
    addresses: Vec<u64>,
    functions: Functions,
    lines: Lines,
    answers: Answers,
}

/// Maximum nesting of inlined calls; in a damaged file it could be as large as the file.
const DEEPEST: usize = 512;

impl<'run, 'data> Worker<'run, 'data> {
    fn new(run: &'run Run<'run, 'data>) -> Worker<'run, 'data> {
        Worker {
            run,
            reader: Reader::new(run.own, run.supplement, run.work.share()),
            addresses: Vec::new(),
            functions: Functions::default(),
            lines: Lines::default(),
            answers: Answers::default(),
        }
    }

    /// Looks up the addresses of one unit.
    fn task(&mut self, task: &Task) {
        let run = self.run;
        self.addresses.clear();
        let addresses = task.addresses.iter().map(|at| run.addresses[*at]);
        self.addresses.extend(addresses);
        let unit = task.unit.and_then(|start| {
            let unit = self.reader.unit(Home::Own, start);
            unit.map_err(|error| run.note(".debug_info", error)).ok()
        });
        let Some(unit) = unit else {
            for at in &task.addresses {
                run.add_outermost(*at, None, &Place::default(), &mut self.answers);
                self.answers.finish(*at);
            }
            return;
        };
        let header = LineHeader::read(&unit, &run.own.parts, &self.reader.work);
        let header = header.unwrap_or_else(|error| {
            run.note(".debug_line", error);
            None
        });
        self.lines.clear(&self.addresses);
        if let Some(header) = &header {
            let found = self.lines.find(header, &self.addresses, &self.reader.work);
            found.unwrap_or_else(|error| run.note(".debug_line", error));
        }
        let mut paths = Paths::new(&unit, &run.own.parts, header.as_ref());
        let mut search = Search {
            run,
            addresses: &self.addresses,
            functions: &mut self.functions,
            lines: &self.lines,
            answers: &mut self.answers,
        };
        if let Some(sections) = run.splits.find(&unit) {
            let file = sections.file(Some(&run.own.parts));
            let mut reader = Reader::new(&file, None, run.work.share());
            match split_unit(&sections, &unit, &mut reader) {
                Ok(split) => {
                    search.answer(task, &split, &file.parts, &mut reader, &mut paths);
                    return;
                }
                Err(error) => run.note(".debug_info.dwo", error),
            }
        }
        // Without its split unit, a skeleton has only lines.
        self.reader.begin_unit();
        search.answer(task, &unit, &run.own.parts, &mut self.reader, &mut paths);
    }
}

/// Returns the split unit of a skeleton.
fn split_unit<'data>(
    sections: &SplitSections<'_>,
    skeleton: &Unit<'data>,
    reader: &mut Reader<'_, 'data>,
) -> Result<Unit<'data>, DwarfError> {
    let id = skeleton.dwo_id.ok_or(DwarfError::Offset)?;
    let start = sections.unit(id, &reader.work)?;
    let mut split = reader.read(Home::Own, start.ok_or(DwarfError::Offset)?)?;
    split.complete_from(skeleton);
    Ok(split)
}

/// Lookup of a unit's addresses, in its own functions or those of the split unit.
struct Search<'task, 'run, 'data> {
    run: &'run Run<'run, 'data>,
    addresses: &'task [u64],
    functions: &'task mut Functions,
    lines: &'task Lines,
    answers: &'task mut Answers,
}

impl<'data> Search<'_, '_, 'data> {
    fn answer<'code>(
        &mut self,
        task: &Task,
        unit: &Unit<'code>,
        parts: &Parts<'code>,
        reader: &mut Reader<'_, 'code>,
        paths: &mut Paths<'_, 'data>,
    ) {
        let run = self.run;
        // Addresses without a function in the symbol table are padding.
        let is_missed = |at: usize| !run.has_symbols || run.symbols[task.addresses[at]].is_some();
        let functions = &mut *self.functions;
        let found = functions.find(unit, parts, self.addresses, &reader.work, is_missed);
        found.unwrap_or_else(|error| run.note(".debug_info", error));
        for (at, index) in task.addresses.iter().enumerate() {
            // A row is ignored if its file is not in the table.
            let row = self.lines.row(at);
            let place = row.and_then(|row| {
                Some(Place {
                    file: Some(paths.get(row.file)?),
                    line: row.line,
                    column: row.column,
                })
            });
            let mut place = place.unwrap_or_default();
            let mut function = functions.innermost(at);
            let mut depth = 0;
            while let Some(inlined) = function
                && let Some(caller) = functions.caller(inlined)
                && depth < DEEPEST
            {
                let details = reader.details(unit, inlined.entry);
                let name = String::from_utf8_lossy(details.name.unwrap_or_default());
                let file = place.file.as_deref().unwrap_or_default();
                self.answers
                    .add_mangled(&name, file, place.line, place.column);
                place = Place {
                    file: paths.get(details.call_file),
                    line: details.call_line,
                    column: details.call_column,
                };
                function = Some(caller);
                depth += 1;
            }
            let name = function.and_then(|f| reader.details(unit, f.entry).name);
            run.add_outermost(*index, name, &place, self.answers);
            self.answers.finish(*index);
        }
    }
}

impl Run<'_, '_> {
    fn note(&self, part: &str, error: DwarfError) {
        self.notes.add(note_of(part, error));
    }

    /// Adds the outermost function of an address. The symbol table's name takes precedence, because
    /// debug information has one name for all copies of a function.
    fn add_outermost(&self, at: usize, name: Option<&[u8]>, place: &Place, answers: &mut Answers) {
        let symbol = self.symbols[at];
        let name = symbol.map(|symbol| symbol.name).or(name);
        let name = String::from_utf8_lossy(name.unwrap_or_default());
        let file = match (&place.file, symbol) {
            (Some(file), _) => Cow::Borrowed(&**file),
            (None, Some(symbol)) => String::from_utf8_lossy(symbol.file),
            (None, None) => Cow::Borrowed(""),
        };
        if !name.is_empty() || !file.is_empty() {
            match symbol.and_then(|symbol| self.demangled.get(symbol.name)) {
                Some(function) => answers.add(SourceLine {
                    function,
                    linkage: &name,
                    file: &file,
                    line: place.line,
                    column: place.column,
                }),
                None => answers.add_mangled(&name, &file, place.line, place.column),
            }
        }
    }
}

/// Location of the call of an inner function, or, for the innermost one, of the address.
#[derive(Default)]
struct Place {
    file: Option<Rc<str>>,
    line: u32,
    column: u32,
}

/// Finds the dwz file of a file.
fn find_supplement(
    bytes: &Bytes,
    elf: &Elf,
    companions: &[Arc<dyn SupplementaryFiles>],
    notes: &Notes,
) -> Option<(Bytes, Elf)> {
    let supplement = elf.facts(bytes).supplement?;
    let fits = |bytes: &Bytes| {
        Elf::read(bytes).is_ok_and(|elf| elf.build_id(bytes) == supplement.build_id)
    };
    let reference = SupplementaryRef::Supplement(&supplement);
    let found = companions
        .iter()
        .find_map(|companions| companions.find(&reference, &fits));
    let Some(Companion { bytes, .. }) = found else {
        notes.add(Note::needs_supplement(&supplement));
        return None;
    };
    let elf = Elf::read(&bytes).ok()?;
    Some((bytes, elf))
}
