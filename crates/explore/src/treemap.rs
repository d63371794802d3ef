//! The dominator tree, cut to what is large enough to draw: cells for the objects that retain most, and
//! in each cell what is too small for one of its own.

use crate::explorer::Explorer;
use crate::objects::ObjectRow;
use heaptap_model::heap_graph::ObjectIndex;
use serde::Serialize;
use std::collections::BinaryHeap;

/// Cut of the dominator tree. The first cell is the whole; each cell comes after the one that contains
/// it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Treemap {
    pub cells: Vec<Cell>,
}

/// Object with all that it dominates.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cell {
    /// The object; `None` for the whole heap.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub row: Option<ObjectRow>,
    /// Index of the containing cell; `None` for the first cell.
    pub above: Option<usize>,
    /// Bytes that the cell stands for, Java and native.
    pub bytes: u64,
    /// Bytes of the object itself.
    pub own_bytes: u64,
    /// Number of directly contained objects without a cell.
    pub rest: u64,
    /// Bytes of these.
    pub rest_bytes: u64,
}

/// Maximum number of cells.
pub const MAX_CELLS: usize = 5000;
/// A cell has at least this fraction of the first one: a smaller one has no pixel.
const LEAST_SHARE: u64 = 50_000;

impl Explorer {
    /// Returns the cut below an object, or of the whole heap, with at most `most` cells.
    pub fn treemap(&self, of: Option<ObjectIndex>, most: usize) -> Treemap {
        let most = most.clamp(1, MAX_CELLS);
        let (graph, dominators) = (self.graph(), self.dominators());
        let bytes_of = |object| dominators.retained(object).total_bytes();
        let own_bytes = |object| {
            graph
                .shallow_bytes(object)
                .saturating_add(graph.native_bytes(object))
        };
        let whole = match of {
            Some(object) => bytes_of(object),
            None => dominators.total().total_bytes(),
        };
        let least = (whole / LEAST_SHARE).max(1);
        let mut cells = vec![Cell {
            row: of.map(|object| self.row(object)),
            above: None,
            bytes: whole,
            own_bytes: of.map_or(0, own_bytes),
            rest: 0,
            rest_bytes: 0,
        }];
        // Cells whose contents have no cells yet, largest first; among equal ones, the first.
        let mut open = BinaryHeap::from([(whole, std::cmp::Reverse(0), of)]);
        while let Some((_, std::cmp::Reverse(at), object)) = open.pop() {
            let mut below: Vec<(u64, ObjectIndex)> = Vec::new();
            let (mut rest, mut rest_bytes) = (0, 0u64);
            for (child, retained) in dominators.retained_below(object) {
                match retained.total_bytes() {
                    bytes if bytes >= least => below.push((bytes, child)),
                    bytes => {
                        rest += 1;
                        rest_bytes = rest_bytes.saturating_add(bytes);
                    }
                }
            }
            below.sort_unstable_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(&b.1)));
            let room = most - cells.len();
            for &(bytes, _) in below.iter().skip(room) {
                rest += 1;
                rest_bytes = rest_bytes.saturating_add(bytes);
            }
            (cells[at].rest, cells[at].rest_bytes) = (rest, rest_bytes);
            for (bytes, child) in below.into_iter().take(room) {
                open.push((bytes, std::cmp::Reverse(cells.len()), Some(child)));
                cells.push(Cell {
                    row: Some(self.row(child)),
                    above: Some(at),
                    bytes,
                    own_bytes: own_bytes(child),
                    rest: 0,
                    rest_bytes: 0,
                });
            }
        }
        Treemap { cells }
    }
}
