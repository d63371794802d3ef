//! Runs: the frames that a frame of the recording stands for, with the functions inlined into it.
//! Each is named once for each of its annotations.

use crate::profile::interned::span;
use crate::profile::packed;
use crate::profile::{self, CallsiteId, Recording};
use crate::stacks::annotation::{Annotation, Classes, Walk};
use crate::stacks::naming::FrameNamer;
use crate::stacks::table::{Frame, FrameId, Function, Kind, Library, LibraryId, StackTable};

/// Options for naming stacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectOptions {
    /// Append ` [jit]` and similar annotations to names, as in pprofs.
    pub annotations: bool,
    /// Make a list of stacks instead of a tree.
    pub list: bool,
}

impl Default for ProjectOptions {
    fn default() -> Self {
        ProjectOptions {
            annotations: true,
            list: false,
        }
    }
}

/// Number of annotations of a frame.
const ANNOTATIONS: usize = 6;

/// Part of a callsite that has not entered the tree.
pub(super) struct RemainingFrames {
    callsite: CallsiteId,
    /// Length of its packed frames.
    frames: usize,
    /// State of the annotations above.
    walk: Walk,
}

/// Table of named stacks, and the runs of a recording's frames in it, as far as they are known.
#[derive(Debug)]
pub(super) struct Runs<'a> {
    pub(super) recording: &'a Recording,
    classes: Classes,
    annotates: bool,
    pub(super) namer: FrameNamer<'a>,
    /// Number of the run, from 1, by frame and, if frames are annotated, by annotation; 0 if not yet
    /// known.
    pub(super) by_frame: Vec<u32>,
    /// End of each run's frames in `run_frames`: inlined ones last.
    pub(super) run_ends: Vec<usize>,
    pub(super) run_frames: Vec<FrameId>,
    /// Library by mapping; `None` if not yet known.
    libraries: Vec<Option<LibraryId>>,
    pub(super) table: StackTable,
}

impl<'a> Runs<'a> {
    pub(super) fn new(recording: &'a Recording, options: ProjectOptions) -> Runs<'a> {
        let classes = Classes::from_recording(recording);
        let tables = &recording.tables;
        let annotates = options.annotations && classes.annotates();
        let annotations = if annotates { ANNOTATIONS } else { 1 };
        Runs {
            recording,
            annotates,
            classes,
            namer: FrameNamer::new(recording),
            by_frame: vec![0; tables.frames().len() * annotations],
            run_ends: Vec::new(),
            run_frames: Vec::new(),
            libraries: vec![None; tables.mappings().len()],
            table: match options.list {
                true => StackTable::with_list(),
                false => StackTable::default(),
            },
        }
    }

    /// Returns the frames of a run, inlined ones last.
    #[inline]
    pub(super) fn frames(&self, run: u32) -> &[FrameId] {
        &self.run_frames[span(&self.run_ends, run - 1)]
    }

    /// Names the frames of callsites. Returns the number of frames, with repetitions.
    pub(super) fn name(&mut self, callsites: &[CallsiteId]) -> usize {
        let tables = &self.recording.tables;
        let frames = callsites.iter().flat_map(|&c| tables.callsite(c));
        self.namer.prepare(frames);
        let mut count = 0;
        for &callsite in callsites {
            let mut packed = tables.packed_callsite(callsite);
            let mut walk = Walk::default();
            while let Some(frame) = packed::last(&mut packed).map(profile::FrameId) {
                let annotation = self.annotation(frame, &mut walk);
                if self.by_frame[self.place(frame, annotation)] == 0 {
                    self.run(frame, annotation);
                }
                count += 1;
            }
        }
        count
    }

    /// Returns the part of a callsite before any of it has entered the tree.
    pub(super) fn all_frames(&self, callsite: CallsiteId) -> RemainingFrames {
        RemainingFrames {
            callsite,
            frames: self.recording.tables.packed_callsite(callsite).len(),
            walk: Walk::default(),
        }
    }

    /// Returns the run of a callsite's outermost remaining frame, which has a name.
    #[inline]
    pub(super) fn next_run(&self, below: &mut RemainingFrames) -> Option<u32> {
        let tables = &self.recording.tables;
        let mut packed = &tables.packed_callsite(below.callsite)[..below.frames];
        let frame = profile::FrameId(packed::last(&mut packed)?);
        below.frames = packed.len();
        let annotation = self.annotation(frame, &mut below.walk);
        Some(self.by_frame[self.place(frame, annotation)])
    }

    #[inline]
    pub(super) fn annotation(&self, frame: profile::FrameId, walk: &mut Walk) -> Annotation {
        match self.annotates {
            true => walk.step(self.classes.get(frame)),
            false => Annotation::None,
        }
    }

    /// Returns the position of a frame with an annotation in `by_frame`.
    #[inline]
    pub(super) fn place(&self, frame: profile::FrameId, annotation: Annotation) -> usize {
        match self.annotates {
            true => frame.0 as usize * ANNOTATIONS + annotation as usize,
            false => frame.0 as usize,
        }
    }

    /// Names a frame: adds the frames that it represents, as a run, and returns its number.
    #[cold]
    pub(super) fn run(&mut self, id: profile::FrameId, annotation: Annotation) -> u32 {
        let library = self.library(id);
        let tables = &self.recording.tables;
        let table = &mut self.table;
        let mapping = tables.frame(id).mapping.map(|id| tables.mapping(id));
        let path = mapping.map_or("", |mapping| tables.string(mapping.path));
        let class = self.classes.get(id);
        let start = self.run_frames.len();
        let frames = &mut self.run_frames;
        self.namer.lines(id, annotation, |line| {
            let name = line.demangled_name();
            let function = Function {
                name: table.text(&name),
                system_name: match line.system_name == name {
                    true => Default::default(),
                    false => table.text(line.system_name),
                },
                library,
                kind: Kind::new(class, path, &name),
            };
            let frame = Frame {
                function: table.function(function),
                file: table.text(line.file),
                line: line.line,
                inlined: line.inlined,
            };
            frames.push(table.frame(frame));
        });
        self.run_frames[start..].reverse();
        self.run_ends.push(self.run_frames.len());
        let run = self.run_ends.len() as u32;
        let place = self.place(id, annotation);
        self.by_frame[place] = run;
        run
    }

    fn library(&mut self, frame: profile::FrameId) -> LibraryId {
        let tables = &self.recording.tables;
        let table = &mut self.table;
        let Some(mapping) = tables.frame(frame).mapping else {
            return LibraryId::default();
        };
        let known = &mut self.libraries[mapping.0 as usize];
        *known.get_or_insert_with(|| {
            let mapping = tables.mapping(mapping);
            let path = table.text(tables.string(mapping.path));
            let build_id = match mapping.build_id.is_empty() {
                true => Default::default(),
                false => table.text(&mapping.build_id.to_string()),
            };
            table.library(Library { path, build_id })
        })
    }
}
