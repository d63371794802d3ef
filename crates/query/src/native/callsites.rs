//! `stack_profile_callsite`: the tree of callsites.

use std::sync::Arc;

use super::heaps::NativeHeaps;
use crate::table::{Argument, Catalog, Cell, Fixed, Model, Schema, TableError, columns, schema};

static SCHEMA: Schema = schema! {
    "stack_profile_callsite":
        "Callstacks as a tree: a callsite is a frame and the callsite that called it.";
    id int row: "number of the row";
    depth int: "distance from the root; 0 for a root";
    parent_id int indexed: "callsite that called it; smaller than `id`";
    frame_id int indexed: "frame: `stack_profile_frame.id`";
};

fn cell(heaps: &NativeHeaps, row: usize, column: usize) -> Cell<'_> {
    let callsite = heaps.made_callsites().rows()[row];
    match column {
        0 => row.into(),
        1 => callsite.depth.into(),
        2 => callsite.parent.into(),
        _ => callsite.frame.0.into(),
    }
}

static ANCESTORS: Schema = schema! {
    "experimental_ancestor_stack_profile_callsite": "Callers of a callsite up to the root: \
        experimental_ancestor_stack_profile_callsite(callsite_id).";
    id int sorted: "callsite: `stack_profile_callsite.id`";
    depth int: "distance from the root; 0 for a root";
    parent_id int: "callsite that called it";
    frame_id int: "frame: `stack_profile_frame.id`";
    start_id int argument hidden: "callsite";
};

/// Returns the callers of a callsite, the root first.
fn ancestors(heaps: &NativeHeaps, start: &Argument) -> Result<Fixed, TableError> {
    let callsites = heaps.made_callsites().rows();
    let start = match start {
        Argument::Null => None,
        Argument::Int(id) => {
            let row = usize::try_from(*id).ok().and_then(|row| callsites.get(row));
            Some(row.ok_or_else(|| {
                TableError(format!("{}: no callsite has the ID {id}", ANCESTORS.name))
            })?)
        }
        _ => {
            let message = format!("{}: the ID of a callsite is missing", ANCESTORS.name);
            return Err(TableError(message));
        }
    };
    let parent = |row: &u32| callsites[*row as usize].parent;
    let above = std::iter::successors(start.and_then(|start| start.parent), parent);
    let mut rows: Vec<Vec<Cell<'static>>> = above
        .map(|row| {
            let of = callsites[row as usize];
            vec![
                row.into(),
                of.depth.into(),
                of.parent.into(),
                of.frame.0.into(),
                Cell::Null,
            ]
        })
        .collect();
    rows.reverse();
    Ok(Fixed(rows))
}

pub(super) fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>) {
    let (of, stop) = (Arc::clone(heaps), catalog.stop());
    catalog.function(&ANCESTORS, move |arguments| {
        of.callsites(&stop)?;
        Ok(Arc::new(ancestors(&of, &arguments[4])?))
    });
    let (of, stop) = (Arc::clone(heaps), catalog.stop());
    let made: Model<NativeHeaps> = Arc::new(move || {
        of.callsites(&stop)?;
        Ok(Arc::clone(&of))
    });
    catalog.counted_rows(
        &SCHEMA,
        &made,
        |heaps| heaps.made_callsites().rows().len(),
        cell,
        |heaps, column| (column == 3).then(|| heaps.frames().len()),
    );
}
