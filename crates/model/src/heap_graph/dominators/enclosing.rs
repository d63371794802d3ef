//! Search for the innermost subtree that has a place: subtrees are ranges of places that nest, so it begins
//! at the nearest place before, among those whose subtree has not ended. Needs a 60th of a table of them.

/// Number of places of a block, and of blocks of a block of the next level: 64.
const SHIFT: u32 = 6;
const BLOCK: usize = 1 << SHIFT;

/// The largest end of a subtree that begins in each block; then of each block of these, up to a level of
/// one block.
#[derive(Debug, Clone)]
pub(super) struct Enclosing(Vec<Vec<u32>>);

impl Enclosing {
    /// Creates the levels from the ends of the subtrees.
    pub(super) fn new(count: usize, end: impl Fn(usize) -> usize) -> Enclosing {
        let block = |from: usize| {
            let ends = (from..count.min(from + BLOCK)).map(&end);
            ends.max().unwrap_or(0) as u32
        };
        let mut levels: Vec<Vec<u32>> = vec![(0..count).step_by(BLOCK).map(block).collect()];
        while let Some(below) = levels.last().filter(|below| below.len() > BLOCK) {
            let largest = |ends: &[u32]| ends.iter().copied().max().unwrap_or(0);
            levels.push(below.chunks(BLOCK).map(largest).collect());
        }
        Enclosing(levels)
    }

    /// Returns the nearest place before whose subtree has `place`; `None` if there is none.
    pub(super) fn of(&self, place: usize, end: impl Fn(usize) -> usize) -> Option<usize> {
        // Level 0 are the places themselves.
        let reaches = |level: usize, at: usize| match level {
            0 => end(at) > place,
            _ => self.0[level - 1][at] as usize > place,
        };
        let nearest =
            |level: usize, from: usize, to: usize| (from..to).rev().find(|&at| reaches(level, at));
        let mut level = 0;
        let mut to = place;
        while level <= self.0.len() {
            let from = to & !(BLOCK - 1);
            if let Some(mut found) = nearest(level, from, to) {
                while level > 0 {
                    level -= 1;
                    // Blocks before one that is searched are full.
                    found = nearest(level, found << SHIFT, (found + 1) << SHIFT)?;
                }
                return Some(found);
            }
            to = from >> SHIFT;
            level += 1;
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ends of the subtrees of a tree that numbers shape: each decides how many subtrees end.
    fn ends(shape: impl Iterator<Item = usize>) -> Vec<usize> {
        let mut ends: Vec<usize> = Vec::new();
        let mut open: Vec<usize> = Vec::new();
        for (place, closed) in shape.enumerate() {
            for _ in 0..closed.min(open.len()) {
                let ended = open.pop().expect("it is open");
                ends[ended] = place;
            }
            open.push(place);
            ends.push(usize::MAX);
        }
        let count = ends.len();
        for end in &mut ends {
            *end = (*end).min(count);
        }
        ends
    }

    #[test]
    fn the_nearest_subtree_is_that_of_a_search_one_by_one() {
        let shapes: [Box<dyn Fn(usize) -> usize>; 4] = [
            // A list, a hub with its leaves, and trees.
            Box::new(|_| 0),
            Box::new(|at| usize::from(at > 1)),
            Box::new(|at| at * 7919 % 5 / 2),
            Box::new(|at| at * 7919 % 31 / 15),
        ];
        for shape in shapes {
            for count in [0, 1, 63, 64, 65, 4097, 9000] {
                let ends = ends((0..count).map(&shape));
                let enclosing = Enclosing::new(count, |at| ends[at]);
                let mut open: Vec<usize> = Vec::new();
                for place in 0..count {
                    while open.last().is_some_and(|&at| ends[at] <= place) {
                        open.pop();
                    }
                    let found = enclosing.of(place, |at| ends[at]);
                    assert_eq!(found, open.last().copied(), "{place} of {count}");
                    open.push(place);
                }
            }
        }
    }
}
