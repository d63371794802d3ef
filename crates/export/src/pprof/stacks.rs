//! pprof of named stacks from any source, and of the difference of two dumps as `go tool pprof
//! -diff_base` makes it: the first dump is negative and its samples have the label `pprof::base`,
//! so that percentages refer to it.
//!
//! A location is a frame, because addresses are unknown here.

use super::field;
use crate::chosen::unit_name;
use crate::wire::{put_bytes, put_number, put_varint};
use heaptap_model::stacks::{Measure, NodeId, StackTable, TextId, Values, allocators};

/// Values to write.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Values by callsite.
    pub values: &'a Values,
    /// Column of each measure of the profile.
    pub columns: &'a [usize],
    /// Whether this is the base of a comparison.
    pub is_base: bool,
}

/// Metadata of a profile.
#[derive(Debug, Clone, Copy)]
pub struct About<'a> {
    /// Columns.
    pub measures: &'a [Measure],
    /// Index of the column shown first.
    pub default_measure: usize,
    /// Sampling interval in bytes; 0 if unknown.
    pub sampling_interval_bytes: u64,
    /// Time since 1970 in ns.
    pub wall_time_ns: Option<u64>,
    pub comments: &'a [String],
}

/// Strings of a profile: those of the table by their IDs, and others.
struct Strings<'a> {
    table: &'a StackTable,
    of_table: Vec<u64>,
    out: Vec<u8>,
    count: u64,
}

impl Strings<'_> {
    fn own(&mut self, text: &str) -> u64 {
        if text.is_empty() {
            return 0;
        }
        put_bytes(&mut self.out, field::STRING, text.as_bytes());
        self.count += 1;
        self.count - 1
    }

    fn shared(&mut self, id: TextId) -> u64 {
        let at = id.0 as usize;
        if self.of_table[at] == 0 {
            let table = self.table;
            self.of_table[at] = self.own(table.text_of(id));
        }
        self.of_table[at]
    }
}

/// Encodes an uncompressed profile. Time and memory depend on the frames of the written callsites.
pub fn encode(table: &StackTable, parts: &[Part<'_>], about: &About<'_>) -> Vec<u8> {
    let mut strings = Strings {
        table,
        of_table: vec![0; table.text_count()],
        out: Vec::new(),
        count: 1,
    };
    put_bytes(&mut strings.out, field::STRING, b"");
    let mut out = Vec::new();
    let mut message = Vec::new();
    for measure in about.measures {
        message.clear();
        put_number(&mut message, 1, strings.own(&measure.name));
        put_number(&mut message, 2, strings.own(unit_name(&measure.unit)));
        put_bytes(&mut out, field::SAMPLE_TYPE, &message);
    }
    let mut label = Vec::new();
    if parts.iter().any(|part| part.is_base) {
        put_number(&mut label, 1, strings.own("pprof::base"));
        put_number(&mut label, 2, strings.own("true"));
    }
    let mut used = vec![false; table.frames().len()];
    let mut inner = Vec::new();
    for part in parts {
        for (at, node) in part.values.nodes.iter().enumerate() {
            message.clear();
            inner.clear();
            locations(table, *node, &mut used, &mut inner);
            put_bytes(&mut message, 1, &inner);
            inner.clear();
            for column in part.columns {
                let value = part.values.columns[*column][at];
                let value = if part.is_base {
                    value.saturating_neg()
                } else {
                    value
                };
                put_varint(&mut inner, value as u64);
            }
            put_bytes(&mut message, 2, &inner);
            if part.is_base {
                put_bytes(&mut message, 3, &label);
            }
            put_bytes(&mut out, field::SAMPLE, &message);
        }
    }
    let mut libraries = vec![false; table.libraries().len()];
    for (at, frame) in table.frames().iter().enumerate() {
        if !used[at] {
            continue;
        }
        let function = &table.functions()[frame.function.0 as usize];
        let library = function.library;
        libraries[library.0 as usize] = true;
        inner.clear();
        put_number(&mut inner, 1, at as u64 + 1);
        put_number(&mut inner, 2, u64::from(frame.line));
        message.clear();
        put_number(&mut message, 1, at as u64 + 1);
        put_number(&mut message, 2, u64::from(library.0));
        put_bytes(&mut message, 4, &inner);
        put_bytes(&mut out, field::LOCATION, &message);
        // In a pprof, files belong to functions, so the simplest way is a function for each frame.
        message.clear();
        put_number(&mut message, 1, at as u64 + 1);
        put_number(&mut message, 2, strings.shared(function.name));
        put_number(&mut message, 3, strings.shared(function.system_name));
        put_number(&mut message, 4, strings.shared(frame.file));
        put_bytes(&mut out, field::FUNCTION, &message);
    }
    // The unknown library has ID 0, which means no mapping.
    for (at, library) in table.libraries().iter().enumerate().skip(1) {
        if !libraries[at] {
            continue;
        }
        message.clear();
        put_number(&mut message, 1, at as u64);
        put_number(&mut message, 5, strings.shared(library.path));
        put_number(&mut message, 6, strings.shared(library.build_id));
        // The names are final, so tools must not symbolize them.
        for has in [7, 8, 9, 10] {
            put_number(&mut message, has, 1);
        }
        put_bytes(&mut out, field::MAPPING, &message);
    }
    let drop_frames = strings.own(allocators::drop_frames());
    put_number(&mut out, field::DROP_FRAMES, drop_frames);
    put_number(&mut out, field::TIME_NANOS, about.wall_time_ns.unwrap_or(0));
    if about.sampling_interval_bytes > 0 {
        message.clear();
        put_number(&mut message, 1, strings.own("space"));
        put_number(&mut message, 2, strings.own("bytes"));
        put_bytes(&mut out, field::PERIOD_TYPE, &message);
        put_number(&mut out, field::PERIOD, about.sampling_interval_bytes);
    }
    if !about.comments.is_empty() {
        inner.clear();
        for comment in about.comments {
            put_varint(&mut inner, strings.own(comment));
        }
        put_bytes(&mut out, field::COMMENT, &inner);
    }
    if let Some(measure) = about.measures.get(about.default_measure) {
        let name = strings.own(&measure.name);
        put_number(&mut out, field::DEFAULT_SAMPLE_TYPE, name);
    }
    out.extend(strings.out);
    out
}

/// Writes the location IDs of a stack as varints, leaf first.
fn locations(table: &StackTable, leaf: NodeId, used: &mut [bool], out: &mut Vec<u8>) {
    for node in table.stack(leaf) {
        if let Some(frame) = table.frame_of(node) {
            used[frame.0 as usize] = true;
            put_varint(out, u64::from(frame.0) + 1);
        }
    }
}
