//! Callsites as they are shown, each once. Owns their numbers.

use super::super::own::OwnFrames;
use super::super::shown::Shown;
use super::HeapSeries;
use heaptap_model::profile::packed::{self, PackedStacks};
use heaptap_model::stacks::{FrameId, NodeId};
use heaptap_model::touch::BATCH;

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
    pub(super) fn of(shown: &Shown<'_>, heaps: &[HeapSeries<'_>]) -> Callsites {
        let mut callsites = Callsites {
            stacks: PackedStacks::default(),
            own: Vec::new(),
            places: vec![NOWHERE; shown.table().callsite_count()],
        };
        let mut frames = Vec::new();
        let mut pushed = Vec::with_capacity(BATCH);
        let dumps = heaps.iter().flat_map(|heap| &heap.dumps);
        for node in dumps.flat_map(|(dump, _)| &dump.values.nodes) {
            frames.clear();
            if callsites.places[node.0 as usize] != NOWHERE || !shown.frames_of(*node, &mut frames)
            {
                continue;
            }
            callsites.stacks.push(frames.iter().map(|frame| frame.0));
            pushed.push(*node);
            if pushed.len() == BATCH {
                callsites.number(&mut pushed);
            }
        }
        callsites.number(&mut pushed);
        callsites.stacks.seal();
        let owners = OwnFrames::of(shown.table());
        callsites.own.reserve_exact(callsites.stacks.len());
        for id in 0..callsites.stacks.len() as u32 {
            let mut packed = callsites.stacks.get(id);
            frames.clear();
            frames.extend(std::iter::from_fn(|| {
                packed::first(&mut packed).map(FrameId)
            }));
            callsites.own.push(owners.of_stack(&frames));
        }
        callsites
    }

    /// Numbers the callsites that were pushed.
    fn number(&mut self, pushed: &mut Vec<NodeId>) {
        let mut pushed = pushed.drain(..);
        self.stacks.give_ids(|id| {
            if let Some(node) = pushed.next() {
                self.places[node.0 as usize] = id;
            }
        });
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

    /// Returns the frames of a callsite, leaf first.
    pub(super) fn stack(&self, CallsiteId(id): CallsiteId) -> impl Iterator<Item = FrameId> {
        let mut packed = self.stacks.get(id);
        std::iter::from_fn(move || packed::last(&mut packed).map(FrameId))
    }
}
