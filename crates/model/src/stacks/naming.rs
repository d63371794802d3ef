//! Names of the frames of a recording, for all output: pprofs, tables, reports. A frame has one
//! line, or several if the compiler inlined functions.
//!
//! Order of preference: symbolized lines, the deobfuscated name, the recorded name demangled,
//! library and offset.

use std::borrow::Cow;
use std::collections::HashMap;

use super::allocators::is_allocator;
use super::annotation::{Annotation, FrameClass};
use super::table::Kind;
use crate::names::{demangle, module, nameless};
use crate::profile::index::FastHash;
use crate::profile::{FrameId, Line, Recording, StringId};
use heaptap_base::parallel;

/// A function of a frame, with its source location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShownLine<'a> {
    /// Name for display, annotated; never empty.
    pub name: &'a str,
    /// Recorded or linkage name; empty if neither is known.
    pub system_name: &'a str,
    /// Source file; empty if unknown.
    pub file: &'a str,
    /// Line number; 0 if unknown.
    pub line: u32,
    /// The compiler inlined the function into the next line.
    pub inlined: bool,
}

impl<'a> ShownLine<'a> {
    /// Returns the name for tables. A trace's own symbols stay in pprofs as Perfetto wrote them,
    /// which demangles Rust's names as C++.
    pub fn demangled_name(&self) -> Cow<'a, str> {
        demangle(self.name)
    }
}

/// Source of the names of a frame's lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameSource {
    /// A symbolizer.
    Symbols,
    /// The recorded name, or its original in the source.
    Recorded,
    /// No name: library and offset.
    Nowhere,
}

/// Names frames; each recorded name is demangled once.
#[derive(Debug)]
pub struct FrameNamer<'a> {
    recording: &'a Recording,
    /// Demangled names that differ from the recorded ones.
    demangled: HashMap<u64, Option<Box<str>>, FastHash>,
    scratch: String,
}

impl<'a> FrameNamer<'a> {
    pub fn new(recording: &'a Recording) -> FrameNamer<'a> {
        FrameNamer {
            recording,
            demangled: HashMap::default(),
            scratch: String::new(),
        }
    }

    /// Demangles the names of these frames in advance, with all processors if there are enough
    /// names.
    pub fn prepare(&mut self, frames: impl Iterator<Item = FrameId>) {
        let tables = &self.recording.tables;
        if tables.frames().len() < WORTH_THREADS {
            return;
        }
        let mut seen = vec![false; tables.frames().len()];
        let mut wanted = Vec::new();
        for id in frames {
            if std::mem::replace(&mut seen[id.0 as usize], true) {
                continue;
            }
            let name = tables.frame(id).name;
            let symbols = &self.recording.symbols;
            let is_free = symbols.row(id).is_none() && symbols.name(id).is_none();
            if is_free && !self.demangled.contains_key(&u64::from(name.0)) {
                wanted.push(name);
            }
        }
        wanted.sort_unstable();
        wanted.dedup();
        if wanted.len() < WORTH_THREADS {
            return;
        }
        let threads = parallel::threads().get().min(parallel::MAX_THREADS);
        let share = wanted.len().div_ceil(threads);
        let done: Vec<Vec<(StringId, Option<Box<str>>)>> = std::thread::scope(|scope| {
            let demangle_all = |names: &[StringId]| -> Vec<(StringId, Option<Box<str>>)> {
                let one = |name: &StringId| (*name, shown(tables.string(*name)));
                names.iter().map(one).collect()
            };
            let workers: Vec<_> = wanted
                .chunks(share)
                .map(|names| scope.spawn(move || demangle_all(names)))
                .collect();
            // Names that a worker did not process are demangled on request.
            let done = workers.into_iter().filter_map(|worker| worker.join().ok());
            done.collect()
        });
        for (name, shown) in done.into_iter().flatten() {
            self.demangled.insert(u64::from(name.0), shown);
        }
    }

    /// Passes the lines of a frame, innermost first.
    pub fn lines(
        &mut self,
        id: FrameId,
        annotation: Annotation,
        mut each: impl FnMut(ShownLine<'_>),
    ) -> NameSource {
        let tables = &self.recording.tables;
        let suffix = annotation.suffix();
        let symbols = self.recording.symbols.lines(id);
        let frame = tables.frame(id);
        let nameless = || {
            let mapping = frame.mapping.map(|id| tables.mapping(id));
            nameless(mapping.map_or("", |m| tables.string(m.path)), frame.rel_pc)
        };
        let is_named = |line: &Line| line.function != StringId::default();
        // A symbolizer without a result leaves empty names: the recorded name is better.
        if symbols.iter().any(is_named) {
            for (at, symbol) in symbols.iter().enumerate() {
                let nowhere;
                let name = match tables.string(symbol.function) {
                    "" => {
                        nowhere = nameless();
                        &nowhere
                    }
                    name => annotated(&mut self.scratch, name, suffix),
                };
                each(ShownLine {
                    name,
                    system_name: tables.string(symbol.linkage),
                    file: tables.string(symbol.file),
                    line: symbol.line,
                    inlined: at + 1 < symbols.len(),
                });
            }
            return NameSource::Symbols;
        }
        let file = tables.string(frame.file);
        let raw = tables.string(frame.name);
        if raw.is_empty() {
            each(ShownLine {
                name: &nameless(),
                system_name: "",
                file,
                line: frame.line,
                inlined: false,
            });
            return NameSource::Nowhere;
        }
        let name = match self.recording.symbols.name(id) {
            Some(name) => tables.string(name),
            None => {
                let known = self.demangled.entry(u64::from(frame.name.0));
                let known = known.or_insert_with(|| shown(raw));
                known.as_deref().unwrap_or(raw)
            }
        };
        each(ShownLine {
            name: annotated(&mut self.scratch, name, suffix),
            system_name: raw,
            file,
            line: frame.line,
            inlined: false,
        });
        NameSource::Recorded
    }

    /// Returns the recording of the frames.
    pub fn recording(&self) -> &'a Recording {
        self.recording
    }

    /// Returns whether every line of a frame, including inlined calls, allocates for its callers.
    pub fn is_allocators(&mut self, id: FrameId) -> bool {
        let tables = &self.recording.tables;
        let mapping = tables.frame(id).mapping.map(|id| tables.mapping(id));
        let path = mapping.map_or("", |mapping| tables.string(mapping.path));
        let mut all = true;
        self.lines(id, Annotation::None, |line| {
            let name = line.demangled_name();
            all &= Kind::of_function(path, &name, "").allocates_for_callers();
        });
        all
    }
}

/// Minimum number of names for threads: fewer are done before threads start.
const WORTH_THREADS: usize = 2000;

/// Returns the demangled name; `None` if it does not change.
fn shown(raw: &str) -> Option<Box<str>> {
    match demangle(raw) {
        Cow::Borrowed(_) => None,
        Cow::Owned(name) => Some(name.into_boxed_str()),
    }
}

fn annotated<'a>(scratch: &'a mut String, name: &'a str, suffix: &str) -> &'a str {
    if suffix.is_empty() {
        return name;
    }
    scratch.clear();
    scratch.push_str(name);
    scratch.push_str(suffix);
    scratch
}

/// Libraries between an app and its allocator: all of their frames allocate for callers.
const ALLOCATORS_LIBRARIES: [&str; 4] = [
    "libheapprofd_client.so",
    "libheapprofd_client_api.so",
    "libheapprofd_standalone_client.so",
    "libheapprofd_glibc_preload.so",
];

impl Kind {
    /// Returns the kind of a function by its library's path, its shown name without annotation, and
    /// the recorded name of its frame.
    pub fn of_function(path: &str, name: &str, recorded: &str) -> Kind {
        Kind::new(FrameClass::of_path(path, recorded), path, name)
    }

    /// Returns the kind of a function whose name can be annotated: annotations replace paths, which
    /// other tools record differently.
    pub fn of_shown(path: &str, name: &str, recorded: &str) -> Kind {
        match (
            Kind::of_function(path, name, recorded),
            Annotation::of_name(name),
        ) {
            (Kind::Plain | Kind::Allocator, Some(annotation)) => annotation.kind(),
            (kind, _) => kind,
        }
    }

    /// Returns whether it belongs to an allocator or the runtime: both allocate for their callers.
    pub fn allocates_for_callers(self) -> bool {
        matches!(self, Kind::Allocator | Kind::Runtime)
    }

    pub fn new(class: FrameClass, path: &str, name: &str) -> Kind {
        match class {
            FrameClass::Managed(_) => return Kind::Java,
            FrameClass::Runtime { .. } | FrameClass::Trampoline => return Kind::Runtime,
            FrameClass::Plain => {}
        }
        // `void* operator new<int>(int)` means operator new.
        let function = name.strip_prefix("void* ").unwrap_or(name);
        if is_allocator(function) {
            return Kind::Allocator;
        }
        let library = module(path);
        let is_libc = library == "libc.so" || library.starts_with("libc.so.");
        // A frame of libc without a name is one of its allocator's.
        let is_nameless = || name.starts_with(&*library);
        if ALLOCATORS_LIBRARIES.contains(&&*library) || is_libc && is_nameless() {
            return Kind::Allocator;
        }
        Kind::Plain
    }
}
