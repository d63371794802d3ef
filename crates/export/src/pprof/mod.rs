//! pprof (`perftools.profiles.Profile`, proto3) of a native heap dump.
//!
//! Data shared by all dumps of a recording is built once ([`Pprof::new`]); [`Pprof::encode`] then
//! writes one dump, from any thread. A profile contains only the locations, functions, mappings
//! and strings it refers to. IDs of locations, functions and mappings are the same in all
//! profiles of a recording, so they can have gaps. The output is deterministic.
//!
//! | sample types | when |
//! |---|---|
//! | `objects/count`, `space/bytes`, `alloc_objects/count`, `alloc_space/bytes`, default `space` | by default |
//! | `alloc_objects/count`, `alloc_space/bytes`, default `alloc_space` | `com.android.art`: frees are unknown |
//! | Perfetto's own, in its order | [`SampleNames::Perfetto`] |

mod locations;
pub mod stacks;

use crate::wire::{put_bytes, put_number, put_varint, varint_len};
use heaptap_model::profile::{DumpKind, Figures, HeapDump, MALLOC_HEAP, MappingId, Recording};
use heaptap_model::stacks::allocators;
use locations::{Locations, NameId};
use std::collections::HashMap;
use std::sync::Arc;

/// Naming scheme of sample types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SampleNames {
    /// `space`, `objects`, `alloc_space`, `alloc_objects`, as in Go's heap profiles.
    #[default]
    Pprof,
    /// `Unreleased malloc size` and so on, as in Perfetto's converter.
    Perfetto,
}

/// Options for writing profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PprofOptions {
    /// Names of sample types.
    pub sample_names: SampleNames,
    /// Whether names include annotations such as ` [jit]`.
    pub annotations: bool,
}

impl Default for PprofOptions {
    fn default() -> Self {
        PprofOptions {
            sample_names: SampleNames::default(),
            annotations: true,
        }
    }
}

/// Writer for the dumps of one recording.
#[derive(Debug)]
pub struct Pprof {
    recording: Arc<Recording>,
    options: PprofOptions,
    shared: Locations,
}

/// Column of values: its type, unit, and source.
struct Column {
    name: String,
    unit: &'static str,
    value: fn(&Figures) -> i64,
}

/// Fields of `Profile`.
pub(super) mod field {
    pub(crate) const SAMPLE_TYPE: u32 = 1;
    pub(crate) const SAMPLE: u32 = 2;
    pub(crate) const MAPPING: u32 = 3;
    pub(crate) const LOCATION: u32 = 4;
    pub(crate) const FUNCTION: u32 = 5;
    pub(crate) const STRING: u32 = 6;
    pub(crate) const DROP_FRAMES: u32 = 7;
    pub(crate) const TIME_NANOS: u32 = 9;
    pub(crate) const DURATION_NANOS: u32 = 10;
    pub(crate) const PERIOD_TYPE: u32 = 11;
    pub(crate) const PERIOD: u32 = 12;
    pub(crate) const COMMENT: u32 = 13;
    pub(crate) const DEFAULT_SAMPLE_TYPE: u32 = 14;
}

impl Pprof {
    /// Prepares the data that all dumps share. Time and memory depend on the number of distinct
    /// callsites.
    pub fn new(recording: Arc<Recording>, options: PprofOptions) -> Pprof {
        let shared = Locations::build(&recording, options.annotations);
        Pprof {
            recording,
            options,
            shared,
        }
    }

    /// Encodes one dump as an uncompressed profile. `comments` are written unchanged.
    pub fn encode(&self, dump: &HeapDump, comments: &[String]) -> Vec<u8> {
        let mut strings = Strings::new(self.shared.name_count());
        let (columns, default) = columns(dump, self.options.sample_names);
        let mut out = Vec::with_capacity(dump.samples.len() * 48 + 4096);
        for column in &columns {
            let mut message = Vec::new();
            put_number(&mut message, 1, strings.own(&column.name));
            put_number(&mut message, 2, strings.own(column.unit));
            put_bytes(&mut out, field::SAMPLE_TYPE, &message);
        }
        let used = self.samples(dump, &columns, &mut out);
        self.mappings(&used, &mut strings, &mut out);
        self.locations(&used, &mut out);
        self.functions(&used, &mut strings, &mut out);
        if self.options.sample_names == SampleNames::Pprof {
            // Viewers then name the code that allocated the memory, not malloc.
            put_number(
                &mut out,
                field::DROP_FRAMES,
                strings.own(allocators::drop_frames()),
            );
        }
        if let Some(time) = dump.wall_time_ns {
            put_number(&mut out, field::TIME_NANOS, time);
        }
        let began = dump.start_ns.or(self.recording.started_ns);
        if let (Some(began), Some(time)) = (began, dump.time_ns)
            && time > began
        {
            put_number(&mut out, field::DURATION_NANOS, time - began);
        }
        let mut period = Vec::new();
        put_number(&mut period, 1, strings.own("space"));
        put_number(&mut period, 2, strings.own("bytes"));
        put_bytes(&mut out, field::PERIOD_TYPE, &period);
        put_number(&mut out, field::PERIOD, dump.sampling_interval_bytes);
        if !comments.is_empty() {
            let mut ids = Vec::new();
            for comment in comments {
                put_varint(&mut ids, strings.own(comment));
            }
            put_bytes(&mut out, field::COMMENT, &ids);
        }
        put_number(
            &mut out,
            field::DEFAULT_SAMPLE_TYPE,
            strings.own(&columns[default].name),
        );
        strings.write(&self.shared, &mut out);
        out
    }

    /// Writes samples. Returns the locations that they refer to.
    fn samples(&self, dump: &HeapDump, columns: &[Column], out: &mut Vec<u8>) -> Used {
        let tables = &self.recording.tables;
        let mut used = Used::new(self.shared.locations.len());
        let mut values = [0u64; 4];
        for (callsite, figures) in &dump.samples {
            let ids = self.shared.encoded(tables, *callsite);
            used.mark(ids);
            let mut length = 0;
            for (value, column) in values.iter_mut().zip(columns) {
                *value = (column.value)(figures) as u64;
                length += varint_len(*value);
            }
            put_varint(out, u64::from(field::SAMPLE) << 3 | 2);
            let ids_length = 1 + varint_len(ids.len() as u64) + ids.len();
            // A sample's values take at most 40 bytes, so their length takes one.
            put_varint(out, (ids_length + 2 + length) as u64);
            put_bytes(out, 1, ids);
            out.push(2 << 3 | 2);
            out.push(length as u8);
            for &value in &values[..columns.len()] {
                put_varint(out, value);
            }
        }
        used
    }

    fn mappings(&self, used: &Used, strings: &mut Strings, out: &mut Vec<u8>) {
        #[derive(Clone, Copy)]
        struct Known {
            used: bool,
            all_named: bool,
            all_files: bool,
            all_lines: bool,
            inlines: bool,
        }
        let tables = &self.recording.tables;
        let mut known = vec![
            Known {
                used: false,
                all_named: true,
                all_files: true,
                all_lines: true,
                inlines: false,
            };
            tables.mappings().len()
        ];
        for id in used.iter() {
            let location = &self.shared.locations[id];
            let Some(MappingId(mapping)) = location.mapping else {
                continue;
            };
            let known = &mut known[mapping as usize];
            let lines =
                &self.shared.lines[location.lines.start as usize..location.lines.end as usize];
            let has_file = lines.iter().all(|line| {
                self.shared.functions[line.function as usize - 1].file != NameId::default()
            });
            known.used = true;
            known.all_named &= location.named;
            known.all_files &= location.symbolized && has_file;
            known.all_lines &= location.symbolized && lines.iter().all(|line| line.line != 0);
            known.inlines |= lines.len() > 1;
        }
        for (at, (mapping, known)) in tables.mappings().iter().zip(known).enumerate() {
            if !known.used {
                continue;
            }
            let mut message = Vec::new();
            put_number(&mut message, 1, at as u64 + 1);
            put_number(&mut message, 2, mapping.start);
            put_number(&mut message, 3, mapping.end);
            put_number(&mut message, 4, mapping.exact_offset);
            put_number(&mut message, 5, strings.own(tables.string(mapping.path)));
            if !mapping.build_id.is_empty() {
                put_number(&mut message, 6, strings.own(&mapping.build_id.to_string()));
            }
            put_number(&mut message, 7, u64::from(known.all_named));
            put_number(&mut message, 8, u64::from(known.all_files));
            put_number(&mut message, 9, u64::from(known.all_lines));
            put_number(&mut message, 10, u64::from(known.inlines));
            put_bytes(out, field::MAPPING, &message);
        }
    }

    fn locations(&self, used: &Used, out: &mut Vec<u8>) {
        let mut message = Vec::new();
        let mut inner = Vec::new();
        for id in used.iter() {
            let location = &self.shared.locations[id];
            message.clear();
            put_number(&mut message, 1, id as u64 + 1);
            let mapping = location.mapping.map_or(0, |id| u64::from(id.0) + 1);
            put_number(&mut message, 2, mapping);
            put_number(&mut message, 3, location.address);
            let lines =
                &self.shared.lines[location.lines.start as usize..location.lines.end as usize];
            for line in lines {
                inner.clear();
                put_number(&mut inner, 1, u64::from(line.function));
                put_number(&mut inner, 2, u64::from(line.line));
                put_bytes(&mut message, 4, &inner);
            }
            put_bytes(out, field::LOCATION, &message);
        }
    }

    fn functions(&self, used: &Used, strings: &mut Strings, out: &mut Vec<u8>) {
        let mut functions = vec![false; self.shared.functions.len()];
        for id in used.iter() {
            let lines = &self.shared.locations[id].lines;
            for line in &self.shared.lines[lines.start as usize..lines.end as usize] {
                functions[line.function as usize - 1] = true;
            }
        }
        let mut message = Vec::new();
        for (at, function) in self.shared.functions.iter().enumerate() {
            if !functions[at] {
                continue;
            }
            message.clear();
            put_number(&mut message, 1, at as u64 + 1);
            put_number(&mut message, 2, strings.shared(function.name));
            put_number(&mut message, 3, strings.shared(function.system_name));
            put_number(&mut message, 4, strings.shared(function.file));
            put_bytes(out, field::FUNCTION, &message);
        }
    }
}

fn columns(dump: &HeapDump, names: SampleNames) -> (Vec<Column>, usize) {
    let column = |name: &str, unit, value| Column {
        name: name.to_owned(),
        unit,
        value,
    };
    let alloc_objects: fn(&Figures) -> i64 = |f| f.alloc_objects;
    let alloc_space: fn(&Figures) -> i64 = |f| f.alloc_space;
    let objects: fn(&Figures) -> i64 = |f| f.objects;
    let space: fn(&Figures) -> i64 = |f| f.space;
    match (names, dump.kind) {
        (SampleNames::Pprof, DumpKind::AllocationsOnly) => (
            vec![
                column("alloc_objects", "count", alloc_objects),
                column("alloc_space", "bytes", alloc_space),
            ],
            1,
        ),
        (SampleNames::Pprof, _) => (
            vec![
                column("objects", "count", objects),
                column("space", "bytes", space),
                column("alloc_objects", "count", alloc_objects),
                column("alloc_space", "bytes", alloc_space),
            ],
            1,
        ),
        (SampleNames::Perfetto, DumpKind::AllocationsOnly) => (
            vec![
                column("Total allocation count", "count", alloc_objects),
                column("Total allocation size", "bytes", alloc_space),
            ],
            1,
        ),
        (SampleNames::Perfetto, _) => {
            let heap = if dump.heap == MALLOC_HEAP {
                "malloc "
            } else {
                ""
            };
            (
                vec![
                    column(&format!("Total {heap}count"), "count", alloc_objects),
                    column(&format!("Total {heap}size"), "bytes", alloc_space),
                    column(&format!("Unreleased {heap}count"), "count", objects),
                    column(&format!("Unreleased {heap}size"), "bytes", space),
                ],
                3,
            )
        }
    }
}

/// Locations that a profile refers to, by position.
struct Used {
    bits: Vec<u64>,
}

impl Used {
    fn new(locations: usize) -> Used {
        Used {
            bits: vec![0; locations / 64 + 1],
        }
    }

    /// Marks the locations of varint IDs.
    #[inline]
    fn mark(&mut self, ids: &[u8]) {
        let mut id = 0usize;
        let mut shift = 0;
        for &byte in ids {
            id |= usize::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                let position = id - 1;
                self.bits[position / 64] |= 1 << (position % 64);
                id = 0;
                shift = 0;
            } else {
                shift += 7;
            }
        }
    }

    fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        self.bits.iter().enumerate().flat_map(|(word, &bits)| {
            let mut left = bits;
            std::iter::from_fn(move || {
                if left == 0 {
                    return None;
                }
                let bit = left.trailing_zeros() as usize;
                left &= left - 1;
                Some(word * 64 + bit)
            })
        })
    }
}

/// String table of one profile: own strings, and names shared by all profiles.
struct Strings {
    /// In table order, from 1.
    table: Vec<Entry>,
    own: HashMap<String, u32>,
    /// Table index of a shared name; 0 if it is not in the table (or is the empty name).
    by_name: Vec<u32>,
}

enum Entry {
    Own(String),
    Shared(NameId),
}

impl Strings {
    fn new(names: usize) -> Strings {
        Strings {
            table: Vec::new(),
            own: HashMap::new(),
            by_name: vec![0; names],
        }
    }

    fn own(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        if let Some(&known) = self.own.get(text) {
            return u64::from(known);
        }
        self.table.push(Entry::Own(text.to_owned()));
        let id = self.table.len() as u32;
        self.own.insert(text.to_owned(), id);
        u64::from(id)
    }

    fn shared(&mut self, name: NameId) -> u64 {
        if name == NameId::default() {
            return 0;
        }
        let known = &mut self.by_name[name.0 as usize];
        if *known == 0 {
            self.table.push(Entry::Shared(name));
            *known = self.table.len() as u32;
        }
        u64::from(*known)
    }

    fn write(&self, shared: &Locations, out: &mut Vec<u8>) {
        put_bytes(out, field::STRING, b"");
        for entry in &self.table {
            let text = match entry {
                Entry::Own(text) => text,
                Entry::Shared(name) => shared.text(*name),
            };
            put_bytes(out, field::STRING, text.as_bytes());
        }
    }
}
