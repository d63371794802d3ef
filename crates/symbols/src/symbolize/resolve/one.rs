//! One library: its files are asked one after the other until every address is known or nobody
//! is left to ask.

use super::Resolver;
use super::lines::AddressLines;
use super::outcome::{FileFailure, LibraryOutcome, UsedFile};
use super::stored::{self, Stored};
use crate::symbolize::file::{Knowledge, SymbolFile};
use crate::symbolize::find::{Candidate, Found};
use crate::symbolize::library::Library;
use heaptap_model::error::catch_panic;
use std::num::NonZero;

/// Files that are asked for one library, at most: beyond, they are copies of each other.
const MOST_FILES: usize = 4;

/// A library that is being resolved.
struct Work<'a> {
    library: &'a Library,
    threads: NonZero<usize>,
    lines: AddressLines,
    /// Positions of the addresses that nobody knew so far.
    open: Vec<usize>,
    files: Vec<UsedFile>,
    /// Position of each used file among the candidates.
    positions: Vec<u8>,
    failures: Vec<FileFailure>,
}

impl Resolver<'_> {
    /// Finds and asks the files of `library`. Whatever happens in reading them is told in the
    /// outcome.
    pub(super) fn one(&self, library: &Library, threads: NonZero<usize>) -> LibraryOutcome {
        let found = match catch_panic(|| self.finder.find(library)) {
            Ok(found) => found,
            // No name of a file is left to tell.
            Err(panic) => {
                let mut outcome = LibraryOutcome::unasked(library.clone());
                outcome.search_failed = Some(panic);
                return outcome;
            }
        };
        let mut work = Work {
            library,
            threads,
            lines: AddressLines::unknown(library.addresses.len()),
            open: (0..library.addresses.len()).collect(),
            files: Vec::new(),
            positions: Vec::new(),
            failures: Vec::new(),
        };
        let found = match found.candidates.is_empty() {
            true => found,
            false => self.ask_all(&mut work, found),
        };
        LibraryOutcome {
            library: library.clone(),
            files: work.files,
            failures: work.failures,
            attempts: found.attempts,
            nearest: found.nearest,
            search_failed: None,
            lines: work.lines,
        }
    }

    /// Asks the cache, and then the candidates for what it does not know.
    fn ask_all(&self, work: &mut Work<'_>, mut found: Found) -> Found {
        let key = stored::key(work.library, &found.candidates);
        let answers = self.cache.map(|cache| cache.answers());
        let before = answers
            .and_then(|answers| answers.get(&key))
            .and_then(|bytes| Stored::decode(&bytes))
            .filter(|before| work.take(before, &found.candidates));
        let mut asked: Vec<[u8; 32]> = Vec::new();
        while asked.len() < MOST_FILES && !work.is_done() {
            // Who has no lines has none for what only lacks lines.
            let is_useful =
                |c: &Candidate| !work.open.is_empty() || c.knowledge >= Knowledge::Lines;
            let is_next = |c: &Candidate| is_useful(c) && !asked.contains(&c.identity());
            let Some(position) = found.candidates.iter().position(is_next) else {
                // What seemed so good that nobody looked further was not.
                let library = work.library;
                let before: Vec<_> = found.candidates.iter().map(Candidate::identity).collect();
                let search = || self.finder.search_on(library, &mut found);
                match work.is_let_down() && catch_panic(search).unwrap_or(false) {
                    true => {
                        work.follow(&before, &found.candidates);
                        continue;
                    }
                    false => break,
                }
            };
            let candidate = found.candidates[position].clone();
            // Names of another build may be wrong; none are put beside right ones.
            let is_other = |used: &UsedFile| used.verified != candidate.verified;
            if work.files.first().is_some_and(is_other) {
                break;
            }
            asked.push(candidate.identity());
            work.ask(&candidate, position);
        }
        // What is damaged or incomplete is asked, and told, again the next time.
        if let Some(answers) = answers
            && !work.is_let_down()
            && !asked.is_empty()
        {
            let stored = Stored::merged(before, work.library, &work.lines, work.stored_files());
            // Without it the next run takes longer, no more.
            let _ = answers.put(&key, &stored.encode());
        }
        for row in work.lines.rows().iter().filter(|row| row.is_known()) {
            if let Some(file) = work.files.get_mut(usize::from(row.file)) {
                file.addresses += 1;
            }
        }
        found
    }
}

impl Work<'_> {
    /// Whether some file was not what it promised to be.
    fn is_let_down(&self) -> bool {
        !self.failures.is_empty() || self.files.iter().any(|file| !file.notes.is_empty())
    }

    /// Whether nobody else needs to be asked. Lines are looked for further where a file that
    /// should have had them was let down itself.
    fn is_done(&self) -> bool {
        let lacks_line = |at: usize| self.lines.rows()[at].is_known() && !self.lines.has_file(at);
        self.open.is_empty()
            && !(self.is_let_down() && (0..self.lines.rows().len()).any(lacks_line))
    }

    /// Takes what was known before. False where it is not about these candidates.
    fn take(&mut self, before: &Stored, candidates: &[Candidate]) -> bool {
        let files: Option<Vec<_>> = before
            .files
            .iter()
            .map(|&(position, has_unwind)| {
                let candidate = candidates.get(usize::from(position))?;
                Some(UsedFile::of(candidate, has_unwind, Vec::new()))
            })
            .collect();
        let Some(files) = files else { return false };
        let count = files.len();
        let fits = |row: &super::lines::Row| !row.is_known() || usize::from(row.file) < count;
        if !before.lines.rows().iter().all(fits) {
            return false;
        }
        let addresses = &self.library.addresses;
        let lines = &mut self.lines;
        self.open.retain(|&at| {
            let Ok(from) = before.addresses.binary_search(&addresses[at]) else {
                return true;
            };
            lines.copy(at, &before.lines, from);
            false
        });
        self.files = files;
        self.positions = before.files.iter().map(|&(position, _)| position).collect();
        true
    }

    /// Candidates were found since: used files may stand further behind among them.
    fn follow(&mut self, before: &[[u8; 32]], candidates: &[Candidate]) {
        for position in &mut self.positions {
            let identity = before.get(usize::from(*position));
            let mut now = candidates.iter().map(Candidate::identity);
            let now = now.position(|now| Some(&now) == identity);
            // Beyond what is counted no file is asked either.
            *position = now.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX);
        }
    }

    /// Asks one file for all that is open, and lines for what has none.
    fn ask(&mut self, candidate: &Candidate, position: usize) {
        let Ok(position) = u8::try_from(position) else {
            return;
        };
        let known = self.positions.iter().position(|&p| p == position);
        let file = known.unwrap_or(self.files.len()) as u8;
        let before = self.lines.rows().to_vec();
        let read = catch_panic(|| self.read(candidate, file)).unwrap_or_else(|panic| {
            Err(format!(
                "it could not be read ({panic}), which is a bug of heaptap"
            ))
        });
        match read {
            Ok(used) if known.is_none() => {
                self.files.push(used);
                self.positions.push(position);
            }
            Ok(used) => self.files[usize::from(file)] = used,
            Err(why) => {
                // What was known before stands: of this file too, if the cache knew it.
                self.lines.restore(before);
                self.failures.push(FileFailure {
                    place: candidate.place,
                    path: candidate.path.clone(),
                    why,
                });
            }
        }
        let rows = self.lines.rows().iter().enumerate();
        let unknown = rows.filter(|(_, row)| !row.is_known());
        self.open = unknown.map(|(at, _)| at).collect();
    }

    /// Reads from a file what is open and the lines of what has none, as the library's `file`th.
    fn read(&mut self, candidate: &Candidate, file: u8) -> Result<UsedFile, String> {
        let bytes = candidate.open().map_err(|why| why.to_string())?;
        let symbols =
            SymbolFile::open(bytes, candidate.companions()).map_err(|error| error.to_string())?;
        let library = self.library;
        let address = |at: usize| {
            let rel_pc = library.addresses[at];
            symbols.svma(rel_pc, library.offset, library.load_bias)
        };
        let lacking = (0..library.addresses.len()).filter(|&at| !self.lines.has_file(at));
        let wanted = lacking.filter(|at| {
            let is_open = self.open.binary_search(at).is_ok();
            is_open || candidate.knowledge >= Knowledge::Lines
        });
        let mut wanted: Vec<(u64, usize)> = wanted.map(|at| (address(at), at)).collect();
        wanted.sort_unstable();
        let addresses: Vec<u64> = wanted.iter().map(|&(address, _)| address).collect();
        let lines = &mut self.lines;
        symbols.lookup(&addresses, self.threads, &mut |at, found| {
            let Some(&(_, at)) = wanted.get(at) else {
                return;
            };
            let is_better = found.iter().any(|line| !line.file.is_empty());
            if is_better || !lines.rows()[at].is_known() {
                lines.set(at, file, found);
            }
        });
        let notes = symbols.notes().iter().map(ToString::to_string).collect();
        Ok(UsedFile::of(candidate, symbols.facts().has_unwind, notes))
    }

    fn stored_files(&self) -> Vec<(u8, bool)> {
        let positions = self.positions.iter().copied();
        positions
            .zip(self.files.iter().map(|file| file.has_unwind))
            .collect()
    }
}
