//! The IDs of all objects of a graph and their numbers: a bitmap with ranks if IDs are addresses
//! that are close together, sorted numbers otherwise. A bitmap needs one or two bytes per object,
//! is built without sorting by several threads, each with its own [`IdsBuilder`], and answers with
//! one bit count.

use super::ids::{ObjectId, ObjectIndex};
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Number of ID bits that a page covers: 32 KiB of addresses.
const PAGE_BITS: u32 = 15;
/// Pages are multiples of this many words, so that the low bits of a place are free.
const PAGE_UNIT: u32 = 64;
/// Maximum number of bitmap words for each ID, in addition to [`FREE_WORDS`]. Beyond it IDs are too
/// far apart and are sorted instead, which bounds the memory for IDs spread over all of 64 bits.
const WORDS_PER_ID: u64 = 8;
const FREE_WORDS: u64 = 1 << 18;
/// Maximum number of runs of pages that are looked through.
const MAX_SPANS: usize = 16;
/// Average number of sorted IDs in a bucket.
const BUCKET: usize = 8;

/// Place and grain of a page: index of its first word, a multiple of [`PAGE_UNIT`], plus the number
/// of low bits that are zero in all its IDs (0, 2 or 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Place(u32);

impl Place {
    fn shift(self) -> u32 {
        self.0 % PAGE_UNIT
    }

    fn word(self) -> usize {
        (self.0 - self.shift()) as usize
    }

    fn words(self) -> usize {
        1 << (PAGE_BITS - 6 - self.shift())
    }

    /// Returns the word and bit of an ID of this page, if the grain allows it.
    fn bit(self, id: u64) -> Option<(usize, u32)> {
        let at = (id % (1 << PAGE_BITS)) as u32;
        let bit = at >> self.shift();
        (bit << self.shift() == at).then_some((self.word() + (bit / 64) as usize, bit % 64))
    }
}

/// Returns the coarsest grain that fits an ID. ART's arrays that exist only in dumps have IDs that
/// are 4 beyond an object's.
fn grain(id: u64) -> u32 {
    match id.trailing_zeros() {
        0 | 1 => 0,
        2 => 2,
        _ => 3,
    }
}

/// Collects IDs in any order.
#[derive(Debug, Clone, Default)]
pub struct IdsBuilder {
    /// Number of inserted IDs, including repeated ones.
    inserted: u64,
    /// Distinct IDs while they are in the bitmap.
    distinct: u64,
    /// Number of distinct IDs that are known to come.
    known: u64,
    by_number: HashMap<u64, u32>,
    pages: Vec<(u64, Place)>,
    words: Vec<u64>,
    /// The page of the last ID, because IDs mostly ascend.
    last: Option<(u64, Place)>,
    /// All IDs, once a bitmap would be too large.
    spread: Option<Vec<u64>>,
}

impl IdsBuilder {
    pub fn new() -> IdsBuilder {
        IdsBuilder::default()
    }

    /// Adds an ID; a repeated one changes only [`IdsBuilder::inserted`].
    pub fn insert(&mut self, id: ObjectId) {
        self.inserted += 1;
        self.add(id.0);
    }

    /// Returns the number of inserted IDs, including repeated ones.
    pub fn inserted(&self) -> u64 {
        self.inserted
    }

    /// Adds all IDs of another builder: each thread fills its own.
    pub fn merge(&mut self, other: IdsBuilder) {
        self.inserted += other.inserted;
        if let Some(ids) = other.spread {
            ids.into_iter().for_each(|id| self.add(id));
            return;
        }
        for &(number, place) in &other.pages {
            let theirs = &other.words[place.word()..place.word() + place.words()];
            if self.spread.is_none()
                && let Some(mine) = self.page(number, place.shift())
                && mine.shift() == place.shift()
            {
                let ours = &mut self.words[mine.word()..mine.word() + mine.words()];
                for (our, &their) in ours.iter_mut().zip(theirs) {
                    self.distinct += u64::from((their & !*our).count_ones());
                    *our |= their;
                }
            } else {
                bits_of(theirs)
                    .for_each(|bit| self.add(number << PAGE_BITS | (bit << place.shift())));
            }
        }
    }

    /// Numbers the IDs.
    pub fn finish(mut self) -> Ids {
        if let Some(mut ids) = self.spread {
            ids.sort_unstable();
            ids.dedup();
            // Now that all IDs are known, a bitmap might be small enough.
            self = IdsBuilder {
                known: ids.len() as u64,
                ..IdsBuilder::default()
            };
            if !ids.iter().all(|&id| self.add_to_page(id)) {
                return Ids {
                    kind: Kind::Spread(Spread::new(ids)),
                };
            }
        }
        self.by_number = HashMap::new();
        let mut pages = self.pages;
        let ascending = pages.is_sorted_by(|a, b| a.0 < b.0 && a.1.word() < b.1.word());
        let used: usize = pages.iter().map(|p| p.1.words()).sum();
        if !ascending || used != self.words.len() {
            pages.sort_unstable_by_key(|p| p.0);
            let mut words = Vec::with_capacity(used);
            for (_, place) in &mut pages {
                let from = place.word();
                let shift = place.shift();
                let new = Place(words.len() as u32 | shift);
                words.extend_from_slice(&self.words[from..from + place.words()]);
                *place = new;
            }
            self.words = words;
        }
        self.words.shrink_to_fit();
        Ids {
            kind: Kind::Paged(Paged::new(&pages, self.words)),
        }
    }

    fn add(&mut self, id: u64) {
        if self.spread.is_some() || !self.add_to_page(id) {
            self.add_spread(id);
        }
    }

    /// Sets the bit of an ID; returns `false` if the bitmap would become too large for it.
    fn add_to_page(&mut self, id: u64) -> bool {
        let number = id >> PAGE_BITS;
        let place = match self.last {
            Some((last, place)) if last == number => Some(place),
            _ => self.page(number, grain(id)),
        };
        let bit = place.and_then(|place| match place.bit(id) {
            Some(bit) => Some(bit),
            None => self.refine(number, place, grain(id))?.bit(id),
        });
        let Some((word, bit)) = bit else {
            return false;
        };
        let word = &mut self.words[word];
        self.distinct += u64::from(*word >> bit & 1 == 0);
        *word |= 1 << bit;
        true
    }

    fn add_spread(&mut self, id: u64) {
        match &mut self.spread {
            Some(ids) => ids.push(id),
            None => {
                let mut ids = Vec::with_capacity(self.distinct as usize + 1);
                for (number, place) in std::mem::take(&mut self.pages) {
                    let words = &self.words[place.word()..place.word() + place.words()];
                    ids.extend(bits_of(words).map(|b| number << PAGE_BITS | (b << place.shift())));
                }
                ids.push(id);
                self.words = Vec::new();
                self.by_number = HashMap::new();
                self.last = None;
                self.spread = Some(ids);
            }
        }
    }

    /// Returns the page of that number and creates a missing one in that grain; `None` if the
    /// bitmap would become too large.
    fn page(&mut self, number: u64, shift: u32) -> Option<Place> {
        let place = match self.by_number.entry(number) {
            Entry::Occupied(slot) => self.pages[*slot.get() as usize].1,
            Entry::Vacant(free) => {
                let place = allocate(&mut self.words, shift, self.distinct.max(self.known))?;
                free.insert(self.pages.len() as u32);
                self.pages.push((number, place));
                place
            }
        };
        self.last = Some((number, place));
        Some(place)
    }

    /// Makes a page finer.
    fn refine(&mut self, number: u64, old: Place, shift: u32) -> Option<Place> {
        let place = allocate(&mut self.words, shift, self.distinct.max(self.known))?;
        for at in 0..old.words() {
            let word = std::mem::take(&mut self.words[old.word() + at]);
            for bit in bits_of(&[word]) {
                let id = (at as u64 * 64 + bit) << old.shift();
                if let Some((word, bit)) = place.bit(id) {
                    self.words[word] |= 1 << bit;
                }
            }
        }
        let slot = *self.by_number.get(&number)?;
        self.pages[slot as usize].1 = place;
        self.last = Some((number, place));
        Some(place)
    }
}

/// Allocates a page at the end of `words`, unless that makes too many for `ids`.
fn allocate(words: &mut Vec<u64>, shift: u32, ids: u64) -> Option<Place> {
    let at = words.len() as u64;
    let most = (ids * WORDS_PER_ID + FREE_WORDS).min(u64::from(u32::MAX) - (1 << PAGE_BITS));
    let place = Place(at as u32 | shift);
    if at + place.words() as u64 > most {
        return None;
    }
    words.resize(at as usize + place.words(), 0);
    Some(place)
}

/// Returns the indices of the set bits, ascending.
fn bits_of(words: &[u64]) -> impl Iterator<Item = u64> + '_ {
    words.iter().enumerate().flat_map(|(at, &word)| {
        let mut rest = word;
        std::iter::from_fn(move || {
            let bit = (rest != 0).then(|| u64::from(rest.trailing_zeros()))?;
            rest &= rest - 1;
            Some(at as u64 * 64 + bit)
        })
    })
}

/// IDs of all objects, each once, numbered in ascending order. Any thread can use it.
#[derive(Debug, Clone)]
pub struct Ids {
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Paged(Paged),
    Spread(Spread),
}

impl Default for Ids {
    fn default() -> Ids {
        IdsBuilder::new().finish()
    }
}

impl FromIterator<u64> for Ids {
    fn from_iter<T: IntoIterator<Item = u64>>(ids: T) -> Ids {
        let mut builder = IdsBuilder::new();
        ids.into_iter().for_each(|id| builder.add(id));
        builder.finish()
    }
}

impl Ids {
    /// Returns the number of objects.
    pub fn len(&self) -> usize {
        match &self.kind {
            Kind::Paged(paged) => paged.len,
            Kind::Spread(spread) => spread.sorted.len(),
        }
    }

    /// Returns whether there are no objects.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of the object with that ID.
    #[inline]
    pub fn find(&self, id: ObjectId) -> Option<ObjectIndex> {
        match &self.kind {
            Kind::Paged(paged) => paged.find(id.0),
            Kind::Spread(spread) => spread.find(id.0),
        }
    }

    /// Returns the ID of an object of this graph.
    ///
    /// # Panics
    /// Panics if the object does not exist.
    pub fn id(&self, object: ObjectIndex) -> ObjectId {
        ObjectId(match &self.kind {
            Kind::Paged(paged) => paged.select(object.0),
            Kind::Spread(spread) => spread.sorted[object.at()],
        })
    }

    /// Returns all IDs, ascending: faster than [`Ids::id`] for each.
    pub fn iter(&self) -> Box<dyn Iterator<Item = ObjectId> + '_> {
        match &self.kind {
            Kind::Paged(paged) => Box::new(paged.iter().map(ObjectId)),
            Kind::Spread(spread) => Box::new(spread.sorted.iter().map(|&id| ObjectId(id))),
        }
    }
}

/// Pages of a bitmap, ascending.
#[derive(Debug, Clone)]
struct Paged {
    len: usize,
    numbers: Vec<u64>,
    pages: Vec<Page>,
    /// Runs of page numbers that are close together: a heap has few, such as the runtime's image and
    /// the app's spaces. Empty if there are many.
    spans: Vec<Span>,
    /// By span and number: index into `pages` plus 1; 0 for pages without IDs.
    direct: Vec<u32>,
    words: Vec<u64>,
    /// IDs of the same page before each word.
    before: Vec<u16>,
}

/// Numbers of pages from the first page of a run to its last.
#[derive(Debug, Clone, Copy)]
struct Span {
    first: u64,
    len: u64,
    /// Index in `direct` of the first page.
    from: usize,
}

#[derive(Debug, Clone, Copy)]
struct Page {
    place: Place,
    /// Ids before this page.
    before: u32,
}

impl Paged {
    fn new(pages: &[(u64, Place)], words: Vec<u64>) -> Paged {
        let mut paged = Paged {
            len: 0,
            numbers: pages.iter().map(|p| p.0).collect(),
            pages: Vec::with_capacity(pages.len()),
            spans: Vec::new(),
            direct: Vec::new(),
            before: Vec::with_capacity(words.len()),
            words,
        };
        let mut len = 0;
        for &(_, place) in pages {
            paged.pages.push(Page {
                place,
                before: len as u32,
            });
            let mut inside = 0;
            for word in &paged.words[place.word()..place.word() + place.words()] {
                // At most 2^15 - 64: the page's last word does not count.
                paged.before.push(inside as u16);
                inside += word.count_ones();
            }
            len += u64::from(inside);
        }
        paged.len = len as usize;
        paged.find_spans();
        paged
    }

    /// Makes the table of pages, if it is small: a search in all of them would take most of the time
    /// of a lookup.
    fn find_spans(&mut self) {
        let most_slots = self.numbers.len() as u64 * 8 + 1024;
        let mut pages = 0;
        for run in self
            .numbers
            .chunk_by(|a, b| b - a <= most_slots / MAX_SPANS as u64)
        {
            let (first, len) = (run[0], run[run.len() - 1] - run[0] + 1);
            let from = self.direct.len();
            let slots = from as u64 + len;
            if self.spans.len() == MAX_SPANS || slots > most_slots {
                self.spans = Vec::new();
                self.direct = Vec::new();
                return;
            }
            self.direct.resize(slots as usize, 0);
            for &number in run {
                pages += 1;
                self.direct[from + (number - first) as usize] = pages;
            }
            self.spans.push(Span { first, len, from });
        }
    }

    #[inline]
    fn find(&self, id: u64) -> Option<ObjectIndex> {
        let number = id >> PAGE_BITS;
        let at = if self.spans.is_empty() {
            self.numbers.binary_search(&number).ok()?
        } else {
            let inside = |span: &&Span| number.wrapping_sub(span.first) < span.len;
            let span = self.spans.iter().find(inside)?;
            let slot = self.direct[span.from + (number - span.first) as usize];
            slot.checked_sub(1)? as usize
        };
        let page = self.pages[at];
        let (word, bit) = page.place.bit(id)?;
        let bits = self.words[word];
        if bits >> bit & 1 == 0 {
            return None;
        }
        let below = (bits & ((1 << bit) - 1)).count_ones();
        let rank = page.before + u32::from(self.before[word]) + below;
        Some(ObjectIndex(rank))
    }

    fn select(&self, rank: u32) -> u64 {
        assert!((rank as usize) < self.len, "no such object");
        let at = self.pages.partition_point(|p| p.before <= rank) - 1;
        let page = self.pages[at];
        let left = rank - page.before;
        let from = page.place.word();
        let before = &self.before[from..from + page.place.words()];
        let word = before.partition_point(|&b| u32::from(b) <= left) - 1;
        let mut bits = self.words[from + word];
        for _ in 0..left - u32::from(before[word]) {
            bits &= bits - 1;
        }
        let bit = word as u64 * 64 + u64::from(bits.trailing_zeros());
        self.numbers[at] << PAGE_BITS | (bit << page.place.shift())
    }

    fn iter(&self) -> impl Iterator<Item = u64> + '_ {
        self.numbers
            .iter()
            .zip(&self.pages)
            .flat_map(|(&number, page)| {
                let from = page.place.word();
                let words = &self.words[from..from + page.place.words()];
                let shift = page.place.shift();
                bits_of(words).map(move |bit| number << PAGE_BITS | (bit << shift))
            })
    }
}

/// Sorted IDs, in buckets of equal width.
#[derive(Debug, Clone)]
struct Spread {
    sorted: Vec<u64>,
    shift: u32,
    /// Index of the first ID of each bucket, and the end.
    buckets: Vec<u32>,
}

impl Spread {
    /// Creates buckets from ascending IDs.
    fn new(mut sorted: Vec<u64>) -> Spread {
        sorted.shrink_to_fit();
        let width = match (sorted.first(), sorted.last()) {
            (Some(first), Some(last)) => last - first,
            _ => 0,
        };
        let most = (sorted.len() / BUCKET) as u64;
        let mut shift = 0;
        while width >> shift > most {
            shift += 1;
        }
        let mut buckets = Vec::with_capacity((width >> shift) as usize + 2);
        for (at, id) in sorted.iter().enumerate() {
            let bucket = ((id - sorted[0]) >> shift) as usize;
            while buckets.len() <= bucket {
                buckets.push(at as u32);
            }
        }
        buckets.push(sorted.len() as u32);
        Spread {
            sorted,
            shift,
            buckets,
        }
    }

    fn find(&self, id: u64) -> Option<ObjectIndex> {
        let from = id.checked_sub(*self.sorted.first()?)?;
        let bucket = usize::try_from(from >> self.shift).ok()?;
        let end = *self.buckets.get(bucket.checked_add(1)?)?;
        let start = self.buckets[bucket];
        let ids = &self.sorted[start as usize..end as usize];
        let at = ids.binary_search(&id).ok()?;
        Some(ObjectIndex(start + at as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(ids: &[u64], bitmap: bool) {
        let mut sorted = ids.to_vec();
        sorted.sort_unstable();
        sorted.dedup();
        let (one, other) = ids.split_at(ids.len() / 3);
        let mut builder = IdsBuilder::new();
        one.iter().for_each(|&id| builder.insert(ObjectId(id)));
        let mut second = IdsBuilder::new();
        other.iter().for_each(|&id| second.insert(ObjectId(id)));
        builder.merge(second);
        assert_eq!(builder.inserted(), ids.len() as u64);
        let merged = builder.finish();
        for set in [merged, ids.iter().copied().collect()] {
            assert_eq!(matches!(set.kind, Kind::Paged(_)), bitmap);
            assert_eq!(set.len(), sorted.len());
            assert!(set.iter().map(|id| id.0).eq(sorted.iter().copied()));
            for (at, &id) in sorted.iter().enumerate() {
                let index = ObjectIndex(at as u32);
                assert_eq!(set.find(ObjectId(id)), Some(index));
                assert_eq!(set.id(index), ObjectId(id));
                for near in [id.wrapping_sub(1), id.wrapping_add(1), id ^ 4, id ^ 1 << 40] {
                    let expected = sorted.binary_search(&near).ok();
                    let found = set.find(ObjectId(near)).map(ObjectIndex::at);
                    assert_eq!(found, expected, "{near:x}");
                }
            }
        }
    }

    #[test]
    fn addresses_lie_in_a_bitmap_whatever_their_order_and_grain() {
        check(&[], true);
        check(&[7], true);
        check(&[u64::MAX, 0, 1, u64::MAX - 1], true);
        let mut random = fastrand::Rng::with_seed(1);
        let mut aligned: Vec<u64> = (0..20_000u64).map(|n| 0x7000_0000 + n * 24).collect();
        check(&aligned, true);
        random.shuffle(&mut aligned);
        check(&aligned, true);
        // Some have a twin 4 further on, some an odd one, which makes their pages finer.
        aligned.extend((0..300u64).map(|n| 0x7000_0000 + n * 2400 + 4));
        check(&aligned, true);
        aligned.extend((0..30u64).map(|n| 0x7000_0000 + n * 24000 + 1));
        aligned.extend((0..30_000u64).map(|n| 0x12c0_0000 + n));
        aligned.extend_from_slice(&aligned.clone()[..500]);
        random.shuffle(&mut aligned);
        check(&aligned, true);
    }

    #[test]
    fn ids_far_apart_are_sorted_and_cost_no_more_for_it() {
        let mut random = fastrand::Rng::with_seed(2);
        let mut ids: Vec<u64> = (0..30_000).map(|_| random.u64(..)).collect();
        check(&ids, false);
        ids.extend((0..5000u64).map(|n| 0x7000_0000 + n * 8));
        check(&ids, false);
        // Few IDs far apart come first, then many close together, so a bitmap is small enough
        // again.
        ids.truncate(2_000);
        ids.extend((0..100_000u64).map(|n| 0x7000_0000 + n * 8));
        check(&ids, true);
        // Eight IDs to a page, one of them odd: the pages take the maximum size.
        let mut builder = IdsBuilder::new();
        for page in 0..100_000u64 {
            for n in [8, 16, 24, 32, 40, 48, 56, 57] {
                builder.insert(ObjectId((page << 20) + n));
                let words = builder.words.len() as u64;
                assert!(words <= builder.distinct * WORDS_PER_ID + FREE_WORDS);
            }
        }
        assert!(builder.spread.is_some());
        assert_eq!(builder.finish().len(), 800_000);
    }
}
