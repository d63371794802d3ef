//! What became of each library: the files that named its addresses, the places where they were
//! looked for, the lines. Owns how lines become those of a recording's frames.

use super::lines::AddressLines;
use crate::symbolize::file::Knowledge;
use crate::symbolize::find::{Attempt, Candidate, Nearest, Place};
use crate::symbolize::library::Library;
use heaptap_model::profile::{Frame, FrameId, Line, Lines, Mapping, Recording, StringId};
use std::collections::HashMap;

/// All libraries of a recording.
#[derive(Debug, Default)]
pub struct Symbolized {
    /// In the order in which they were asked for.
    pub libraries: Vec<LibraryOutcome>,
    /// Whether some were left out because nobody wanted to wait.
    pub cancelled: bool,
}

/// One library.
#[derive(Debug)]
pub struct LibraryOutcome {
    /// What was wanted.
    pub library: Library,
    /// The files that were asked, best first.
    pub files: Vec<UsedFile>,
    /// The files that could not be used, though they seemed to be the library's.
    pub failures: Vec<FileFailure>,
    /// Where nothing was found, or something that may not be used.
    pub attempts: Vec<Attempt>,
    /// The file that comes closest among those that may not be used.
    pub nearest: Option<Nearest>,
    /// What the search itself failed with: a bug.
    pub search_failed: Option<String>,
    pub(super) lines: AddressLines,
}

/// A file that was asked for a library's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedFile {
    /// Where it was found.
    pub place: Place,
    /// The file, for people.
    pub path: String,
    /// How much it knows.
    pub knowledge: Knowledge,
    /// Whether its build ID is the library's.
    pub verified: bool,
    /// Whether an unwinder finds its way through its code.
    pub has_unwind: bool,
    /// How many of the addresses have their lines from it.
    pub addresses: usize,
    /// What was wrong with parts of it or missing beside it.
    pub notes: Vec<String>,
}

/// A file that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFailure {
    /// Where it was found.
    pub place: Place,
    /// The file, for people.
    pub path: String,
    /// Why.
    pub why: String,
}

impl UsedFile {
    pub(super) fn of(candidate: &Candidate, has_unwind: bool, notes: Vec<String>) -> UsedFile {
        UsedFile {
            place: candidate.place,
            path: candidate.path.clone(),
            knowledge: candidate.knowledge,
            verified: candidate.verified,
            has_unwind,
            addresses: 0,
            notes,
        }
    }
}

/// Frames that were given lines.
#[derive(Debug, Clone, Default)]
pub struct Applied {
    frames: Vec<bool>,
    /// How many.
    pub count: usize,
}

impl Applied {
    /// Counts in what was given later: to other frames, or more to the same.
    pub fn extend(&mut self, later: &Applied) {
        let length = self.frames.len().max(later.frames.len());
        self.frames.resize(length, false);
        for (had, has) in self.frames.iter_mut().zip(&later.frames) {
            *had |= has;
        }
        self.count = self.frames.iter().filter(|had| **had).count();
    }

    /// Whether a frame was given lines.
    pub fn has(&self, frame: FrameId) -> bool {
        self.frames.get(frame.0 as usize).is_some_and(|had| *had)
    }
}

impl LibraryOutcome {
    /// A library for which nothing was looked for.
    pub(super) fn unasked(library: Library) -> LibraryOutcome {
        LibraryOutcome {
            lines: AddressLines::unknown(library.addresses.len()),
            library,
            files: Vec::new(),
            failures: Vec::new(),
            attempts: Vec::new(),
            nearest: None,
            search_failed: None,
        }
    }

    /// How many addresses have lines.
    pub fn known(&self) -> usize {
        self.lines
            .rows()
            .iter()
            .filter(|row| row.is_known())
            .count()
    }

    /// Lines of the address at `at` and how much the file knows they are from.
    fn answer(&self, at: usize) -> Option<Knowledge> {
        let row = self.lines.rows()[at];
        let file = self.files.get(usize::from(row.file))?;
        row.is_known().then_some(file.knowledge)
    }
}

impl Symbolized {
    /// Of each mapping the position of its library.
    fn by_mapping(&self, recording: &Recording) -> Vec<Option<usize>> {
        let of_library = |library: &Library| {
            let code = (library.offset, library.load_bias);
            (library.path.clone(), library.build_id.clone(), code)
        };
        let libraries = self.libraries.iter().enumerate();
        let index: HashMap<_, _> = libraries
            .map(|(at, outcome)| (of_library(&outcome.library), at))
            .collect();
        let tables = &recording.tables;
        let of = |mapping: &Mapping| {
            let offset = mapping.exact_offset.wrapping_sub(mapping.start_offset);
            let path = tables.string(mapping.path).to_owned();
            let key = (path, mapping.build_id.clone(), (offset, mapping.load_bias));
            index.get(&key).copied()
        };
        tables.mappings().iter().map(of).collect()
    }

    /// Gives the frames of `recording` their lines. A frame that has lines with a file keeps
    /// them, and one that the unwinder named keeps that name where all that was found is the
    /// nearest exported function: the unwinder saw the same table on the device.
    pub fn apply(&self, recording: &mut Recording) -> Applied {
        let tables = &recording.tables;
        let by_mapping = self.by_mapping(recording);
        let frames: Vec<Frame> = tables.frames().to_vec();
        let mut applied = Applied {
            frames: vec![false; frames.len()],
            count: 0,
        };
        let mut texts: Vec<Vec<Option<StringId>>> = Vec::new();
        texts.resize_with(self.libraries.len(), Vec::new);
        let mut rows: HashMap<(usize, usize), Option<Lines>> = HashMap::new();
        let mut row = Vec::new();
        for (at, frame) in frames.iter().enumerate() {
            let Some(library) = frame.mapping.and_then(|m| by_mapping[m.0 as usize]) else {
                continue;
            };
            let outcome = &self.libraries[library];
            let Ok(address) = outcome.library.addresses.binary_search(&frame.rel_pc) else {
                continue;
            };
            let Some(knowledge) = outcome.answer(address) else {
                continue;
            };
            let is_named = frame.name != StringId::default();
            if is_named && knowledge <= Knowledge::Dynsym {
                continue;
            }
            let id = FrameId(at as u32);
            let lines = *rows.entry((library, address)).or_insert_with(|| {
                row.clear();
                outcome.intern(address, &mut texts[library], recording, &mut row);
                recording.symbols.add_lines(&row)
            });
            let Some(lines) = lines else {
                continue;
            };
            if recording.symbols.knows_more(id, lines) {
                continue;
            }
            recording.symbols.set_lines(id, lines);
            applied.frames[at] = true;
            applied.count += 1;
        }
        applied
    }
}

impl LibraryOutcome {
    /// Puts the lines of an address into `row`, its texts into the recording's tables.
    fn intern(
        &self,
        address: usize,
        texts: &mut Vec<Option<StringId>>,
        recording: &mut Recording,
        row: &mut Vec<Line>,
    ) {
        texts.resize(self.lines.text_count(), None);
        let mut text = |id: u32| {
            *texts[id as usize]
                .get_or_insert_with(|| recording.tables.intern_str(self.lines.text(id)))
        };
        row.extend(self.lines.lines(address).iter().map(|line| Line {
            function: text(line.function),
            linkage: text(line.linkage),
            file: text(line.file),
            line: line.line,
        }));
    }
}
