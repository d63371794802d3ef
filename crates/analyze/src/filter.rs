//! Selection of objects by heap and by regular expressions over class names.

use super::label;
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, HeapKind, ObjectIndex};
use regex::Regex;
use std::collections::HashMap;

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
    /// A class object matches by the name of the class that it represents, `X` or `class X`: tables
    /// of objects, packages and loaders have it there.
    pub by_represented: bool,
}

/// Filter applied to the objects of one graph.
pub struct ObjectFilter<'a> {
    graph: &'a HeapGraph,
    /// As for most commands: the walk over all objects needs no class.
    takes_all: bool,
    /// `None` for the class of class objects that have verdicts of their own.
    classes: Vec<Option<bool>>,
    class_objects: HashMap<ObjectIndex, bool>,
    heaps: &'a [HeapKind],
}

impl ObjectFilter<'_> {
    /// Returns whether the filter selects the object.
    #[inline]
    pub fn takes(&self, object: ObjectIndex) -> bool {
        if self.takes_all {
            return true;
        }
        let of_class = self.classes[self.graph.class_of(object).at()];
        let is_taken = of_class.unwrap_or_else(|| self.class_objects[&object]);
        is_taken && (self.heaps.is_empty() || self.heaps.contains(&self.graph.heap_of(object)))
    }
}

impl Filter {
    /// Returns whether the filter selects every object.
    pub fn takes_all(&self) -> bool {
        self.ignore.is_empty() && !self.selects()
    }

    /// Returns whether the filter has conditions other than patterns to ignore.
    pub fn selects(&self) -> bool {
        !self.focus.is_empty() || !self.heaps.is_empty()
    }

    /// Returns whether the filter selects a class name.
    pub fn takes(&self, name: &str) -> bool {
        self.takes_one_of(&[name])
    }

    fn takes_one_of(&self, names: &[&str]) -> bool {
        let any = |patterns: &[Regex]| {
            let mut pairs = patterns
                .iter()
                .flat_map(|of| names.iter().map(move |name| (of, name)));
            pairs.any(|(pattern, name)| pattern.is_match(name))
        };
        (self.focus.is_empty() || any(&self.focus)) && !any(&self.ignore)
    }

    /// Returns whether the filter selects any class of a graph that has objects in the selected
    /// heap.
    pub fn matches(&self, graph: &HeapGraph) -> bool {
        let filter = self.of(graph);
        match self.heaps.is_empty() {
            true => {
                let mut objects = filter.class_objects.values();
                filter.classes.contains(&Some(true)) || objects.any(|&taken| taken)
            }
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
        let takes = |class| Some(self.takes(label::class_name(graph, ClassIndex(class))));
        let mut classes: Vec<Option<bool>> = (0..graph.classes().len() as u32).map(takes).collect();
        let mut class_objects = HashMap::new();
        if self.by_represented && !self.takes_all() {
            for object in label::class_objects(graph) {
                let name = label::class_behind(graph, object).unwrap_or(label::CLASS);
                let shown = label::object_name(graph, object);
                class_objects.insert(object, self.takes_one_of(&[name, &shown]));
                classes[graph.class_of(object).at()] = None;
            }
        }
        ObjectFilter {
            graph,
            takes_all: self.takes_all(),
            classes,
            class_objects,
            heaps: &self.heaps,
        }
    }
}
