//! One object: facts, fields, referrers, path, dominators.

use crate::answer::{Page, Table};
use crate::bitmaps::BitmapFacts;
use crate::explorer::Explorer;
use crate::objects::ObjectRow;
use heaptap_analyze::fields::{self, NamedField};
use heaptap_analyze::inspect;
use heaptap_analyze::label;
use heaptap_analyze::leaks::Verdict;
use heaptap_analyze::paths::{self, Link};
use heaptap_model::heap_graph::{Follow, ObjectIndex, PrimitiveArray, Value};
use serde::Serialize;
use std::ops::ControlFlow;

/// Facts about an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ObjectFacts {
    #[serde(flatten)]
    pub row: ObjectRow,
    /// Name of the class in lists; that of all class objects for a class object.
    pub class: String,
    /// Superclasses, nearest first.
    pub superclasses: Vec<String>,
    /// Heap: `app`, `zygote`, `image`.
    pub heap: &'static str,
    /// Why the object is a GC root, if it is one.
    pub root: Option<String>,
    /// Dominators, nearest first; at most [`MAX_CHAIN`].
    pub dominators: Vec<ObjectRow>,
    /// Number of dominators.
    pub depth: u64,
    /// Number of elements of an array.
    pub length: Option<u64>,
    /// Number of objects that refer to it.
    pub referrers: u64,
    /// Frames of the allocation, top frame first, if the dump has them.
    pub allocated_at: Vec<String>,
    /// Facts about a bitmap; `None` for other objects.
    pub bitmap: Option<BitmapFacts>,
    /// Whether the object should be gone.
    pub verdict: Verdict,
}

/// Maximum number of dominators and superclasses in an answer.
pub const MAX_CHAIN: usize = 100;
/// Maximum length of the object's own text, in characters.
const MAX_TEXT: usize = 100_000;

/// Field, static or element.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FieldRow {
    /// Name, or `[3]` for an element; `None` if the dump does not name it.
    pub name: Option<String>,
    /// Type in Java syntax, if known.
    pub type_name: Option<String>,
    /// Declaring class, if known.
    pub declared_in: Option<String>,
    pub is_static: bool,
    /// Value in Java syntax; `None` for references, and if contents are hidden.
    pub value: Option<String>,
    /// Object that a reference refers to; `None` for null.
    pub object: Option<ObjectRow>,
}

/// Object that refers to another one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReferrerRow {
    #[serde(flatten)]
    pub row: ObjectRow,
    /// The first reference: `ArrayList.elementData`.
    pub reference: String,
}

/// Path from a GC root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathAnswer {
    /// Description of the root; `None` if the object is unreachable.
    pub root: Option<String>,
    /// From the root to the object; only those at both ends of a very long path.
    pub steps: Vec<PathStep>,
    /// Number of steps, with those left out.
    pub length: u64,
}

/// Object of a path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PathStep {
    #[serde(flatten)]
    pub row: ObjectRow,
    /// Reference from the object before it.
    pub reference: Option<String>,
    /// Number of steps that are left out before it.
    pub left_out: u64,
    /// Whether the object should be gone.
    pub verdict: Verdict,
}

/// Maximum number of steps at either end of a path.
const MAX_STEPS: usize = 200;

impl Explorer {
    /// Returns the facts about an object, with at most `most` dominators.
    pub fn object(&self, object: ObjectIndex, most: usize) -> ObjectFacts {
        let (graph, dominators) = (self.graph(), self.dominators());
        let chain = || std::iter::successors(dominators.idom(object), |&at| dominators.idom(at));
        let up = |at| dominators.idom(at);
        let depth = self.dominator_chains.ends(object, 1, up).length - 1;
        let mut row = self.row(object);
        row.text = self.text(object, MAX_TEXT);
        ObjectFacts {
            row,
            superclasses: graph
                .ancestry(graph.class_of(object))
                .skip(1)
                .take(MAX_CHAIN)
                .map(|class| label::class_name(graph, class).to_owned())
                .collect(),
            heap: graph.heap_of(object).name(),
            root: self.root_reason(object),
            class: label::class_name(graph, graph.class_of(object)).to_owned(),
            dominators: {
                let nearest = chain().take(most.min(MAX_CHAIN));
                nearest.map(|at| self.row(at)).collect()
            },
            depth: depth as u64,
            length: self.length(object),
            referrers: self.referrers().to(object).count() as u64,
            allocated_at: (graph.contents().allocated_at(graph, object))
                .map(|site| site.frames)
                .unwrap_or_default(),
            bitmap: self.bitmap(object),
            verdict: self.judge().verdict(self.graph(), object),
        }
    }

    /// Returns a part of the fields, statics or elements, in the dump's order.
    pub fn fields(&self, object: ObjectIndex, page: Page) -> Table<FieldRow> {
        let graph = self.graph();
        let length = self.length(object);
        if let Some(array) = graph.contents().primitive_array(graph, object) {
            return Table {
                total: array.length.into(),
                rows: self.elements(array, page),
            };
        }
        let mut rows = Vec::new();
        let mut total = 0;
        fields::visit(graph, object, |field| {
            if (page.offset..page.end()).contains(&total) {
                rows.push(self.field(&field));
            }
            total += 1;
            // The rest would only be counted.
            match length.is_some() && total >= page.end() {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        });
        Table {
            total: length.unwrap_or(total as u64),
            rows,
        }
    }

    /// Returns a part of the objects that refer to an object, in the order of their IDs.
    pub fn referrers_of(&self, object: ObjectIndex, page: Page) -> Table<ReferrerRow> {
        let all = || self.referrers().to(object);
        let rows = all().skip(page.offset).take(page.limit);
        Table {
            total: all().count() as u64,
            rows: rows
                .map(|owner| ReferrerRow {
                    row: self.row(owner),
                    reference: self.link(owner, object).to_string(),
                })
                .collect(),
        }
    }

    /// Returns the shortest path from the most informative root, with at most `most` steps at either
    /// end.
    pub fn path(&self, object: ObjectIndex, most: usize) -> PathAnswer {
        if !self.dominators().is_reachable(object) {
            return PathAnswer {
                root: None,
                steps: Vec::new(),
                length: 0,
            };
        }
        let most = most.clamp(1, MAX_STEPS);
        // One more for the reference to the first step behind those that are left out.
        let referrers = self.referrers();
        let up = |at| referrers.on_path(at);
        let ends = self.path_chains.ends(object, most + 1, up);
        let left_out = ends.length.saturating_sub(2 * most);
        let behind = most + left_out;
        let mut steps = Vec::new();
        for at in (0..most.min(ends.length)).chain(behind..ends.length) {
            let Some(step) = ends.get(at) else {
                continue;
            };
            let before = at.checked_sub(1).and_then(|before| ends.get(before));
            steps.push(PathStep {
                row: self.row(step),
                verdict: self.judge().verdict(self.graph(), step),
                reference: before.map(|owner| self.link(owner, step).to_string()),
                left_out: match at == behind {
                    true => left_out as u64,
                    false => 0,
                },
            });
        }
        PathAnswer {
            root: ends.get(0).and_then(|first| self.root_reason(first)),
            steps,
            length: ends.length as u64,
        }
    }

    /// Returns where the retained bytes of an object are: follows the largest dominated object as long
    /// as it retains at least half.
    pub fn big_drop(&self, object: ObjectIndex) -> ObjectIndex {
        let dominators = self.dominators();
        let bytes_of = |object| dominators.retained(object).total_bytes();
        let mut at = object;
        loop {
            let largest = dominators.children(at).max_by_key(|&child| bytes_of(child));
            match largest {
                Some(child) if bytes_of(child) >= bytes_of(at).div_ceil(2) => at = child,
                _ => return at,
            }
        }
    }

    fn link(&self, owner: ObjectIndex, target: ObjectIndex) -> Link {
        paths::link(self.graph(), owner, target, Follow::ALL)
    }

    /// Returns the number of elements of an array.
    pub(crate) fn length(&self, object: ObjectIndex) -> Option<u64> {
        let graph = self.graph();
        let primitives = graph.contents().primitive_array(graph, object);
        let length = primitives.map(|array| array.length);
        length
            .or_else(|| graph.contents().object_array_length(graph, object))
            .map(u64::from)
    }

    fn field(&self, field: &NamedField<'_>) -> FieldRow {
        let graph = self.graph();
        let name = field.name.map(str::to_owned);
        FieldRow {
            name: name.or(field.element.map(|at| format!("[{at}]"))),
            type_name: field.type_name.map(str::to_owned),
            declared_in: field
                .declared_in
                .map(|class| graph.class(class).shown().to_owned()),
            is_static: field.is_static,
            value: self.value(field.value),
            object: field.value.object().map(|target| self.row(target)),
        }
    }

    fn elements(&self, array: PrimitiveArray<'_>, page: Page) -> Vec<FieldRow> {
        let width = array.element.bytes(8);
        let bytes = match self.shows_contents() {
            true => array.bytes.unwrap_or(&[]),
            false => &[],
        };
        let elements = bytes.chunks_exact(width).enumerate();
        elements
            .skip(page.offset)
            .take(page.limit)
            .map(|(at, bytes)| FieldRow {
                name: Some(format!("[{at}]")),
                type_name: Some(array.element.name().to_owned()),
                declared_in: None,
                is_static: false,
                value: self.value(inspect::value(array.element, bytes)),
                object: None,
            })
            .collect()
    }

    fn value(&self, value: Value) -> Option<String> {
        match value {
            _ if !self.shows_contents() => None,
            Value::Object(_) => None,
            value => Some(value.to_string()),
        }
    }
}
