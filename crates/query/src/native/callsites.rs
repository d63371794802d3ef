//! `stack_profile_callsite`: the tree of callsites. The model stores each stack completely; here,
//! stacks share their frames from the root on, parents before children.

use std::sync::Arc;

use super::NativeHeaps;
use crate::stop::Stop;
use crate::table::{Argument, Catalog, Cell, Fixed, Model, Schema, TableError, columns, schema};
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

static SCHEMA: Schema = schema! {
    "stack_profile_callsite":
        "Callstacks as a tree: a callsite is a frame and the callsite that called it.";
    id int row: "number of the row";
    depth int: "distance from the root; 0 for a root";
    parent_id int indexed: "callsite that called it; smaller than `id`";
    frame_id int indexed: "frame: `stack_profile_frame.id`";
};

fn cell(heaps: &NativeHeaps, row: usize, column: usize) -> Cell<'_> {
    let callsite = heaps.made_callsites().rows[row];
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
            let CallsiteRow {
                parent,
                frame,
                depth,
            } = callsites[row as usize];
            vec![
                row.into(),
                depth.into(),
                parent.into(),
                frame.0.into(),
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
        |heaps| heaps.made_callsites().rows.len(),
        cell,
        |heaps, column| (column == 3).then(|| heaps.frames().len()),
    );
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
