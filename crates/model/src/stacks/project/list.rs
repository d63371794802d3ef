//! Projection to a list of stacks: each frame of a callsite is replaced by the packed frames that it
//! represents.

use super::runs::Runs;
use crate::profile::packed::{self, Unnumbered};
use crate::profile::{self, CallsiteId};
use crate::stacks::annotation::{Annotation, Walk};
use crate::stacks::table::NodeId;
use heaptap_base::parallel::{self, Pool};

/// Functions of long runs for each of those runs, in addition to the initial room.
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
    /// As [`Runs::by_frame`]: the packed frames of each run and, in the last byte, their length;
    /// [`LONG_RUN`] if they are longer; 0 if not yet known.
    runs: Vec<u64>,
    /// Number of further functions of long runs.
    room: usize,
}

impl Packing {
    /// Creates the state before the first callsite, with room for functions of long runs.
    pub(super) fn new(room: usize) -> Packing {
        Packing {
            runs: Vec::new(),
            room,
        }
    }

    /// Adds callsites to the list of the table: packs some, while those before get their IDs, which are
    /// put into `nodes`. Returns the number of frames without the functions inlined into them.
    pub(super) fn list(
        &mut self,
        runs: &mut Runs<'_>,
        new: &[CallsiteId],
        nodes: &mut [NodeId],
    ) -> u64 {
        let tables = &runs.recording.tables;
        runs.namer
            .prepare(new.iter().flat_map(|&c| tables.callsite(c)));
        self.runs.resize(runs.by_frame.len(), 0);
        let mut list = runs
            .table
            .list_mut()
            .map(std::mem::take)
            .unwrap_or_default();
        let mut parts = new.chunks(PART);
        let empty = list.unnumbered();
        let buffers = Pool::default();
        let mut without_inlined = 0;
        let pack = || {
            let part = parts.next()?;
            let mut stacks: Unnumbered = buffers.take().unwrap_or_else(|| empty.clone());
            stacks.clear();
            without_inlined += self.pack(runs, part, &mut stacks);
            Some((part, stacks))
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
        if let Some(empty) = runs.table.list_mut() {
            *empty = list;
        }
        without_inlined
    }

    /// Adds callsites to `stacks`. Returns the number of frames without the functions inlined into
    /// them.
    fn pack(
        &mut self,
        runs: &mut Runs<'_>,
        callsites: &[CallsiteId],
        stacks: &mut Unnumbered,
    ) -> u64 {
        let mut without_inlined = 0;
        let mut end = stacks.bytes.len();
        for &callsite in callsites {
            let mut packed = runs.recording.tables.packed_callsite(callsite);
            let mut walk = Walk::default();
            let bytes = &mut stacks.bytes;
            while let Some(frame) = packed::last(&mut packed).map(profile::FrameId) {
                let annotation = runs.annotation(frame, &mut walk);
                let place = runs.place(frame, annotation);
                let run = match self.runs[place] {
                    0 => self.pack_run(runs, frame, annotation),
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
                let frames = runs.frames(runs.by_frame[place]);
                // Its own function is within the limit in any case.
                let kept = match frames.len() <= self.room {
                    true => frames.len(),
                    false => 1,
                };
                self.room = self.room.saturating_add(FUNCTIONS_PER_LONG_RUN) - kept.min(self.room);
                without_inlined += u64::from(kept < frames.len());
                for frame in &frames[..kept] {
                    packed::pack(frame.0, |byte| bytes.push(byte));
                }
                end = bytes.len();
            }
            stacks.push_until(end);
        }
        without_inlined
    }

    /// Names a frame, and returns its run as in `packed_runs`.
    #[cold]
    fn pack_run(
        &mut self,
        runs: &mut Runs<'_>,
        frame: profile::FrameId,
        annotation: Annotation,
    ) -> u64 {
        let run = runs.run(frame, annotation);
        let mut packed = Vec::new();
        for frame in runs.frames(run) {
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
        let place = runs.place(frame, annotation);
        self.runs[place] = run;
        run
    }
}
