//! Projection to a list of stacks: each frame of a callsite is replaced by the packed frames that it
//! represents.

use super::{NODES, Projector};
use crate::profile::interned::span;
use crate::profile::packed::{self, Unnumbered};
use crate::profile::{self, CallsiteId};
use crate::stacks::annotation::{Annotation, Walk};
use crate::stacks::table::NodeId;
use heaptap_base::parallel::{self, Pool};

/// Functions of long runs for each of those runs, in addition to [`NODES`].
const FUNCTIONS_PER_LONG_RUN: usize = 8;
/// Callsites that are packed while others get their IDs.
const PART: usize = 1 << 14;
/// Position of the length in a packed run.
const LENGTH_SHIFT: u32 = 56;
/// Marks a run that is too long for a packed one.
const LONG_RUN: u64 = u64::MAX;

/// State of a projection to a list.
#[derive(Debug)]
pub(super) struct Packing {
    /// As [`Projector::by_frame`]: the packed frames of each run and, in the last byte, their length;
    /// [`LONG_RUN`] if they are longer; 0 if not yet known.
    runs: Vec<u64>,
    /// Number of further functions of long runs.
    room: usize,
}

impl Default for Packing {
    fn default() -> Self {
        Packing {
            runs: Vec::new(),
            room: NODES,
        }
    }
}

impl Projector<'_> {
    /// Adds callsites to the list: packs some, while those before get their IDs.
    pub(super) fn list(&mut self, new: &[CallsiteId]) {
        let tables = &self.recording.tables;
        let frames = new.iter().flat_map(|&c| tables.callsite(c));
        self.namer.prepare(frames);
        self.packing.runs.resize(self.by_frame.len(), 0);
        let mut list = self
            .made
            .table
            .list_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let mut nodes = std::mem::take(&mut self.nodes);
        let mut parts = new.chunks(PART);
        let empty = list.unnumbered();
        let buffers = Pool::default();
        let pack = || {
            let part = parts.next()?;
            let mut stacks: Unnumbered = buffers.take().unwrap_or_else(|| empty.clone());
            stacks.clear();
            Some((part, self.pack(part, stacks)))
        };
        parallel::pipe(pack, |(part, packed)| {
            let mut callsites = part.iter();
            list.number(&packed, |id| {
                if let Some(callsite) = callsites.next() {
                    nodes[callsite.0 as usize] = NodeId(id);
                }
            });
            buffers.put(packed);
            true
        });
        self.nodes = nodes;
        if let Some(empty) = self.made.table.list_mut() {
            *empty = list;
        }
    }

    /// Adds callsites to `stacks`.
    fn pack(&mut self, callsites: &[CallsiteId], mut stacks: Unnumbered) -> Unnumbered {
        let mut end = stacks.bytes.len();
        for &callsite in callsites {
            let mut packed = self.recording.tables.packed_callsite(callsite);
            let mut walk = Walk::default();
            let bytes = &mut stacks.bytes;
            while let Some(frame) = packed::last(&mut packed).map(profile::FrameId) {
                let annotation = self.annotation(frame, &mut walk);
                let place = self.place(frame, annotation);
                let run = match self.packing.runs[place] {
                    0 => self.pack_run(frame, annotation),
                    run => run,
                };
                if bytes.len() < end + size_of::<u64>() {
                    bytes.resize(2 * end + size_of::<u64>(), 0);
                }
                if run != LONG_RUN {
                    // The length follows the frames: it is overwritten, or behind the end.
                    bytes[end..end + size_of::<u64>()].copy_from_slice(&run.to_le_bytes());
                    end += (run >> LENGTH_SHIFT) as usize;
                    continue;
                }
                bytes.truncate(end);
                let frames = &self.run_frames[span(&self.run_ends, self.by_frame[place] - 1)];
                // Its own function is within the limit in any case.
                let kept = match frames.len() <= self.packing.room {
                    true => frames.len(),
                    false => 1,
                };
                self.packing.room = self.packing.room.saturating_add(FUNCTIONS_PER_LONG_RUN)
                    - kept.min(self.packing.room);
                self.unexpanded.without_inlined += u64::from(kept < frames.len());
                for frame in &frames[..kept] {
                    packed::pack(frame.0, |byte| bytes.push(byte));
                }
                end = bytes.len();
            }
            stacks.push_until(end);
        }
        stacks
    }

    /// Names a frame, and returns its run as in `packed_runs`.
    #[cold]
    fn pack_run(&mut self, frame: profile::FrameId, annotation: Annotation) -> u64 {
        let run = self.run(frame, annotation);
        let mut packed = Vec::new();
        for frame in &self.run_frames[span(&self.run_ends, run - 1)] {
            packed::pack(frame.0, |byte| packed.push(byte));
        }
        let mut bytes = [0; size_of::<u64>()];
        let run = match packed.len() {
            length if length < bytes.len() => {
                bytes[..length].copy_from_slice(&packed);
                u64::from_le_bytes(bytes) | (length as u64) << LENGTH_SHIFT
            }
            _ => LONG_RUN,
        };
        let place = self.place(frame, annotation);
        self.packing.runs[place] = run;
        run
    }
}
