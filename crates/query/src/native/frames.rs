//! `stack_profile_frame`, `stack_profile_mapping`, `stack_profile_symbol`: code locations, their
//! files, and their names in the source.

use std::collections::HashMap;
use std::sync::Arc;

use super::NativeHeaps;
use crate::table::{Catalog, Cell, Column, Rows, Schema};
use heaptap_model::profile::{FrameId, Line, Lines, Recording, StringId};
use heaptap_model::units::hex;

static FRAMES: Schema = Schema {
    name: "stack_profile_frame",
    module: None,
    about: "Code locations.",
    columns: &[
        Column::id(),
        Column::text("name", "recorded name: mangled, a Java method, or empty").indexed(),
        Column::int(
            "mapping",
            "file that contains it: `stack_profile_mapping.id`",
        )
        .indexed(),
        Column::int("rel_pc", "address in that file").indexed(),
        Column::int(
            "symbol_set_id",
            "lines: `stack_profile_symbol.symbol_set_id`",
        )
        .indexed(),
        Column::text(
            "deobfuscated_name",
            "original name from an R8 or ProGuard mapping",
        ),
        Column::text("type", "always NULL: not reported by heapprofd"),
    ],
};

static MAPPINGS: Schema = Schema {
    name: "stack_profile_mapping",
    module: None,
    about: "Files mapped into processes.",
    columns: &[
        Column::id(),
        Column::text("build_id", "GNU build ID in hexadecimal; empty if unknown").indexed(),
        Column::int("exact_offset", "offset of the mapping in its file"),
        Column::int("start_offset", "offset in the file where the ELF begins"),
        Column::int("start", "first address"),
        Column::int("end", "address after the last"),
        Column::int(
            "load_bias",
            "difference between ELF addresses and file offsets",
        ),
        Column::text("name", "path of the file").indexed(),
    ],
};

static SYMBOLS: Schema = Schema {
    name: "stack_profile_symbol",
    module: None,
    about: "Functions, files and lines of frames; several rows if functions were inlined.",
    columns: &[
        Column::id(),
        Column::int("symbol_set_id", "rows of one frame, innermost first").sorted(),
        Column::text("name", "function, demangled").indexed(),
        Column::text("source_file", "source file; NULL if unknown"),
        Column::int("line_number", "line number; NULL if unknown"),
        Column::int(
            "inlined",
            "always NULL; all lines of a set except the last are inlined",
        ),
    ],
};

/// Symbols as rows. Frames with the same symbols share a set.
struct SymbolSets {
    rows: Vec<(u32, Line)>,
    of_frame: HashMap<FrameId, u32>,
}

impl SymbolSets {
    fn of(recording: &Recording) -> SymbolSets {
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

struct Symbols(Arc<Frames>);

struct Mappings {
    heaps: Arc<NativeHeaps>,
    has_unmapped: bool,
}

/// Returns the row of the mapping for frames without one: an additional last mapping without a
/// name, so that joins keep these frames.
fn unmapped(recording: &Recording) -> u32 {
    recording.tables.mappings().len() as u32
}

fn known(recording: &Recording, text: StringId) -> Option<&str> {
    (text != StringId::default()).then(|| recording.tables.string(text))
}

impl Rows for Frames {
    fn len(&self) -> usize {
        self.heaps.frames().len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let recording = &self.heaps.recording;
        let frame = &recording.tables.frames()[row];
        let id = FrameId(row as u32);
        match column {
            0 => row.into(),
            1 => recording.tables.string(frame.name).into(),
            2 => frame.mapping.map_or(unmapped(recording), |m| m.0).into(),
            3 => Cell::bits(frame.rel_pc),
            4 => self.sets.of_frame.get(&id).copied().into(),
            5 => recording
                .symbols
                .name(id)
                .map(|name| recording.tables.string(name))
                .into(),
            _ => Cell::Null,
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        let tables = &self.heaps.recording.tables;
        match column {
            2 => Some(tables.mappings().len()),
            1 | 3 | 4 => Some(tables.frames().len()),
            _ => None,
        }
    }
}

impl Rows for Symbols {
    fn len(&self) -> usize {
        self.0.sets.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let recording = &self.0.heaps.recording;
        let (set, line) = &self.0.sets.rows[row];
        match column {
            0 => row.into(),
            1 => (*set).into(),
            2 => recording.tables.string(line.function).into(),
            3 => known(recording, line.file).into(),
            4 => (line.line > 0).then_some(line.line).into(),
            _ => Cell::Null,
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        (column == 1).then(|| self.0.sets.of_frame.len())
    }
}

impl Rows for Mappings {
    fn len(&self) -> usize {
        unmapped(&self.heaps.recording) as usize + usize::from(self.has_unmapped)
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let tables = &self.heaps.recording.tables;
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
            2 => Cell::bits(mapping.exact_offset),
            3 => Cell::bits(mapping.start_offset),
            4 => Cell::bits(mapping.start),
            5 => Cell::bits(mapping.end),
            6 => Cell::bits(mapping.load_bias),
            _ => tables.string(mapping.path).into(),
        }
    }
}

pub(super) fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>) {
    let frames = std::sync::LazyLock::new({
        let heaps = Arc::clone(heaps);
        move || {
            Arc::new(Frames {
                sets: SymbolSets::of(&heaps.recording),
                heaps: Arc::clone(&heaps),
            })
        }
    });
    let frames = Arc::new(frames);
    let of_symbols = Arc::clone(&frames);
    catalog.table(&FRAMES, move || Ok(Arc::clone(&**frames) as Arc<dyn Rows>));
    catalog.table(&SYMBOLS, move || {
        Ok(Arc::new(Symbols(Arc::clone(&of_symbols))))
    });
    let heaps = Arc::clone(heaps);
    catalog.table(&MAPPINGS, move || {
        let frames = heaps.frames();
        Ok(Arc::new(Mappings {
            has_unmapped: frames.iter().any(|frame| frame.mapping.is_none()),
            heaps: Arc::clone(&heaps),
        }))
    });
}
