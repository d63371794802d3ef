//! From interning ids to our own: dense arrays for the small numbers that producers give, a
//! map for the rest, so that a hostile id costs what its entry costs.

use std::collections::HashMap;

const NONE: u32 = u32::MAX;
/// An id this much beyond the number of entries goes into the map.
const SLACK: u64 = 4096;

/// A map from interning id to a dense id of ours. The first definition wins.
#[derive(Debug, Clone, Default)]
pub(super) struct IidMap {
    dense: Vec<u32>,
    sparse: HashMap<u64, u32>,
    entries: u64,
}

impl IidMap {
    /// Enters an id unless it is there.
    #[inline]
    pub(super) fn define(&mut self, iid: u64, id: u32) {
        if self.get(iid).is_some() {
            return;
        }
        self.entries += 1;
        if iid < self.dense.len() as u64 {
            self.dense[iid as usize] = id;
        } else if iid <= 4 * self.entries + SLACK {
            let size = (iid as usize + 1).max(self.dense.len() + self.dense.len() / 2);
            self.dense.resize(size, NONE);
            self.dense[iid as usize] = id;
        } else {
            self.sparse.insert(iid, id);
        }
    }

    /// Gives an id that is there another meaning.
    pub(super) fn replace(&mut self, iid: u64, id: u32) {
        if let Some(entry) = usize::try_from(iid)
            .ok()
            .and_then(|at| self.dense.get_mut(at))
            .filter(|entry| **entry != NONE)
        {
            *entry = id;
        } else {
            self.sparse.insert(iid, id);
        }
    }

    /// Our id, where the interning id is known.
    #[inline]
    pub(super) fn get(&self, iid: u64) -> Option<u32> {
        if let Some(&id) = usize::try_from(iid).ok().and_then(|at| self.dense.get(at))
            && id != NONE
        {
            return Some(id);
        }
        if self.sparse.is_empty() {
            return None;
        }
        self.sparse.get(&iid).copied()
    }

    /// Whether nothing was defined.
    pub(super) fn is_empty(&self) -> bool {
        self.entries == 0
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
}
