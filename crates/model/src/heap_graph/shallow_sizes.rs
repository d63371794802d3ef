//! The shallow size of each object, in 16 bits: few objects have more than 64 KiB.

use super::ids::ObjectIndex;
use std::collections::BTreeMap;

/// Shallow sizes by object, in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ShallowSizes {
    /// [`ShallowSizes::LARGE`] if `large` has the size.
    small: Vec<u16>,
    large: BTreeMap<ObjectIndex, u64>,
}

impl ShallowSizes {
    /// Mark of an object whose size does not fit, for columns that threads fill.
    pub const LARGE: u16 = u16::MAX;

    /// Creates sizes from a column and the sizes of the objects that it marks.
    pub fn new(small: Vec<u16>, large: BTreeMap<ObjectIndex, u64>) -> ShallowSizes {
        ShallowSizes { small, large }
    }

    /// Returns the size for the column if it fits.
    #[inline]
    pub fn small(bytes: u64) -> Option<u16> {
        let bytes = u16::try_from(bytes).ok()?;
        (bytes != ShallowSizes::LARGE).then_some(bytes)
    }

    #[inline]
    pub fn get(&self, object: ObjectIndex) -> u64 {
        match self.small[object.at()] {
            ShallowSizes::LARGE => self.large.get(&object).copied().unwrap_or_default(),
            bytes => bytes.into(),
        }
    }

    pub fn set(&mut self, object: ObjectIndex, bytes: u64) {
        self.small[object.at()] = ShallowSizes::small(bytes).unwrap_or_else(|| {
            self.large.insert(object, bytes);
            ShallowSizes::LARGE
        });
    }

    /// Adds the size of the next object.
    #[inline]
    pub fn push(&mut self, bytes: u64) {
        let object = ObjectIndex(self.small.len() as u32);
        self.small.push(ShallowSizes::LARGE);
        self.set(object, bytes);
    }

    /// Returns the bytes of all objects.
    pub fn total(&self) -> u64 {
        let is_small = |&&bytes: &&u16| bytes != ShallowSizes::LARGE;
        let small = self.small.iter().filter(is_small);
        let small = small.map(|&bytes| u64::from(bytes)).sum();
        // An object can have become small since.
        let is_large = |at: &&ObjectIndex| self.small[at.at()] == ShallowSizes::LARGE;
        let large = self.large.keys().filter(is_large);
        large.fold(small, |sum: u64, &at| sum.saturating_add(self.get(at)))
    }

    /// Returns the number of objects whose size needs more than the column.
    pub fn large_count(&self) -> usize {
        self.large.len()
    }
}

impl FromIterator<u64> for ShallowSizes {
    fn from_iter<T: IntoIterator<Item = u64>>(bytes: T) -> ShallowSizes {
        let bytes = bytes.into_iter();
        let mut sizes = ShallowSizes::default();
        sizes.small.reserve_exact(bytes.size_hint().0);
        bytes.for_each(|bytes| sizes.push(bytes));
        sizes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_of_all_orders_are_kept() {
        let bytes = [0, 16, 65_534, 65_535, 65_536, 1 << 40, u64::MAX];
        let mut sizes: ShallowSizes = bytes.into_iter().collect();
        let all = |sizes: &ShallowSizes| (0..7).map(|at| sizes.get(ObjectIndex(at))).collect();
        let kept: Vec<u64> = all(&sizes);
        assert_eq!((kept.as_slice(), sizes.large_count()), (&bytes[..], 4));
        assert_eq!(sizes.total(), u64::MAX);
        sizes.set(ObjectIndex(6), 24);
        sizes.set(ObjectIndex(1), 1 << 33);
        let kept: Vec<u64> = all(&sizes);
        assert_eq!(kept[1..], [1 << 33, 65_534, 65_535, 65_536, 1 << 40, 24]);
        assert_eq!(sizes.total(), kept.iter().sum::<u64>());
    }
}
