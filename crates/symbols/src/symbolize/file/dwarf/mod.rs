//! DWARF 2 to 5: functions, inlined calls, files and lines of addresses. Selects the sections.
//!
//! | file | contents |
//! |---|---|
//! | `debug_sections` | sections of a file, read in parallel |
//! | `units` | location of the units; the root entry of a unit |
//! | `index` | assignment of addresses to units |
//! | `unit` | header of a unit and attributes of its root entry |
//! | `abbrev` | shapes of entries, and skipping them |
//! | `functions` | the function that contains an address, and its callers if inlined |
//! | `line_header` | header of a line table and paths of its files |
//! | `lines` | the row of the line table for an address |
//! | `names` | names of functions |
//! | `tasks` | distribution of addresses to units, and of work to threads |
//! | `search` | the answers for the addresses of a unit |
//! | `demangled` | names of the symbol table, demangled beforehand |
//! | `work` | a limit on the work, relative to the file size |
//! | `stream` | units of a compressed `.debug_info`, one by one |
//! | `streamed` | lookup in these |
//! | `split` | units with functions in `.dwo` and `.dwp` files |
//! | `error` | errors in debug information |
//!
//! gimli parses the bytes, except for the parts that take most of the time: skipped entries and
//! line programs. The rules for assigning entries to an address are those of llvm-symbolizer.

mod abbrev;
mod debug_sections;
mod demangled;
mod error;
mod functions;
mod index;
mod line_header;
mod lines;
mod names;
mod search;
mod split;
mod stream;
mod streamed;
mod tasks;
mod unit;
mod units;
mod work;

use self::debug_sections::{Meanwhile, NAMES, Origin, Sections};
use self::demangled::Demangled;
use self::error::note_of;
use self::index::pieces;
use self::names::Reader;
use self::search::{Run, Worker};
use self::split::Splits;
use self::stream::Stream;
use self::streamed::Plan;
use self::tasks::{in_parallel, tasks};
use self::units::{File, Units};
use self::work::Work;
use super::answers::Answers;
use super::companions::{Companion, SupplementaryFiles, SupplementaryRef};
use super::elf::Elf;
use super::notes::{Note, Notes};
use super::sections::{Allowance, DebugSection, Loan};
use super::symtab::Symbol;
use heaptap_base::bytes::Bytes;
use std::num::NonZero;
use std::sync::Arc;

/// Debug information of a file, not parsed yet.
pub(super) struct DebugInfo {
    bytes: Bytes,
    elf: Elf,
    companions: Vec<Arc<dyn SupplementaryFiles>>,
    supplement: Option<(Bytes, Elf)>,
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
        let demangled = Demangled::new(symbols);
        let input = Input {
            addresses,
            symbols,
            demangled: &demangled,
            threads,
            notes,
        };
        let loan = allowance.loan();
        let mut sections = Sections::default();
        if let Some(answers) = self.streamed(&mut sections, &loan, allowance, input) {
            return answers;
        }
        self.whole(sections, &loan, allowance, input)
    }

    fn origin<'run>(&'run self, loan: &'run Loan<'run>, input: Input<'run>) -> Origin<'run> {
        Origin {
            bytes: &self.bytes,
            elf: &self.elf,
            suffix: "",
            loan,
            threads: input.threads,
            notes: input.notes,
        }
    }

    /// Looks up addresses while `.debug_info` is decompressed, and keeps only the units that are
    /// being read. `None` if that is not possible; then `sections` has the other sections.
    fn streamed(
        &self,
        sections: &mut Sections,
        loan: &Loan<'_>,
        allowance: &Allowance,
        input: Input<'_>,
    ) -> Option<Vec<Answers>> {
        // Units can refer to those of a dwz file, whose units refer to each other.
        let info = match self.supplement {
            Some(_) => None,
            None => DebugSection::find(&self.bytes, &self.elf, "debug_info"),
        };
        let info = info.filter(|info| info.unpacked_size() >= Some(MIN_STREAMED));
        // The decompressed units are never in memory all at once, but this limits the size, too.
        let own_loan = allowance.loan();
        let inflater = info?.unpack(&own_loan)?;
        let size = inflater.left() as u64;
        let own = self.origin(loan, input);
        sections.read(&["aranges"], &own, Meanwhile::NOTHING);
        let plan = Plan::new(sections.get("aranges"), input.addresses)?;
        let is_needed = |start: usize, has_code: bool| plan.needs(start, has_code);
        let stream = Stream::new(inflater, &is_needed, input.threads);
        let fill = || stream.fill();
        let demangle = |at| input.demangle(at);
        let meanwhile = Meanwhile {
            first: (input.threads.get() > 1).then_some(&fill),
            work: &demangle,
            more: input.demangled.batches(),
        };
        let others: Vec<&str> = NAMES
            .into_iter()
            .filter(|name| !matches!(*name, "info" | "aranges"))
            .collect();
        sections.read(&others, &own, meanwhile);
        let work = Work::for_debug_info(sections.size() + size);
        // If the lookup is repeated, so are its notes.
        let notes = Notes::default();
        let splits = Splits::new(&self.companions, allowance, &work, &notes);
        let run = input.run(&splits, &work, &notes);
        let parts = sections.parts(None);
        let answers = streamed::lookup(stream, &plan, &parts, &run, input.threads)?;
        notes
            .all()
            .into_iter()
            .for_each(|note| input.notes.add(note));
        Some(answers)
    }

    /// Looks up addresses after reading all sections that `sections` does not have.
    fn whole(
        &self,
        mut sections: Sections,
        loan: &Loan<'_>,
        allowance: &Allowance,
        input: Input<'_>,
    ) -> Vec<Answers> {
        let notes = input.notes;
        let origin = self.origin(loan, input);
        let missing = NAMES
            .into_iter()
            .filter(|name| sections.get(name).is_empty());
        let missing: Vec<&str> = missing.collect();
        let demangle = |at| input.demangle(at);
        let meanwhile = Meanwhile {
            first: None,
            work: &demangle,
            more: input.demangled.batches(),
        };
        sections.read(&missing, &origin, meanwhile);
        let supplement = self.supplement.as_ref().map(|(bytes, elf)| {
            let mut sections = Sections::default();
            let origin = Origin {
                bytes,
                elf,
                ..origin
            };
            sections.read(&NAMES, &origin, Meanwhile::NOTHING);
            sections
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
        let tasks = tasks(&own.units, &pieces, input.addresses);
        let splits = Splits::new(&self.companions, allowance, &work, notes);
        let run = input.run(&splits, &work, notes);
        in_parallel(tasks.len(), input.threads, |numbers| {
            let mut worker = Worker::new(&run);
            let mut reader = Reader::new(&own, supplement.as_ref(), work.share());
            for at in numbers {
                let task = || worker.task(&tasks[at], &own.parts, &mut reader);
                if notes.catch_panic(".debug_info", task).is_none() {
                    worker.answers.abandon();
                }
            }
            worker.answers
        })
    }
}

/// Minimum size of a decompressed `.debug_info` whose units are read one by one. A smaller one is
/// decompressed faster at once. Tests read all in this way.
const MIN_STREAMED: u64 = if cfg!(test) { 0 } else { 16 << 20 };

/// Addresses to look up, and what is known about them.
#[derive(Clone, Copy)]
struct Input<'run> {
    addresses: &'run [u64],
    symbols: &'run [Option<Symbol<'run>>],
    demangled: &'run Demangled<'run>,
    threads: NonZero<usize>,
    notes: &'run Notes,
}

impl<'run> Input<'run> {
    /// Demangles a batch of names of the symbol table.
    fn demangle(&self, batch: usize) {
        // What fails here fails again, and is reported, for the addresses that need it.
        let _ = Notes::default().catch_panic(".symtab", || self.demangled.fill(batch));
    }

    fn run<'data>(
        &self,
        splits: &'run Splits<'data>,
        work: &'run Work,
        notes: &'run Notes,
    ) -> Run<'run, 'data> {
        Run {
            splits,
            addresses: self.addresses,
            symbols: self.symbols,
            demangled: self.demangled,
            has_symbols: self.symbols.iter().any(Option::is_some),
            work,
            notes,
        }
    }
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
