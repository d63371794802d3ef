//! Which objects are wanted: by regular expressions over names of classes, by heap.

use super::label;
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, HeapKind, ObjectIndex};
use regex::Regex;

/// Objects of classes whose names match one of `focus` (or of all, where there is none) and none
/// of `ignore`.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Any of these is wanted.
    pub focus: Vec<Regex>,
    /// None of these is.
    pub ignore: Vec<Regex>,
    /// Only objects that lie there.
    pub heap: Option<HeapKind>,
}

/// A filter over the objects of one graph.
pub struct ObjectFilter<'a> {
    graph: &'a HeapGraph,
    classes: Vec<bool>,
    heap: Option<HeapKind>,
}

impl ObjectFilter<'_> {
    /// Whether the object is wanted.
    pub fn takes(&self, object: ObjectIndex) -> bool {
        self.classes[self.graph.class_of(object).at()]
            && self
                .heap
                .is_none_or(|heap| self.graph.heap_of(object) == heap)
    }
}

impl Filter {
    /// Whether it takes every object.
    pub fn takes_all(&self) -> bool {
        self.focus.is_empty() && self.ignore.is_empty() && self.heap.is_none()
    }

    /// Whether a class of that name is wanted.
    pub fn takes(&self, name: &str) -> bool {
        let any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(name));
        (self.focus.is_empty() || any(&self.focus)) && !any(&self.ignore)
    }

    /// Whether any class of a graph is wanted, with objects in the heap that is.
    pub fn matches(&self, graph: &HeapGraph) -> bool {
        let filter = self.of(graph);
        match self.heap {
            None => filter.classes.contains(&true),
            Some(_) => graph.objects().any(|object| filter.takes(object)),
        }
    }

    /// The objects of a graph that are wanted: by the names that tables show.
    pub fn of<'a>(&self, graph: &'a HeapGraph) -> ObjectFilter<'a> {
        let takes = |class| self.takes(label::class_name(graph, ClassIndex(class)));
        ObjectFilter {
            graph,
            classes: (0..graph.classes().len() as u32).map(takes).collect(),
            heap: self.heap,
        }
    }
}
