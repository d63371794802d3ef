//! Long lists of objects in the order of their IDs, of which only some are kept: the others are found again
//! by a scan from the one before.

use heaptap_model::heap_graph::ObjectIndex;
use std::collections::BTreeMap;

/// Number of objects from one that is kept to the next; so many of the first are kept.
const STEP: usize = 4096;

/// Objects that have something in common, ascending.
#[derive(Debug, Default)]
pub(crate) struct Sparse {
    total: usize,
    first: Vec<ObjectIndex>,
    /// Each [`STEP`]th of the others.
    marks: Vec<ObjectIndex>,
}

impl Sparse {
    /// Adds an object, after all others.
    #[inline]
    pub(crate) fn add(&mut self, object: ObjectIndex) {
        if self.total < STEP {
            self.first.push(object);
        } else if self.total.is_multiple_of(STEP) {
            self.marks.push(object);
        }
        self.total += 1;
    }

    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// Returns at most `limit` objects from an offset on; `among` as in [`Sparse::append`].
    pub(crate) fn page<Objects: Iterator<Item = ObjectIndex>>(
        &self,
        offset: usize,
        limit: usize,
        among: impl FnOnce(ObjectIndex) -> Objects,
    ) -> Vec<ObjectIndex> {
        let mut page = Vec::new();
        self.append(offset, limit, &mut page, among);
        page
    }

    /// Appends objects from an offset on, until `page` has `limit`. `among` finds them again: it returns the
    /// objects of the list from one on.
    fn append<Objects: Iterator<Item = ObjectIndex>>(
        &self,
        offset: usize,
        limit: usize,
        page: &mut Vec<ObjectIndex>,
        among: impl FnOnce(ObjectIndex) -> Objects,
    ) {
        let left = |page: &Vec<ObjectIndex>| limit.saturating_sub(page.len());
        let first = self.first.iter().skip(offset).take(left(page));
        page.extend(first);
        let offset = offset.max(self.first.len());
        if left(page) == 0 || offset >= self.total {
            return;
        }
        let beyond = offset - STEP;
        let objects = among(self.marks[beyond / STEP]).skip(beyond % STEP);
        let end = left(page).min(self.total - offset);
        page.extend(objects.take(end));
    }
}

/// Reachable objects in descending order of shallow bytes; equal ones in the order of their IDs.
#[derive(Debug, Default)]
pub(crate) struct ByShallow {
    total: usize,
    /// Size, number of larger objects, objects; largest first.
    sizes: Vec<(u64, usize, Sparse)>,
}

/// Sizes below this have a place each while the order is made: nearly all objects are that small.
const SMALL: u64 = 1 << 16;

impl ByShallow {
    /// Sorts objects that come in the order of their IDs.
    pub(crate) fn new(objects: impl Iterator<Item = (ObjectIndex, u64)>) -> ByShallow {
        let mut small: Vec<Sparse> = (0..SMALL).map(|_| Sparse::default()).collect();
        let mut large: BTreeMap<u64, Sparse> = BTreeMap::new();
        for (object, bytes) in objects {
            match bytes < SMALL {
                true => small[bytes as usize].add(object),
                false => large.entry(bytes).or_default().add(object),
            }
        }
        let small = small
            .into_iter()
            .enumerate()
            .map(|(bytes, of)| (bytes as u64, of));
        let mut order = ByShallow::default();
        for (bytes, of_size) in large.into_iter().rev().chain(small.rev()) {
            if of_size.total == 0 {
                continue;
            }
            let before = order.total;
            order.total += of_size.total;
            order.sizes.push((bytes, before, of_size));
        }
        order
    }

    pub(crate) fn len(&self) -> usize {
        self.total
    }

    /// Returns at most `limit` objects from an offset on. `of_size` returns the objects of a size from one
    /// on.
    pub(crate) fn page<Objects: Iterator<Item = ObjectIndex>>(
        &self,
        offset: usize,
        limit: usize,
        of_size: impl Fn(u64, ObjectIndex) -> Objects,
    ) -> Vec<ObjectIndex> {
        let at = self
            .sizes
            .partition_point(|(_, before, _)| *before <= offset);
        let mut page = Vec::new();
        for (bytes, before, objects) in &self.sizes[at.saturating_sub(1)..] {
            if page.len() == limit {
                break;
            }
            let from = offset.saturating_sub(*before);
            objects.append(from, limit, &mut page, |first| of_size(*bytes, first));
        }
        page
    }
}
