//! Conversion of pprof messages to named stacks. This module checks for invalid IDs, string indices
//! out of range and missing values. It keeps everything that is usable.
//!
//! Allocations never follow a claimed size. The work is limited by the size of the input, because a
//! location can have many lines and be referenced often, which multiplies.

use std::collections::btree_map::{BTreeMap, Entry};
use std::collections::{HashMap, HashSet};

use super::damage::PprofDamage;
use super::measures::Column;
use super::message::{Line, Location, Message};
use heaptap_base::units::Allowance;
use heaptap_model::names::{demangle, module, nameless, nowhere};
use heaptap_model::profile::index::FastHash;
use heaptap_model::stacks::{
    Dump, Facts, Frame, FrameId, Function, Kind, Library, LibraryId, NodeId, StackProfile,
    StackTable, TextId, ThreadValues, Values,
};
use perfetto_heap::wire::{WireError, each};

/// Maximum number of frames to walk: per byte of the input, plus a constant. Real profiles need one
/// to three per byte.
const STEPS_PER_BYTE: usize = 32;
const STEPS: usize = 1 << 20;
/// Maximum bytes of demangled names and of names for unnamed locations, limited likewise. Real
/// names grow two- or threefold and are only a part of the input.
const TEXT_PER_BYTE: usize = 3;
const TEXT: usize = 1 << 22;
/// Maximum number of locations of a sample.
const MAX_DEPTH: usize = 1 << 20;
/// Maximum bytes of a column name.
const MAX_COLUMN_LENGTH: usize = 256;
/// Memory in bytes of: a row of a sample without its values; one of its values, until all are
/// summed; a callsite; a thread.
const ROW: usize = 16;
const VALUE: usize = 20;
const NODE: usize = 32;
const THREAD_VALUES: usize = 256;

type Ids = HashMap<u64, u32, FastHash>;

/// Builds a profile with one dump. Ignores facts in the comments. If `is_tracked`, a Java runtime
/// tracked the allocations, and the innermost frames are classes.
pub(super) fn build(
    message: &Message<'_>,
    allowance: Allowance,
    size: usize,
    is_tracked: bool,
    damage: &mut PprofDamage,
) -> StackProfile {
    let mut columns: Vec<Column> = Vec::new();
    for sample_type in &message.sample_types {
        damage.unnamed_columns += u64::from(message.string(sample_type.name).is_none());
        let mut word = |index| {
            let text = message.string(index);
            damage.strings += u64::from(text.is_none());
            let text = text.unwrap_or_default();
            String::from_utf8_lossy(&text[..text.len().min(MAX_COLUMN_LENGTH)]).into_owned()
        };
        let (name, unit) = (word(sample_type.name), word(sample_type.unit));
        let column = Column::new(&name, &unit, &columns);
        columns.push(column);
    }
    let mut builder = Builder {
        message,
        damage,
        table: StackTable::default(),
        texts: vec![None; message.strings.len()],
        mappings: ids(message.mappings.iter().map(|mapping| mapping.id)),
        libraries: vec![None; message.mappings.len()],
        functions: ids(message.functions.iter().map(|function| function.id)),
        locations: ids(message.locations.iter().map(|location| location.id)),
        runs: vec![None; message.locations.len()],
        run_frames: Vec::new(),
        stack: Vec::new(),
        is_tracked,
        leaves: HashSet::new(),
        is_class: false,
        thread: None,
        allowance,
        steps_left: STEPS.saturating_add(size.saturating_mul(STEPS_PER_BYTE)),
        text_left: TEXT.saturating_add(size.saturating_mul(TEXT_PER_BYTE)),
    };
    let mut rows: Vec<(NodeId, u32)> = Vec::new();
    let mut values: Vec<i64> = Vec::new();
    let mut threads: BTreeMap<Thread, Vec<(NodeId, u32)>> = BTreeMap::new();
    for sample in &message.samples {
        let Ok(row) = u32::try_from(rows.len()) else {
            break;
        };
        if let Some(node) = builder.sample(sample, &columns, &mut values) {
            rows.push((node, row));
            if let Some(thread) = builder.thread {
                let known = threads.entry(thread);
                if matches!(known, Entry::Occupied(_)) || builder.allowance.take(THREAD_VALUES) {
                    known.or_default().push((node, row));
                } else {
                    builder.damage.dropped_entries += 1;
                }
            }
        }
    }
    let width = columns.len();
    let value = |column: usize, row: u32| values[row as usize * width + column];
    let threads = threads.into_iter().map(|(thread, rows)| ThreadValues {
        name: builder.name_of(thread),
        values: Values::sum(rows.into_iter(), width, value),
    });
    let threads = threads.collect();
    let values = Values::sum(rows.into_iter(), width, value);
    let dump = Dump {
        facts: Facts::default(),
        measures: columns.iter().map(|c| c.measure.clone()).collect(),
        default_measure: default_measure(message, &columns),
        values,
        threads,
    };
    StackProfile {
        table: builder.table,
        dumps: vec![dump],
    }
}

/// Returns the column that the profile names, otherwise the last one, as `go tool pprof` does.
fn default_measure(message: &Message<'_>, columns: &[Column]) -> usize {
    let named = message.string(message.default_sample_type);
    let named = named.filter(|name| !name.is_empty());
    let at = named.and_then(|name| {
        let mut names = columns.iter().map(|column| column.measure.name.as_bytes());
        names.position(|column| column == name)
    });
    at.unwrap_or(columns.len().saturating_sub(1))
}

fn ids(all: impl Iterator<Item = u64>) -> Ids {
    let mut ids = Ids::default();
    for (id, at) in all.zip(0u32..) {
        // ID 0 means none.
        if id != 0 {
            ids.entry(id).or_insert(at);
        }
    }
    ids
}

/// A thread label: a number, or the index of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Thread {
    Number(u64),
    Text(u64),
}

/// Key of labels that name threads.
const THREAD: &[u8] = b"thread";

struct Builder<'a> {
    message: &'a Message<'a>,
    damage: &'a mut PprofDamage,
    table: StackTable,
    /// Indexed by string index.
    texts: Vec<Option<TextId>>,
    mappings: Ids,
    libraries: Vec<Option<LibraryId>>,
    functions: Ids,
    locations: Ids,
    /// For each location, the range of its frames in `run_frames`, outermost first.
    runs: Vec<Option<(usize, usize)>>,
    run_frames: Vec<FrameId>,
    /// Reused for the locations of one sample.
    stack: Vec<u64>,
    is_tracked: bool,
    /// Locations that represent classes.
    leaves: HashSet<u64>,
    /// True if the frames being created belong to such a location.
    is_class: bool,
    /// Thread of the last sample.
    thread: Option<Thread>,
    allowance: Allowance,
    steps_left: usize,
    text_left: usize,
}

impl Builder<'_> {
    /// Reads a sample: returns its callsite and appends one value per column to `values`. If the
    /// values do not fit in the memory allowance, returns `None` and appends nothing.
    fn sample(
        &mut self,
        bytes: &[u8],
        columns: &[Column],
        values: &mut Vec<i64>,
    ) -> Option<NodeId> {
        let unread = self.damage.columns;
        self.stack.clear();
        let mut locations = std::mem::take(&mut self.stack);
        let first = values.len();
        let (mut broken, mut cut) = (false, false);
        let mut beyond = 0u64;
        let mut thread = None;
        let read = each(bytes, |number, value| match number {
            1 => {
                let read = value.numbers(|id| match locations.len() < MAX_DEPTH {
                    true => locations.push(id),
                    false => cut = true,
                });
                broken |= read.is_err();
            }
            2 => {
                let read = value.numbers(|number| {
                    let at = values.len() - first;
                    if let Some(column) = columns.get(at) {
                        values.push((number as i64).saturating_mul(column.scale));
                    } else {
                        beyond += 1;
                    }
                });
                broken |= read.is_err();
            }
            3 => match self.thread_of(value.bytes()) {
                Ok(found) => thread = thread.or(found),
                Err(_) => broken = true,
            },
            _ => {}
        });
        self.thread = thread;
        self.damage.cut_stacks += u64::from(cut);
        if self.is_tracked {
            self.leaves.extend(locations.first());
        }
        let missing = columns.len() - (values.len() - first);
        let row = ROW + VALUE * columns.len();
        broken |= read.is_err() || missing > 0 || beyond > unread;
        self.damage.samples += u64::from(broken);
        if !self.allowance.take(row) {
            values.truncate(first);
            self.damage.dropped_samples += 1;
            return None;
        }
        values.resize(first + columns.len(), 0);
        let mut node = NodeId::ROOT;
        for &id in locations.iter().rev() {
            let Some((start, end)) = self.run(id) else {
                self.damage.locations += 1;
                continue;
            };
            let Some(left) = self.steps_left.checked_sub(end - start) else {
                self.damage.cut_stacks += 1;
                break;
            };
            self.steps_left = left;
            let before = self.table.node_count();
            if !self.allowance.take((end - start) * NODE) {
                self.damage.cut_stacks += 1;
                break;
            }
            for at in start..end {
                node = self.table.child(node, self.run_frames[at]);
            }
            let made = self.table.node_count() - before;
            self.allowance.give_back((end - start - made) * NODE);
        }
        self.stack = locations;
        Some(node)
    }

    /// Returns the thread that a label names, if any.
    fn thread_of(&self, label: &[u8]) -> Result<Option<Thread>, WireError> {
        let (mut key, mut text, mut number) = (0, 0, 0);
        each(label, |field, value| match field {
            1 => key = value.number(),
            2 => text = value.number(),
            3 => number = value.number(),
            _ => {}
        })?;
        let is_thread = self.message.string(key) == Some(THREAD);
        Ok(is_thread.then_some(match text {
            0 => Thread::Number(number),
            text => Thread::Text(text),
        }))
    }

    fn name_of(&self, thread: Thread) -> String {
        match thread {
            Thread::Number(number) => number.to_string(),
            Thread::Text(text) => {
                let text = self.message.string(text).unwrap_or_default();
                String::from_utf8_lossy(text).into_owned()
            }
        }
    }

    /// Returns the range of a location's frames in `run_frames`.
    fn run(&mut self, id: u64) -> Option<(usize, usize)> {
        let at = *self.locations.get(&id)? as usize;
        if let Some(known) = self.runs[at] {
            return Some(known);
        }
        self.is_class = self.leaves.contains(&id);
        let message = self.message;
        let location = message.locations[at];
        let lines = &message.lines[location.first_line..location.end_line];
        let start = self.run_frames.len();
        let library = self.library(location.mapping);
        // The last line is the function itself; inlined functions precede it.
        for (line, inlined) in lines.iter().rev().zip((0..).map(|n| n > 0)) {
            let frame = self.line(&location, library, *line, inlined);
            self.run_frames.push(frame);
        }
        if lines.is_empty() {
            let name = self.place(&location, library);
            let name = self.table.text(&name);
            let frame = self.frame(
                name,
                TextId::default(),
                library,
                TextId::default(),
                0,
                false,
            );
            self.run_frames.push(frame);
        }
        let run = (start, self.run_frames.len());
        self.runs[at] = Some(run);
        Some(run)
    }

    fn line(
        &mut self,
        location: &Location,
        library: LibraryId,
        line: Line,
        inlined: bool,
    ) -> FrameId {
        let message = self.message;
        let function = match self.functions.get(&line.function) {
            Some(&at) => message.functions[at as usize],
            None => {
                self.damage.functions += 1;
                Default::default()
            }
        };
        let name = self.text(function.name);
        let system = self.text(function.system_name);
        let name = if name == TextId::default() {
            system
        } else {
            name
        };
        let (name, system) = match self.table.text_of(name) {
            "" => {
                let place = self.place(location, library);
                (self.table.text(&place), system)
            }
            raw => match demangle(raw) {
                std::borrow::Cow::Borrowed(_) => (name, system),
                std::borrow::Cow::Owned(shown) => match self.text_left.checked_sub(shown.len()) {
                    Some(left) => {
                        self.text_left = left;
                        (self.table.text(&shown), name)
                    }
                    None => (name, system),
                },
            },
        };
        let file = self.text(function.file);
        let number = u32::try_from(line.line).unwrap_or(0);
        self.frame(name, system, library, file, number, inlined)
    }

    fn frame(
        &mut self,
        name: TextId,
        system: TextId,
        library: LibraryId,
        file: TextId,
        line: u32,
        inlined: bool,
    ) -> FrameId {
        let table = &self.table;
        let path = table.text_of(table.libraries()[library.0 as usize].path);
        let kind = match (self.is_tracked, self.is_class) {
            (true, true) => Kind::Class,
            (true, false) => Kind::Java,
            (false, _) => Kind::of_shown(path, table.text_of(name), table.text_of(system)),
        };
        let function = self.table.function(Function {
            name,
            system_name: if system == name {
                TextId::default()
            } else {
                system
            },
            library,
            kind,
        });
        self.table.frame(Frame {
            function,
            file,
            line,
            inlined,
        })
    }

    /// Returns a substitute name for an unnamed location. Perfetto's converter omits addresses.
    fn place(&self, location: &Location, library: LibraryId) -> String {
        let path = self.table.libraries()[library.0 as usize].path;
        let path = self.table.text_of(path);
        if location.address == 0 {
            return nowhere(&module(path));
        }
        let mapping = self.mappings.get(&location.mapping);
        let mapping = mapping.map(|&at| self.message.mappings[at as usize]);
        let base = mapping.map_or(0, |m| m.start.wrapping_sub(m.offset));
        nameless(path, location.address.wrapping_sub(base))
    }

    fn library(&mut self, id: u64) -> LibraryId {
        // Other tools also accept a location without a mapping or with an invalid one.
        let Some(&at) = self.mappings.get(&id) else {
            return LibraryId::default();
        };
        let at = at as usize;
        if let Some(known) = self.libraries[at] {
            return known;
        }
        let mapping = self.message.mappings[at];
        let library = Library {
            path: self.text(mapping.file),
            build_id: self.text(mapping.build_id),
        };
        let library = self.table.library(library);
        self.libraries[at] = Some(library);
        library
    }

    fn text(&mut self, index: u64) -> TextId {
        let message = self.message;
        let Some(bytes) = message.string(index) else {
            self.damage.strings += u64::from(index != 0);
            return TextId::default();
        };
        let known = &mut self.texts[index as usize];
        *known.get_or_insert_with(|| self.table.text(&String::from_utf8_lossy(bytes)))
    }
}
