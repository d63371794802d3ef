//! Reference fields that are not null: by class those of the first instance, and the instances that differ
//! from it. Otherwise, each instance with null fields is read again to name its references.

use super::classes::{Classes, Layout};
use heaptap_model::heap_graph::{ClassIndex, ObjectIndex, SharedObjectSet};
use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering};

/// Maximum number of reference fields of a class: one bit each.
const MAX_FIELDS: u32 = u32::BITS;

/// Patterns of reference fields that are not null. Threads note them while they link instances.
pub(super) struct FilledFields {
    /// By class, the places in `usual`, one for each reference field; none if the class has more than
    /// [`MAX_FIELDS`], or referents, which are no references but have bits.
    places: Vec<Range<u32>>,
    /// By class and number of references from 1, the pattern of the first instance that was linked, as
    /// [`Contents::filled_fields`](heaptap_model::heap_graph::Contents::filled_fields) returns it; 0 if there
    /// was none.
    usual: Vec<AtomicU32>,
    /// Instances with other patterns, and other objects of classes that have patterns.
    unusual: SharedObjectSet,
}

impl FilledFields {
    pub(super) fn new(classes: &Classes, objects: usize) -> FilledFields {
        let mut end = 0;
        let places = |layout: &Layout| {
            let fields = classes.references(layout).len() as u32;
            let start = end;
            let has_places = fields <= MAX_FIELDS && layout.reference.is_none();
            end += if has_places { fields } else { 0 };
            start..end
        };
        FilledFields {
            places: classes.layouts.iter().map(places).collect(),
            usual: (0..end).map(|_| AtomicU32::new(0)).collect(),
            unusual: SharedObjectSet::new(objects),
        }
    }

    /// Notes an object that is not an instance with fields of its class: an array or a class object.
    #[inline]
    pub(super) fn note_other(&self, class: ClassIndex, object: ObjectIndex) {
        if !self.places[class.at()].is_empty() {
            self.unusual.insert(object);
        }
    }

    /// Notes the pattern of an instance.
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

    /// Returns the pattern of an instance with that many references, if it is the usual one.
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
