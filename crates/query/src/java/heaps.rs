//! Java heaps as tables: all dumps one after the other. Each object, class and reference has a
//! number, which is its row. Objects are numbered as in Perfetto, in the order in which the dump
//! first names them; references are numbered in the order of their owners.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::super::once::read_once;
use super::super::processes::Processes;
use super::super::table::{Model, TableError};
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, DumpSource, Follow, HeapGraph, ObjectIndex, OutOfMemory, Reachable,
    ShortestPaths,
};

/// Facts about a Java heap that are known before it is read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JavaHeapFacts {
    /// Process ID; `None` if the dump does not have one (HPROF).
    pub pid: Option<u64>,
    /// Process name; empty if unknown.
    pub process: String,
    /// Trace time in ns.
    pub time_ns: u64,
    /// Reason for the dump, such as `OOME`.
    pub reason: Option<String>,
    /// The OutOfMemoryError that caused the dump.
    pub out_of_memory: Option<OutOfMemory>,
    /// The dump is known to be of an OutOfMemoryError.
    pub is_out_of_memory: bool,
}

/// Java heaps of an input, each read when a table first needs it.
pub trait JavaHeaps: Send + Sync {
    /// Returns all heaps in order of time.
    fn list(&self) -> &[JavaHeapFacts];

    /// Reads the heap at a position in [`JavaHeaps::list`].
    ///
    /// # Errors
    /// Returns an error with a message for the user if the heap cannot be read.
    fn read(&self, at: usize) -> Result<Arc<HeapGraph>, TableError>;

    /// Returns the dominators of a heap over the references of [`Follow::default`], if they are
    /// computed already.
    ///
    /// [`Follow::default`]: heaptap_model::heap_graph::Follow
    fn dominators(&self, _at: usize) -> Option<Arc<Dominators>> {
        None
    }
}

/// Dumps of an input, read when a table first needs them.
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

    /// Returns the facts known before the dumps are read, with their `upid`s.
    pub(crate) fn list(&self) -> impl Iterator<Item = (&JavaHeapFacts, u32)> {
        let all = self.shared.input.list().iter();
        all.map(|facts| (facts, self.upid(facts)))
    }

    /// Returns the processes that rows refer to.
    pub(super) fn processes(&self) -> Arc<Processes> {
        Arc::clone(&self.shared.processes)
    }

    /// Returns the dump and the object of a row in the tables of objects; `None` if no table has read
    /// the dumps yet, or there is no such row.
    pub fn object_at(&self, row: usize) -> Option<(Arc<HeapGraph>, ObjectIndex)> {
        let heaps = self.shared.read.get()?.as_ref().ok()?;
        if row >= heaps.objects() {
            return None;
        }
        let (heap, object) = heaps.object(row);
        Some((Arc::clone(&heap.graph), object))
    }

    fn upid(&self, facts: &JavaHeapFacts) -> u32 {
        let upid = facts.pid.and_then(|pid| self.shared.processes.upid(pid));
        // An HPROF does not name its process.
        upid.unwrap_or(0)
    }

    /// Returns a model made from all dumps.
    pub(super) fn model<M: Send + Sync + 'static>(
        &self,
        make: impl Fn(Arc<Heaps>) -> M + Send + Sync + 'static,
    ) -> Model<M> {
        let heaps = self.clone();
        read_once(move || Ok(make(heaps.get()?)))
    }

    /// Returns the dumps themselves as a model.
    pub(super) fn whole(&self) -> Model<Heaps> {
        let heaps = self.clone();
        Arc::new(move || heaps.get())
    }

    /// Returns the dumps and reads them on the first call.
    ///
    /// # Errors
    /// Returns the error of reading them, on every call.
    pub(crate) fn get(&self) -> Result<Arc<Heaps>, TableError> {
        let read = || {
            let listed = self.list().enumerate();
            let dumps = listed.map(|(at, (facts, upid))| {
                Ok(Dump {
                    graph: self.shared.input.read(at)?,
                    dominators: self.shared.input.dominators(at),
                    facts: facts.clone(),
                    upid,
                })
            });
            Heaps::from_dumps(dumps.collect::<Result<_, TableError>>()?).map(Arc::new)
        };
        self.shared.read.get_or_init(read).clone()
    }
}

pub(super) struct Dump {
    pub(super) graph: Arc<HeapGraph>,
    /// `None` if they are not computed yet.
    pub(super) dominators: Option<Arc<Dominators>>,
    pub(super) facts: JavaHeapFacts,
    pub(super) upid: u32,
}

pub(crate) struct Heaps {
    heaps: Vec<Heap>,
}

/// Dump with its first rows and the results computed from it.
pub(crate) struct Heap {
    pub(crate) graph: Arc<HeapGraph>,
    pub(super) facts: JavaHeapFacts,
    pub(crate) upid: u32,
    first_object: usize,
    first_class: usize,
    first_reference: usize,
    numbering: OnceLock<Numbering>,
    reachable: OnceLock<Reachable>,
    dominators: OnceLock<Arc<Dominators>>,
    paths: OnceLock<ShortestPaths>,
    best_paths: OnceLock<ShortestPaths>,
}

/// Order of a dump's objects as rows.
enum Numbering {
    /// Order of the objects' IDs.
    ById,
    /// Order in which the dump names the objects.
    ByPlace(Vec<ObjectIndex>),
    /// The same, for dumps that do not name all objects.
    Mixed {
        objects: Vec<ObjectIndex>,
        rows: Vec<u32>,
    },
}

impl Numbering {
    fn from_graph(graph: &HeapGraph) -> Numbering {
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
        self.numbering
            .get_or_init(|| Numbering::from_graph(&self.graph))
    }

    pub(super) fn row(&self, object: ObjectIndex) -> usize {
        let row = match self.numbering() {
            Numbering::ById => object.0,
            Numbering::ByPlace(_) => self.graph.place(object),
            Numbering::Mixed { rows, .. } => rows[object.at()],
        };
        self.first_object + row as usize
    }

    /// Returns the object of a row of this dump.
    pub(super) fn object(&self, row: usize) -> ObjectIndex {
        let at = row - self.first_object;
        match self.numbering() {
            Numbering::ById => ObjectIndex(at as u32),
            Numbering::ByPlace(objects) | Numbering::Mixed { objects, .. } => objects[at],
        }
    }

    /// Returns the rows of the dump's objects.
    pub(super) fn rows(&self) -> Range<usize> {
        self.first_object..self.first_object + self.graph.len()
    }

    /// Returns the objects of the dump in the order of their rows.
    pub(super) fn objects(&self) -> impl Iterator<Item = ObjectIndex> + '_ {
        self.rows().map(|row| self.object(row))
    }

    pub(super) fn class_row(&self, class: ClassIndex) -> usize {
        self.first_class + class.at()
    }

    /// Returns the row of the first reference of the dump; references of one object are adjacent.
    pub(super) fn first_reference(&self) -> usize {
        self.first_reference
    }

    /// Returns the time of the dump, ns of trace time.
    pub(crate) fn ts(&self) -> i64 {
        self.facts.time_ns as i64
    }

    /// Returns the objects reachable from roots.
    pub(super) fn reachable(&self) -> &Reachable {
        self.reachable
            .get_or_init(|| Reachable::new(&self.graph, Follow::default()))
    }

    /// Returns the dominator tree.
    pub(super) fn dominators(&self) -> &Dominators {
        self.dominators
            .get_or_init(|| Dominators::compute(&self.graph, Follow::default()).into())
    }

    /// Returns the shortest paths from roots.
    pub(crate) fn paths(&self) -> &ShortestPaths {
        self.paths
            .get_or_init(|| ShortestPaths::new(&self.graph, Follow::default()))
    }

    /// Returns paths from the most informative roots: those shown to users.
    pub(super) fn best_paths(&self) -> &ShortestPaths {
        self.best_paths
            .get_or_init(|| ShortestPaths::from_best_roots(&self.graph, Follow::default()))
    }
}

/// Returns whether the dump is an HPROF: its referents are in a separate list and have rows.
pub(super) fn is_hprof(graph: &HeapGraph) -> bool {
    graph.facts.source != DumpSource::HeapGraph
}

/// Returns the number of rows of a dump's references.
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
    /// Returns an error if there are more items of one kind than a table can have rows.
    pub(super) fn from_dumps(mut dumps: Vec<Dump>) -> Result<Heaps, TableError> {
        // The time of an HPROF is known only after reading it.
        for dump in &mut dumps {
            if dump.facts.time_ns == 0 {
                dump.facts.time_ns = dump.graph.facts.time_ns;
            }
        }
        // Sort by the signed value that the column shows, because the column is declared sorted.
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
                dominators: dump.dominators.map_or_else(OnceLock::new, OnceLock::from),
                paths: OnceLock::new(),
                best_paths: OnceLock::new(),
            });
        }
        let most = objects.max(classes).max(references);
        if u32::try_from(most).is_err() {
            return Err(TableError(format!(
                "{} dumps together have more objects or references than a table can have rows; \
                 select one dump with @N",
                heaps.len()
            )));
        }
        Ok(Heaps { heaps })
    }

    /// Returns the dumps in order of time.
    pub(crate) fn all(&self) -> &[Heap] {
        &self.heaps
    }

    pub(super) fn objects(&self) -> usize {
        self.heaps
            .last()
            .map_or(0, |last| last.first_object + last.graph.len())
    }

    pub(super) fn classes(&self) -> usize {
        self.heaps
            .last()
            .map_or(0, |last| last.first_class + last.graph.classes().len())
    }

    pub(super) fn references(&self) -> usize {
        self.heaps
            .last()
            .map_or(0, |last| last.first_reference + reference_rows(&last.graph))
    }

    /// Returns the dump that contains a row, given the first row of each dump.
    fn holding(&self, row: usize, first: impl Fn(&Heap) -> usize) -> &Heap {
        match &self.heaps[..] {
            [only] => only,
            // The last dump that begins at or before the row; empty dumps before it begin there,
            // too.
            all => &all[all.partition_point(|heap| first(heap) <= row) - 1],
        }
    }

    /// Returns the position in [`Heaps::all`] of the dump that contains an object's row.
    pub(super) fn position(&self, row: usize) -> usize {
        let all = &self.heaps;
        all.partition_point(|heap| heap.first_object <= row) - 1
    }

    /// Returns the dump and the object of a row below [`Heaps::objects`].
    pub(super) fn object(&self, row: usize) -> (&Heap, ObjectIndex) {
        let heap = self.holding(row, |heap| heap.first_object);
        (heap, heap.object(row))
    }

    /// Returns the dump and the object of any number in a query, if there is one.
    pub(super) fn find_object(&self, row: i64) -> Option<(&Heap, ObjectIndex)> {
        let row = usize::try_from(row).ok()?;
        (row < self.objects()).then(|| self.object(row))
    }

    /// Returns the dump and the class of a row below [`Heaps::classes`].
    pub(super) fn class(&self, row: usize) -> (&Heap, ClassIndex) {
        let heap = self.holding(row, |heap| heap.first_class);
        (heap, ClassIndex((row - heap.first_class) as u32))
    }

    /// Returns the dump of a reference's row below [`Heaps::references`].
    pub(super) fn of_reference(&self, row: usize) -> &Heap {
        self.holding(row, |heap| heap.first_reference)
    }
}
