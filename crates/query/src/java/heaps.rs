//! Java heaps as tables see them: all dumps one after the other, with a number for each object,
//! class and reference that is its row. Objects are numbered as Perfetto numbers them, in the
//! order in which the dump first names them; references in order of the objects that hold them.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::processes::Processes;
use super::super::table::TableError;
use super::{JavaHeapFacts, JavaHeaps};
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, DumpSource, Follow, HeapGraph, ObjectIndex, Reachable, Referrers,
    ShortestPaths,
};

/// The dumps of an input, read when a table of theirs first needs them.
#[derive(Clone)]
pub struct LazyHeaps {
    shared: Arc<Shared>,
}

struct Shared {
    input: Arc<dyn JavaHeaps>,
    processes: Arc<Processes>,
    read: OnceLock<Result<Arc<Heaps>, TableError>>,
}

impl LazyHeaps {
    pub(crate) fn new(input: &Arc<dyn JavaHeaps>, processes: &Arc<Processes>) -> LazyHeaps {
        LazyHeaps {
            shared: Arc::new(Shared {
                input: Arc::clone(input),
                processes: Arc::clone(processes),
                read: OnceLock::new(),
            }),
        }
    }

    /// What is known of the dumps without reading them, with their `upid`s.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&JavaHeapFacts, u32)> {
        let all = self.shared.input.list().iter();
        all.map(|facts| (facts, self.upid(facts)))
    }

    /// The processes that rows refer to.
    pub(super) fn processes(&self) -> Arc<Processes> {
        Arc::clone(&self.shared.processes)
    }

    fn upid(&self, facts: &JavaHeapFacts) -> u32 {
        let upid = facts.pid.and_then(|pid| self.shared.processes.upid(pid));
        // Nobody's: an HPROF does not say whose it is.
        upid.unwrap_or(0)
    }

    /// The dumps, read now if they were not before.
    ///
    /// # Errors
    /// Those of reading them, each time.
    pub(crate) fn get(&self) -> Result<Arc<Heaps>, TableError> {
        let read = || {
            let listed = self.list().enumerate();
            let dumps = listed.map(|(at, (facts, upid))| {
                Ok(Dump {
                    graph: self.shared.input.read(at)?,
                    facts: facts.clone(),
                    upid,
                })
            });
            Heaps::of(dumps.collect::<Result<_, _>>()?).map(Arc::new)
        };
        self.shared.read.get_or_init(read).clone()
    }
}

/// A dump that was read.
pub(super) struct Dump {
    pub(super) graph: Arc<HeapGraph>,
    pub(super) facts: JavaHeapFacts,
    pub(super) upid: u32,
}

/// All dumps of an input, in order of time.
pub(crate) struct Heaps {
    heaps: Vec<Heap>,
}

/// A dump, where its rows begin, and what was computed of it.
pub(crate) struct Heap {
    pub(crate) graph: Arc<HeapGraph>,
    pub(super) facts: JavaHeapFacts,
    pub(crate) upid: u32,
    first_object: usize,
    first_class: usize,
    first_reference: usize,
    numbering: OnceLock<Numbering>,
    reachable: OnceLock<Reachable>,
    dominators: OnceLock<Dominators>,
    paths: OnceLock<ShortestPaths>,
    best_paths: OnceLock<ShortestPaths>,
    referrers: OnceLock<Referrers>,
}

/// The order of a dump's objects as rows.
enum Numbering {
    /// That of their ids.
    ById,
    /// That in which the dump names them.
    ByPlace(Vec<ObjectIndex>),
    /// The same, where it does not name all.
    Mixed {
        objects: Vec<ObjectIndex>,
        rows: Vec<u32>,
    },
}

impl Numbering {
    fn of(graph: &HeapGraph) -> Numbering {
        let mut is_by_id = true;
        let mut objects = vec![ObjectIndex::NONE; graph.len()];
        let mut is_whole = true;
        for object in graph.objects() {
            let place = graph.place(object);
            is_by_id &= place == object.0;
            match objects.get_mut(place as usize) {
                Some(free) if *free == ObjectIndex::NONE => *free = object,
                _ => is_whole = false,
            }
        }
        if is_by_id {
            return Numbering::ById;
        }
        if is_whole {
            return Numbering::ByPlace(objects);
        }
        let mut objects: Vec<ObjectIndex> = graph.objects().collect();
        objects.sort_by_key(|&object| graph.place(object));
        let mut rows = vec![0; objects.len()];
        for (row, object) in objects.iter().enumerate() {
            rows[object.at()] = row as u32;
        }
        Numbering::Mixed { objects, rows }
    }
}

impl Heap {
    fn numbering(&self) -> &Numbering {
        self.numbering.get_or_init(|| Numbering::of(&self.graph))
    }

    /// The row of an object.
    pub(super) fn row(&self, object: ObjectIndex) -> usize {
        let row = match self.numbering() {
            Numbering::ById => object.0,
            Numbering::ByPlace(_) => self.graph.place(object),
            Numbering::Mixed { rows, .. } => rows[object.at()],
        };
        self.first_object + row as usize
    }

    /// The object of a row of this dump.
    pub(super) fn object(&self, row: usize) -> ObjectIndex {
        let at = row - self.first_object;
        match self.numbering() {
            Numbering::ById => ObjectIndex(at as u32),
            Numbering::ByPlace(objects) | Numbering::Mixed { objects, .. } => objects[at],
        }
    }

    /// The rows of the dump's objects.
    pub(super) fn rows(&self) -> Range<usize> {
        self.first_object..self.first_object + self.graph.len()
    }

    /// The objects of the dump in order of their rows.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.rows().map(|row| self.object(row))
    }

    /// The row of a class.
    pub(super) fn class_row(&self, class: ClassIndex) -> usize {
        self.first_class + class.at()
    }

    /// The row of the first of all references of the dump; those of one object follow each other.
    pub(super) fn first_reference(&self) -> usize {
        self.first_reference
    }

    /// When it was dumped, ns of trace time.
    pub(crate) fn ts(&self) -> i64 {
        self.facts.time_ns as i64
    }

    /// What roots reach.
    pub(super) fn reachable(&self) -> &Reachable {
        self.reachable
            .get_or_init(|| Reachable::of(&self.graph, Follow::default()))
    }

    /// Who keeps whom alone.
    pub(super) fn dominators(&self) -> &Dominators {
        self.dominators
            .get_or_init(|| Dominators::compute(&self.graph, Follow::default()))
    }

    /// The shortest paths from roots.
    pub(crate) fn paths(&self) -> &ShortestPaths {
        self.paths
            .get_or_init(|| ShortestPaths::of(&self.graph, Follow::default()))
    }

    /// Paths from the roots that tell the most: those that people are shown.
    pub(super) fn best_paths(&self) -> &ShortestPaths {
        self.best_paths
            .get_or_init(|| ShortestPaths::from_best_roots(&self.graph, Follow::default()))
    }

    /// Who refers to whom, weakly or not.
    pub(super) fn referrers(&self) -> &Referrers {
        self.referrers
            .get_or_init(|| Referrers::of(&self.graph, Follow::ALL))
    }
}

/// Whether the dump is an HPROF: its referents stand in a list of their own, and have rows.
pub(super) fn is_hprof(graph: &HeapGraph) -> bool {
    graph.facts.source != DumpSource::HeapGraph
}

/// Number of rows of a dump's references.
fn reference_rows(graph: &HeapGraph) -> usize {
    let apart = match is_hprof(graph) {
        true => graph.referents().len(),
        false => 0,
    };
    graph.reference_count() + apart
}

impl Heaps {
    /// Numbers the rows of dumps.
    ///
    /// # Errors
    /// Where they have more of something than a table can have rows.
    pub(super) fn of(mut dumps: Vec<Dump>) -> Result<Heaps, TableError> {
        // An HPROF tells its time when it is read, not before.
        for dump in &mut dumps {
            if dump.facts.time_ns == 0 {
                dump.facts.time_ns = dump.graph.facts.time_ns;
            }
        }
        // As the column shows it, which is declared sorted.
        dumps.sort_by_key(|dump| dump.facts.time_ns as i64);
        let (mut objects, mut classes, mut references) = (0usize, 0usize, 0usize);
        let mut heaps = Vec::with_capacity(dumps.len());
        for dump in dumps {
            let graph = dump.graph;
            let (first_object, first_class, first_reference) = (objects, classes, references);
            objects += graph.len();
            classes += graph.classes().len();
            references += reference_rows(&graph);
            heaps.push(Heap {
                graph,
                facts: dump.facts,
                upid: dump.upid,
                first_object,
                first_class,
                first_reference,
                numbering: OnceLock::new(),
                reachable: OnceLock::new(),
                dominators: OnceLock::new(),
                paths: OnceLock::new(),
                best_paths: OnceLock::new(),
                referrers: OnceLock::new(),
            });
        }
        let most = objects.max(classes).max(references);
        if u32::try_from(most).is_err() {
            return Err(TableError(format!(
                "{} dumps together have more objects or references than a table can have rows: \
                 name one with @N",
                heaps.len()
            )));
        }
        Ok(Heaps { heaps })
    }

    /// The dumps, in order of time.
    pub(crate) fn all(&self) -> &[Heap] {
        &self.heaps
    }

    /// Number of objects.
    pub(super) fn objects(&self) -> usize {
        self.heaps
            .last()
            .map_or(0, |last| last.first_object + last.graph.len())
    }

    /// Number of classes.
    pub(super) fn classes(&self) -> usize {
        self.heaps
            .last()
            .map_or(0, |last| last.first_class + last.graph.classes().len())
    }

    /// Number of references.
    pub(super) fn references(&self) -> usize {
        self.heaps
            .last()
            .map_or(0, |last| last.first_reference + reference_rows(&last.graph))
    }

    /// The dump that a row lies in, by where each begins.
    fn holding(&self, row: usize, first: impl Fn(&Heap) -> usize) -> &Heap {
        match &self.heaps[..] {
            [only] => only,
            // The last that begins at or before it: of empty ones and the one behind them, that.
            all => &all[all.partition_point(|heap| first(heap) <= row) - 1],
        }
    }

    /// The position in [`Heaps::all`] of the dump that an object's row lies in.
    pub(super) fn position(&self, row: usize) -> usize {
        let all = &self.heaps;
        all.partition_point(|heap| heap.first_object <= row) - 1
    }

    /// The dump and the object of a row below [`Heaps::objects`].
    pub(super) fn object(&self, row: usize) -> (&Heap, ObjectIndex) {
        let heap = self.holding(row, |heap| heap.first_object);
        (heap, heap.object(row))
    }

    /// The same for any number that a query may name.
    pub(super) fn find_object(&self, row: i64) -> Option<(&Heap, ObjectIndex)> {
        let row = usize::try_from(row).ok()?;
        (row < self.objects()).then(|| self.object(row))
    }

    /// The dump and the class of a row below [`Heaps::classes`].
    pub(super) fn class(&self, row: usize) -> (&Heap, ClassIndex) {
        let heap = self.holding(row, |heap| heap.first_class);
        (heap, ClassIndex((row - heap.first_class) as u32))
    }

    /// The dump of a reference's row, below [`Heaps::references`].
    pub(super) fn of_reference(&self, row: usize) -> &Heap {
        self.holding(row, |heap| heap.first_reference)
    }
}
