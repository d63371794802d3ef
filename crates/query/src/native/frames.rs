//! `stack_profile_frame`, `stack_profile_mapping`, `stack_profile_symbol`: code locations, their
//! files, and their names in the source.

use std::collections::HashMap;
use std::sync::Arc;

use super::heaps::NativeHeaps;
use crate::once::{given, read_once};
use crate::table::{Catalog, Cell, Schema, columns, schema};
use heaptap_base::units::hex;
use heaptap_model::profile::{FrameId, Line, Lines, Recording, StringId};

static FRAMES: Schema = schema! {
    "stack_profile_frame": "Code locations.";
    id int row: "number of the row";
    name text indexed: "recorded name: mangled, a Java method, or empty";
    mapping int indexed: "file that contains it: `stack_profile_mapping.id`";
    rel_pc int indexed: "address in that file";
    symbol_set_id int indexed: "lines: `stack_profile_symbol.symbol_set_id`";
    deobfuscated_name text: "original name from an R8 or ProGuard mapping";
    type text: "always NULL: not reported by heapprofd";
};

static MAPPINGS: Schema = schema! {
    "stack_profile_mapping": "Files mapped into processes.";
    id int row: "number of the row";
    build_id text indexed: "GNU build ID in hexadecimal; empty if unknown";
    exact_offset int: "offset of the mapping in its file";
    start_offset int: "offset in the file where the ELF begins";
    start int: "first address";
    end int: "address after the last";
    load_bias int: "difference between ELF addresses and file offsets";
    name text indexed: "path of the file";
};

static SYMBOLS: Schema = schema! {
    "stack_profile_symbol":
        "Functions, files and lines of frames; several rows if functions were inlined.";
    id int row: "number of the row";
    symbol_set_id int sorted: "rows of one frame, innermost first";
    name text indexed: "function, demangled";
    source_file text: "source file; NULL if unknown";
    line_number int: "line number; NULL if unknown";
    inlined int: "always NULL; all lines of a set except the last are inlined";
};

/// Symbols as rows. Frames with the same symbols share a set.
struct SymbolSets {
    rows: Vec<(u32, Line)>,
    of_frame: HashMap<FrameId, u32>,
}

impl SymbolSets {
    fn from_recording(recording: &Recording) -> SymbolSets {
        let mut sets = SymbolSets {
            rows: Vec::new(),
            of_frame: HashMap::new(),
        };
        let mut known: HashMap<Lines, u32> = HashMap::new();
        for at in 0..recording.tables.frames().len() {
            let frame = FrameId(at as u32);
            let Some(lines) = recording.symbols.row(frame) else {
                continue;
            };
            let rows = &mut sets.rows;
            let set = *known.entry(lines).or_insert_with(|| {
                let set = rows.len() as u32;
                let lines = recording.symbols.lines(frame);
                rows.extend(lines.iter().map(|line| (set, *line)));
                set
            });
            sets.of_frame.insert(frame, set);
        }
        sets
    }
}

struct Frames {
    heaps: Arc<NativeHeaps>,
    sets: SymbolSets,
}

/// Returns the row of the mapping for frames without one: an additional last mapping without a
/// name, so that joins keep these frames.
fn unmapped(recording: &Recording) -> u32 {
    recording.tables.mappings().len() as u32
}

fn known(recording: &Recording, text: StringId) -> Option<&str> {
    (text != StringId::default()).then(|| recording.tables.string(text))
}

fn frame_cell(of: &Frames, row: usize, column: usize) -> Cell<'_> {
    let recording = &of.heaps.recording;
    let frame = &recording.tables.frames()[row];
    let id = FrameId(row as u32);
    match column {
        0 => row.into(),
        1 => recording.tables.string(frame.name).into(),
        2 => frame.mapping.map_or(unmapped(recording), |m| m.0).into(),
        3 => frame.rel_pc.into(),
        4 => of.sets.of_frame.get(&id).copied().into(),
        5 => recording
            .symbols
            .name(id)
            .map(|name| recording.tables.string(name))
            .into(),
        _ => Cell::Null,
    }
}

fn distinct_frames(of: &Frames, column: usize) -> Option<usize> {
    let tables = &of.heaps.recording.tables;
    match column {
        2 => Some(tables.mappings().len()),
        1 | 3 | 4 => Some(tables.frames().len()),
        _ => None,
    }
}

fn symbol_cell(of: &Frames, row: usize, column: usize) -> Cell<'_> {
    let recording = &of.heaps.recording;
    let (set, line) = &of.sets.rows[row];
    match column {
        0 => row.into(),
        1 => (*set).into(),
        2 => recording.tables.string(line.function).into(),
        3 => known(recording, line.file).into(),
        4 => (line.line > 0).then_some(line.line).into(),
        _ => Cell::Null,
    }
}

fn mapping_count(heaps: &NativeHeaps) -> usize {
    let has_unmapped = heaps.frames().iter().any(|frame| frame.mapping.is_none());
    unmapped(&heaps.recording) as usize + usize::from(has_unmapped)
}

fn mapping_cell(heaps: &NativeHeaps, row: usize, column: usize) -> Cell<'_> {
    let tables = &heaps.recording.tables;
    let Some(mapping) = tables.mappings().get(row) else {
        return match column {
            0 => row.into(),
            1 | 7 => Cell::text(""),
            _ => Cell::Int(0),
        };
    };
    match column {
        0 => row.into(),
        1 => hex(&mapping.build_id.0).into(),
        2 => mapping.exact_offset.into(),
        3 => mapping.start_offset.into(),
        4 => mapping.start.into(),
        5 => mapping.end.into(),
        6 => mapping.load_bias.into(),
        _ => tables.string(mapping.path).into(),
    }
}

pub(super) fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>) {
    let of = Arc::clone(heaps);
    let frames = read_once(move || {
        Ok(Frames {
            sets: SymbolSets::from_recording(&of.recording),
            heaps: Arc::clone(&of),
        })
    });
    let frame_count = |of: &Frames| of.heaps.frames().len();
    catalog.counted_rows(&FRAMES, &frames, frame_count, frame_cell, distinct_frames);
    catalog.counted_rows(
        &SYMBOLS,
        &frames,
        |of| of.sets.rows.len(),
        symbol_cell,
        |of, column| (column == 1).then_some(of.sets.of_frame.len()),
    );
    catalog.rows(&MAPPINGS, &given(heaps), mapping_count, mapping_cell);
}
