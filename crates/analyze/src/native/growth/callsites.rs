//! Callsites as they are shown, each once. Owns their numbers.

use super::super::own::OwnFrames;
use super::super::shown::Shown;
use super::HeapSeries;
use heaptap_model::profile::packed::{self, PackedStacks};
use heaptap_model::stacks::{FrameId, NodeId};

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
        let owners = OwnFrames::of(shown.table());
        let mut frames = Vec::new();
        let dumps = heaps.iter().flat_map(|heap| &heap.dumps);
        for node in dumps.flat_map(|(dump, _)| &dump.values.nodes) {
            let place = &mut callsites.places[node.0 as usize];
            frames.clear();
            if *place != NOWHERE || !shown.frames_of(*node, &mut frames) {
                continue;
            }
            *place = callsites.stacks.id(frames.iter().map(|frame| frame.0));
            if *place as usize == callsites.own.len() {
                callsites.own.push(owners.of_stack(&frames));
            }
        }
        callsites.stacks.seal();
        callsites
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
