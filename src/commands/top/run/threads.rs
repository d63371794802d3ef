//! `top --by thread` of a Java heap: what the frames and the object of each thread hold.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::Serialize;

use crate::heaps::java::facts::Figures;
use crate::heaps::java::heap::JavaHeap;
use heaptap_analyze::histogram::Sums;
use heaptap_analyze::label;
use heaptap_model::heap_graph::{ObjectIndex, Root, RootKind};

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ThreadRow {
    /// Serial number in the dump.
    pub serial: u32,
    /// ID of its `java.lang.Thread`, hexadecimal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Frames, the innermost first, such as `lab.LeakLab.fill (LeakLab.java:42)`.
    pub stack: Vec<String>,
    /// Objects that GC roots of its frames hold, largest first.
    pub locals: Vec<LocalRow>,
}

/// An object that a frame holds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LocalRow {
    /// ID in the dump, hexadecimal.
    pub id: String,
    /// Class, or `class X` of a class object.
    pub name: String,
    /// Kind of the GC root.
    pub root: &'static str,
    /// Index of the frame in the stack, if it is known.
    pub frame: Option<u32>,
    #[serde(flatten)]
    pub figures: Figures,
}

/// Threads that have GC roots.
pub(super) struct Threads<'a> {
    heap: &'a JavaHeap,
    /// Roots of each thread, by its serial number.
    roots: BTreeMap<u32, Vec<Root>>,
}

impl<'a> Threads<'a> {
    pub(super) fn from_heap(heap: &'a JavaHeap) -> Threads<'a> {
        let mut roots: BTreeMap<u32, Vec<Root>> = BTreeMap::new();
        for root in heap.graph.roots() {
            if let Some(serial) = root.thread {
                roots.entry(serial).or_default().push(*root);
            }
        }
        Threads { heap, roots }
    }

    /// Returns the name of each thread and what its roots hold together. The stack and the locals
    /// are missing.
    pub(super) fn rows(&self) -> impl Iterator<Item = (String, Figures, ThreadRow)> {
        let graph = &self.heap.graph;
        self.roots.iter().map(|(&serial, roots)| {
            let mut objects: Vec<ObjectIndex> = roots.iter().map(|root| root.object).collect();
            objects.sort_unstable();
            objects.dedup();
            let mut sums = Sums::default();
            for &object in &objects {
                sums.add(graph, object);
            }
            sums.retained = self.heap.dominators().retained_together(&objects);
            let thread = graph.contents().thread(graph, serial).unwrap_or_default();
            let row = ThreadRow {
                serial,
                id: thread.object.map(|object| graph.id(object).to_string()),
                stack: Vec::new(),
                locals: Vec::new(),
            };
            let name = thread.name.unwrap_or_else(|| format!("#{serial}"));
            (name, Figures::with_retained(&sums), row)
        })
    }

    /// Adds the stack and the locals, which are long.
    pub(super) fn complete(&self, thread: &mut ThreadRow) {
        let contents = self.heap.graph.contents();
        let frames = (0..).map_while(|frame| contents.thread_frame(thread.serial, frame));
        thread.stack = frames.collect();
        let roots = self.roots.get(&thread.serial);
        let roots = roots.map_or(&[][..], Vec::as_slice);
        thread.locals = locals(self.heap, roots, thread.stack.len());
    }
}

/// Returns the objects that a thread's frames hold, each once, with the innermost of its frames.
fn locals(heap: &JavaHeap, roots: &[Root], frames: usize) -> Vec<LocalRow> {
    let graph = &heap.graph;
    let is_local = |root: &&Root| root.kind != RootKind::ThreadObject;
    let mut roots: Vec<Root> = roots.iter().filter(is_local).copied().collect();
    roots.sort_by_key(|root| (root.object, root.frame.unwrap_or(u32::MAX)));
    roots.dedup_by_key(|root| root.object);
    let mut rows: Vec<LocalRow> = roots
        .iter()
        .map(|root| {
            let mut sums = Sums::default();
            sums.add(graph, root.object);
            sums.retained = heap.dominators().retained(root.object);
            LocalRow {
                id: graph.id(root.object).to_string(),
                name: label::object_name(graph, root.object).into_owned(),
                root: root.kind.in_words(),
                frame: root.frame.filter(|&frame| (frame as usize) < frames),
                figures: Figures::with_retained(&sums),
            }
        })
        .collect();
    rows.sort_by_key(|row| Reverse(row.figures.retained_total()));
    rows
}
