//! Position on a stack, with a copy of its next frames: stacks are anywhere in memory, and a list of
//! positions is read in order.

use super::frames::WORD_OF_MARKS;
use super::stacks::PackedStacks;

/// Number of bytes that are copied at once.
const COPY: usize = size_of::<u128>();

/// Position of the next frame on a stack. Use it only with the [`PackedStacks`] that has the stack.
#[derive(Debug, Clone, Copy)]
pub struct Position {
    /// Whole frames, then zeros, with which no frame begins. Bytes have no alignment, so that there is
    /// no room between positions.
    next: [u8; COPY],
    stack: u32,
    /// End of the copy in the stack.
    end: u32,
}

impl Position {
    /// Returns the position of the first frame of a stack.
    pub fn start(stack: u32) -> Position {
        Position {
            next: [0; COPY],
            stack,
            end: 0,
        }
    }

    /// Returns the ID of the stack.
    pub fn stack(&self) -> u32 {
        self.stack
    }

    /// Returns the first byte of the stack that [`Position::next`] will read; 0 if the copy has the next frame,
    /// or the stack has ended.
    #[inline]
    pub fn ahead(&self, stacks: &PackedStacks) -> u8 {
        match self.next[0] {
            0 => self.rest(stacks).first().copied().unwrap_or(0),
            _ => 0,
        }
    }

    /// Returns the next frame and moves behind it; `None` at the end of the stack.
    #[inline]
    pub fn next(&mut self, stacks: &PackedStacks) -> Option<u32> {
        if self.next[0] == 0 {
            self.copy(stacks);
        }
        let mut next = u128::from_le_bytes(self.next);
        if next == 0 {
            return None;
        }
        let (mut frame, mut shift) = (0, 0);
        loop {
            let byte = next as u8;
            next >>= 8;
            frame |= u32::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
            shift += 7;
        }
        self.next = next.to_le_bytes();
        Some(frame - 1)
    }

    /// Copies the next frames.
    #[inline]
    fn copy(&mut self, stacks: &PackedStacks) {
        const MARKS: u128 = (WORD_OF_MARKS as u128) << 64 | WORD_OF_MARKS as u128;
        let rest = self.rest(stacks);
        let next = match rest.first_chunk() {
            Some(next) => u128::from_le_bytes(*next),
            None => (rest.iter().rev()).fold(0, |next, byte| next << 8 | u128::from(*byte)),
        };
        // Bytes after the last one without a mark belong to a frame that is not whole.
        let whole = COPY - (!next & MARKS).leading_zeros() as usize / 8;
        let mask = u128::MAX.checked_shr(u128::BITS - 8 * whole as u32);
        self.next = (next & mask.unwrap_or(0)).to_le_bytes();
        self.end += rest.len().min(whole) as u32;
    }

    #[inline]
    fn rest<'a>(&self, stacks: &'a PackedStacks) -> &'a [u8] {
        let stack = stacks.get(self.stack);
        stack.get(self.end as usize..).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::super::first;
    use super::*;

    #[test]
    fn frames_are_the_same_wherever_a_copy_ends() {
        let mut stacks = PackedStacks::default();
        for start in 0..40 {
            // One to five bytes.
            let frames: Vec<u32> = (0..start)
                .map(|at| (1 << ((start + at * 5) % 32)) - at % 2)
                .collect();
            let id = stacks.id(frames.iter().copied());
            let mut position = Position::start(id);
            let mut rest = stacks.get(id);
            for frame in frames {
                let read = if position.next[0] == 0 { rest[0] } else { 0 };
                assert_eq!(position.ahead(&stacks), read);
                assert_eq!(position.next(&stacks), Some(frame));
                assert_eq!(first(&mut rest), Some(frame));
            }
            assert_eq!(position.ahead(&stacks), 0);
            assert_eq!(position.next(&stacks), None);
            assert_eq!((position.next(&stacks), position.stack()), (None, id));
        }
    }
}
