//! The largest callsites of the tree of stacks. Only their callees are visited, so the rest of the tree
//! is never made.

use super::weights::Weights;
use heaptap_base::parallel;
use heaptap_model::profile::packed::{PackedStacks, Position};
use heaptap_model::stacks::calls::Call;
use heaptap_model::stacks::partition::StackPartition;
use std::cmp::Ordering;
use std::collections::BinaryHeap;
use std::ops::Range;
use std::sync::atomic::{self, AtomicU32};

/// Callsites in descending order of weight; among equal ones, callers come before callees, and earlier
/// stacks before later ones. So the first ones, of any number, have all their callers.
pub(super) struct LargestCallsites<'a> {
    stacks: &'a PackedStacks,
    /// The first one is the root.
    calls: Vec<Call>,
    /// Number of frames, by callsite.
    depths: Vec<u32>,
    /// Nearest of all the callsites, by stack. That of a stack of an open callsite is the caller of that one,
    /// and is set only when it is needed, by several threads.
    nearest: Vec<AtomicU32>,
    parting: StackPartition<Cursor>,
    open: OpenCallsites,
    /// Weight and first stack of each callee of the last visited one.
    callees: Vec<(f64, u32)>,
}

/// Position on a stack with values.
#[derive(Clone, Copy)]
struct Cursor {
    position: Position,
    weight: f32,
}

impl Cursor {
    #[inline]
    fn set_nearest(&self, nearest: &[AtomicU32], callsite: u32) {
        nearest[self.position.stack() as usize].store(callsite, atomic::Ordering::Relaxed);
    }
}

/// Callsite that is not added yet.
struct Open {
    weight: f64,
    /// Places of its stacks among the cursors.
    range: Range<u32>,
    /// First stack. Open callsites have no stack in common.
    first: u32,
    call: Call,
}

impl Ord for Open {
    /// The greatest one comes next.
    fn cmp(&self, other: &Self) -> Ordering {
        let by_weight = self.weight.total_cmp(&other.weight);
        by_weight.then_with(|| other.first.cmp(&self.first))
    }
}

impl PartialOrd for Open {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Open {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Open {}

/// Open callsites. Those of about the same weight are sorted only when it is their turn, which most
/// never have.
struct OpenCallsites {
    /// Those of the greatest level.
    first: BinaryHeap<Open>,
    /// By level.
    rest: Vec<Vec<Open>>,
    level: usize,
}

/// Number of open callsites of a part.
const PART: usize = 1 << 13;
/// Levels are the exponent of a weight and the first bits of its mantissa.
const LEVEL_SHIFT: u32 = f32::MANTISSA_DIGITS - 5;

impl Default for OpenCallsites {
    fn default() -> OpenCallsites {
        let level = level(f64::INFINITY);
        OpenCallsites {
            first: BinaryHeap::new(),
            rest: std::iter::repeat_with(Vec::new).take(level + 1).collect(),
            level,
        }
    }
}

/// Returns the level of a weight, which is not negative.
fn level(weight: f64) -> usize {
    ((weight as f32).to_bits() >> LEVEL_SHIFT) as usize
}

impl OpenCallsites {
    fn push(&mut self, open: Open) {
        match level(open.weight) {
            level if level < self.level => self.rest[level].push(open),
            _ => self.first.push(open),
        }
    }

    /// Returns all of them, in parts.
    fn parts(&self) -> impl Iterator<Item = &[Open]> {
        let levels = self.rest.iter().map(Vec::as_slice);
        let levels = levels.chain(std::iter::once(self.first.as_slice()));
        levels.flat_map(|level| level.chunks(PART))
    }

    fn pop(&mut self) -> Option<Open> {
        while self.first.is_empty() && self.level > 0 {
            self.level -= 1;
            self.first = std::mem::take(&mut self.rest[self.level]).into();
        }
        self.first.pop()
    }
}

impl<'a> LargestCallsites<'a> {
    /// Creates the list with only the root, for the stacks with values. Their frames are less than
    /// `frames`.
    pub(super) fn new(
        stacks: &'a PackedStacks,
        weights: &Weights,
        frames: usize,
    ) -> LargestCallsites<'a> {
        let cursors = weights.held().map(|stack| Cursor {
            position: Position::start(stack),
            weight: weights.get(stack),
        });
        let mut kept = LargestCallsites {
            calls: vec![Call {
                parent: 0,
                frame: u32::MAX,
            }],
            depths: vec![0],
            nearest: std::iter::repeat_with(AtomicU32::default)
                .take(stacks.len())
                .collect(),
            parting: StackPartition::new(cursors, frames),
            open: OpenCallsites::default(),
            callees: Vec::new(),
            stacks,
        };
        kept.visit(0, 0..kept.parting.len() as u32);
        kept
    }

    /// Finds more callsites until there are `count`, or all.
    pub(super) fn find(&mut self, count: usize) {
        if count <= self.len() {
            return;
        }
        while self.len() < count
            && let Some(next) = self.open.pop()
        {
            match next.range.len() {
                1 => self.add_stack(next, count),
                _ => {
                    let id = self.add(next.call);
                    self.visit(id, next.range);
                }
            }
        }
        // Open callsites have no stack in common, so each number is written once.
        let set = |(): &mut (), part: &[Open]| {
            for open in part {
                for cursor in self.parting.stacks(usizes(open.range.clone())) {
                    cursor.set_nearest(&self.nearest, open.call.parent);
                }
            }
        };
        parallel::in_order(self.open.parts(), || (), set, |()| true);
    }

    /// Returns the number of callsites, without the root.
    fn len(&self) -> usize {
        self.calls.len() - 1
    }

    /// Returns the first `count` callsites, without the root.
    pub(super) fn into_calls(mut self, count: usize) -> Vec<Call> {
        self.calls.truncate(count + 1);
        self.calls.remove(0);
        self.calls
    }

    /// Returns for each callsite the nearest caller among the first `count`, and the number of its
    /// frames.
    pub(super) fn callers(&self, count: usize) -> Vec<(u32, u32)> {
        let mut callers: Vec<(u32, u32)> = Vec::with_capacity(self.calls.len());
        for ((id, call), depth) in (0..).zip(&self.calls).zip(&self.depths) {
            callers.push(match id as usize <= count {
                true => (id, *depth),
                false => callers[call.parent as usize],
            });
        }
        callers
    }

    /// Returns the nearest callsite to a stack.
    pub(super) fn nearest(&self, stack: u32) -> u32 {
        self.nearest[stack as usize].load(atomic::Ordering::Relaxed)
    }

    fn add(&mut self, call: Call) -> u32 {
        self.depths.push(self.depths[call.parent as usize] + 1);
        self.calls.push(call);
        self.calls.len() as u32 - 1
    }

    /// Adds a callsite with one stack and its callees, which all have its weight.
    fn add_stack(&mut self, mut next: Open, count: usize) {
        loop {
            let id = self.add(next.call);
            for cursor in self.parting.stacks_mut(usizes(next.range.clone())) {
                let Some(frame) = cursor.position.next(self.stacks) else {
                    cursor.set_nearest(&self.nearest, id);
                    return;
                };
                next.call = Call { parent: id, frame };
            }
            if self.len() == count {
                self.open.push(next);
                return;
            }
        }
    }

    /// Adds the callees of a callsite to the open ones.
    fn visit(&mut self, id: u32, range: Range<u32>) {
        let stacks = self.stacks;
        let ahead = |cursor: &Cursor| cursor.position.ahead(stacks);
        let next = |cursor: &mut Cursor| cursor.position.next(stacks);
        let found = &mut self.callees;
        found.clear();
        let nearest = &self.nearest;
        let each = |cursor: &Cursor, callee: Option<usize>| {
            let Some(callee) = callee else {
                cursor.set_nearest(nearest, id);
                return;
            };
            if callee == found.len() {
                found.push((0.0, cursor.position.stack()));
            }
            found[callee].0 += f64::from(cursor.weight);
        };
        let callees = (self.parting).part(usizes(range), true, ahead, next, each);
        for (callee, (weight, first)) in callees.iter().zip(found) {
            self.open.push(Open {
                weight: *weight,
                range: callee.range.start as u32..callee.range.end as u32,
                first: *first,
                call: Call {
                    parent: id,
                    frame: callee.frame,
                },
            });
        }
    }
}

fn usizes(range: Range<u32>) -> Range<usize> {
    range.start as usize..range.end as usize
}
