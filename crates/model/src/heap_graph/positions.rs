//! Positions by object, in 2 bytes if those of objects with near numbers are near each other: the
//! first reference of an object, and its record in the file.

use std::ops::Range;

/// Number of positions of a block.
const BLOCK: usize = 64;
/// Mark of a block with positions more than 64 KiB apart.
const FAR: u64 = 1 << 63;

/// A column of positions below 2^48.
#[derive(Debug, Clone, Default)]
pub struct Positions {
    /// The least position of each block; or `FAR` and the place in `high` of its first position.
    blocks: Vec<u64>,
    /// The difference from the least position; or the low bits, in a block of distant ones.
    low: Vec<u16>,
    /// The bits above the low 16 of distant positions.
    high: Vec<u32>,
}

impl Positions {
    /// Upper limit of positions.
    pub const LIMIT: u64 = 1 << 48;

    pub fn len(&self) -> usize {
        self.low.len()
    }

    pub fn is_empty(&self) -> bool {
        self.low.is_empty()
    }

    #[inline]
    pub fn get(&self, at: usize) -> usize {
        let (block, low) = (self.blocks[at / BLOCK], u64::from(self.low[at]));
        let position = match block & FAR {
            0 => block + low,
            _ => self.above(block - FAR, at) | low,
        };
        position as usize
    }

    #[cold]
    fn above(&self, first: u64, at: usize) -> u64 {
        u64::from(self.high[first as usize + at % BLOCK]) << 16
    }

    /// Returns a position and the next one.
    #[inline]
    pub fn range(&self, at: usize) -> Range<usize> {
        let block = self.blocks[at / BLOCK];
        if block & FAR == 0 && !(at + 1).is_multiple_of(BLOCK) {
            let low = &self.low[at..at + 2];
            let end = |low: u16| block as usize + usize::from(low);
            return end(low[0])..end(low[1]);
        }
        self.range_of_two(at)
    }

    #[cold]
    fn range_of_two(&self, at: usize) -> Range<usize> {
        self.get(at)..self.get(at + 1)
    }

    /// Returns the number of positions up to `position`, of positions that ascend.
    pub fn count_up_to(&self, position: usize) -> usize {
        let (mut from, mut to) = (0, self.len());
        while from < to {
            let middle = from + (to - from) / 2;
            match self.get(middle) <= position {
                true => from = middle + 1,
                false => to = middle,
            }
        }
        from
    }

    fn add<T: Copy + Ord + Into<u64>>(&mut self, block: &[T]) {
        let (Some(least), Some(most)) = (block.iter().min(), block.iter().max()) else {
            return;
        };
        let (least, most): (u64, u64) = ((*least).into(), (*most).into());
        if most - least <= u16::MAX.into() {
            self.blocks.push(least);
            let near = block.iter().map(|&at| (at.into() - least) as u16);
            self.low.extend(near);
        } else {
            self.blocks.push(self.high.len() as u64 | FAR);
            self.low.extend(block.iter().map(|&at| at.into() as u16));
            let high = block.iter().map(|&at| (at.into() >> 16) as u32);
            self.high.extend(high);
        }
    }
}

impl From<&[u32]> for Positions {
    fn from(positions: &[u32]) -> Positions {
        let mut all = Positions::default();
        all.low.reserve_exact(positions.len());
        positions.chunks(BLOCK).for_each(|block| all.add(block));
        all
    }
}

impl FromIterator<u64> for Positions {
    fn from_iter<T: IntoIterator<Item = u64>>(positions: T) -> Positions {
        let mut positions = positions.into_iter();
        let mut all = Positions::default();
        all.low.reserve_exact(positions.size_hint().0);
        let mut block = Vec::with_capacity(BLOCK);
        loop {
            block.clear();
            block.extend(positions.by_ref().take(BLOCK));
            if block.is_empty() {
                return all;
            }
            all.add(&block);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_and_distant_positions_are_kept() {
        let shapes: [fn(u64) -> u64; 5] = [
            |at| at,
            |at| 1000 - at,
            |at| at * 1040,
            // One block has a jump of more than 64 KiB.
            |at| at + if at < 100 { 0 } else { 1 << 20 },
            |at| (Positions::LIMIT - 1) >> (at % 48),
        ];
        for (shape, far) in shapes.into_iter().zip([0, 0, 0, 64, 64]) {
            for count in [0, 1, 63, 64, 65, 300] {
                let positions: Vec<u64> = (0..count).map(shape).collect();
                let kept: Positions = positions.iter().copied().collect();
                let all = (0..kept.len()).map(|at| kept.get(at) as u64);
                let same = all.eq(positions.iter().copied());
                let pair = |at: usize| kept.get(at)..kept.get(at + 1);
                assert!((1..kept.len()).all(|at| kept.range(at - 1) == pair(at - 1)));
                assert!(same && kept.len() == positions.len(), "{count}");
                assert!(count < 300 || (kept.high.is_empty() == (far == 0)));
                if positions.is_sorted() {
                    for at in [0, 100, 104_000, 1 << 20] {
                        let counted = positions.partition_point(|&position| position <= at);
                        assert_eq!(kept.count_up_to(at as usize), counted);
                    }
                }
            }
        }
    }
}
