//! Outcome of each library: the files used for its addresses, the places searched, the lines.
//! Copies lines to the frames of a recording.

use super::lines::AddressLines;
use crate::symbolize::file::Knowledge;
use crate::symbolize::find::{Attempt, Candidate, Nearest, Place};
use crate::symbolize::library::Library;
use heaptap_model::profile::{Frame, FrameId, Line, Lines, Mapping, Recording, StringId};
use std::collections::HashMap;

/// Outcome of all libraries of a recording.
#[derive(Debug, Default)]
pub struct Symbolized {
    /// In the order of the request.
    pub libraries: Vec<LibraryOutcome>,
    /// True if some libraries were left out because the user canceled.
    pub cancelled: bool,
}

/// Outcome of one library.
#[derive(Debug)]
pub struct LibraryOutcome {
    /// The requested library.
    pub library: Library,
    /// Files used, best first.
    pub files: Vec<UsedFile>,
    /// Files that seemed to belong to the library but could not be used.
    pub failures: Vec<FileFailure>,
    /// Places without a file, and files that cannot be used.
    pub attempts: Vec<Attempt>,
    /// Closest match among the files that cannot be used.
    pub nearest: Option<Nearest>,
    /// Panic message if the search itself failed, which is a bug.
    pub search_failed: Option<String>,
    pub(super) lines: AddressLines,
}

/// File used for a library's addresses.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsedFile {
    /// Place where it was found.
    pub place: Place,
    /// Path for display.
    pub path: String,
    /// Amount of information.
    pub knowledge: Knowledge,
    /// True if its build ID is the library's.
    pub verified: bool,
    /// True if it has unwind data.
    pub has_unwind: bool,
    /// Number of addresses with lines from it.
    pub addresses: usize,
    /// Problems in parts of it, and missing supplementary files.
    pub notes: Vec<String>,
}

/// File that could not be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileFailure {
    /// Place where it was found.
    pub place: Place,
    /// Path for display.
    pub path: String,
    /// Reason.
    pub why: String,
}

impl UsedFile {
    pub(super) fn new(candidate: &Candidate, has_unwind: bool, notes: Vec<String>) -> UsedFile {
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
    /// Number of these frames.
    pub count: usize,
}

impl Applied {
    /// Adds the frames of a later run, which can overlap.
    pub fn extend(&mut self, later: &Applied) {
        let length = self.frames.len().max(later.frames.len());
        self.frames.resize(length, false);
        for (had, has) in self.frames.iter_mut().zip(&later.frames) {
            *had |= has;
        }
        self.count = self.frames.iter().filter(|had| **had).count();
    }

    /// Returns whether a frame was given lines.
    pub fn has(&self, frame: FrameId) -> bool {
        self.frames.get(frame.0 as usize).is_some_and(|had| *had)
    }
}

impl LibraryOutcome {
    /// Makes the outcome of a library that was not searched for.
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

    /// Returns the number of addresses with lines.
    pub fn known(&self) -> usize {
        self.lines
            .rows()
            .iter()
            .filter(|row| row.is_known())
            .count()
    }

    /// Returns the amount of information in the file that has the lines of the address at `at`.
    fn answer(&self, at: usize) -> Option<Knowledge> {
        let row = self.lines.rows()[at];
        let file = self.files.get(usize::from(row.file))?;
        row.is_known().then_some(file.knowledge)
    }
}

impl Symbolized {
    /// Returns the position of the library for each memory mapping.
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

    /// Copies the lines to the frames of `recording`. A frame with lines and a file keeps them. A
    /// frame named by the unwinder keeps its name if only the nearest exported function was found,
    /// because the unwinder used the same table on the device.
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
    /// Copies the lines of an address to `row`, and its texts to the recording's tables.
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
