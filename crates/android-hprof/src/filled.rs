//! Which fields of instances refer to something: the usual answer by class, and the instances that
//! differ. Without it, each instance with null references is read again to name the others.

use super::classes::{Classes, Layout};
use heaptap_model::heap_graph::{ClassIndex, ObjectIndex, SharedObjectSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of reference fields of a class: one bit each.
const MOST_FIELDS: u32 = u32::BITS;

/// What several threads find out while they link instances.
pub(super) struct FilledFields {
    /// By class, the places in `usual`, one for each reference field; none if the class has more than
    /// [`MOST_FIELDS`].
    places: Vec<Range<u32>>,
    /// By class and number of references from 1, the fields that have them, as
    /// [`Contents::filled_fields`](heaptap_model::heap_graph::Contents::filled_fields) returns them: those of
    /// the instance that was linked first. 0 if there was none.
    usual: Vec<AtomicU32>,
    /// Instances that have as many references in other fields.
    unusual: SharedObjectSet,
}

impl FilledFields {
    pub(super) fn new(classes: &Classes, objects: usize) -> FilledFields {
        let mut end = 0;
        let places = |layout: &Layout| {
            let fields = classes.references(layout).len() as u32;
            let start = end;
            end += if fields <= MOST_FIELDS { fields } else { 0 };
            start..end
        };
        FilledFields {
            places: classes.layouts.iter().map(places).collect(),
            usual: (0..end).map(|_| AtomicU32::new(0)).collect(),
            unusual: SharedObjectSet::new(objects),
        }
    }

    /// Notes the fields of an instance that have its references.
    #[inline]
    pub(super) fn note(&self, class: ClassIndex, object: ObjectIndex, filled: u32) {
        let Some(usual) = self.usual(class, filled.count_ones() as usize) else {
            return;
        };
        let mut known = usual.load(Ordering::Relaxed);
        if known == 0 {
            let result = usual.compare_exchange(0, filled, Ordering::Relaxed, Ordering::Relaxed);
            known = result.err().unwrap_or(filled);
        }
        if known != filled {
            self.unusual.insert(object);
        }
    }

    /// Returns the fields of an instance that have its references, if they are the usual ones.
    #[inline]
    pub(super) fn get(
        &self,
        class: ClassIndex,
        object: ObjectIndex,
        references: usize,
    ) -> Option<u64> {
        let usual = self.usual(class, references)?.load(Ordering::Relaxed);
        (usual != 0 && !self.unusual.contains(object)).then_some(usual.into())
    }

    #[inline]
    fn usual(&self, class: ClassIndex, references: usize) -> Option<&AtomicU32> {
        let Range { start, end } = *self.places.get(class.at())?;
        let places = self.usual.get(start as usize..end as usize)?;
        places.get(references.checked_sub(1)?)
    }
}
