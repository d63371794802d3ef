//! Distinct stacks with their IDs, in one flat array.

use super::frames::pack;
use crate::profile::index::{Index, Seed, is_equal};
use crate::profile::interned::{next_id, span};
use heaptap_base::parallel::{self, Pool};
use heaptap_base::prefetch::{BATCH, prefetch};

/// Stacks with dense IDs in order of first appearance.
#[derive(Debug, Clone, Default)]
pub struct PackedStacks {
    seed: Seed,
    /// The stacks with IDs, then the waiting ones.
    bytes: Vec<u8>,
    ends: Vec<usize>,
    index: Index,
    waiting: Vec<Waiting>,
}

/// A stack without an ID yet.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    hash: u64,
    /// End in the bytes.
    end: usize,
    /// Stack that is probably the same, and its start in the bytes.
    same: Option<(u32, usize)>,
}

/// Stacks that are packed and hashed by a thread that does not have the others.
#[derive(Debug, Clone)]
pub struct Unnumbered {
    seed: Seed,
    pub(crate) bytes: Vec<u8>,
    /// Hash of each stack, and its end in the bytes.
    stacks: Vec<(u64, usize)>,
}

impl Unnumbered {
    /// Removes the stacks and keeps their memory.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.stacks.clear();
    }

    /// Adds a stack, given by its frames.
    pub fn push(&mut self, frames: impl IntoIterator<Item = u32>) {
        for frame in frames {
            pack(frame, |byte| self.bytes.push(byte));
        }
        self.push_until(self.bytes.len());
    }

    /// Adds a stack with all bytes up to an end.
    pub(crate) fn push_until(&mut self, end: usize) {
        let start = self.stacks.last().map_or(0, |(_, end)| *end);
        let hash = self.seed.bytes(&self.bytes[start..end]);
        self.stacks.push((hash, end));
    }
}

impl PackedStacks {
    /// Returns a place for stacks that will be added with [`PackedStacks::number`].
    pub fn unnumbered(&self) -> Unnumbered {
        Unnumbered {
            seed: self.seed,
            bytes: Vec::new(),
            stacks: Vec::new(),
        }
    }

    /// Adds stacks by parts: packs some on other threads while those before get their IDs. `each` gets the
    /// IDs of a part's stacks and what `pack` returned.
    pub fn add_parts<I: Send, S: Send, T: Send>(
        &mut self,
        parts: impl Iterator<Item = I> + Send,
        scratch: impl Fn() -> S,
        pack: impl Fn(&mut S, &mut Unnumbered, I) -> T + Sync,
        mut each: impl FnMut(&[u32], T),
    ) {
        let empty = self.unnumbered();
        let buffers = Pool::default();
        let make = |scratch: &mut S, part| {
            let mut packed: Unnumbered = buffers.take().unwrap_or_else(|| empty.clone());
            packed.clear();
            let made = pack(scratch, &mut packed, part);
            (packed, made)
        };
        let mut ids = Vec::new();
        parallel::in_order(parts, scratch, make, |(packed, made)| {
            ids.clear();
            self.number(&packed, |id| ids.push(id));
            each(&ids, made);
            buffers.put(packed);
            true
        });
    }

    /// Gives an ID to each stack, and calls `each` with it.
    pub fn number(&mut self, stacks: &Unnumbered, mut each: impl FnMut(u32)) {
        let mut start = 0;
        for batch in stacks.stacks.chunks(BATCH) {
            let before = self.bytes.len();
            let until = batch.last().map_or(start, |(_, end)| *end);
            self.bytes.extend_from_slice(&stacks.bytes[start..until]);
            self.waiting
                .extend(batch.iter().map(|&(hash, end)| Waiting {
                    hash,
                    end: before + end - start,
                    same: None,
                }));
            start = until;
            self.give_ids(&mut each);
        }
    }

    /// Returns the ID of a stack, given by its frames.
    #[inline]
    pub fn id(&mut self, frames: impl IntoIterator<Item = u32>) -> u32 {
        debug_assert!(self.waiting.is_empty(), "they come first");
        self.push(frames);
        let mut found = 0;
        self.give_ids(|id| found = id);
        found
    }

    /// Adds a stack, given by its frames. It has no ID before [`PackedStacks::give_ids`].
    #[inline]
    pub fn push(&mut self, frames: impl IntoIterator<Item = u32>) {
        let start = self.bytes.len();
        for frame in frames {
            pack(frame, |byte| self.bytes.push(byte));
        }
        self.wait(self.seed.bytes(&self.bytes[start..]));
    }

    #[inline]
    fn wait(&mut self, hash: u64) {
        self.waiting.push(Waiting {
            hash,
            end: self.bytes.len(),
            same: None,
        });
    }

    /// Returns the number of stacks that wait for an ID.
    #[inline]
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Gives an ID to each waiting stack, in their order, and calls `each` with it.
    ///
    /// The places of the stacks in the index and in memory are hardly ever in a cache. They are read
    /// ahead, so it is best to push [`BATCH`] stacks before.
    pub fn give_ids(&mut self, mut each: impl FnMut(u32)) {
        self.index.reserve(self.waiting.len());
        for stack in &mut self.waiting {
            stack.same = self.index.likely(stack.hash).map(|id| (id, 0));
        }
        for (id, start) in self.waiting.iter_mut().filter_map(|s| s.same.as_mut()) {
            *start = span(&self.ends, *id).start;
        }
        let same = self.waiting.iter().filter_map(|stack| stack.same);
        prefetch(same.map(|(_, start)| self.bytes.get(start).copied().unwrap_or(0)));

        let mut start = self.ends.last().copied().unwrap_or(0);
        let mut known = start;
        for stack in self.waiting.drain(..) {
            let (bytes, ends) = (&self.bytes, &self.ends);
            let new = &bytes[start..stack.end];
            let is_same = |id| is_equal(&bytes[span(ends, id)], new);
            let next = next_id(ends.len());
            let id = match stack.same {
                Some((id, _)) if is_same(id) => id,
                _ => self.index.find_or_insert(stack.hash, next, is_same).0,
            };
            if id == next {
                let length = new.len();
                if known < start {
                    self.bytes.copy_within(start..stack.end, known);
                }
                known += length;
                self.ends.push(known);
            }
            start = stack.end;
            each(id);
        }
        self.bytes.truncate(known);
    }

    /// Returns the packed frames of a stack, for [`first`](super::first) and [`last`](super::last).
    #[inline]
    pub fn get(&self, id: u32) -> &[u8] {
        &self.bytes[span(&self.ends, id)]
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

#[cfg(test)]
mod tests {
    use super::super::{first, last, skip};
    use super::*;

    #[test]
    fn frames_are_skipped_wherever_words_end() {
        let mut stacks = PackedStacks::default();
        for start in 0..9 {
            let frames: Vec<u32> = (0..40).map(|at| 7 << ((start + at * 5) % 28)).collect();
            let id = stacks.id(frames.iter().copied());
            for skipped in 0..=frames.len() + 1 {
                let mut packed = stacks.get(id);
                skip(&mut packed, skipped);
                let rest: Vec<u32> = std::iter::from_fn(|| first(&mut packed)).collect();
                assert_eq!(rest, frames[skipped.min(frames.len())..]);
            }
        }
    }

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
        let mut again = stacks.unnumbered();
        again.bytes = packed;
        again.push_until(again.bytes.len());
        stacks.number(&again, |id| assert_eq!(id, all));
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

    #[test]
    fn each_byte_counts_in_comparisons_and_hashes() {
        let seed = Seed::default();
        for length in (0..40).chain([255]) {
            let one: Vec<u8> = (0..length).collect();
            assert!(is_equal(&one, &one.clone()));
            assert!(!is_equal(&one, &[&one[..], &[0]].concat()));
            assert_ne!(seed.bytes(&one), seed.bytes(&[&one[..], &[0]].concat()));
            for at in 0..one.len() {
                let mut other = one.clone();
                other[at] ^= 1;
                assert!(!is_equal(&one, &other), "{length} {at}");
                assert_ne!(seed.bytes(&one), seed.bytes(&other), "{length} {at}");
            }
        }
    }

    #[test]
    fn ids_of_a_batch_are_those_of_one_stack_after_the_other() {
        let mut random = 1u32;
        let pushed: Vec<Vec<u32>> = (0..3000)
            .map(|_| {
                random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                let length = random >> 30;
                (0..length)
                    .map(|at| (random >> (8 + at)) % 9 * 50)
                    .collect()
            })
            .collect();
        let mut single = PackedStacks::default();
        let expected: Vec<u32> = pushed
            .iter()
            .map(|s| single.id(s.iter().copied()))
            .collect();
        assert!(single.len() < 1000, "most stacks are there several times");
        for batch in [1, 2, 7, BATCH, 3000] {
            let mut stacks = PackedStacks::default();
            let mut ids = Vec::new();
            for part in pushed.chunks(batch) {
                for stack in part {
                    stacks.push(stack.iter().copied());
                }
                assert_eq!(stacks.waiting(), part.len());
                stacks.give_ids(|id| ids.push(id));
            }
            assert_eq!(ids, expected);
            let mut others = PackedStacks::default();
            let mut ids = Vec::new();
            for part in pushed.chunks(batch) {
                let mut packed = others.unnumbered();
                for stack in part {
                    packed.push(stack.iter().copied());
                }
                others.number(&packed, |id| ids.push(id));
            }
            assert_eq!(ids, expected);
            assert_eq!(stacks.bytes, single.bytes);
            assert_eq!(stacks.ends, single.ends);
        }
    }
}
