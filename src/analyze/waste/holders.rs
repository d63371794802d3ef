//! Who holds an object: the first that refers to it, by the name of the field. One pass over
//! all references for all objects that were asked for.

use std::collections::HashMap;
use std::ops::ControlFlow;

use crate::analyze::{fields, label};
use crate::heap_graph::{HeapGraph, ObjectIndex};

/// Objects whose holders are wanted.
#[derive(Debug, Default)]
pub(super) struct Holders {
    wanted: Vec<ObjectIndex>,
}

/// Who holds them.
pub(super) struct Held {
    names: HashMap<ObjectIndex, String>,
}

impl Holders {
    pub fn want(&mut self, object: ObjectIndex) {
        self.wanted.push(object);
    }

    pub fn find(mut self, graph: &HeapGraph) -> Held {
        self.wanted.sort_unstable();
        self.wanted.dedup();
        let mut names = HashMap::new();
        if self.wanted.is_empty() {
            return Held { names };
        }
        let (least, most) = (self.wanted[0], self.wanted[self.wanted.len() - 1]);
        let mut owners: HashMap<ObjectIndex, ObjectIndex> = HashMap::new();
        for owner in graph.objects() {
            for &target in graph.references(owner) {
                if least <= target
                    && target <= most
                    && self.wanted.binary_search(&target).is_ok()
                {
                    // A class's static says more than anybody else.
                    let slot = owners.entry(target).or_insert(owner);
                    if graph.class_behind(*slot).is_none() && graph.class_behind(owner).is_some() {
                        *slot = owner;
                    }
                }
            }
        }
        for (target, owner) in owners {
            names.insert(target, name(graph, owner, target));
        }
        Held { names }
    }
}

impl Held {
    pub fn name(&self, object: ObjectIndex) -> Option<String> {
        self.names.get(&object).cloned()
    }
}

fn name(graph: &HeapGraph, owner: ObjectIndex, target: ObjectIndex) -> String {
    let class = match label::class_behind(graph, owner) {
        Some(class) => class,
        None => graph.class(graph.class_of(owner)).shown(),
    };
    let class = label::without_address(class);
    let mut by = None;
    fields::visit(graph, owner, |field| {
        if field.value.object() != Some(target) {
            return ControlFlow::Continue(());
        }
        by = Some(match (field.element, field.name) {
            (Some(at), _) => format!("{class}[{at}]"),
            (None, Some(name)) => format!("{class}.{name}"),
            (None, None) => class.clone().into_owned(),
        });
        ControlFlow::Break(())
    });
    by.unwrap_or_else(|| class.into_owned())
}
