//! Callstack IDs of all scopes, after all are known: from a producer's ID to a callsite.
//!
//! heapprofd numbers everything it interns with one counter and reports callstacks in order of
//! their IDs. So IDs are sorted, and a lookup continues from the last result. An array or a hash
//! map over millions of IDs would be slower and many times as large.

use super::iids::ScopeId;
use heaptap_base::prefetch::BATCH;
use heaptap_model::profile::{CallsiteId, Tables};
use std::collections::HashMap;

/// IDs of one scope while they are defined.
#[derive(Debug, Default)]
pub(super) struct CallstackIds {
    ids: Vec<u64>,
    callsites: Vec<CallsiteId>,
}

impl CallstackIds {
    /// Defines an ID. The first of several definitions is used.
    #[inline]
    pub(super) fn define(&mut self, iid: u64, callsite: CallsiteId) {
        self.ids.push(iid);
        self.callsites.push(callsite);
    }

    /// Defines an ID, with its callsite known after [`CallstackIds::define_pushed`].
    #[inline]
    pub(super) fn push(
        &mut self,
        iid: u64,
        leaf_first: impl IntoIterator<Item = u32>,
        tables: &mut Tables,
    ) {
        self.ids.push(iid);
        if tables.push_callsite(leaf_first) == BATCH {
            self.define_pushed(tables);
        }
    }

    /// Completes the definitions that were pushed.
    pub(super) fn define_pushed(&mut self, tables: &mut Tables) {
        tables.pushed_callsites(|callsite| self.callsites.push(callsite));
    }

    /// Returns whether no ID is defined.
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    fn sort(&mut self) {
        if self.ids.windows(2).all(|pair| pair[0] < pair[1]) {
            return;
        }
        let mut pairs: Vec<(u64, CallsiteId)> =
            self.ids.drain(..).zip(self.callsites.drain(..)).collect();
        pairs.sort_by_key(|pair| pair.0);
        pairs.dedup_by_key(|pair| pair.0);
        (self.ids, self.callsites) = pairs.into_iter().unzip();
    }
}

/// Position of a callstack ID among those of all scopes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Position(pub(super) u32);

/// Callstack IDs of all scopes.
#[derive(Debug, Default)]
pub(super) struct Callstacks {
    ids: Vec<u64>,
    callsites: Vec<CallsiteId>,
    /// End of each scope.
    ends: Vec<usize>,
}

impl Callstacks {
    /// Sorts and joins all scopes.
    pub(super) fn new(scopes: impl ExactSizeIterator<Item = CallstackIds>) -> Self {
        let mut all = Callstacks::default();
        for mut scope in scopes {
            scope.sort();
            if all.ids.is_empty() {
                all.ids = scope.ids;
                all.callsites = scope.callsites;
            } else {
                all.ids.append(&mut scope.ids);
                all.callsites.append(&mut scope.callsites);
            }
            all.ends.push(all.ids.len());
        }
        all
    }

    /// Returns the callsite at a position.
    #[inline]
    pub(super) fn callsite(&self, position: Position) -> CallsiteId {
        self.callsites[position.0 as usize]
    }

    /// Looks up an ID in a scope. `hint` is the position of the last result, in any scope.
    #[inline]
    pub(super) fn find(&self, scope: ScopeId, iid: u64, hint: &mut usize) -> Option<Position> {
        if let Some(&next) = self.ids.get(*hint + 1)
            && next == iid
            && *hint + 1 < self.ends[scope.0 as usize]
            && *hint + 1 >= self.start(scope)
        {
            *hint += 1;
            return Some(Position(*hint as u32));
        }
        self.search(scope, iid, hint)
    }

    fn start(&self, scope: ScopeId) -> usize {
        match scope.0 {
            0 => 0,
            n => self.ends[n as usize - 1],
        }
    }

    fn search(&self, scope: ScopeId, iid: u64, hint: &mut usize) -> Option<Position> {
        let (start, end) = (self.start(scope), self.ends[scope.0 as usize]);
        let ids = &self.ids[start..end];
        // In doubling steps from the last result, or in the whole scope.
        let mut low = hint.saturating_sub(start);
        if *hint < start || ids.get(low).is_none_or(|&id| id > iid) {
            low = 0;
        }
        let mut step = 1;
        let mut high = low;
        while ids.get(high).is_some_and(|&id| id < iid) {
            low = high;
            high += step;
            step *= 2;
        }
        let high = (high + 1).min(ids.len());
        let found = low + ids[low..high].binary_search(&iid).ok()?;
        *hint = start + found;
        u32::try_from(*hint).ok().map(Position)
    }

    /// Returns the definitions of several scopes together; the first one of each ID is used.
    pub(super) fn joined(&self, scopes: &[ScopeId]) -> HashMap<u64, Position> {
        let mut all = HashMap::new();
        for &scope in scopes {
            for at in self.start(scope)..self.ends[scope.0 as usize] {
                all.entry(self.ids[at]).or_insert(Position(at as u32));
            }
        }
        all
    }

    /// Returns the callsite of an ID in a scope.
    pub(super) fn get(&self, scope: ScopeId, iid: u64) -> Option<CallsiteId> {
        self.find(scope, iid, &mut 0).map(|at| self.callsite(at))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_found_in_any_order_and_only_in_their_scope() {
        let scopes = [
            vec![(5, 0), (9, 1), (7, 2), (9, 3)],
            vec![],
            vec![(5, 4), (100, 5)],
        ];
        let callstacks = Callstacks::new(
            scopes
                .iter()
                .map(|pairs| {
                    let mut ids = CallstackIds::default();
                    for &(iid, site) in pairs {
                        ids.define(iid, CallsiteId(site));
                    }
                    ids
                })
                .collect::<Vec<_>>()
                .into_iter(),
        );
        let mut hint = 0;
        for _ in 0..2 {
            for (scope, iid, site) in [
                (0, 5, Some(0)),
                (0, 7, Some(2)),
                (0, 9, Some(1)),
                (0, 100, None),
                (2, 100, Some(5)),
                (2, 5, Some(4)),
                (1, 5, None),
                (0, 7, Some(2)),
                (0, 6, None),
                (2, 7, None),
            ] {
                let found = callstacks.find(ScopeId(scope), iid, &mut hint);
                let found = found.map(|at| callstacks.callsite(at).0);
                assert_eq!(found, site, "{scope} {iid}");
            }
        }
    }

    #[test]
    fn every_id_of_many_is_found_from_any_hint() {
        let mut ids = CallstackIds::default();
        for n in 0..1000u64 {
            ids.define(n * n, CallsiteId(n as u32));
        }
        let callstacks = Callstacks::new([ids].into_iter());
        for step in [1, 7, 501, 999] {
            let mut hint = 0;
            for n in 0..1000u64 {
                let n = n * step % 1000;
                let found = callstacks.find(ScopeId(0), n * n, &mut hint);
                assert_eq!(found, Some(Position(n as u32)));
                assert_eq!(callstacks.find(ScopeId(0), n * n + 2, &mut hint), None);
            }
        }
    }
}
