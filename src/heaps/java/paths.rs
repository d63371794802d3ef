//! `paths` in a Java heap: paths to the objects of classes, or details of one object.

use std::ops::ControlFlow;

use regex::Regex;
use serde::Serialize;

use super::facts::{Figures, HeapFacts};
use super::heap::JavaHeap;
use heaptap_analyze::fields;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::Sums;
use heaptap_analyze::holders::{self, Holders, KindedReferrers, Reading};
use heaptap_analyze::inspect;
use heaptap_analyze::label;
use heaptap_analyze::leaks;
use heaptap_analyze::paths::{self, Link, Path, Place, RootReason, Ways};
use heaptap_analyze::repetition::Repeated;
use heaptap_base::suggest::nearest;
use heaptap_model::heap_graph::{
    AllocationSite, ClassIndex, Dominators, Follow, HeapGraph, ObjectIndex, ObjectSet,
    PrimitiveArray, Referrers, Retained, Value,
};

/// Target objects.
#[derive(Debug, Clone)]
pub enum Targets {
    /// All objects of classes that match one of the patterns; at least one.
    Classes(Vec<Regex>),
    /// The object with an ID, as typed.
    Object(String),
}

/// Paths to the targets.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathsReport {
    pub heap: HeapFacts,
    /// Description of the targets.
    pub targets: String,
    /// Reachable targets, and their retained bytes.
    pub reachable: Figures,
    /// Number of unreachable targets.
    pub unreachable: u64,
    /// Reachable bytes of the whole heap, Java and native.
    pub heap_bytes: u64,
    /// True if the heap has native memory, which its retained sizes include.
    #[serde(skip)]
    pub has_native: bool,
    /// Details of the object, if one was selected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<ObjectReport>,
    /// Shortest path to the first leak among the targets, otherwise to the target that retains
    /// most; absent if no target is reachable.
    pub shortest: Option<PathReport>,
    /// Verdict on the end of that path, if it is a leak.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leak: Option<LeakVerdict>,
    /// All paths merged by class and field, nearest to the targets first.
    pub holders: Vec<HolderRow>,
}

/// Verdict of the leak rules on an object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LeakVerdict {
    /// Description, such as `destroyed Activity`.
    pub what: &'static str,
    /// `confirmed`, `likely` or `possible`.
    pub certainty: &'static str,
    /// Reason, such as `mDestroyed is true`.
    pub reason: String,
}

/// A path from a root.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PathReport {
    /// The root of the first object.
    pub root: Option<RootDocument>,
    /// Objects, from the root; only the first and the last of repeated ones.
    pub steps: Vec<StepRow>,
}

/// A GC root.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootDocument {
    /// Kind, such as `ROOT_JAVA_FRAME`.
    pub kind: &'static str,
    /// Description, with thread and frame.
    pub text: String,
    /// Name or number of the thread.
    pub thread: Option<String>,
    /// Frame of the thread.
    pub frame: Option<String>,
}

impl From<&RootReason> for RootDocument {
    fn from(reason: &RootReason) -> RootDocument {
        RootDocument {
            kind: reason.kind.name(),
            text: reason.to_string(),
            thread: reason.thread.clone(),
            frame: reason.frame.clone(),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LinkDocument {
    /// `field`, `static`, `element` or `unnamed`.
    pub kind: &'static str,
    /// Declaring class.
    pub class: String,
    /// Name of the field or static.
    pub name: Option<String>,
    /// Index of the element, for arrays.
    pub element: Option<u32>,
    /// Readable form: `ArrayList.elementData`.
    pub text: String,
}

impl From<&Link> for LinkDocument {
    fn from(link: &Link) -> LinkDocument {
        let (kind, name, element) = match &link.place {
            Place::Field(name) => ("field", Some(name.clone()), None),
            Place::Static(name) => ("static", Some(name.clone()), None),
            Place::Element(index) => ("element", None, Some(*index)),
            Place::Elements => ("element", None, None),
            Place::Unnamed => ("unnamed", None, None),
        };
        LinkDocument {
            kind,
            class: link.class.clone(),
            name,
            element,
            text: link.to_string(),
        }
    }
}

/// An object of a path.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepRow {
    /// Object ID, hexadecimal.
    pub id: String,
    /// Class; `class X` for class objects.
    pub name: String,
    /// Reference from the previous object; absent for the first.
    pub via: Option<LinkDocument>,
    /// Bytes it retains, Java and native.
    pub retained_bytes: u64,
    /// Text of a string, truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// Repeated references from the previous step; `via` is the last of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeated: Option<Repeated<String>>,
    /// Number of steps left out before it; absent if zero.
    #[serde(skip_serializing_if = "heaptap_base::units::is_zero")]
    pub left_out: u64,
}

impl StepRow {
    /// Returns the readable reference: `Event.next × 4,999`.
    pub fn reference(&self) -> Option<String> {
        let via = self.via.as_ref()?;
        Some(match &self.repeated {
            Some(repeated) => repeated.text(),
            None if via.kind == "static" => format!("static {}", via.text),
            None => via.text.clone(),
        })
    }
}

/// Objects of one class that refer to those of another row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HolderRow {
    /// Position in the list.
    pub id: usize,
    /// Index of the row it refers to; absent for the targets.
    #[serde(rename = "parent")]
    pub above: Option<usize>,
    /// Number of steps from the targets.
    pub depth: usize,
    /// Class of the objects.
    pub name: String,
    /// The reference.
    pub via: Option<LinkDocument>,
    /// Number of objects.
    pub count: u64,
    /// Number of objects of the previous row that they refer to.
    #[serde(rename = "referenced")]
    pub holds: u64,
    /// Their own sizes.
    pub shallow_bytes: u64,
    /// ID of one of them.
    pub example: String,
    /// Roots among them, with counts.
    pub roots: Vec<RootCount>,
    /// Row with the same objects, which has their referrers; absent for a row of its own.
    pub same_as: Option<usize>,
    /// True if its objects are in another row, shown or not.
    #[serde(rename = "in_other_row")]
    pub elsewhere: bool,
    /// Number of omitted rows that refer to it.
    #[serde(rename = "left_out")]
    pub hidden: usize,
}

/// Number of roots of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RootCount {
    /// Number of objects.
    pub count: u64,
    #[serde(flatten)]
    pub root: RootDocument,
}

/// Limits of the output.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Maximum number of referrers of each row.
    pub width: usize,
    /// Maximum number of steps from the targets.
    pub depth: usize,
    /// Fields and referrers of an object.
    pub fields: usize,
}

/// Targets that the heap does not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MissingTarget {
    /// No object has the ID.
    Object,
    /// No class matches.
    Class {
        /// Name of the most similar class.
        near: Option<String>,
    },
}

/// Finds the paths to the targets.
///
/// # Errors
/// Returns an error if no object has the ID, or no class matches.
pub fn paths(
    heap: &JavaHeap,
    targets: &Targets,
    limits: Limits,
) -> Result<PathsReport, MissingTarget> {
    let graph = &heap.graph;
    let dominators = heap.dominators();
    let (name, objects) = match targets {
        Targets::Object(id) => {
            let object = graph.find_typed(id).ok_or(MissingTarget::Object)?;
            (label::object_name(graph, object).into_owned(), vec![object])
        }
        Targets::Classes(patterns) => of_classes(graph, patterns)?,
    };
    let mut reachable = objects.clone();
    reachable.retain(|&o| dominators.is_reachable(o));
    let leak = match targets {
        Targets::Classes(_) => first_leak(graph, &reachable),
        Targets::Object(_) => None,
    };
    let mut sums = Sums::default();
    for &object in &reachable {
        sums.add(graph, object);
    }
    let asked = |object: ObjectIndex| reachable.binary_search(&object).is_ok().then_some(0);
    sums.retained = dominators.retained_by(1, asked)[0];
    let referrers = KindedReferrers::new(graph, heap.follow, Reading::OnDemand, None);
    let all_reachable = dominators.reachable();
    let mut search = holders::Search::new(referrers, &all_reachable);
    let tree = search.holders(
        &name,
        ObjectSet::from_graph(graph.len(), reachable.iter().copied()),
    );
    let largest = || {
        let size = |&o: &ObjectIndex| (dominators.retained(o).total_bytes(), std::cmp::Reverse(o));
        reachable.iter().copied().max_by_key(size)
    };
    let (end, leak) = match leak {
        Some((object, verdict)) => (Some(object), Some(verdict)),
        None => (largest(), None),
    };
    let one = match targets {
        Targets::Object(_) => objects.first().map(|&object| {
            let all = Referrers::new(graph, Follow::ALL, None);
            object_report(graph, dominators, &all, object, limits.fields)
        }),
        Targets::Classes(_) => None,
    };
    Ok(PathsReport {
        heap: HeapFacts::from_heap(heap),
        targets: name,
        reachable: Figures::with_retained(&sums),
        unreachable: (objects.len() - reachable.len()) as u64,
        heap_bytes: dominators.total().total_bytes(),
        has_native: dominators.total().native_bytes > 0,
        object: one,
        shortest: end.map(|object| {
            let path = Ways::new(graph, heap.paths(), heap.follow).to(object);
            path_report(heap, &path)
        }),
        leak,
        holders: rows(graph, &tree, limits),
    })
}

/// Returns the first leak of `heaptap leaks` that is one of `targets`, which are sorted.
fn first_leak(graph: &HeapGraph, targets: &[ObjectIndex]) -> Option<(ObjectIndex, LeakVerdict)> {
    let found = leaks::find(graph);
    let mut all = found.groups.iter().flat_map(|group| {
        let of_group = group.leaks.iter();
        of_group.map(move |leak| (group.what, leak))
    });
    let (what, leak) = all.find(|(_, leak)| targets.binary_search(&leak.object).is_ok())?;
    let verdict = LeakVerdict {
        what,
        certainty: leak.certainty.name(),
        reason: leak.reason.clone(),
    };
    Some((leak.object, verdict))
}

/// Returns all objects of classes that match, and the name of the class if there is one. If none
/// matches, returns class objects, which hold static fields, by the names of their classes.
fn of_classes(
    graph: &HeapGraph,
    patterns: &[Regex],
) -> Result<(String, Vec<ObjectIndex>), MissingTarget> {
    let mut filter = Filter {
        focus: patterns.to_vec(),
        ..Filter::default()
    };
    let wanted = filter.of(graph);
    let mut found: Vec<ObjectIndex> = graph
        .objects()
        .filter(|&o| wanted.takes(o) && !graph.is_placeholder(o))
        .collect();
    if found.is_empty() {
        filter.by_represented = true;
        let wanted = filter.of(graph);
        found.extend(label::class_objects(graph).filter(|&o| wanted.takes(o)));
    }
    if found.is_empty() && !filter.matches(graph) {
        let near = patterns
            .iter()
            .find_map(|pattern| nearest_class(graph, pattern.as_str()));
        return Err(MissingTarget::Class { near });
    }
    let typed: Vec<&str> = patterns.iter().map(Regex::as_str).collect();
    let typed = typed.join(" or ");
    let name = |&object: &ObjectIndex| match filter.by_represented {
        true => label::object_name(graph, object),
        false => label::class_name(graph, graph.class_of(object)).into(),
    };
    let mut names: Vec<_> = found.iter().map(name).collect();
    names.sort_unstable();
    names.dedup();
    let name = match names.as_slice() {
        [one] => one.clone().into_owned(),
        [] => typed,
        many => format!("{typed} ({} classes)", many.len()),
    };
    Ok((name, found))
}

/// Returns the class most similar to a pattern that matches none: one that has it in another case,
/// or one whose name without package differs by a typing error.
fn nearest_class(graph: &HeapGraph, pattern: &str) -> Option<String> {
    let typed = pattern.trim_start_matches('^').trim_end_matches('$');
    let typed = typed.to_lowercase();
    if typed.is_empty() {
        return None;
    }
    fn last(name: &str) -> &str {
        name.rsplit(['.', '$']).next().unwrap_or_default()
    }
    let names: Vec<(String, &str)> = (0..graph.classes().len() as u32)
        .map(|class| label::class_name(graph, ClassIndex(class)))
        .map(|name| (name.to_lowercase(), name))
        .collect();
    let same = names.iter().filter(|(lower, _)| lower.contains(&typed));
    let same = same.map(|(_, name)| *name).min_by_key(|name| name.len());
    let found = same.or_else(|| {
        let near = nearest(last(&typed), names.iter().map(|(lower, _)| last(lower)))?;
        let mut names = names.iter();
        let found = names.find(|(lower, _)| last(lower) == near)?;
        Some(found.1)
    });
    found.map(str::to_owned)
}

/// Maximum number of characters of a string.
const TEXT: usize = 100;
/// The same of the string that was selected.
const OWN_TEXT: usize = 100_000;
/// Maximum number of superclasses.
const ANCESTRY: usize = 64;

fn text_of(graph: &HeapGraph, object: ObjectIndex) -> Option<String> {
    let text = graph.contents().string(graph, object)?;
    Some(inspect::cut(text, TEXT))
}

fn path_report(heap: &JavaHeap, path: &Path) -> PathReport {
    let graph = &heap.graph;
    let step = |step: &paths::Step| StepRow {
        id: graph.id(step.object).to_string(),
        name: label::object_name(graph, step.object).into_owned(),
        via: step.link.as_ref().map(LinkDocument::from),
        retained_bytes: heap.dominators().retained(step.object).total_bytes(),
        text: text_of(graph, step.object),
        repeated: step.repeated.as_ref().map(Repeated::named),
        left_out: step.left_out,
    };
    PathReport {
        root: path.root.as_ref().map(RootDocument::from),
        steps: path.steps.iter().map(step).collect(),
    }
}

/// Returns the tree as rows, each after the one it refers to, within the limits.
fn rows(graph: &HeapGraph, tree: &Holders, limits: Limits) -> Vec<HolderRow> {
    let mut rows: Vec<HolderRow> = Vec::new();
    let mut place = vec![None; tree.nodes.len()];
    let mut same_as = Vec::new();
    let mut stack = Vec::new();
    if !tree.nodes.is_empty() {
        stack.push((0, None, 0));
    }
    while let Some((at, above, depth)) = stack.pop() {
        let node = &tree.nodes[at];
        let id = rows.len();
        place[at] = Some(id);
        same_as.push(node.same_as);
        let shown = match depth < limits.depth {
            true => node.holders.len().min(limits.width),
            false => 0,
        };
        rows.push(HolderRow {
            id,
            above,
            depth,
            name: node.name.clone(),
            via: node.link.as_ref().map(LinkDocument::from),
            count: node.count,
            holds: node.holds,
            shallow_bytes: node.shallow_bytes,
            example: graph.id(node.example).to_string(),
            roots: node
                .roots
                .iter()
                .map(|(reason, count)| RootCount {
                    count: *count,
                    root: RootDocument::from(reason),
                })
                .collect(),
            same_as: None,
            elsewhere: node.same_as.is_some(),
            hidden: node.holders.len() - shown,
        });
        let next = node.holders[..shown].iter().rev();
        stack.extend(next.map(|&holder| (holder, Some(id), depth + 1)));
    }
    for (row, same) in rows.iter_mut().zip(same_as) {
        row.same_as = same.and_then(|same| place[same]);
    }
    rows
}

/// Details of an object.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ObjectReport {
    /// Object ID, hexadecimal.
    pub id: String,
    /// Class; `class X` for class objects.
    pub name: String,
    /// Class and superclasses, nearest first.
    pub ancestry: Vec<String>,
    /// Heap; empty if not in the dump.
    pub heap: &'static str,
    /// Value of `System.identityHashCode`, if in the dump.
    pub identity_hash: Option<u32>,
    /// Sizes; without retained ones if it is unreachable.
    #[serde(flatten)]
    pub figures: Figures,
    /// Its root, if it is one.
    pub root: Option<RootDocument>,
    /// Immediate dominator.
    pub dominator: Option<Referred>,
    pub text: Option<String>,
    /// Number of elements of an array.
    pub length: Option<u64>,
    /// First elements of an array of primitives, if in the dump.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub elements: Vec<String>,
    /// Fields or elements.
    pub fields: Vec<FieldRow>,
    /// Number of fields or elements.
    pub fields_total: u64,
    /// Referrers, including weak ones.
    pub referrers: Vec<ReferrerRow>,
    /// Number of referrers.
    pub referrers_total: u64,
    /// Allocation site, if in the dump.
    pub allocated_at: Option<AllocationSite>,
}

/// A referenced object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Referred {
    /// Object ID, hexadecimal.
    pub id: String,
    /// Class; `class X` for class objects.
    pub name: String,
    /// Number of elements of an array of primitives.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub length: Option<u64>,
    /// Text of a string, truncated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
}

impl Referred {
    fn new(graph: &HeapGraph, object: ObjectIndex) -> Referred {
        let array = graph.contents().primitive_array(graph, object);
        Referred {
            id: graph.id(object).to_string(),
            name: label::object_name(graph, object).into_owned(),
            length: array.map(|array| array.length.into()),
            text: text_of(graph, object),
        }
    }
}

/// A field, static or element.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FieldRow {
    /// Name; absent for elements and if not in the dump.
    pub name: Option<String>,
    /// Index of an element.
    pub element: Option<u32>,
    /// Java type, if known.
    #[serde(rename = "type")]
    pub type_name: Option<String>,
    /// Declaring class, if known.
    pub declared_in: Option<String>,
    /// True if it is static.
    #[serde(rename = "static")]
    pub is_static: bool,
    /// Primitive value in Java syntax; `null` for no value.
    pub value: Option<String>,
    /// The referenced object.
    pub object: Option<Referred>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ReferrerRow {
    #[serde(flatten)]
    pub object: Referred,
    /// The reference.
    pub via: LinkDocument,
}

/// Returns the details of an object with at most `most` fields and `most` referrers.
fn object_report(
    graph: &HeapGraph,
    dominators: &Dominators,
    referrers: &Referrers,
    object: ObjectIndex,
    most: usize,
) -> ObjectReport {
    let contents = graph.contents();
    let primitives = contents.primitive_array(graph, object);
    let length = match primitives {
        Some(array) => Some(array.length),
        None => contents.object_array_length(graph, object),
    };
    // A dump without contents has the length of an array, but no elements.
    let has_elements = primitives.is_none_or(|array| array.bytes.is_some());
    let listed = length.filter(|_| has_elements);
    let mut shown = Vec::new();
    let mut total = 0u64;
    fields::visit(graph, object, |field| {
        total += 1;
        if shown.len() >= most && listed.is_some() {
            // The rest would only be counted.
            return ControlFlow::Break(());
        }
        if shown.len() < most {
            shown.push(FieldRow {
                name: field.name.map(str::to_owned),
                element: field.element,
                type_name: field.type_name.map(str::to_owned),
                declared_in: field
                    .declared_in
                    .map(|class| graph.class(class).shown().to_owned()),
                is_static: field.is_static,
                value: match field.value {
                    Value::Null | Value::Object(_) => None,
                    value => Some(value.to_string()),
                },
                object: field.value.object().map(|o| Referred::new(graph, o)),
            });
        }
        ControlFlow::Continue(())
    });
    let is_reachable = dominators.is_reachable(object);
    let sums = Sums {
        count: 1,
        shallow_bytes: graph.shallow_bytes(object),
        native_bytes: graph.native_bytes(object),
        retained: match is_reachable {
            true => dominators.retained(object),
            false => Retained::default(),
        },
    };
    let ancestry = graph.ancestry(graph.class_of(object)).take(ANCESTRY);
    let root = paths::root_reason(graph, object);
    let dominator = dominators.idom(object);
    let text = contents.string(graph, object);
    ObjectReport {
        id: graph.id(object).to_string(),
        name: label::object_name(graph, object).into_owned(),
        ancestry: ancestry
            .map(|class| label::class_name(graph, class).to_owned())
            .collect(),
        heap: graph.heap_of(object).name(),
        identity_hash: contents.identity_hash(graph, object),
        figures: match is_reachable {
            true => Figures::with_retained(&sums),
            false => Figures::own(&sums),
        },
        root: root.as_ref().map(RootDocument::from),
        dominator: dominator.map(|object| Referred::new(graph, object)),
        text: text.map(|text| inspect::cut(text, OWN_TEXT)),
        length: length.map(u64::from),
        elements: primitives.map_or_else(Vec::new, |array| elements(array, most)),
        fields: shown,
        fields_total: total.max(listed.map_or(0, u64::from)),
        referrers: referrers
            .to(object)
            .take(most)
            .map(|owner| ReferrerRow {
                object: Referred::new(graph, owner),
                via: LinkDocument::from(&paths::link(graph, owner, object, Follow::ALL)),
            })
            .collect(),
        referrers_total: referrers.to(object).count() as u64,
        allocated_at: contents.allocated_at(graph, object),
    }
}

/// Returns the first `most` elements of an array of primitives.
fn elements(array: PrimitiveArray<'_>, most: usize) -> Vec<String> {
    let width = array.element.bytes(8);
    let bytes = array.bytes.unwrap_or(&[]);
    let chunks = bytes.chunks_exact(width).take(most);
    let values = chunks.map(|chunk| inspect::value(array.element, chunk));
    values.map(|value| value.to_string()).collect()
}
