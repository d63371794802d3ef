//! From interning ids to our own. Producers count up from 1, if not always in order, so a plain
//! array serves; ids that lie too far apart for one go into a map, so that a hostile id costs
//! what its entry costs. Once the map has grown dense, it becomes an array too.

use heaptap_model::profile::index::FastHash;
use std::collections::HashMap;

/// Index of a scope: of what ids hold within.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ScopeId(pub(super) u32);

const NONE: u32 = u32::MAX;
/// An array may have this many times as many places as entries, and some more.
const SPARSE: u64 = 4;
const SLACK: u64 = 1024;

/// A map from interning id to a dense id of ours. The first definition wins.
#[derive(Debug, Clone, Default)]
pub(super) struct IidMap {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32, FastHash>,
    entries: u64,
    highest: u64,
    /// Number of entries at which to try again whether they are dense.
    check: u64,
}

impl IidMap {
    /// Enters an id unless it is there.
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

    /// Makes room in the array for ids up to `highest`, and moves those there that it covers.
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

    /// Enters all of another map that are not there.
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

    /// Our id, where the interning id is known.
    #[inline]
    pub(super) fn get(&self, iid: u64) -> Option<u32> {
        // What the array covers is in it or nowhere.
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
        // 7919 is prime: every id once, in no order.
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
