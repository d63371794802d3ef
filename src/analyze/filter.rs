//! Which classes are wanted, by regular expressions over their names.

use super::label;
use crate::heap_graph::{ClassIndex, HeapGraph};
use regex::Regex;

/// Classes whose names match one of `focus` (or all, where there is none) and none of `ignore`.
#[derive(Debug, Clone, Default)]
pub struct ClassFilter {
    /// Any of these is wanted.
    pub focus: Vec<Regex>,
    /// None of these is.
    pub ignore: Vec<Regex>,
}

impl ClassFilter {
    /// Whether it takes every class.
    pub fn takes_all(&self) -> bool {
        self.focus.is_empty() && self.ignore.is_empty()
    }

    /// Whether a class of that name is wanted.
    pub fn takes(&self, name: &str) -> bool {
        let any = |patterns: &[Regex]| patterns.iter().any(|pattern| pattern.is_match(name));
        (self.focus.is_empty() || any(&self.focus)) && !any(&self.ignore)
    }

    /// By class whether it is wanted: by the name that tables show.
    pub fn classes(&self, graph: &HeapGraph) -> Vec<bool> {
        (0..graph.classes().len() as u32)
            .map(|class| self.takes(label::class_name(graph, ClassIndex(class))))
            .collect()
    }
}
