//! JSON with all data of a profile; `docs/reference/formats.md` describes each field. Columns instead of a
//! record for each row keep large profiles small and fast to read.

use super::chosen::{Chosen, ChosenDump, Needed, unit_name, view_name};
use super::text::{put_json, put_list};
use heaptap_model::profile::{DumpFlags, DumpKind};
use heaptap_model::stacks::{NodeId, sum};
use serde::Serialize;
use std::io::{self, Write};

/// Version of the schema. New fields do not change it; a changed meaning increments it.
pub const VERSION: u32 = 1;

#[derive(Serialize)]
struct Library<'a> {
    path: &'a str,
    build_id: &'a str,
}

#[derive(Serialize)]
struct Function<'a> {
    name: &'a str,
    system_name: &'a str,
    library: u32,
    kind: &'static str,
}

#[derive(Serialize)]
struct Frame<'a> {
    function: u32,
    file: &'a str,
    line: u32,
    inlined: bool,
}

#[derive(Serialize)]
struct Facts<'a> {
    number: u32,
    label: Option<&'a str>,
    pid: Option<u64>,
    process: &'a str,
    heap: &'a str,
    time_ns: Option<u64>,
    wall_time_ns: Option<u64>,
    start_ns: Option<u64>,
    sampling_interval_bytes: Option<u64>,
    orig_sampling_interval_bytes: Option<u64>,
    kind: DumpKind,
    flags: DumpFlags,
    unfinished: bool,
    measures: Vec<Measure<'a>>,
    default_measure: Option<usize>,
    totals: Vec<i64>,
}

#[derive(Serialize)]
struct Measure<'a> {
    name: &'a str,
    unit: &'a str,
    view: Option<&'static str>,
}

/// Writes the selection: one document on one line.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(out: &mut impl Write, chosen: &Chosen<'_>) -> io::Result<()> {
    let table = chosen.table;
    let needed = Needed::from_chosen(chosen);
    write!(
        out,
        "{{\"schema\":\"heaptap-profile\",\"version\":{VERSION}"
    )?;
    out.write_all(b",\"generator\":")?;
    put_json(out, &concat!("heaptap ", env!("CARGO_PKG_VERSION")))?;
    out.write_all(b",\"libraries\":[")?;
    put_list(out, &needed.libraries, |out, id| {
        let library = &table.libraries()[id.0 as usize];
        let library = Library {
            path: table.text_of(library.path),
            build_id: table.text_of(library.build_id),
        };
        put_json(out, &library)
    })?;
    out.write_all(b"],\"functions\":[")?;
    put_list(out, &needed.functions, |out, id| {
        let function = &table.functions()[id.0 as usize];
        let function = Function {
            name: table.text_of(function.name),
            system_name: table.text_of(function.system_name),
            library: needed.library(function.library),
            kind: function.kind.name(),
        };
        put_json(out, &function)
    })?;
    out.write_all(b"],\"frames\":[")?;
    put_list(out, &needed.frames, |out, id| {
        let frame = &table.frames()[id.0 as usize];
        let frame = Frame {
            function: needed.function(frame.function),
            file: table.text_of(frame.file),
            line: frame.line,
            inlined: frame.inlined,
        };
        put_json(out, &frame)
    })?;
    // The root does not have a parent or a frame.
    out.write_all(b"],\"callsites\":{\"parent\":[")?;
    put_list(out, &needed.nodes, |out, &node| match node {
        NodeId::ROOT => out.write_all(b"null"),
        node => write!(out, "{}", needed.node(table.parent(node))),
    })?;
    out.write_all(b"],\"frame\":[")?;
    put_list(out, &needed.nodes, |out, &node| {
        match table.frame_of(node) {
            None => out.write_all(b"null"),
            Some(frame) => write!(out, "{}", needed.frame(frame)),
        }
    })?;
    out.write_all(b"]},\"dumps\":[")?;
    put_list(out, &chosen.dumps, |out, dump| put_dump(out, dump, &needed))?;
    out.write_all(b"]}\n")
}

fn put_dump(out: &mut impl Write, dump: &ChosenDump<'_>, needed: &Needed) -> io::Result<()> {
    let all = dump.dump;
    let facts = &all.facts;
    let known = |number: u64| (number != 0).then_some(number);
    let sum = |column: &usize| sum(&all.values.columns[*column]);
    let facts = Facts {
        number: facts.number,
        label: facts.label.as_deref(),
        pid: known(facts.pid),
        process: &facts.process,
        heap: &facts.heap,
        time_ns: facts.time_ns,
        wall_time_ns: facts.wall_time_ns,
        start_ns: facts.start_ns,
        sampling_interval_bytes: known(facts.sampling_interval_bytes),
        orig_sampling_interval_bytes: known(facts.orig_sampling_interval_bytes),
        kind: facts.kind,
        flags: facts.flags,
        unfinished: facts.unfinished,
        measures: dump
            .measures()
            .map(|measure| Measure {
                name: &measure.name,
                unit: unit_name(&measure.unit),
                view: view_name(measure),
            })
            .collect(),
        default_measure: dump
            .columns
            .iter()
            .position(|at| *at == all.default_measure),
        totals: dump.columns.iter().map(sum).collect(),
    };
    let mut text = Vec::new();
    put_json(&mut text, &facts)?;
    // The values go into the same object.
    text.pop();
    out.write_all(&text)?;
    out.write_all(b",\"callsite\":[")?;
    put_list(out, dump.rows(), |out, row| {
        write!(out, "{}", needed.node(all.values.nodes[row]))
    })?;
    out.write_all(b"],\"values\":[")?;
    put_list(out, &dump.columns, |out, &column| {
        out.write_all(b"[")?;
        put_list(out, dump.rows(), |out, row| {
            write!(out, "{}", all.values.columns[column][row])
        })?;
        out.write_all(b"]")
    })?;
    out.write_all(b"]}")
}
