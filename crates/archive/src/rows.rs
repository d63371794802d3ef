//! Rows of a recording and of its names, in the columns of the tables.

use crate::recording::{Dump, Names, Recording, recording_id};
use crate::table::Table;
use heaptap_tables::{Cell, Table as Writer, unless_empty, unless_zero};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

/// Returns whether a recording has rows of a table.
pub(crate) fn has(recording: &Recording, table: Table) -> bool {
    let mut dumps = recording.dumps.iter();
    match table {
        Table::Sample => dumps.any(|dump| !dump.samples.is_empty()),
        Table::Class => dumps.any(|dump| !dump.classes.is_empty()),
        Table::Leak => dumps.any(|dump| !dump.leaks.is_empty()),
        _ => dumps.len() > 0,
    }
}

/// Writes the row of `recording`, which commits the others.
pub(crate) fn write_recording(
    out: &mut Writer<File>,
    recording: &Recording,
    unit: i64,
) -> io::Result<()> {
    out.row(&[
        Cell::Int(unit),
        Cell::Int(0),
        recording.sha256.as_str().into(),
        Cell::Int(recording_id(&recording.sha256)),
        recording.sha256.as_str().into(),
        recording.started_ms.map_or(Cell::Null, Cell::Int),
        recording.phone.as_deref().into(),
        recording.model.as_deref().into(),
        recording.sdk.into(),
        recording.device_class.as_str().into(),
        recording.scenario.as_deref().into(),
        recording.run.into(),
        recording.verdict.as_deref().into(),
        Cell::Bool(recording.complete),
        recording.heaptap.as_str().into(),
    ])
}

/// Writes the rows of a table. Rows of several dumps with one key come one after the other.
pub(crate) fn write(
    out: &mut Writer<File>,
    table: Table,
    recording: &Recording,
    unit: i64,
) -> io::Result<()> {
    match table {
        Table::Sample => write_samples(out, recording, unit),
        Table::Class => write_classes(out, recording, unit),
        Table::Leak => write_leaks(out, recording, unit),
        _ => write_dumps(out, recording, unit),
    }
}

fn write_dumps(out: &mut Writer<File>, recording: &Recording, unit: i64) -> io::Result<()> {
    let rec = recording_id(&recording.sha256);
    for (at, dump) in numbered(recording) {
        let [alloc_bytes, alloc_n] = pair(dump.alloc);
        let [live_bytes, live_n] = pair(dump.live);
        out.row(&[
            Cell::Int(unit),
            Cell::Int(rec),
            at.into(),
            dump.number.into(),
            dump.label.as_deref().into(),
            dump.pid.into(),
            unless_empty(&dump.process),
            dump.heap.as_str().into(),
            dump.kind.as_str().into(),
            dump.time_ns.into(),
            unless_zero(dump.interval_bytes),
            Cell::Bool(dump.is_last),
            alloc_bytes,
            alloc_n,
            live_bytes,
            live_n,
        ])?;
    }
    Ok(())
}

fn write_samples(out: &mut Writer<File>, recording: &Recording, unit: i64) -> io::Result<()> {
    let rec = recording_id(&recording.sha256);
    let rows = sorted(recording, |dump| &dump.samples, |row| row.callsite);
    for ((is_last, callsite, dump), row) in rows {
        let [alloc_bytes, alloc_n] = pair(row.alloc);
        let [live_bytes, live_n] = pair(row.live);
        out.row(&[
            Cell::Int(unit),
            Cell::Bool(is_last),
            Cell::Int(callsite),
            Cell::Int(rec),
            dump.into(),
            alloc_bytes,
            alloc_n,
            live_bytes,
            live_n,
        ])?;
    }
    Ok(())
}

fn write_classes(out: &mut Writer<File>, recording: &Recording, unit: i64) -> io::Result<()> {
    let rec = recording_id(&recording.sha256);
    let rows = sorted(recording, |dump| &dump.classes, |row| row.class);
    for ((is_last, class, dump), row) in rows {
        out.row(&[
            Cell::Int(unit),
            Cell::Bool(is_last),
            Cell::Int(class),
            Cell::Int(rec),
            dump.into(),
            row.objects.into(),
            row.shallow_bytes.into(),
            row.native_bytes.into(),
            row.retained_bytes.into(),
        ])?;
    }
    Ok(())
}

fn write_leaks(out: &mut Writer<File>, recording: &Recording, unit: i64) -> io::Result<()> {
    let rec = recording_id(&recording.sha256);
    let rows = sorted(recording, |dump| &dump.leaks, |row| row.leak);
    for ((is_last, leak, dump), row) in rows {
        out.row(&[
            Cell::Int(unit),
            Cell::Bool(is_last),
            Cell::Int(leak),
            Cell::Int(rec),
            dump.into(),
            row.certainty.into(),
            Cell::Bool(row.known),
            row.objects.into(),
            row.retained_bytes.into(),
        ])?;
    }
    Ok(())
}

/// Returns the hashes of a table of names.
pub(crate) fn named(table: Table, names: &Names) -> Vec<i64> {
    match table {
        Table::Callsite => names.callsites.keys().copied().collect(),
        Table::ClassName => names.classes.keys().copied().collect(),
        _ => names.leaks.keys().copied().collect(),
    }
}

/// Writes the names of these hashes.
pub(crate) fn write_names(
    out: &mut Writer<File>,
    table: Table,
    names: &Names,
    hashes: &[i64],
) -> io::Result<()> {
    for hash in hashes {
        let id = Cell::Int(*hash);
        match table {
            Table::Callsite => {
                let name = &names.callsites[hash];
                let library = unless_empty(&name.library);
                out.row(&[
                    id,
                    name.leaf.as_str().into(),
                    library,
                    name.stack.as_str().into(),
                ])?;
            }
            Table::ClassName => out.row(&[id, names.classes[hash].as_str().into()])?,
            _ => {
                let name = &names.leaks[hash];
                out.row(&[id, name.class.as_str().into(), name.path.as_str().into()])?;
            }
        }
    }
    Ok(())
}

/// Returns the dumps with their numbers, from 0.
fn numbered(recording: &Recording) -> impl Iterator<Item = (u32, &Dump)> {
    (0u32..).zip(&recording.dumps)
}

/// Returns the rows of all dumps by last dump, hash, and dump.
fn sorted<'a, T>(
    recording: &'a Recording,
    rows: impl Fn(&'a Dump) -> &'a Vec<T>,
    hash: impl Fn(&T) -> i64,
) -> BTreeMap<(bool, i64, u32), &'a T> {
    let rows = &rows;
    numbered(recording)
        .flat_map(|(at, dump)| rows(dump).iter().map(move |row| (at, dump.is_last, row)))
        .map(|(at, is_last, row)| ((is_last, hash(row), at), row))
        .collect()
}

fn pair(values: Option<(i64, i64)>) -> [Cell<'static>; 2] {
    match values {
        Some((bytes, count)) => [Cell::Int(bytes), Cell::Int(count)],
        None => [Cell::Null, Cell::Null],
    }
}
