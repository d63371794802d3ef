//! Which objects a list has, and lists that were sorted last.

use heaptap_base::parallel::lock;
use heaptap_model::heap_graph::ObjectIndex;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ObjectList {
    /// All reachable ones.
    All,
    /// Those of all classes with this name.
    Class(String),
    /// Those whose immediate dominator it is.
    Dominated(ObjectIndex),
    /// Those without an immediate dominator.
    Top,
}

/// Order of the objects, largest first; in the order of IDs among equal ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectSort {
    Retained,
    Shallow,
}

/// Lists that were sorted last, for their other pages.
#[derive(Default)]
pub(crate) struct SortedLists(Mutex<VecDeque<SortedList>>);

struct SortedList {
    list: ObjectList,
    sort: ObjectSort,
    objects: Arc<Vec<ObjectIndex>>,
}

/// Number of lists that are kept.
const KEPT_LISTS: usize = 2;

impl SortedLists {
    /// Returns a list that was kept, or else a new one.
    pub(crate) fn get(
        &self,
        (list, sort): (&ObjectList, ObjectSort),
        new: impl FnOnce() -> Vec<ObjectIndex>,
    ) -> Arc<Vec<ObjectIndex>> {
        let lock = || lock(&self.0);
        let known = |kept: &mut VecDeque<SortedList>| {
            let is_it = |kept: &SortedList| kept.list == *list && kept.sort == sort;
            let at = kept.iter().position(is_it)?;
            let latest = kept.remove(at)?;
            let objects = Arc::clone(&latest.objects);
            kept.push_front(latest);
            Some(objects)
        };
        if let Some(objects) = known(&mut lock()) {
            return objects;
        }
        let objects = Arc::new(new());
        let mut kept = lock();
        // Another thread can have sorted it meanwhile.
        if let Some(objects) = known(&mut kept) {
            return objects;
        }
        kept.push_front(SortedList {
            list: list.clone(),
            sort,
            objects: Arc::clone(&objects),
        });
        kept.truncate(KEPT_LISTS);
        objects
    }
}
