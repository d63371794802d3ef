//! Symbolization of one library: its files are used one after the other until every address is
//! known or no file is left.

use super::lines::AddressLines;
use super::outcome::{FileFailure, LibraryOutcome, UsedFile};
use super::stored::{self, Stored};
use crate::symbolize::cache::Cache;
use crate::symbolize::file::{Knowledge, SymbolFile};
use crate::symbolize::find::{Candidate, Finder, Found};
use crate::symbolize::library::Library;
use heaptap_base::error::catch_panic;
use std::num::NonZero;
use std::sync::atomic::AtomicBool;

/// Maximum number of files used for one library; more would be copies of each other.
const MAX_FILES: usize = 4;

/// State of a library's symbolization.
struct Work<'a> {
    library: &'a Library,
    threads: NonZero<usize>,
    lines: AddressLines,
    /// Positions of the addresses still unknown.
    open: Vec<usize>,
    files: Vec<UsedFile>,
    /// Position of each used file in the candidates.
    positions: Vec<u8>,
    failures: Vec<FileFailure>,
}

/// Symbolizer of libraries.
pub struct Resolver<'a> {
    /// Finder of their files.
    pub finder: &'a Finder,
    /// Cache of results.
    pub cache: Option<&'a Cache>,
    /// Maximum number of threads.
    pub threads: NonZero<usize>,
    /// Set by any thread to cancel: libraries that are not started then stay without names.
    pub cancel: &'a AtomicBool,
}

impl Resolver<'_> {
    /// Finds and uses the files of `library`. The outcome includes all errors of reading them.
    pub(super) fn one(&self, library: &Library, threads: NonZero<usize>) -> LibraryOutcome {
        let found = match catch_panic(|| self.finder.find(library)) {
            Ok(found) => found,
            // The file is unknown after a panic in the search.
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
            files: work.files,
            failures: work.failures,
            attempts: found.attempts,
            nearest: found.nearest,
            lines: work.lines,
            ..LibraryOutcome::unasked(library.clone())
        }
    }

    /// Uses the cache, then the candidates for addresses that it does not have.
    fn ask_all(&self, work: &mut Work<'_>, mut found: Found) -> Found {
        let key = stored::key(work.library, &found.candidates);
        let answers = self.cache.map(|cache| cache.answers());
        let before = answers
            .and_then(|answers| answers.get(&key))
            .and_then(|bytes| Stored::decode(&bytes))
            .filter(|before| work.take(before, &found.candidates));
        let mut asked: Vec<[u8; 32]> = Vec::new();
        while asked.len() < MAX_FILES && !work.is_done() {
            // Files without lines cannot help if only lines are missing.
            let is_useful =
                |c: &Candidate| !work.open.is_empty() || c.knowledge >= Knowledge::Lines;
            let is_next = |c: &Candidate| is_useful(c) && !asked.contains(&c.identity());
            let Some(position) = found.candidates.iter().position(is_next) else {
                // The search stopped at a file that turned out to be damaged.
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
            // Names from another build can be wrong, so they are not mixed with verified ones.
            let is_other = |used: &UsedFile| used.verified != candidate.verified;
            if work.files.first().is_some_and(is_other) {
                break;
            }
            asked.push(candidate.identity());
            work.ask(&candidate, position);
        }
        // Results of damaged or incomplete files are not cached, so that they are reported again.
        if let Some(answers) = answers
            && !work.is_let_down()
            && !asked.is_empty()
        {
            let stored = Stored::merged(before, work.library, &work.lines, work.stored_files());
            // If this fails, the next run only takes longer.
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
    /// Returns whether a file turned out to be damaged or incomplete.
    fn is_let_down(&self) -> bool {
        !self.failures.is_empty() || self.files.iter().any(|file| !file.notes.is_empty())
    }

    /// Returns whether no other file is needed. Missing lines are searched for further only if a
    /// file that should have had them was damaged.
    fn is_done(&self) -> bool {
        let lacks_line = |at: usize| self.lines.rows()[at].is_known() && !self.lines.has_file(at);
        self.open.is_empty()
            && !(self.is_let_down() && (0..self.lines.rows().len()).any(lacks_line))
    }

    /// Restores cached results. Returns `false` if they do not match the candidates.
    fn take(&mut self, before: &Stored, candidates: &[Candidate]) -> bool {
        let files: Option<Vec<_>> = before
            .files
            .iter()
            .map(|&(position, has_unwind)| {
                let candidate = candidates.get(usize::from(position))?;
                Some(UsedFile::new(candidate, has_unwind, Vec::new()))
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

    /// Updates the positions of used files after new candidates were found.
    fn follow(&mut self, before: &[[u8; 32]], candidates: &[Candidate]) {
        for position in &mut self.positions {
            let identity = before.get(usize::from(*position));
            let mut now = candidates.iter().map(Candidate::identity);
            let now = now.position(|now| Some(&now) == identity);
            // Files beyond the range of a position are not used.
            *position = now.and_then(|at| u8::try_from(at).ok()).unwrap_or(u8::MAX);
        }
    }

    /// Uses one file for all unknown addresses, and for lines where they are missing.
    fn ask(&mut self, candidate: &Candidate, position: usize) {
        let Ok(position) = u8::try_from(position) else {
            return;
        };
        let known = self.positions.iter().position(|&p| p == position);
        let file = known.unwrap_or(self.files.len()) as u8;
        let before = self.lines.rows().to_vec();
        let read = catch_panic(|| self.read(candidate, file)).unwrap_or_else(|panic| {
            Err(format!(
                "cannot read it because of a bug in heaptap ({panic})"
            ))
        });
        match read {
            Ok(used) if known.is_none() => {
                self.files.push(used);
                self.positions.push(position);
            }
            Ok(used) => self.files[usize::from(file)] = used,
            Err(why) => {
                // Earlier results stay, also those of this file from the cache.
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

    /// Reads unknown addresses and missing lines from the library's file at index `file`.
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
        Ok(UsedFile::new(candidate, symbols.facts().has_unwind, notes))
    }

    fn stored_files(&self) -> Vec<(u8, bool)> {
        let positions = self.positions.iter().copied();
        positions
            .zip(self.files.iter().map(|file| file.has_unwind))
            .collect()
    }
}
