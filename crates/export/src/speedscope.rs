//! speedscope's JSON: one file with a profile for each column of each dump, over one list of
//! frames. <https://www.speedscope.app/file-format-schema.json>. Facts from its reader:
//! `startValue` and `endValue` are required, weights must not be negative, and frames are
//! identified by their index in `shared.frames` only.

use super::chosen::{Chosen, ChosenDump, Needed, measure_title};
use super::text::{named, put_json, put_list};
use heaptap_model::stacks::{FrameId, Measure, NodeId, StackTable, TextId, Unit};
use serde::Serialize;
use std::collections::HashMap;
use std::io::{self, Write};

#[derive(Serialize)]
struct Frame<'a> {
    name: &'a str,
    #[serde(skip_serializing_if = "str::is_empty")]
    file: &'a str,
    #[serde(skip_serializing_if = "is_unknown")]
    line: u32,
}

fn is_unknown(line: &u32) -> bool {
    *line == 0
}

/// Writes the selection and returns the number of omitted negative values, which only profiles of
/// differences have. The profile shown first is the default column of the last dump.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(out: &mut impl Write, chosen: &Chosen<'_>, name: &str) -> io::Result<u64> {
    let table = chosen.table;
    let frames = Frames::from_chosen(chosen);
    out.write_all(b"{\"$schema\":\"https://www.speedscope.app/file-format-schema.json\",")?;
    out.write_all(b"\"exporter\":")?;
    put_json(out, &concat!("heaptap ", env!("CARGO_PKG_VERSION")))?;
    out.write_all(b",\"name\":")?;
    put_json(out, &name)?;
    let mut active = 0;
    let mut profiles: Vec<(&ChosenDump<'_>, usize)> = Vec::new();
    for dump in &chosen.dumps {
        for &column in &dump.columns {
            profiles.push((dump, column));
        }
        let default = |at: &usize| *at == dump.dump.default_measure;
        let shown = dump.columns.iter().position(default).unwrap_or(0);
        active = profiles.len() - dump.columns.len() + shown;
    }
    write!(
        out,
        ",\"activeProfileIndex\":{active},\"shared\":{{\"frames\":["
    )?;
    put_list(out, &frames.list, |out, &id| {
        put_json(out, &frame(table, id))
    })?;
    out.write_all(b"]},\"profiles\":[")?;
    let mut negative = 0;
    put_list(out, profiles, |out, (dump, column)| {
        negative += put_profile(out, table, &frames, dump, column)?;
        Ok(())
    })?;
    out.write_all(b"]}\n")?;
    Ok(negative)
}

/// Distinct frames for speedscope: by function, file and line.
struct Frames {
    /// One frame for each number.
    list: Vec<FrameId>,
    numbers: Vec<u32>,
}

impl Frames {
    fn from_chosen(chosen: &Chosen<'_>) -> Frames {
        let table = chosen.table;
        let mut list = Vec::new();
        let mut numbers = vec![0; table.frames().len()];
        let mut known: HashMap<(TextId, TextId, u32), u32> = HashMap::new();
        for id in Needed::from_chosen(chosen).frames {
            let frame = &table.frames()[id.0 as usize];
            let function = &table.functions()[frame.function.0 as usize];
            let key = (function.name, place(table, id), frame.line);
            numbers[id.0 as usize] = *known.entry(key).or_insert_with(|| {
                list.push(id);
                list.len() as u32 - 1
            });
        }
        Frames { list, numbers }
    }
}

/// Returns the source file of a frame; its library if the file is unknown.
fn place(table: &StackTable, id: FrameId) -> TextId {
    let frame = &table.frames()[id.0 as usize];
    if frame.file != TextId::default() {
        return frame.file;
    }
    let function = &table.functions()[frame.function.0 as usize];
    table.libraries()[function.library.0 as usize].path
}

fn frame(table: &StackTable, id: FrameId) -> Frame<'_> {
    let frame = &table.frames()[id.0 as usize];
    let function = &table.functions()[frame.function.0 as usize];
    Frame {
        name: named(table.text_of(function.name)),
        file: table.text_of(place(table, id)),
        line: frame.line,
    }
}

/// Returns the unit name in speedscope; unknown units are shown as plain numbers.
fn unit(measure: &Measure) -> &'static str {
    match &measure.unit {
        Unit::Bytes => "bytes",
        Unit::Count => "none",
        Unit::Other(word) => match word.as_str() {
            "nanoseconds" => "nanoseconds",
            "microseconds" => "microseconds",
            "milliseconds" => "milliseconds",
            "seconds" => "seconds",
            _ => "none",
        },
    }
}

/// Writes a profile. Returns the number of omitted values.
fn put_profile(
    out: &mut impl Write,
    table: &StackTable,
    frames: &Frames,
    dump: &ChosenDump<'_>,
    column: usize,
) -> io::Result<u64> {
    let measure = &dump.dump.measures[column];
    let values = &dump.dump.values;
    let numbers = &values.columns[column];
    let rows = || numbers.iter().zip(&values.nodes).filter(|row| *row.0 > 0);
    let total = rows().fold(0i64, |sum, row| sum.saturating_add(*row.0));
    out.write_all(b"{\"type\":\"sampled\",\"name\":")?;
    let name = format!("{}: {}", dump.title(), measure_title(measure));
    put_json(out, &name)?;
    write!(
        out,
        ",\"unit\":\"{}\",\"startValue\":0,\"endValue\":{total},\"samples\":[",
        unit(measure)
    )?;
    let mut stack: Vec<u32> = Vec::new();
    put_list(out, rows(), |out, (_, &leaf)| {
        stack.clear();
        let number = |node: NodeId| Some(frames.numbers[table.frame_of(node)?.0 as usize]);
        stack.extend(table.stack(leaf).filter_map(number));
        stack.reverse();
        Ok(serde_json::to_writer(out, &stack)?)
    })?;
    out.write_all(b"],\"weights\":[")?;
    put_list(out, rows(), |out, (value, _)| write!(out, "{value}"))?;
    out.write_all(b"]}")?;
    Ok(numbers.iter().filter(|value| **value < 0).count() as u64)
}
