//! Selection of objects by heap and by regular expressions over class names.

use super::label;
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, HeapKind, ObjectIndex};
use regex::Regex;

/// Filter for objects whose class name matches a pattern of `focus` (any class if `focus` is empty)
/// and no pattern of `ignore`.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Patterns of which one must match, if any are given.
    pub focus: Vec<Regex>,
    /// Patterns that must not match.
    pub ignore: Vec<Regex>,
    /// Only objects in these heaps; empty for every heap.
    pub heaps: Vec<HeapKind>,
}

/// Filter applied to the objects of one graph.
pub struct ObjectFilter<'a> {
    graph: &'a HeapGraph,
    classes: Vec<bool>,
    heaps: &'a [HeapKind],
}

impl ObjectFilter<'_> {
    /// Returns whether the filter selects the object.
    #[inline]
    pub fn takes(&self, object: ObjectIndex) -> bool {
        self.classes[self.graph.class_of(object).at()]
            && (self.heaps.is_empty() || self.heaps.contains(&self.graph.heap_of(object)))
    }
}

impl Filter {
    /// Returns whether the filter selects every object.
    pub fn takes_all(&self) -> bool {
        self.focus.is_empty() && self.ignore.is_empty() && self.heaps.is_empty()
    }

    /// Returns whether the filter selects a class name.
    pub fn takes(&self, name: &str) -> bool {
        let any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(name));
        (self.focus.is_empty() || any(&self.focus)) && !any(&self.ignore)
    }

    /// Returns whether the filter selects any class of a graph that has objects in the selected
    /// heap.
    pub fn matches(&self, graph: &HeapGraph) -> bool {
        let filter = self.of(graph);
        match self.heaps.is_empty() {
            true => filter.classes.contains(&true),
            false => graph.objects().any(|object| filter.takes(object)),
        }
    }

    /// Returns the number of these objects that the filter selects.
    pub fn count(&self, graph: &HeapGraph, objects: &[ObjectIndex]) -> usize {
        if self.takes_all() {
            return objects.len();
        }
        let filter = self.of(graph);
        objects.iter().filter(|&&o| filter.takes(o)).count()
    }

    /// Applies the filter to a graph, by the names that tables show.
    pub fn of<'a>(&'a self, graph: &'a HeapGraph) -> ObjectFilter<'a> {
        let takes = |class| self.takes(label::class_name(graph, ClassIndex(class)));
        ObjectFilter {
            graph,
            classes: (0..graph.classes().len() as u32).map(takes).collect(),
            heaps: &self.heaps,
        }
    }
}
