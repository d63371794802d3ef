//! One library: its files are asked one after the other until every address is known or nobody
//! is left to ask.

use super::Resolver;
use super::lines::AddressLines;
use super::outcome::{FileFailure, LibraryOutcome, UsedFile};
use super::stored::{self, Stored};
use crate::error::contain;
use crate::symbolize::file::SymbolFile;
use crate::symbolize::find::{Candidate, Found};
use crate::symbolize::library::Library;
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
        let found = match contain(|| self.finder.find(library)) {
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
        while !work.open.is_empty() && asked.len() < MOST_FILES {
            let is_new = |candidate: &Candidate| !asked.contains(&candidate.identity());
            let Some(position) = found.candidates.iter().position(is_new) else {
                break;
            };
            let candidate = found.candidates[position].clone();
            // Names of another build may be wrong; none are put beside right ones.
            let is_other = |used: &UsedFile| used.verified != candidate.verified;
            if work.files.first().is_some_and(is_other) {
                break;
            }
            asked.push(candidate.identity());
            if !work.ask(&candidate, position) && work.files.is_empty() {
                // It seemed so good that nobody looked further.
                let library = work.library;
                if contain(|| self.finder.search_on(library, &mut found)).is_err() {
                    break;
                }
            }
        }
        // What is damaged or incomplete is asked, and told, again the next time.
        let is_whole = work.failures.is_empty() && work.files.iter().all(|f| f.notes.is_empty());
        if let Some(answers) = answers
            && is_whole
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

    /// Asks one file for all that is open. False where it could not be used.
    fn ask(&mut self, candidate: &Candidate, position: usize) -> bool {
        let Ok(position) = u8::try_from(position) else {
            return false;
        };
        let known = self.positions.iter().position(|&p| p == position);
        let file = known.unwrap_or(self.files.len()) as u8;
        let read = contain(|| self.read(candidate, file)).unwrap_or_else(|panic| {
            Err(format!(
                "it could not be read ({panic}), which is a bug of heaptap"
            ))
        });
        let used = match read {
            Ok(used) => used,
            Err(why) => {
                self.lines.forget(file);
                self.failures.push(FileFailure {
                    place: candidate.place,
                    path: candidate.path.clone(),
                    why,
                });
                return false;
            }
        };
        let lines = &self.lines;
        self.open.retain(|&at| !lines.rows()[at].is_known());
        match known {
            Some(at) => self.files[at] = used,
            None => {
                self.files.push(used);
                self.positions.push(position);
            }
        }
        true
    }

    /// Reads the lines of all that is open from a file, as the library's `file`th.
    fn read(&mut self, candidate: &Candidate, file: u8) -> Result<UsedFile, String> {
        let bytes = candidate.open().map_err(|why| why.to_string())?;
        let symbols =
            SymbolFile::open(bytes, candidate.companions()).map_err(|error| error.to_string())?;
        let library = self.library;
        let address = |at: usize| {
            let rel_pc = library.addresses[at];
            symbols.svma(rel_pc, library.offset, library.load_bias)
        };
        let mut wanted: Vec<(u64, usize)> = self.open.iter().map(|&at| (address(at), at)).collect();
        wanted.sort_unstable();
        let addresses: Vec<u64> = wanted.iter().map(|&(address, _)| address).collect();
        let lines = &mut self.lines;
        symbols.lookup(&addresses, self.threads, &mut |at, found| {
            if let Some(&(_, at)) = wanted.get(at) {
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
