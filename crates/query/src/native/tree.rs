//! The tree of callsites. The model stores each stack completely; here, stacks share their frames
//! from the root on, parents before children.

use crate::stop::Stop;
use crate::table::TableError;
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
    pub fn new(tables: &Tables, count: usize, stop: &Stop) -> Result<Callsites, TableError> {
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
