//! From interning IDs to our own. Producers count up from 1, although not always in order, so a
//! plain array is enough. IDs that are too far apart are stored in a map, so that a hostile ID
//! costs only its entry. A map that becomes dense is replaced by an array.

use heaptap_model::profile::index::FastHash;
use std::collections::HashMap;

/// Index of a scope, within which IDs are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ScopeId(pub(super) u32);

const NONE: u32 = u32::MAX;
/// Maximum ratio of array places to entries, in addition to [`SLACK`].
const SPARSE: u64 = 4;
const SLACK: u64 = 1024;

/// A map from an interning ID to one of our dense IDs. The first definition is used.
#[derive(Debug, Clone, Default)]
pub(super) struct IidMap {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32, FastHash>,
    entries: u64,
    highest: u64,
    /// Number of entries at which density is checked again.
    check: u64,
}

impl IidMap {
    /// Adds an ID unless it exists.
    #[inline]
    pub(super) fn define(&mut self, iid: u64, id: u32) {
        if let Some(place) = usize::try_from(iid)
            .ok()
            .and_then(|at| self.dense.get_mut(at))
        {
            if *place == NONE {
                *place = id;
                self.entries += 1;
            }
            return;
        }
        self.define_beyond(iid, id);
    }

    fn define_beyond(&mut self, iid: u64, id: u32) {
        if self.sparse.contains_key(&iid) {
            return;
        }
        self.entries += 1;
        self.highest = self.highest.max(iid);
        if iid <= SPARSE * self.entries + SLACK {
            self.widen(iid);
            self.dense[iid as usize] = id;
            return;
        }
        self.sparse.insert(iid, id);
        if self.entries >= self.check {
            self.check = self.entries + self.entries / 4 + 64;
            if self.highest <= SPARSE * self.entries + SLACK {
                self.widen(self.highest);
            }
        }
    }

    /// Enlarges the array for IDs up to `highest`, and moves the IDs that it covers into it.
    fn widen(&mut self, highest: u64) {
        let size = (highest as usize + 1).max(self.dense.len() + self.dense.len() / 2);
        self.dense.resize(size, NONE);
        let dense = &mut self.dense;
        self.sparse.retain(|&iid, &mut id| {
            let covered = iid < dense.len() as u64;
            if covered {
                dense[iid as usize] = id;
            }
            !covered
        });
    }

    /// Adds all missing entries of another map.
    pub(super) fn define_all(&mut self, other: &IidMap) {
        for (iid, &id) in other.dense.iter().enumerate() {
            if id != NONE {
                self.define(iid as u64, id);
            }
        }
        for (&iid, &id) in &other.sparse {
            self.define(iid, id);
        }
    }

    /// Returns our ID if the interning ID is known.
    #[inline]
    pub(super) fn get(&self, iid: u64) -> Option<u32> {
        // An ID within the array is not in the map.
        match usize::try_from(iid).ok().and_then(|at| self.dense.get(at)) {
            Some(&NONE) => None,
            Some(&id) => Some(id),
            None => self.sparse.get(&iid).copied(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_definition_wins_however_far_apart_the_ids() {
        let mut map = IidMap::default();
        let ids = [0, 1, 2, 5000, u64::MAX, 1 << 40, 7, 4_000_000_000];
        for (n, &iid) in ids.iter().enumerate() {
            map.define(iid, n as u32);
            map.define(iid, 99);
        }
        for (n, &iid) in ids.iter().enumerate() {
            assert_eq!(map.get(iid), Some(n as u32), "{iid}");
        }
        assert_eq!(map.get(3), None);
        assert!(map.dense.len() < 10_000);
    }

    #[test]
    fn ids_out_of_order_end_in_the_array() {
        let mut map = IidMap::default();
        let count = 50_000u64;
        // 7919 is prime: every ID once, not in order.
        for n in 0..count {
            map.define(n * 7919 % count, n as u32);
        }
        for n in 0..count {
            assert_eq!(map.get(n * 7919 % count), Some(n as u32));
        }
        assert!(map.sparse.is_empty());
        assert_eq!(map.entries, count);
    }
}
