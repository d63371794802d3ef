//! The objects to look at, and their division among threads.

use std::num::NonZero;
use std::sync::atomic::{AtomicU64, Ordering};

use heaptap_model::heap_graph::{ClassIndex, HeapGraph, HeapKind, ObjectIndex, Reachable};

/// A heap, and which of its objects count.
pub(super) struct Scope<'g> {
    pub graph: &'g HeapGraph,
    reachable: &'g Reachable,
}

/// Below so many objects one thread is faster than two.
const WORTH_THREADS: usize = 100_000;

impl<'g> Scope<'g> {
    pub fn new(graph: &'g HeapGraph, reachable: &'g Reachable) -> Scope<'g> {
        Scope { graph, reachable }
    }

    /// Whether the app has it and it is no garbage.
    pub fn counts(&self, object: ObjectIndex) -> bool {
        let shared = matches!(
            self.graph.heap_of(object),
            HeapKind::Zygote | HeapKind::BootImage
        );
        !shared && self.reachable.contains(object)
    }

    /// What `of_class` says of each class that it knows.
    pub fn classes<T: Copy>(&self, of_class: impl Fn(ClassIndex) -> Option<T>) -> Vec<Option<T>> {
        let classes = 0..self.graph.classes().len() as u32;
        classes.map(|class| of_class(ClassIndex(class))).collect()
    }

    /// The class or the nearest superclass that has one of these names, by its place in them.
    pub fn nearest(&self, class: ClassIndex, names: &[&str]) -> Option<usize> {
        // No real hierarchy is as tall.
        self.graph.ancestry(class).take(64).find_map(|class| {
            let name = self.graph.class(class).shown();
            names.iter().position(|known| *known == name)
        })
    }

    /// Hands objects that count and whose class `wanted` knows to `each`, with what is known.
    /// Each thread gathers into what `start` makes, a contiguous range of objects; results come
    /// in the order of those ranges.
    pub fn gather<T: Send, C: Copy + Sync>(
        &self,
        wanted: &[Option<C>],
        start: impl Fn() -> T + Sync,
        each: impl Fn(&mut T, ObjectIndex, C) + Sync,
    ) -> Vec<T> {
        if wanted.iter().all(Option::is_none) {
            return Vec::new();
        }
        let objects = self.graph.len();
        let threads = match objects {
            0..WORTH_THREADS => 1,
            _ => std::thread::available_parallelism()
                .map_or(1, NonZero::get)
                .min(16),
        };
        let run = |part: usize| -> T {
            let range = objects * part / threads..objects * (part + 1) / threads;
            let mut gathered = start();
            for at in range {
                let object = ObjectIndex(at as u32);
                let class = self.graph.class_of(object);
                if let Some(known) = wanted[class.at()]
                    && self.counts(object)
                {
                    each(&mut gathered, object, known);
                }
            }
            gathered
        };
        if threads == 1 {
            return vec![run(0)];
        }
        std::thread::scope(|scope| {
            let run = &run;
            let parts: Vec<_> = (0..threads)
                .map(|part| scope.spawn(move || run(part)))
                .collect();
            parts
                .into_iter()
                .map(|part| match part.join() {
                    Ok(result) => result,
                    Err(panic) => std::panic::resume_unwind(panic),
                })
                .collect()
        })
    }
}

/// Bits by object that several threads set.
pub(super) struct SharedMarks {
    words: Vec<AtomicU64>,
}

impl SharedMarks {
    pub fn new(len: usize) -> SharedMarks {
        SharedMarks {
            words: (0..len.div_ceil(64)).map(|_| AtomicU64::new(0)).collect(),
        }
    }

    /// Marks an object; whether nobody had before.
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
