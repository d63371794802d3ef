//! Objects to examine, and their division among threads.

use std::sync::atomic::{AtomicU64, Ordering};

use heaptap_model::heap_graph::{ClassIndex, HeapGraph, HeapKind, ObjectIndex, Reachable};
use heaptap_model::parallel;

/// Heap with the set of objects that count.
pub(super) struct Scope<'g> {
    pub graph: &'g HeapGraph,
    reachable: &'g Reachable,
    /// Numbers in fields are recorded, which `hprof strip --fields` replaces with zeros.
    pub has_numbers: bool,
}

/// Number of objects below which one thread is faster than two.
pub(super) const WORTH_THREADS: usize = 100_000;

/// Number of objects after which the contents that a thread has read are released: about ten
/// megabytes of a dump.
const RELEASE_INTERVAL_OBJECTS: usize = 1 << 17;

impl<'g> Scope<'g> {
    pub fn new(graph: &'g HeapGraph, reachable: &'g Reachable, has_numbers: bool) -> Scope<'g> {
        Scope {
            graph,
            reachable,
            has_numbers,
        }
    }

    /// Returns whether an object is reachable and belongs to the app.
    pub fn counts(&self, object: ObjectIndex) -> bool {
        let shared = matches!(
            self.graph.heap_of(object),
            HeapKind::Zygote | HeapKind::BootImage
        );
        !shared && self.reachable.contains(object)
    }

    /// Returns the value of `of_class` for each class.
    pub fn classes<T: Copy>(&self, of_class: impl Fn(ClassIndex) -> Option<T>) -> Vec<Option<T>> {
        let classes = 0..self.graph.classes().len() as u32;
        classes.map(|class| of_class(ClassIndex(class))).collect()
    }

    /// Returns the index in `names` of the class name or of the nearest superclass name.
    pub fn nearest(&self, class: ClassIndex, names: &[&str]) -> Option<usize> {
        // Real hierarchies are not that tall.
        self.graph.ancestry(class).take(64).find_map(|class| {
            let name = self.graph.class(class).shown();
            names.iter().position(|known| *known == name)
        })
    }

    /// Calls `each` with the counted objects whose class has a value in `wanted`, and that value.
    /// Each thread collects a contiguous range of objects into a value from `start`. Results are in
    /// the order of the ranges.
    pub fn gather<T: Send, C: Copy + Sync>(
        &self,
        wanted: &[Option<C>],
        start: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, ObjectIndex, C) + Sync,
    ) -> Vec<T> {
        if wanted.iter().all(Option::is_none) {
            return Vec::new();
        }
        let contents = self.graph.contents();
        let gathered = parallel::ranges(self.graph.len(), WORTH_THREADS, |range| {
            let (mut gathered, mut kept) = (start(), range.start);
            for at in range {
                let object = ObjectIndex(at as u32);
                let class = self.graph.class_of(object);
                if let Some(known) = wanted[class.at()]
                    && self.counts(object)
                {
                    each(&mut gathered, object, known);
                }
                if at % RELEASE_INTERVAL_OBJECTS == RELEASE_INTERVAL_OBJECTS - 1 {
                    // Other threads still read the rest.
                    contents.release(kept..at + 1);
                    kept = at + 1;
                }
            }
            gathered
        });
        contents.release(0..self.graph.len());
        gathered
    }
}

/// Bit set over objects that several threads can write.
pub(super) struct SharedMarks {
    words: Vec<AtomicU64>,
}

impl SharedMarks {
    pub fn new(len: usize) -> SharedMarks {
        SharedMarks {
            words: (0..len.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Marks an object. Returns whether it was unmarked before.
    pub fn add(&self, object: ObjectIndex) -> bool {
        let bit = 1 << (object.at() % 64);
        let before = self.words[object.at() / 64].fetch_or(bit, Ordering::Relaxed);
        before & bit == 0
    }

    pub fn has(&self, object: ObjectIndex) -> bool {
        let word = self.words[object.at() / 64].load(Ordering::Relaxed);
        word >> (object.at() % 64) & 1 == 1
    }
}
