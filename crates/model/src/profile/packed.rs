//! Distinct stacks in one flat array. A frame is its ID + 1 as a varint (LEB128): one or two bytes per
//! frame, no allocation per frame or stack. Neither frames nor their order have a meaning here.

use super::index::{Index, Seed};
use super::interned::{next_id, span};
use std::ops::Range;

/// Stacks with dense IDs in order of first appearance.
#[derive(Debug, Clone, Default)]
pub struct PackedStacks {
    seed: Seed,
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: Index,
}

impl PackedStacks {
    /// Returns the ID of a stack, given by its frames.
    #[inline]
    pub fn id(&mut self, frames: impl IntoIterator<Item = u32>) -> u32 {
        // Packed after the existing ones, and removed again if it is a duplicate.
        let start = self.bytes.len();
        for frame in frames {
            pack(frame, |byte| self.bytes.push(byte));
        }
        self.id_of_last(start)
    }

    /// Returns the ID of a stack that is packed already.
    #[inline]
    pub fn id_of_packed(&mut self, packed: &[u8]) -> u32 {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(packed);
        self.id_of_last(start)
    }

    #[inline]
    fn id_of_last(&mut self, start: usize) -> u32 {
        let (known, new) = self.bytes.split_at(start);
        let hash = self.seed.bytes(new);
        let next = next_id(self.ends.len());
        let ends = &self.ends;
        let (id, there) = self
            .index
            .find_or_insert(hash, next, |id| known[span(ends, id)] == *new);
        if there {
            self.bytes.truncate(start);
        } else {
            self.ends.push(self.bytes.len());
        }
        id
    }

    /// Returns the packed frames of a stack, for [`first`] and [`last`].
    #[inline]
    pub fn get(&self, id: u32) -> &[u8] {
        &self.bytes[span(&self.ends, id)]
    }

    /// Returns the packed frames of all stacks, for positions that outlast a slice.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the place of a stack in [`PackedStacks::bytes`].
    #[inline]
    pub fn range(&self, id: u32) -> Range<usize> {
        span(&self.ends, id)
    }

    /// Returns the number of stacks.
    #[allow(clippy::len_without_is_empty, reason = "not needed")]
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Frees the memory that only new stacks need, after the last stack.
    pub fn seal(&mut self) {
        self.index = Index::default();
        self.bytes.shrink_to_fit();
        self.ends.shrink_to_fit();
    }
}

/// Packs a frame.
#[inline]
pub fn pack(frame: u32, mut push: impl FnMut(u8)) {
    let mut rest = u64::from(frame) + 1;
    while rest >= 0x80 {
        push(rest as u8 | 0x80);
        rest >>= 7;
    }
    push(rest as u8);
}

/// Removes the first frame of a packed stack.
#[inline]
pub fn first(packed: &mut &[u8]) -> Option<u32> {
    let mut frame = 0u32;
    let mut shift = 0;
    loop {
        let (byte, rest) = packed.split_first()?;
        *packed = rest;
        frame |= u32::from(byte & 0x7f) << shift;
        if *byte < 0x80 {
            return Some(frame - 1);
        }
        shift += 7;
    }
}

/// Removes the last frame of a packed stack. Only the last byte of each frame is below 0x80, so
/// that frames can also be read from their ends.
#[inline]
pub fn last(packed: &mut &[u8]) -> Option<u32> {
    let (last, mut rest) = packed.split_last()?;
    let mut frame = u32::from(*last);
    while let Some((byte, before)) = rest.split_last()
        && *byte >= 0x80
    {
        frame = frame << 7 | u32::from(byte & 0x7f);
        rest = before;
    }
    *packed = rest;
    Some(frame - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_share_an_id_and_read_back_from_both_ends() {
        let mut stacks = PackedStacks::default();
        let frames = [5, 127, 128, 20_000, 3_000_000];
        let all = stacks.id(frames);
        let none = stacks.id([]);
        assert_eq!(stacks.id(frames), all);
        assert_ne!(stacks.id(frames.into_iter().rev()), all);
        let mut packed = Vec::new();
        for frame in frames {
            pack(frame, |byte| packed.push(byte));
        }
        assert_eq!(stacks.id_of_packed(&packed), all);
        stacks.seal();
        let mut packed = stacks.get(all);
        let forwards: Vec<u32> = std::iter::from_fn(|| first(&mut packed)).collect();
        assert_eq!(forwards, frames);
        let mut packed = stacks.get(all);
        let mut backwards: Vec<u32> = std::iter::from_fn(|| last(&mut packed)).collect();
        backwards.reverse();
        assert_eq!(backwards, frames);
        assert_eq!((stacks.get(none), stacks.len()), (&[][..], 3));
    }
}
