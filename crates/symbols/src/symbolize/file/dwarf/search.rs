//! Lookup of the addresses of a unit: its lines and functions become answers.

use super::demangled::Demangled;
use super::error::{DwarfError, note_of};
use super::functions::Functions;
use super::line_header::{LineHeader, Paths};
use super::lines::Lines;
use super::names::{Home, Reader};
use super::split::{SplitSections, Splits};
use super::tasks::Task;
use super::unit::{Parts, Unit};
use super::work::Work;
use crate::symbolize::file::answers::{Answers, SourceLine};
use crate::symbolize::file::notes::Notes;
use crate::symbolize::file::symtab::Symbol;
use std::borrow::Cow;
use std::rc::Rc;

/// State shared by the threads of a lookup.
pub(super) struct Run<'run, 'data> {
    pub splits: &'run Splits<'data>,
    pub addresses: &'run [u64],
    pub symbols: &'run [Option<Symbol<'run>>],
    pub demangled: &'run Demangled<'run>,
    /// True if the file has a symbol table.
    pub has_symbols: bool,
    pub work: &'run Work,
    pub notes: &'run Notes,
}

/// Thread of a lookup, with buffers reused for all units.
pub(super) struct Worker<'run, 'data> {
    run: &'run Run<'run, 'data>,
    /// Addresses of the current unit.
    addresses: Vec<u64>,
    functions: Functions,
    lines: Lines,
    pub answers: Answers,
}

/// Maximum nesting of inlined calls; in a damaged file it could be as large as the file.
const MAX_DEPTH: usize = 512;

impl<'run, 'data> Worker<'run, 'data> {
    pub fn new(run: &'run Run<'run, 'data>) -> Worker<'run, 'data> {
        Worker {
            run,
            addresses: Vec::new(),
            functions: Functions::default(),
            lines: Lines::default(),
            answers: Answers::default(),
        }
    }

    /// Looks up the addresses of one unit in the reader's file, which has these sections.
    pub fn task<'unit>(
        &mut self,
        task: &Task,
        parts: &Parts<'unit>,
        reader: &mut Reader<'_, 'unit>,
    ) {
        let run = self.run;
        self.answers.begin_unit(task.unit);
        self.addresses.clear();
        let addresses = task.addresses.iter().map(|at| run.addresses[*at]);
        self.addresses.extend(addresses);
        let unit = task.unit.and_then(|start| {
            let unit = reader.unit(Home::Own, start);
            unit.map_err(|error| run.note(".debug_info", error)).ok()
        });
        let Some(unit) = unit else {
            for at in &task.addresses {
                run.add_outermost(*at, None, &Place::default(), &mut self.answers);
                self.answers.finish(*at);
            }
            return;
        };
        let header = LineHeader::read(&unit, parts, &reader.work);
        let header = header.unwrap_or_else(|error| {
            run.note(".debug_line", error);
            None
        });
        self.lines.clear(&self.addresses);
        if let Some(header) = &header {
            let found = self.lines.find(header, &self.addresses, &reader.work);
            found.unwrap_or_else(|error| run.note(".debug_line", error));
        }
        let mut paths = Paths::new(&unit, parts, header.as_ref());
        let mut search = Search {
            run,
            addresses: &self.addresses,
            functions: &mut self.functions,
            lines: &self.lines,
            answers: &mut self.answers,
        };
        if let Some(sections) = run.splits.find(&unit) {
            let file = sections.file(Some(parts));
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
        reader.begin_unit();
        search.answer(task, &unit, parts, reader, &mut paths);
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

impl Search<'_, '_, '_> {
    fn answer<'code>(
        &mut self,
        task: &Task,
        unit: &Unit<'code>,
        parts: &Parts<'code>,
        reader: &mut Reader<'_, 'code>,
        paths: &mut Paths<'_, '_>,
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
                && depth < MAX_DEPTH
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
    pub fn note(&self, part: &str, error: DwarfError) {
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
