//! Names for the frames of a recording from R8 mappings of all kinds: selects the R8 mappings for a
//! frame and their matching entries, and writes the result to the recording's side tables.
//!
//! The form is that of Perfetto's converter: a method with several candidates has all their names,
//! sorted, joined by ` | `. Unlike there, a frame without a line is never named after code that was
//! inlined into it, and a frame with an unknown method gets at least the name of its class.

use super::app_map::AppMap;
use super::choice::{ChoiceId, LineQuery, fall};
use super::frame_name::FrameName;
use super::lookup::{Lookup, NamedLine, Resolver, SourceFile};
use super::owner::SeenIn;
use super::source_file;
use heaptap_model::profile::{Line, Lines, Recording, StringId};
use std::collections::HashMap;

/// Maximum number of calls for one frame.
const MAX_COUNT: usize = 256;

/// Names all frames that an R8 mapping has an entry for. The first R8 mapping with the method wins,
/// otherwise the first with the class. Returns the number of frames that each R8 mapping named, in
/// the order of `maps`.
pub fn apply(recording: &mut Recording, seen: &SeenIn, maps: &[AppMap]) -> Vec<u64> {
    let lookups: Vec<Lookup> = maps
        .iter()
        .map(|map| Lookup::from_source(map.source))
        .collect();
    let mut resolver = Resolver::new(&lookups);
    let mut frames_named = vec![0; maps.len()];
    if maps.is_empty() {
        return frames_named;
    }
    let falls = fall(recording, seen, maps);
    let names = falls.names(recording);
    for (query, frames) in in_order_of_classes(names, recording, |query| query.name) {
        let raw = recording.tables.string(query.name);
        let maps = &falls.choices[query.choice.0];
        let Some(found) = resolver.name(maps, raw, query.native) else {
            continue;
        };
        frames_named[found.by] += frames.len() as u64;
        if found.name != raw {
            let name = recording.tables.intern_str(&found.name);
            for frame in frames {
                recording.symbols.set_name(frame, name);
            }
        }
    }
    let rows = falls.rows(recording);
    if rows.is_empty() {
        return frames_named;
    }
    let mut queries: HashMap<LineQuery, ()> = HashMap::new();
    for (choice, native, lines) in rows.keys() {
        queries.extend(lines.iter().map(|line| {
            let query = LineQuery {
                choice: *choice,
                native: *native,
                function: line.function,
                line: line.line,
            };
            (query, ())
        }));
    }
    let mut answers: HashMap<LineQuery, Vec<NamedLine>> = HashMap::new();
    for (query, ()) in in_order_of_classes(queries, recording, |query| query.function) {
        let raw = recording.tables.string(query.function);
        let maps = &falls.choices[query.choice.0];
        if let Some(chain) = resolver.chain(maps, raw, query.line, query.native) {
            answers.insert(query, chain);
        }
    }
    for ((choice, native, lines), frames) in rows {
        if let Some(row) = rewritten(&lines, choice, native, &answers, recording) {
            for frame in frames {
                recording.symbols.set_lines(frame, row);
            }
        }
    }
    frames_named
}

/// Returns the lines of a row with new names, if at least one line has one.
fn rewritten(
    lines: &[Line],
    choice: ChoiceId,
    native: bool,
    answers: &HashMap<LineQuery, Vec<NamedLine>>,
    recording: &mut Recording,
) -> Option<Lines> {
    let mut all = Vec::new();
    for line in lines {
        let query = LineQuery {
            choice,
            native,
            function: line.function,
            line: line.line,
        };
        match answers.get(&query) {
            Some(chain) => all.extend(chain.iter().map(|renamed| {
                let recorded = recording.tables.string(line.file);
                let file = match &renamed.file {
                    SourceFile::AsRecorded => line.file,
                    SourceFile::Known(file) => recording.tables.intern_str(file),
                    SourceFile::OfClass(class) => {
                        let file = source_file::infer(class, Some(recorded));
                        recording.tables.intern_str(&file)
                    }
                };
                let function = recording.tables.intern_str(&renamed.name);
                Line {
                    function,
                    linkage: function,
                    file,
                    line: renamed.line,
                }
            })),
            None => all.push(*line),
        }
        if all.len() >= MAX_COUNT {
            all.truncate(MAX_COUNT);
            break;
        }
    }
    (all != lines).then(|| recording.symbols.add_lines(&all))?
}

/// Returns queries with their values, sorted so that queries of one class are adjacent.
fn in_order_of_classes<Q, V>(
    queries: HashMap<Q, V>,
    recording: &Recording,
    name: impl Fn(&Q) -> StringId,
) -> Vec<(Q, V)>
where
    Q: Ord + Copy,
{
    let mut all: Vec<(Q, V)> = queries.into_iter().collect();
    let class = |query: &Q| {
        let name = recording.tables.string(name(query));
        FrameName::parse(name).map(|name| name.class)
    };
    all.sort_by(|(a, _), (b, _)| class(a).cmp(&class(b)).then(a.cmp(b)));
    all
}

#[cfg(test)]
mod tests;
