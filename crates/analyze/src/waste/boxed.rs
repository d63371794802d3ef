//! Boxed numbers: objects that hold one primitive each.

use std::collections::HashSet;
use std::ops::ControlFlow;

use super::parts::{Examination, Scope};
use heaptap_model::heap_graph::{ClassIndex, HeapGraph, ObjectIndex, Value};
use heaptap_model::profile::index::FastHash;

/// Boxes of one class.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Boxed {
    /// Class name such as `java.lang.Integer`.
    pub class: String,
    /// Number of boxes.
    pub count: u64,
    /// Shallow bytes.
    pub bytes: u64,
    /// Number of distinct values; `None` if the dump does not contain values.
    pub distinct: Option<u64>,
    /// Bytes of all but one box of each value; `None` if the dump does not contain values.
    pub wasted_bytes: Option<u64>,
}

const BOXES: [&str; 8] = [
    "java.lang.Integer",
    "java.lang.Long",
    "java.lang.Double",
    "java.lang.Float",
    "java.lang.Short",
    "java.lang.Character",
    "java.lang.Byte",
    "java.lang.Boolean",
];

#[derive(Default, Clone)]
pub(super) struct BoxSums {
    count: u64,
    bytes: u64,
    values: HashSet<u64, FastHash>,
    unknown: u64,
}

/// Returns whether all boxed numbers of the heap, the zygote's included, are zero. Every runtime boxes
/// each small `Integer`.
pub(super) fn are_all_zero(graph: &HeapGraph) -> bool {
    // `hprof strip` keeps booleans.
    let numbers: Vec<bool> = graph
        .classes()
        .iter()
        .map(|class| BOXES.contains(&class.name.as_str()) && class.name != "java.lang.Boolean")
        .collect();
    if !numbers.contains(&true) {
        return false;
    }
    let mut boxes = graph
        .objects()
        .filter(|&object| numbers[graph.class_of(object).at()])
        .peekable();
    // Without boxes, nothing is known.
    boxes.peek().is_some() && boxes.all(|object| value(graph, object) == Some(0))
}

pub(super) struct Boxes<'s>(pub &'s Scope<'s>);

impl Examination for Boxes<'_> {
    /// Index into [`BOXES`].
    type Class = usize;
    type Found = Vec<BoxSums>;

    fn of_class(&self, class: ClassIndex) -> Option<usize> {
        let name = self.0.graph.class(class).name.as_str();
        BOXES.iter().position(|known| *known == name)
    }

    fn start(&self) -> Vec<BoxSums> {
        vec![BoxSums::default(); BOXES.len()]
    }

    fn add(&self, all: &mut Vec<BoxSums>, object: ObjectIndex, class: usize) {
        let Scope { graph, .. } = self.0;
        let of = &mut all[class];
        of.count += 1;
        of.bytes = of.bytes.saturating_add(graph.shallow_bytes(object));
        match value(graph, object).filter(|_| self.0.has_numbers) {
            Some(value) => {
                of.values.insert(value);
            }
            None => of.unknown += 1,
        }
    }
}

/// Returns boxes by class, most bytes first.
pub(super) fn sum_up(parts: Vec<Vec<BoxSums>>) -> Vec<Boxed> {
    let mut whole = vec![BoxSums::default(); BOXES.len()];
    for part in parts {
        for (all, of) in whole.iter_mut().zip(part) {
            all.count += of.count;
            all.bytes = all.bytes.saturating_add(of.bytes);
            all.unknown += of.unknown;
            all.values.extend(of.values);
        }
    }
    let mut boxed: Vec<Boxed> = BOXES
        .iter()
        .zip(whole)
        .filter(|(_, of)| of.count > 0)
        .map(|(class, of)| {
            let known = of.unknown < of.count;
            let distinct = of.values.len() as u64 + of.unknown;
            let wasted = of.bytes / of.count * (of.count - distinct.min(of.count));
            Boxed {
                class: (*class).to_owned(),
                count: of.count,
                bytes: of.bytes,
                distinct: known.then_some(distinct),
                wasted_bytes: known.then_some(wasted),
            }
        })
        .collect();
    boxed.sort_by_key(|boxed| std::cmp::Reverse(boxed.bytes));
    boxed
}

/// Returns the bits of the only number in a box.
fn value(graph: &HeapGraph, object: ObjectIndex) -> Option<u64> {
    let mut bits = None;
    // Boxes are classes of the runtime, so their fields have their original names. Dumps have many boxes.
    graph.contents().fields(graph, object, &mut |field| {
        bits = match field.value {
            Value::Boolean(b) => Some(u64::from(b)),
            Value::Char(c) => Some(c.into()),
            Value::Float(f) => Some(f.to_bits().into()),
            Value::Double(d) => Some(d.to_bits()),
            other => other.integer().map(|n| n as u64),
        };
        match field.name {
            Some("value") if bits.is_some() => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    });
    bits
}
