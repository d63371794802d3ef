//! Callsites as they are shown, each once. Owns their numbers.

use super::super::own::OwnFrames;
use super::super::visible_tree::VisibleTree;
use super::series::HeapSeries;
use heaptap_base::parallel;
use heaptap_model::profile::packed::{self, PackedStacks, Unnumbered};
use heaptap_model::stacks::{FrameId, LOST_CALLSTACK, NodeId, StackTable};

/// Callsites that are packed while others get their numbers.
const PART: usize = 1 << 14;

/// Callsite by its frames that are shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallsiteId(pub(super) u32);

impl CallsiteId {
    pub(super) fn at(self) -> usize {
        self.0 as usize
    }
}

/// Callsites that pass a filter and have a row in any dump.
#[derive(Debug)]
pub(super) struct Callsites {
    stacks: PackedStacks,
    /// Frame of app code ([`OwnFrames::of_stack`]), by callsite.
    own: Vec<Option<FrameId>>,
    /// Callsite by the table's callsite, or [`NOWHERE`].
    places: Vec<u32>,
}

pub(super) const NOWHERE: u32 = u32::MAX;

impl Callsites {
    /// Packs some callsites, while those before get their numbers.
    pub(super) fn new(shown: &VisibleTree<'_>, heaps: &[HeapSeries<'_>]) -> Callsites {
        let mut stacks = PackedStacks::default();
        let mut places = vec![NOWHERE; shown.table().callsite_count()];
        let mut is_known = vec![false; places.len()];
        let dumps = heaps.iter().flat_map(|heap| &heap.dumps);
        let nodes = dumps.flat_map(|(dump, _)| &dump.values.nodes);
        let mut new = nodes.filter(|node| !std::mem::replace(&mut is_known[node.0 as usize], true));
        let parts = std::iter::from_fn(|| {
            let part: Vec<NodeId> = new.by_ref().take(PART).copied().collect();
            (!part.is_empty()).then_some(part)
        });
        let pack = |frames: &mut Vec<FrameId>, packed: &mut Unnumbered, mut nodes: Vec<NodeId>| {
            nodes.retain(|node| {
                frames.clear();
                let is_shown = shown.frames_of(*node, frames);
                if is_shown {
                    packed.push(frames.iter().map(|frame| frame.0));
                }
                is_shown
            });
            nodes
        };
        stacks.add_parts(parts, Vec::new, pack, |ids, nodes| {
            for (id, node) in ids.iter().zip(nodes) {
                places[node.0 as usize] = *id;
            }
        });
        stacks.seal();
        Callsites {
            own: own_frames(shown.table(), &stacks),
            stacks,
            places,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.own.len()
    }

    /// Returns the callsite that receives the values of a table's callsite, if it is not excluded.
    pub(super) fn place(&self, node: NodeId) -> Option<usize> {
        let place = self.places[node.0 as usize];
        (place != NOWHERE).then_some(place as usize)
    }

    pub(super) fn own(&self, callsite: usize) -> Option<FrameId> {
        self.own[callsite]
    }

    /// Returns the callsite that stands for all with lost callstacks.
    pub(super) fn lost(&self, table: &StackTable) -> Option<usize> {
        let is_lost = |id: FrameId| {
            let function = table.frames()[id.0 as usize].function;
            let name = table.functions()[function.0 as usize].name;
            table.text_of(name) == LOST_CALLSTACK
        };
        // Most traces lost none.
        let frames = 0..table.frames().len() as u32;
        let lost = frames.map(FrameId).find(|id| is_lost(*id))?;
        (0..self.len()).find(|at| self.stack(CallsiteId(*at as u32)).eq([lost]))
    }

    /// Returns the frames of a callsite, leaf first.
    pub(super) fn stack(&self, CallsiteId(id): CallsiteId) -> impl Iterator<Item = FrameId> {
        let mut packed = self.stacks.get(id);
        std::iter::from_fn(move || packed::last(&mut packed).map(FrameId))
    }
}

/// Returns the frame of app code of each stack.
fn own_frames(table: &StackTable, stacks: &PackedStacks) -> Vec<Option<FrameId>> {
    let owners = OwnFrames::from_table(table);
    let parts = parallel::ranges(stacks.len(), PART, |range| {
        let own = range.map(|id| {
            let mut packed = stacks.get(id as u32);
            owners.of_stack(std::iter::from_fn(|| {
                packed::first(&mut packed).map(FrameId)
            }))
        });
        own.collect::<Vec<_>>()
    });
    parts.concat()
}
