//! Symbolization coverage of a recording: per library the unnamed frames and affected bytes, the
//! searched places, and signs of missing unwind information. Fed dump by dump; keeps the last dump
//! of each heap as callsites and bytes.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::names::frames::Named;
use heaptap_model::profile::{
    CallsiteId, DumpKind, FrameId, HeapDump, Mapping, Recording, StringId,
};
use heaptap_model::stacks::naming::FrameNamer;
use heaptap_results::manifest;
use heaptap_symbols::symbolize::file::Knowledge;
use heaptap_symbols::symbolize::find::Attempt;
use heaptap_symbols::symbolize::resolve::{FileFailure, LibraryOutcome, UsedFile};

/// Minimum number of callstacks that end in a library after one frame for it to be reported as
/// lacking unwind information, if they are also the majority of those that allocate in it.
const MIN_CUT: u64 = 2;

/// Collects the dumps of one trace.
#[derive(Debug, Default)]
pub struct Coverage {
    series: BTreeMap<(u64, String), Vec<(CallsiteId, i64)>>,
}

/// Symbolization of all traces of an input.
#[derive(Debug, Default)]
pub struct Tally {
    named: u64,
    unnamed: u64,
    with_lines: u64,
    bytes: u64,
    bytes_unnamed: u64,
    leaf_bytes_unnamed: u64,
    /// By path and build ID.
    libraries: BTreeMap<(String, String), Library>,
}

#[derive(Debug, Default)]
struct Library {
    /// Frames without a name.
    unnamed: u64,
    /// Bytes with an unnamed frame of the library in their callstacks; those whose allocating
    /// function is unnamed.
    bytes: u64,
    leaf_bytes: u64,
    /// Callsites whose allocating function is in it, and those of them that end there.
    leaf_callsites: u64,
    cut_callsites: u64,
    cut_bytes: u64,
    /// By offset of the code in the file.
    addresses: BTreeMap<(u64, u64), u64>,
    files: Vec<manifest::SymbolFile>,
    has_unwind: bool,
    searched: Vec<manifest::LookedIn>,
    nearest: Option<manifest::NearestFile>,
}

impl Coverage {
    /// Adds a dump; dumps of one heap come in chronological order.
    pub fn add(&mut self, dump: &HeapDump) {
        let key = (dump.pid, dump.heap.clone());
        let series = self.series.entry(key).or_default();
        series.clear();
        let held = dump.kind != DumpKind::AllocationsOnly
            && dump.samples.iter().any(|(_, figures)| figures.space > 0);
        series.extend(dump.samples.iter().filter_map(|(callsite, figures)| {
            let bytes = if held {
                figures.space
            } else {
                figures.alloc_space
            };
            (bytes > 0).then_some((*callsite, bytes))
        }));
    }

    /// Adds the results for the trace's frames and callsites to `tally`.
    pub fn finish(self, named: &Named, namer: &mut FrameNamer<'_>, tally: &mut Tally) {
        let mut walk = Walk::new(namer, tally);
        for (callsite, bytes) in self.series.into_values().flatten() {
            walk.weigh(callsite, bytes.unsigned_abs());
        }
        walk.into_tally();
        for outcome in &named.symbolized.libraries {
            tally.take(outcome);
        }
    }
}

/// State of a single frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Name {
    Known,
    Missing,
}

/// A traversal of the callsites of a trace.
struct Walk<'a, 'n> {
    recording: &'n Recording,
    namer: &'a mut FrameNamer<'n>,
    tally: &'a mut Tally,
    frames: Vec<Name>,
    /// Library of each mapping, by position.
    of_mapping: Vec<usize>,
    keys: Vec<(String, String)>,
    libraries: Vec<Library>,
    /// Number of callsites processed, and for each library the last one that counted for it: each
    /// callsite is processed once per heap.
    weighed: u64,
    counted: Vec<u64>,
    /// Whether a frame belongs to the allocator, if already determined.
    allocators: Vec<Option<bool>>,
}

impl<'a, 'n> Walk<'a, 'n> {
    fn new(namer: &'a mut FrameNamer<'n>, tally: &'a mut Tally) -> Walk<'a, 'n> {
        let recording = namer.recording();
        let tables = &recording.tables;
        let mut keys: Vec<(String, String)> = Vec::new();
        let mut known: BTreeMap<(&str, &[u8]), usize> = BTreeMap::new();
        let mut position = |mapping: &'n Mapping| {
            let path = tables.string(mapping.path);
            let key = (path, mapping.build_id.0.as_slice());
            *known.entry(key).or_insert_with(|| {
                keys.push((path.to_owned(), mapping.build_id.to_string()));
                keys.len() - 1
            })
        };
        let of_mapping: Vec<usize> = tables.mappings().iter().map(&mut position).collect();
        let mut libraries: Vec<Library> = Vec::new();
        libraries.resize_with(keys.len(), Library::default);
        let none = StringId::default();
        let frames = tables.frames().iter().enumerate().map(|(at, frame)| {
            let lines = recording.symbols.lines(FrameId(at as u32));
            let has_line = lines.iter().any(|l| l.file != none && l.line != 0);
            tally.with_lines += u64::from(has_line);
            if frame.name != none || lines.iter().any(|l| l.function != none) {
                tally.named += 1;
                return Name::Known;
            }
            tally.unnamed += 1;
            if let Some(mapping) = frame.mapping {
                libraries[of_mapping[mapping.0 as usize]].unnamed += 1;
            }
            Name::Missing
        });
        Walk {
            frames: frames.collect(),
            weighed: 0,
            counted: vec![0; keys.len()],
            allocators: vec![None; tables.frames().len()],
            recording,
            namer,
            tally,
            of_mapping,
            keys,
            libraries,
        }
    }

    fn weigh(&mut self, callsite: CallsiteId, bytes: u64) {
        let recording = self.recording;
        let mut frames = recording.tables.callsite(callsite).peekable();
        self.tally.bytes = self.tally.bytes.saturating_add(bytes);
        self.weighed += 1;
        let mut hides = false;
        let mut above_allocator = false;
        // If all frames have names, there is no need to check the callers.
        let to_the_end = self.tally.unnamed > 0;
        while let Some(frame) = frames.next() {
            let at = frame.0 as usize;
            let mapping = recording.tables.frame(frame).mapping;
            let library = mapping.map(|mapping| self.of_mapping[mapping.0 as usize]);
            let is_first = !above_allocator && !self.is_allocator(frame);
            if is_first {
                above_allocator = true;
                let ends = frames.peek().is_none_or(|&next| self.is_error(next));
                if let Some(library) = library.map(|at| &mut self.libraries[at]) {
                    library.leaf_callsites += 1;
                    if ends {
                        library.cut_callsites += 1;
                        library.cut_bytes = library.cut_bytes.saturating_add(bytes);
                    }
                }
                if !to_the_end {
                    return;
                }
            }
            if self.frames[at] == Name::Known {
                continue;
            }
            hides = true;
            if is_first {
                let sum = &mut self.tally.leaf_bytes_unnamed;
                *sum = sum.saturating_add(bytes);
            }
            let Some(position) = library else { continue };
            let library = &mut self.libraries[position];
            if is_first {
                library.leaf_bytes = library.leaf_bytes.saturating_add(bytes);
            }
            if self.counted[position] != self.weighed {
                self.counted[position] = self.weighed;
                library.bytes = library.bytes.saturating_add(bytes);
            }
        }
        if hides {
            self.tally.bytes_unnamed = self.tally.bytes_unnamed.saturating_add(bytes);
        }
    }

    fn is_allocator(&mut self, frame: FrameId) -> bool {
        let known = &mut self.allocators[frame.0 as usize];
        *known.get_or_insert_with(|| self.namer.is_allocators(frame))
    }

    /// Returns whether a frame marks a failure of the unwinder: heapprofd adds one at the root.
    fn is_error(&self, frame: FrameId) -> bool {
        let tables = &self.recording.tables;
        let mapping = tables.frame(frame).mapping.map(|id| tables.mapping(id));
        mapping.is_none_or(|m| m.start == 0 && m.end == 0 && m.build_id.is_empty())
    }

    fn into_tally(self) {
        for (key, library) in self.keys.into_iter().zip(self.libraries) {
            let sum = self.tally.libraries.entry(key).or_default();
            sum.unnamed += library.unnamed;
            sum.bytes = sum.bytes.saturating_add(library.bytes);
            sum.leaf_bytes = sum.leaf_bytes.saturating_add(library.leaf_bytes);
            sum.leaf_callsites += library.leaf_callsites;
            sum.cut_callsites += library.cut_callsites;
            sum.cut_bytes = sum.cut_bytes.saturating_add(library.cut_bytes);
        }
    }
}

impl Tally {
    fn take(&mut self, outcome: &LibraryOutcome) {
        let wanted = &outcome.library;
        let key = (wanted.path.clone(), wanted.build_id.to_string());
        let library = self.libraries.entry(key).or_default();
        // Files from the device are read once more.
        let addresses = wanted.addresses.len() as u64;
        let known = library.addresses.entry((wanted.offset, wanted.load_bias));
        let known = known.or_default();
        *known = addresses.max(*known);
        library.has_unwind |= outcome.files.iter().any(|file| file.has_unwind);
        for file in &outcome.files {
            let known = library.files.iter_mut().find(|f| f.path == file.path);
            match known {
                Some(known) => known.addresses += file.addresses as u64,
                None => library.files.push(symbol_file(file)),
            }
        }
        let failures = outcome.failures.iter().map(unusable);
        let bug = outcome.search_failed.iter().map(|what| bug(what));
        let attempts = outcome.attempts.iter().map(searched);
        for place in failures.chain(bug).chain(attempts) {
            if !library.searched.contains(&place) {
                library.searched.push(place);
            }
        }
        if let Some(nearest) = &outcome.nearest {
            library.nearest.get_or_insert(manifest::NearestFile {
                place: nearest.place.word().to_owned(),
                path: nearest.path.clone(),
                build_id: nearest.build_id.to_string(),
            });
        }
    }

    /// Converts to the form of the manifest.
    pub fn into_manifest(self) -> manifest::Symbolization {
        let share = |part: u64| match self.bytes {
            0 => 0.0,
            all => (part as f64 / all as f64 * 1e4).round() / 1e4,
        };
        let mut all = manifest::Symbolization {
            frames_named: self.named,
            frames_unnamed: self.unnamed,
            frames_with_lines: self.with_lines,
            leaf_share_unnamed: share(self.leaf_bytes_unnamed),
            share_unnamed: share(self.bytes_unnamed),
            ..manifest::Symbolization::default()
        };
        let mut libraries: Vec<_> = self.libraries.into_iter().collect();
        libraries.sort_by_key(|(_, l)| Reverse((l.bytes, l.leaf_bytes, l.unnamed)));
        for ((path, build_id), library) in libraries {
            let cut = library.cut_callsites;
            if cut >= MIN_CUT
                && cut * 2 > library.leaf_callsites
                && !library.has_unwind
                && !path.is_empty()
            {
                all.libraries_without_unwind.push(manifest::CutLibrary {
                    path: path.clone(),
                    build_id: build_id.clone(),
                    callsites: cut,
                    share: share(library.cut_bytes),
                });
            }
            if !library.files.is_empty() {
                all.libraries_named.push(manifest::NamedLibrary {
                    path: path.clone(),
                    build_id: build_id.clone(),
                    addresses: library.addresses.values().sum(),
                    files: library.files,
                });
            }
            if library.unnamed > 0 {
                all.libraries_missing.push(manifest::MissingLibrary {
                    path,
                    build_id,
                    frames: library.unnamed,
                    leaf_share: share(library.leaf_bytes),
                    share: share(library.bytes),
                    searched: library.searched,
                    nearest: library.nearest,
                });
            }
        }
        all
    }
}

fn symbol_file(file: &UsedFile) -> manifest::SymbolFile {
    manifest::SymbolFile {
        place: file.place.word().to_owned(),
        path: file.path.clone(),
        knowledge: match file.knowledge {
            Knowledge::Nothing => "nothing",
            Knowledge::Dynsym => "dynsym",
            Knowledge::Symtab => "symtab",
            Knowledge::Lines => "lines",
            Knowledge::Dwarf => "dwarf",
        }
        .to_owned(),
        verified: file.verified,
        addresses: file.addresses as u64,
        notes: file.notes.clone(),
    }
}

fn searched(attempt: &Attempt) -> manifest::LookedIn {
    manifest::LookedIn {
        place: attempt.place.word().to_owned(),
        path: attempt.path.clone(),
        why: attempt.why_not.word().to_owned(),
        detail: attempt.why_not.to_string(),
    }
}

fn unusable(failure: &FileFailure) -> manifest::LookedIn {
    manifest::LookedIn {
        place: failure.place.word().to_owned(),
        path: failure.path.clone(),
        why: "unusable".to_owned(),
        detail: failure.why.clone(),
    }
}

fn bug(what: &str) -> manifest::LookedIn {
    manifest::LookedIn {
        place: "search".to_owned(),
        path: String::new(),
        why: "unusable".to_owned(),
        detail: format!("the search failed because of a bug in heaptap: {what}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_base::units::BuildId;
    use heaptap_model::profile::{Figures, Frame, Line};

    #[derive(Default)]
    struct Stacks(Recording);

    impl Stacks {
        /// Adds a callsite of (function, library), leaf first; an empty name is an unnamed frame,
        /// an empty library is a failure of the unwinder.
        fn callsite(&mut self, leaf_first: &[(&str, &str)]) -> CallsiteId {
            let tables = &mut self.0.tables;
            let frames: Vec<u32> = leaf_first
                .iter()
                .enumerate()
                .map(|(at, (name, path))| {
                    let end = if path.is_empty() { 0 } else { 0x1000 };
                    let path = tables.intern_str(path);
                    let mapping = tables.intern_mapping(Mapping {
                        path,
                        build_id: BuildId(if end == 0 { vec![] } else { vec![7] }),
                        end,
                        ..Mapping::default()
                    });
                    let name = tables.intern_str(name);
                    let frame = Frame {
                        mapping: Some(mapping),
                        rel_pc: at as u64,
                        name,
                        file: StringId::default(),
                        line: 0,
                    };
                    tables.intern_frame(frame).0
                })
                .collect();
            tables.intern_callsite(&frames)
        }
    }

    fn dump(samples: &[(CallsiteId, i64)]) -> HeapDump {
        let figures = |space: &i64| Figures {
            space: *space,
            alloc_space: space * 3,
            ..Figures::default()
        };
        HeapDump {
            samples: samples.iter().map(|(c, s)| (*c, figures(s))).collect(),
            ..HeapDump::default()
        }
    }

    fn account(stacks: &Stacks, dumps: &[HeapDump]) -> manifest::Symbolization {
        let mut coverage = Coverage::default();
        dumps.iter().for_each(|dump| coverage.add(dump));
        let mut tally = Tally::default();
        let mut namer = FrameNamer::new(&stacks.0);
        coverage.finish(&Named::default(), &mut namer, &mut tally);
        tally.into_manifest()
    }

    #[test]
    fn a_library_hides_what_it_allocates_and_what_it_calls() {
        let mut stacks = Stacks::default();
        let malloc = ("malloc", "/libc.so");
        let leaf = stacks.callsite(&[malloc, ("", "/a.so"), ("main", "/app")]);
        let caller = stacks.callsite(&[malloc, ("f", "/b.so"), ("", "/a.so"), ("", "/a.so")]);
        let other = stacks.callsite(&[malloc, ("f", "/b.so"), ("main", "/app")]);
        let before = dump(&[(leaf, 999)]);
        let all = account(
            &stacks,
            &[before, dump(&[(leaf, 50), (caller, 25), (other, 25)])],
        );
        assert_eq!((all.frames_unnamed, all.frames_named), (3, 3));
        assert_eq!((all.leaf_share_unnamed, all.share_unnamed), (0.5, 0.75));
        let [a] = all.libraries_missing.as_slice() else {
            panic!("one library: {all:?}");
        };
        assert_eq!((a.path.as_str(), a.build_id.as_str()), ("/a.so", "07"));
        assert_eq!((a.frames, a.leaf_share, a.share), (3, 0.5, 0.75));
    }

    #[test]
    fn a_callsite_counts_in_each_heap() {
        let mut stacks = Stacks::default();
        let hidden = stacks.callsite(&[("f", "/b.so"), ("", "/a.so")]);
        let other = HeapDump {
            pid: 7,
            ..dump(&[(hidden, 60)])
        };
        let all = account(&stacks, &[dump(&[(hidden, 40)]), other]);
        assert_eq!(all.libraries_missing[0].share, 1.0);
    }

    #[test]
    fn what_is_all_freed_is_weighed_by_what_was_allocated() {
        let mut stacks = Stacks::default();
        let hidden = stacks.callsite(&[("", "/a.so"), ("main", "/app")]);
        let mut freed = dump(&[(hidden, 0)]);
        freed.samples[0].1.alloc_space = 10;
        assert_eq!(account(&stacks, &[freed]).share_unnamed, 1.0);
    }

    #[test]
    fn lines_name_a_frame_that_the_unwinder_did_not() {
        let mut stacks = Stacks::default();
        let site = stacks.callsite(&[("", "/a.so")]);
        let name = stacks.0.tables.intern_str("f");
        let line = Line {
            function: name,
            linkage: name,
            file: name,
            line: 3,
        };
        let row = stacks.0.symbols.add_lines(&[line]).unwrap();
        stacks.0.symbols.set_lines(FrameId(0), row);
        let all = account(&stacks, &[dump(&[(site, 1)])]);
        assert_eq!((all.frames_named, all.frames_with_lines), (1, 1));
        assert_eq!(all.share_unnamed, 0.0);
        assert!(all.libraries_missing.is_empty());
    }

    #[test]
    fn a_frame_allocates_for_its_callers_where_all_its_lines_do() {
        let mut stacks = Stacks::default();
        let both = stacks.callsite(&[("_Znwm", "/a.so"), ("main", "/app")]);
        let mut line = |name: &str| {
            let name = stacks.0.tables.intern_str(name);
            Line {
                function: name,
                linkage: name,
                file: StringId::default(),
                line: 3,
            }
        };
        let lines = [line("operator new(unsigned long)"), line("Cache::grow()")];
        let row = stacks.0.symbols.add_lines(&lines).unwrap();
        let alone = stacks.0.symbols.add_lines(&lines[..1]).unwrap();
        let first = stacks.0.tables.callsite(both).next().unwrap();
        let mut allocators = |row| {
            stacks.0.symbols.set_lines(first, row);
            FrameNamer::new(&stacks.0).is_allocators(first)
        };
        assert!(!allocators(row));
        assert!(allocators(alone));
    }

    #[test]
    fn callstacks_that_end_after_one_frame_tell_of_their_library() {
        let mut stacks = Stacks::default();
        let malloc = ("malloc", "/libc.so");
        let cut = [
            stacks.callsite(&[malloc, ("f", "/cut.so")]),
            stacks.callsite(&[malloc, ("g", "/cut.so"), ("ERROR 2", "")]),
        ];
        let whole = [
            stacks.callsite(&[malloc, ("f", "/whole.so"), ("main", "/app")]),
            stacks.callsite(&[malloc, ("g", "/whole.so"), ("main", "/app")]),
            stacks.callsite(&[malloc, ("h", "/whole.so")]),
        ];
        let samples: Vec<_> = cut.iter().chain(&whole).map(|c| (*c, 20)).collect();
        let all = account(&stacks, &[dump(&samples)]);
        let [library] = all.libraries_without_unwind.as_slice() else {
            panic!("one library: {all:?}");
        };
        assert_eq!((library.path.as_str(), library.callsites), ("/cut.so", 2));
        assert_eq!(library.share, 0.4);
    }
}
