//! Row keys of tables: grouping of frames by function, library, file, line, class or package, and
//! the names of groups.

use std::borrow::Cow;
use std::collections::HashMap;

use super::scope;
use heaptap_model::names::module;
use heaptap_model::stacks::{FrameId, Function, LibraryId, StackTable, TextId};
use serde::Deserialize;

/// Row key of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RowKey {
    /// Stack, as it is shown.
    #[default]
    Callsite,
    /// Function of a library.
    Function,
    Library,
    /// Source file; the library if unknown.
    File,
    /// Line of a source file in a function; the function if unknown.
    Line,
    /// Java class, or the scope of a C++ or Rust function; the library if there is none.
    Class,
    /// Package, or the scope around the class; the library if there is none.
    Package,
    /// Thread, if the input distinguishes threads. Frames do not contain it, so all of them are one
    /// group.
    Thread,
}

impl RowKey {
    /// Returns whether rows are groups of frames, whose sums need no tree of callsites.
    pub fn is_of_frames(self) -> bool {
        !matches!(self, RowKey::Callsite | RowKey::Thread)
    }

    /// Returns the name as typed: `callsite`, `function` and so on.
    pub fn name(self) -> &'static str {
        match self {
            RowKey::Callsite => "callsite",
            RowKey::Function => "function",
            RowKey::Library => "library",
            RowKey::File => "file",
            RowKey::Line => "line",
            RowKey::Class => "class",
            RowKey::Package => "package",
            RowKey::Thread => "thread",
        }
    }
}

/// Group of a row. Its texts are in the table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GroupId(pub u32);

/// Groups of a table's frames.
#[derive(Debug)]
pub struct Groups<'a> {
    table: &'a StackTable,
    by: RowKey,
    /// Group by frame.
    ids: Vec<GroupId>,
    /// First frame of each group.
    samples: Vec<FrameId>,
}

/// Group identity.
#[derive(PartialEq, Eq, Hash)]
enum Key<'a> {
    Frame(FrameId),
    Function(TextId, Cow<'a, str>),
    Library(Cow<'a, str>),
    File(TextId),
    Line(TextId, Cow<'a, str>, TextId, u32),
    Named(Cow<'a, str>),
}

impl<'a> Groups<'a> {
    /// Groups the frames of a table. Callsites are grouped by frame.
    pub fn new(table: &'a StackTable, by: RowKey) -> Groups<'a> {
        let mut known: HashMap<Key<'a>, GroupId> = HashMap::new();
        let mut samples = Vec::new();
        let ids = (0..table.frames().len()).map(|frame| {
            let frame = FrameId(frame as u32);
            *known.entry(key(table, by, frame)).or_insert_with(|| {
                samples.push(frame);
                GroupId(samples.len() as u32 - 1)
            })
        });
        Groups {
            table,
            by,
            ids: ids.collect(),
            samples,
        }
    }

    /// Returns the key of the groups.
    pub fn by(&self) -> RowKey {
        self.by
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.samples.len()
    }

    /// Returns whether there are no groups.
    pub fn is_empty(&self) -> bool {
        self.samples.is_empty()
    }

    pub fn group(&self, frame: FrameId) -> GroupId {
        self.ids[frame.0 as usize]
    }

    pub fn sample(&self, group: GroupId) -> FrameId {
        self.samples[group.0 as usize]
    }

    pub fn name(&self, group: GroupId) -> Cow<'a, str> {
        let frame = self.sample(group);
        let function = function_of(self.table, frame);
        let name = self.table.text_of(function.name);
        match self.by {
            RowKey::Callsite | RowKey::Function | RowKey::Line => Cow::Borrowed(name),
            RowKey::Library => match library_name(self.table, function.library) {
                name if name.is_empty() => Cow::Borrowed(UNKNOWN),
                name => name,
            },
            RowKey::File => match file_of(self.table, frame) {
                "" => bracketed(self.table, function.library),
                file => Cow::Borrowed(file),
            },
            RowKey::Class => scope::class_of(name, function.kind)
                .unwrap_or_else(|| bracketed(self.table, function.library)),
            RowKey::Package => scope::package_of(name, function.kind)
                .unwrap_or_else(|| bracketed(self.table, function.library)),
            RowKey::Thread => Cow::Borrowed(UNKNOWN),
        }
    }
}

fn key(table: &StackTable, by: RowKey, frame: FrameId) -> Key<'_> {
    let place = table.frames()[frame.0 as usize];
    let function = function_of(table, frame);
    let name = table.text_of(function.name);
    let library = library_name(table, function.library);
    match by {
        RowKey::Callsite => Key::Frame(frame),
        RowKey::Function => Key::Function(function.name, library),
        RowKey::Library => Key::Library(library),
        RowKey::File if place.file == TextId::default() => {
            Key::Named(bracketed(table, function.library))
        }
        RowKey::File => Key::File(place.file),
        RowKey::Line => Key::Line(function.name, library, place.file, place.line),
        RowKey::Class => Key::Named(
            scope::class_of(name, function.kind)
                .unwrap_or_else(|| bracketed(table, function.library)),
        ),
        RowKey::Package => Key::Named(
            scope::package_of(name, function.kind)
                .unwrap_or_else(|| bracketed(table, function.library)),
        ),
        RowKey::Thread => Key::Named(Cow::Borrowed(UNKNOWN)),
    }
}

pub fn function_of(table: &StackTable, frame: FrameId) -> &Function {
    let function = table.frames()[frame.0 as usize].function;
    &table.functions()[function.0 as usize]
}

/// Returns the source file of a frame; empty if unknown.
pub fn file_of(table: &StackTable, frame: FrameId) -> &str {
    table.text_of(table.frames()[frame.0 as usize].file)
}

/// Returns the file name of a library; for one in an APK, its own name. Empty if unknown.
pub fn library_name(table: &StackTable, library: LibraryId) -> Cow<'_, str> {
    module(table.text_of(table.libraries()[library.0 as usize].path))
}

/// Returns the substitute for a missing name: the library in brackets.
fn bracketed(table: &StackTable, library: LibraryId) -> Cow<'static, str> {
    let name = library_name(table, library);
    match name.as_ref() {
        "" => Cow::Borrowed(UNKNOWN),
        name if name.starts_with('[') => Cow::Owned(name.to_owned()),
        name => Cow::Owned(format!("[{name}]")),
    }
}

/// Substitute for an unknown library.
const UNKNOWN: &str = "[unknown]";
