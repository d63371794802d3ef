//! Objects to examine, and their division among threads.

use heaptap_base::parallel;
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, HeapKind, ObjectIndex, Reachable};

/// Heap with the set of objects that count.
pub(super) struct Scope<'g> {
    pub graph: &'g HeapGraph,
    reachable: &'g Reachable,
    /// Numbers in fields are recorded, which `hprof strip --fields` replaces with zeros.
    pub has_numbers: bool,
}

/// Number of objects below which one thread is faster than two.
pub(super) const WORTH_THREADS: usize = 100_000;

/// Number of objects after which the contents that a thread has read are released: about five
/// megabytes of a dump.
const RELEASE_INTERVAL_OBJECTS: usize = 1 << 16;
/// One of so many releases is of all contents.
const FULL_RELEASE_INTERVAL: usize = 16;

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

    /// Returns the index in `names` of the class name or of the nearest superclass name.
    pub fn nearest(&self, class: ClassIndex, names: &[&str]) -> Option<usize> {
        // Real hierarchies are not that tall.
        self.graph.ancestry(class).take(64).find_map(|class| {
            let name = self.graph.class(class).shown();
            names.iter().position(|known| *known == name)
        })
    }

    /// Examines the counted objects of the classes that are asked for. Threads examine contiguous ranges of
    /// objects; results are in the order of the ranges.
    pub fn gather<E: Examination>(&self, examination: &E) -> Vec<E::Found> {
        let wanted: Vec<Option<E::Class>> = (0..self.graph.classes().len() as u32)
            .map(|class| examination.of_class(ClassIndex(class)))
            .collect();
        if wanted.iter().all(Option::is_none) {
            return Vec::new();
        }
        let contents = self.graph.contents();
        let gathered = parallel::balanced(self.graph.len(), WORTH_THREADS, |range| {
            let (mut found, mut kept) = (examination.start(), range.start);
            for at in range {
                let object = ObjectIndex(at as u32);
                let class = self.graph.class_of(object);
                if let Some(class) = wanted[class.at()]
                    && self.counts(object)
                {
                    examination.add(&mut found, object, class);
                }
                if at % RELEASE_INTERVAL_OBJECTS == RELEASE_INTERVAL_OBJECTS - 1 {
                    // Other threads still read the rest. Contents that others were compared with are all over
                    // the dump.
                    let interval = at / RELEASE_INTERVAL_OBJECTS;
                    contents.release(match interval.is_multiple_of(FULL_RELEASE_INTERVAL) {
                        true => 0..self.graph.len(),
                        false => kept..at + 1,
                    });
                    kept = at + 1;
                }
            }
            found
        });
        self.graph.release_contents();
        gathered
    }
}

/// Examination of the objects of some classes.
pub(super) trait Examination: Sync {
    /// Facts about a class.
    type Class: Copy + Sync;
    /// What is found in a range.
    type Found: Send;

    /// Returns `None` if the objects of a class are not of interest.
    fn of_class(&self, class: ClassIndex) -> Option<Self::Class>;
    fn start(&self) -> Self::Found;
    fn add(&self, found: &mut Self::Found, object: ObjectIndex, class: Self::Class);
}

/// Two examinations at once, which spares a walk over all objects, and reading their contents again.
pub(super) struct PairedExamination<'e, A, B>(pub &'e A, pub &'e B);

impl<A: Examination, B: Examination> Examination for PairedExamination<'_, A, B> {
    type Class = (Option<A::Class>, Option<B::Class>);
    type Found = (A::Found, B::Found);

    fn of_class(&self, class: ClassIndex) -> Option<Self::Class> {
        let of_class = (self.0.of_class(class), self.1.of_class(class));
        (of_class.0.is_some() || of_class.1.is_some()).then_some(of_class)
    }

    fn start(&self) -> Self::Found {
        (self.0.start(), self.1.start())
    }

    #[inline]
    fn add(&self, found: &mut Self::Found, object: ObjectIndex, class: Self::Class) {
        if let Some(class) = class.0 {
            self.0.add(&mut found.0, object, class);
        }
        if let Some(class) = class.1 {
            self.1.add(&mut found.1, object, class);
        }
    }
}
