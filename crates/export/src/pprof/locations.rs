//! Shared part of all profiles of a recording: locations, functions, names, and each callsite's
//! encoded location IDs, built once and copied into every dump.
//!
//! Without annotations a location is a frame, its ID is the frame's + 1, and the tables already
//! contain a callsite's IDs.

use crate::wire::put_varint;
use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::profile::interned::Texts;
use heaptap_model::profile::{CallsiteId, FrameId, MappingId, Recording, Tables};
use heaptap_model::stacks::annotation::{Annotation, Classes, Walk};
use heaptap_model::stacks::naming::{FrameNamer, NameSource};

/// Name of a function or file in [`Locations::text`]; 0 is the empty name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct NameId(pub(super) u32);

/// pprof location: a frame with an annotation. Its ID is its position + 1.
#[derive(Debug, Clone)]
pub(super) struct Location {
    pub(super) mapping: Option<MappingId>,
    /// In [start, end) of its mapping; 0 without a mapping.
    pub(super) address: u64,
    /// Range in [`Locations::lines`], innermost first.
    pub(super) lines: std::ops::Range<u32>,
    /// Whether any of its functions has a name of its own.
    pub(super) named: bool,
    pub(super) symbolized: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct LocationLine {
    /// Position + 1 in [`Locations::functions`].
    pub(super) function: u32,
    pub(super) line: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Function {
    pub(super) name: NameId,
    pub(super) system_name: NameId,
    pub(super) file: NameId,
}

/// Shared part of all profiles of a recording.
#[derive(Debug)]
pub(super) struct Locations {
    pub(super) locations: Vec<Location>,
    pub(super) lines: Vec<LocationLine>,
    pub(super) functions: Vec<Function>,
    names: Texts,
    /// Location IDs of all callsites as varints; empty if they are the frames' IDs.
    encoded: Vec<u8>,
    ends: Vec<usize>,
}

impl Locations {
    /// Builds the shared part. The cost depends on the number of distinct callsites and frames.
    pub(super) fn build(recording: &Recording, annotations: bool) -> Locations {
        let classes = annotations.then(|| Classes::from_recording(recording));
        let mut builder = Builder {
            recording,
            namer: FrameNamer::new(recording),
            by_frame: vec![[0; KINDS]; recording.tables.frames().len()],
            functions: Index::default(),
            seed: Seed::default(),
            made: Locations {
                locations: Vec::new(),
                lines: Vec::new(),
                functions: Vec::new(),
                names: Texts::default(),
                encoded: Vec::new(),
                ends: Vec::new(),
            },
        };
        let frames = 0..recording.tables.frames().len() as u32;
        builder.namer.prepare(frames.map(FrameId));
        match classes.filter(Classes::annotates) {
            Some(classes) => builder.annotated(&classes),
            None => {
                for frame in 0..recording.tables.frames().len() as u32 {
                    builder.location(FrameId(frame), Annotation::None);
                }
            }
        }
        builder.made
    }

    /// Returns the location IDs of a callsite as varints, leaf first.
    #[inline]
    pub(super) fn encoded<'a>(&'a self, tables: &'a Tables, callsite: CallsiteId) -> &'a [u8] {
        if self.ends.is_empty() {
            return tables.packed_callsite(callsite);
        }
        let at = callsite.0 as usize;
        let start = if at == 0 { 0 } else { self.ends[at - 1] };
        &self.encoded[start..self.ends[at]]
    }

    pub(super) fn text(&self, name: NameId) -> &str {
        self.names.get(name.0)
    }

    /// Returns the number of names.
    pub(super) fn name_count(&self) -> usize {
        self.names.len()
    }
}

const KINDS: usize = 6;

struct Builder<'a> {
    recording: &'a Recording,
    namer: FrameNamer<'a>,
    /// Location IDs by frame and annotation; 0 if there is none yet.
    by_frame: Vec<[u32; KINDS]>,
    functions: Index,
    seed: Seed,
    made: Locations,
}

impl Builder<'_> {
    /// Creates one location for each combination of frame and annotation that occurs.
    fn annotated(&mut self, classes: &Classes) {
        let tables = &self.recording.tables;
        let mut frames = Vec::new();
        let mut annotations = Vec::new();
        for callsite in 0..tables.callsite_count() as u32 {
            frames.clear();
            frames.extend(tables.callsite(CallsiteId(callsite)));
            let mut walk = Walk::default();
            annotations.clear();
            let root_first = frames.iter().rev();
            annotations.extend(root_first.map(|frame| walk.step(classes.get(*frame))));
            for (&frame, &annotation) in frames.iter().zip(annotations.iter().rev()) {
                let known = self.by_frame[frame.0 as usize][annotation as usize];
                let id = match known {
                    0 => self.location(frame, annotation),
                    known => known,
                };
                put_varint(&mut self.made.encoded, u64::from(id));
            }
            self.made.ends.push(self.made.encoded.len());
        }
        self.made.encoded.shrink_to_fit();
    }

    #[cold]
    fn location(&mut self, id: FrameId, annotation: Annotation) -> u32 {
        let tables = &self.recording.tables;
        let frame = tables.frame(id);
        let start = self.made.lines.len() as u32;
        let (made, functions, seed) = (&mut self.made, &mut self.functions, self.seed);
        let source = self.namer.lines(id, annotation, |shown| {
            let function = Function {
                name: NameId(made.names.id(shown.name)),
                system_name: NameId(made.names.id(shown.system_name)),
                file: NameId(made.names.id(shown.file)),
            };
            let hash = seed.words(&[function.name.0, function.system_name.0, function.file.0]);
            let all = &mut made.functions;
            let next = all.len() as u32;
            let (id, there) =
                functions.find_or_insert(hash, next, |id| all[id as usize] == function);
            if !there {
                all.push(function);
            }
            made.lines.push(LocationLine {
                function: id + 1,
                line: shown.line,
            });
        });
        let address = frame.mapping.map_or(0, |mapping| {
            let m = tables.mapping(mapping);
            let address = frame
                .rel_pc
                .wrapping_sub(m.load_bias)
                .wrapping_sub(m.exact_offset.wrapping_sub(m.start_offset))
                .wrapping_add(m.start);
            if (m.start..m.end).contains(&address) {
                address
            } else {
                0
            }
        });
        self.made.locations.push(Location {
            mapping: frame.mapping,
            address,
            lines: start..self.made.lines.len() as u32,
            named: source != NameSource::Nowhere,
            symbolized: !self.recording.symbols.lines(id).is_empty(),
        });
        let location = self.made.locations.len() as u32;
        self.by_frame[id.0 as usize][annotation as usize] = location;
        location
    }
}
