//! `stack_profile_callsite`: the tree of callsites. The model stores each stack completely; here,
//! stacks share their frames from the root on, parents before children.

use std::sync::Arc;

use super::NativeHeaps;
use crate::stop::Stop;
use crate::table::{Argument, Catalog, Cell, Column, Rows, Schema, TableError};
use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::profile::{CallsiteId, FrameId, Tables};

/// Callsite: a frame, its caller and its depth.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallsiteRow {
    /// Row of the caller; `None` for a root.
    pub parent: Option<u32>,
    pub frame: FrameId,
    /// 0 for a root.
    pub depth: u32,
}

/// Tree of callsites.
#[derive(Debug, Default)]
pub struct Callsites {
    rows: Vec<CallsiteRow>,
    leaves: Vec<Option<u32>>,
}

impl Callsites {
    /// Merges the first `count` stacks of the tables.
    ///
    /// # Errors
    /// Returns an error if the statement is to end.
    pub fn of(tables: &Tables, count: usize, stop: &Stop) -> Result<Callsites, TableError> {
        let seed = Seed::default();
        let mut index = Index::default();
        let mut rows: Vec<CallsiteRow> = Vec::new();
        let mut leaves = Vec::with_capacity(count);
        let mut leaf_first = Vec::new();
        // Neighbors share most of their frames, so compare with the path of the previous stack
        // first.
        let mut path: Vec<u32> = Vec::new();
        for id in 0..count as u32 {
            stop.check_at(id as usize)?;
            leaf_first.clear();
            leaf_first.extend(tables.callsite(CallsiteId(id)));
            let root_first = || leaf_first.iter().rev().copied();
            let shared = path
                .iter()
                .zip(root_first())
                .take_while(|(row, frame)| rows[**row as usize].frame == *frame)
                .count();
            path.truncate(shared);
            for frame in root_first().skip(shared) {
                let parent = path.last().copied();
                let row = CallsiteRow {
                    parent,
                    frame,
                    depth: path.len() as u32,
                };
                let above = u64::from(parent.map_or(u32::MAX, |parent| parent));
                let hash = seed.number(above << 32 | u64::from(frame.0));
                let next = rows.len() as u32;
                let known = &rows;
                let same = |at: u32| known[at as usize] == row;
                let (at, there) = index.find_or_insert(hash, next, same);
                if !there {
                    // Stacks can be long, so the rows are counted and not the stacks.
                    stop.check_at(rows.len())?;
                    rows.push(row);
                }
                path.push(at);
            }
            leaves.push(path.last().copied());
        }
        Ok(Callsites { rows, leaves })
    }

    /// Returns all rows, parents before children.
    pub fn rows(&self) -> &[CallsiteRow] {
        &self.rows
    }

    /// Returns the row of the innermost frame of a stack; `None` for a stack without frames.
    pub fn leaf(&self, callsite: CallsiteId) -> Option<u32> {
        self.leaves.get(callsite.0 as usize).copied().flatten()
    }
}

static SCHEMA: Schema = Schema {
    name: "stack_profile_callsite",
    module: None,
    about: "Callstacks as a tree: a callsite is a frame and the callsite that called it.",
    columns: &[
        Column::id(),
        Column::int("depth", "distance from the root; 0 for a root"),
        Column::int("parent_id", "callsite that called it; smaller than `id`").indexed(),
        Column::int("frame_id", "frame: `stack_profile_frame.id`").indexed(),
    ],
};

struct Table(Arc<NativeHeaps>);

impl Rows for Table {
    fn len(&self) -> usize {
        self.0.made_callsites().rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let callsite = &self.0.made_callsites().rows[row];
        match column {
            0 => row.into(),
            1 => callsite.depth.into(),
            2 => callsite.parent.into(),
            _ => callsite.frame.0.into(),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        (column == 3).then(|| self.0.frames().len())
    }
}

static ANCESTORS: Schema = Schema {
    name: "experimental_ancestor_stack_profile_callsite",
    module: None,
    about: "Callers of a callsite up to the root: \
            experimental_ancestor_stack_profile_callsite(callsite_id).",
    columns: &[
        Column::int("id", "callsite: `stack_profile_callsite.id`").sorted(),
        Column::int("depth", "distance from the root; 0 for a root"),
        Column::int("parent_id", "callsite that called it"),
        Column::int("frame_id", "frame: `stack_profile_frame.id`"),
        Column::int("start_id", "callsite").argument().hidden(),
    ],
};

/// Callers of a callsite, the root first.
struct Ancestors {
    table: Table,
    rows: Vec<u32>,
}

impl Rows for Ancestors {
    fn len(&self) -> usize {
        self.rows.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        match column {
            4 => Cell::Null,
            column => self.table.cell(self.rows[row] as usize, column),
        }
    }
}

fn ancestors(heaps: &Arc<NativeHeaps>, start: &Argument) -> Result<Ancestors, TableError> {
    let table = Table(Arc::clone(heaps));
    let callsites = heaps.made_callsites().rows();
    let mut rows = Vec::new();
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
    let mut above = start.and_then(|start| start.parent);
    while let Some(row) = above {
        rows.push(row);
        above = callsites[row as usize].parent;
    }
    rows.reverse();
    Ok(Ancestors { table, rows })
}

pub(super) fn add(catalog: &mut Catalog, heaps: &Arc<NativeHeaps>) {
    let (of, stop) = (Arc::clone(heaps), catalog.stop());
    catalog.function(&ANCESTORS, move |arguments| {
        of.callsites(&stop)?;
        Ok(Arc::new(ancestors(&of, &arguments[4])?))
    });
    let heaps = Arc::clone(heaps);
    let stop = catalog.stop();
    catalog.table(&SCHEMA, move || {
        heaps.callsites(&stop)?;
        Ok(Arc::new(Table(Arc::clone(&heaps))))
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn callsites_are_not_kept_if_the_statement_is_to_end() {
        let mut recording = heaptap_model::profile::Recording::default();
        recording.tables.intern_callsite(&[]);
        let heaps = NativeHeaps {
            recording: Arc::new(recording),
            callsite_count: 1,
            ..NativeHeaps::default()
        };
        let stop = Stop::default();
        stop.interrupt();
        assert!(heaps.callsites(&stop).is_err());
        stop.forget_interrupts();
        assert!(heaps.callsites(&stop).unwrap().rows().is_empty());
    }
}
