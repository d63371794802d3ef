//! Growth between dumps of one process. Each dump is walked breadth first over strong references.
//! Objects that are reached by the same path (names of classes and statics) are counted together. A
//! path grows if each dump has more objects on it than the dump before. The topmost growing path is
//! reported, with all bytes that it leads to.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, HashMap};
use std::hash::{Hash as _, Hasher as _};
use std::ops::ControlFlow;

use super::paths::{Place, link};
use super::{fields, label};
use heaptap_model::heap_graph::{Follow, HeapGraph, ObjectIndex, Reachable, RootKind, Value};
use heaptap_model::profile::interned::Texts;

/// Summary of a dump, whose size is bounded by the number of paths in it.
#[derive(Debug, Clone, Default)]
pub struct Snapshot {
    /// Names of classes and statics.
    names: Texts,
    nodes: Vec<Node>,
    /// Objects and their own bytes, including native ones, by class.
    classes: BTreeMap<String, (u64, u64)>,
}

/// Objects that are reached by the same path.
#[derive(Debug, Clone, Copy)]
struct Node {
    /// Parent node, which comes before its children; [`NONE`] at a root.
    parent: u32,
    class: u32,
    /// Static that leads to the node; [`NONE`] for any other reference.
    field: u32,
    depth: u32,
    count: u64,
    bytes: u64,
    /// First object of the node, and its referrer.
    first: ObjectIndex,
    referrer: ObjectIndex,
}

const NONE: u32 = u32::MAX;
/// Number of classes up the path in which to look for the same class, which then shares its node:
/// trees and lists of several classes.
const FOLDED: usize = 4;
/// Depth limit. Objects at deeper paths count in the last node.
const MAX_DEPTH: u32 = 200;
/// Node limit, beyond the number of paths in any hand-written program.
const MAX_NODES: usize = 4_000_000;

/// Growth over several dumps.
#[derive(Debug, Clone, Default, serde::Serialize)]
pub struct Growth {
    /// Number of dumps compared.
    pub dumps: usize,
    /// Number of classes and of paths that grew, listed or not.
    pub classes_total: usize,
    pub paths_total: usize,
    /// Classes, most bytes first.
    pub classes: Vec<Grown>,
    /// Paths, most bytes first.
    pub paths: Vec<Grown>,
}

impl Growth {
    /// Keeps only classes that `wanted` accepts.
    pub fn keep(&mut self, wanted: impl Fn(&str) -> bool) {
        self.classes.retain(|row| wanted(&row.class));
        self.paths.retain(|row| wanted(&row.class));
        self.classes_total = self.classes.len();
        self.paths_total = self.paths.len();
    }

    /// Keeps only the first rows of each list.
    pub fn cut(&mut self, limit: usize) {
        self.classes.truncate(limit);
        self.paths.truncate(limit);
    }
}

/// Class or path that grew in each dump.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Grown {
    pub class: String,
    /// Path to the objects from a root: `a.B.FIELD`, `java.util.ArrayList [x]`. Empty for a class.
    pub path: Vec<String>,
    /// Objects in each dump, oldest first.
    pub counts: Vec<u64>,
    /// Bytes in each dump, including native ones: own bytes of the objects of a class, or all bytes
    /// that a path leads to.
    pub bytes: Vec<u64>,
}

impl Grown {
    /// Returns the increase in objects.
    pub fn more(&self) -> i64 {
        difference(&self.counts)
    }

    /// Returns the increase in bytes.
    pub fn more_bytes(&self) -> i64 {
        difference(&self.bytes)
    }
}

/// Returns the last number minus the first.
fn difference(all: &[u64]) -> i64 {
    let of = |number: Option<&u64>| {
        let number = number.copied().unwrap_or(0);
        i64::try_from(number).unwrap_or(i64::MAX)
    };
    of(all.last()) - of(all.first())
}

impl Snapshot {
    /// Walks a heap.
    pub fn from_graph(graph: &HeapGraph) -> Snapshot {
        Walk::new(graph).run()
    }

    /// Returns the bytes that each node leads to.
    fn sums(&self) -> Vec<u64> {
        let mut sums: Vec<u64> = self.nodes.iter().map(|node| node.bytes).collect();
        for at in (0..self.nodes.len()).rev() {
            let parent = self.nodes[at].parent;
            if parent != NONE {
                sums[parent as usize] = sums[parent as usize].saturating_add(sums[at]);
            }
        }
        sums
    }

    /// Returns a key for each node that is the same for the same path in any dump.
    fn keys(&self) -> Vec<u64> {
        let mut keys: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let mut hash = DefaultHasher::new();
            match node.parent {
                NONE => 0.hash(&mut hash),
                parent => keys[parent as usize].hash(&mut hash),
            }
            self.names.get(node.class).hash(&mut hash);
            if node.field != NONE {
                self.names.get(node.field).hash(&mut hash);
            }
            keys.push(hash.finish());
        }
        keys
    }
}

struct Walk<'g> {
    graph: &'g HeapGraph,
    snapshot: Snapshot,
    /// Name number of each class.
    of_class: Vec<u32>,
    /// By class, whether references are examined by name.
    by_name: Vec<bool>,
    children: HashMap<(u32, u32, u32), u32>,
    /// Node of each object.
    node_of: Vec<u32>,
}

/// Returns whether a reference grows by itself and is unrelated to the app.
fn is_noise(class: &str, field: &str) -> bool {
    matches!(
        (class, field),
        ("android.os.StrictMode", "sLastVmViolationTime")
            | ("android.content.res.Resources", "mThemeRefs")
            | ("android.view.ViewRootImpl$W", "mViewAncestor")
            | ("android.os.BinderProxy", "sProxyMap")
            | (_, "<resolved_references>")
    )
}

impl<'g> Walk<'g> {
    fn new(graph: &'g HeapGraph) -> Walk<'g> {
        let mut walk = Walk {
            graph,
            snapshot: Snapshot::default(),
            of_class: Vec::new(),
            by_name: Vec::new(),
            children: HashMap::new(),
            node_of: vec![NONE; graph.len()],
        };
        for class in graph.classes() {
            let name = label::without_address(class.shown());
            let by_name = matches!(
                &*name,
                "android.content.res.Resources" | "android.view.ViewRootImpl$W"
            );
            let id = walk.snapshot.names.id(&name);
            walk.of_class.push(id);
            walk.by_name.push(by_name);
        }
        walk
    }

    fn run(mut self) -> Snapshot {
        let graph = self.graph;
        let has_native = !graph.natives().is_empty();
        let mut order = self.start();
        let mut next = 0;
        let mut targets = Vec::new();
        while let Some(&object) = order.get(next) {
            next += 1;
            let node = self.node_of[object.at()];
            let class = graph.class_of(object);
            let is_class = graph.class_behind(object);
            if is_class.is_none() && !self.by_name[class.at()] {
                for target in graph.kept_by(object, Follow::STRONG) {
                    if self.node_of[target.at()] == NONE {
                        self.reach(target, object, node, NONE);
                        order.push(target);
                    }
                }
                continue;
            }
            let owner = graph.class(is_class.unwrap_or(class)).shown();
            targets.clear();
            fields::visit(graph, object, |field| {
                if let Value::Object(target) = field.value {
                    let name = field.name.unwrap_or_default();
                    targets.push((target, name.to_owned()));
                }
                ControlFlow::Continue(())
            });
            for (target, name) in targets.drain(..) {
                if self.node_of[target.at()] == NONE && !is_noise(owner, &name) {
                    let field = match is_class {
                        Some(_) => self.snapshot.names.id(&name),
                        None => NONE,
                    };
                    self.reach(target, object, node, field);
                    order.push(target);
                }
            }
        }
        for &(object, bytes) in graph.natives() {
            let node = self.node_of[object.at()];
            if let Some(node) = self.snapshot.nodes.get_mut(node as usize) {
                node.bytes = node.bytes.saturating_add(bytes);
            }
        }
        for &object in &order {
            let name = match graph.class_behind(object) {
                Some(_) => label::CLASS,
                None => {
                    let of_class = self.of_class[graph.class_of(object).at()];
                    self.snapshot.names.get(of_class)
                }
            };
            let native = match has_native {
                true => graph.native_bytes(object),
                false => 0,
            };
            let bytes = graph.shallow_bytes(object).saturating_add(native);
            match self.snapshot.classes.get_mut(name) {
                Some(sum) => {
                    sum.0 += 1;
                    sum.1 = sum.1.saturating_add(bytes);
                }
                None => {
                    self.snapshot.classes.insert(name.to_owned(), (1, bytes));
                }
            }
        }
        self.snapshot.names.seal();
        self.snapshot
    }

    /// Returns the roots, most descriptive first. Classes are roots of their statics.
    fn start(&mut self) -> Vec<ObjectIndex> {
        let graph = self.graph;
        let reachable = Reachable::new(graph, Follow::STRONG);
        let rank = |kind| match kind {
            RootKind::ThreadObject => 0,
            RootKind::JniGlobal => 1,
            RootKind::StickyClass => 2,
            RootKind::VmInternal | RootKind::Unknown | RootKind::InternedString => 5,
            _ => 4,
        };
        let mut starts: Vec<(u8, u32, ObjectIndex)> = Vec::new();
        for root in graph.roots() {
            let name = self.start_name(root.object);
            starts.push((rank(root.kind), name, root.object));
        }
        for class in 0..graph.classes().len() {
            let object = graph.classes()[class].object;
            if let Some(object) = object.filter(|&object| reachable.contains(object)) {
                let name = self.start_name(object);
                starts.push((3, name, object));
            }
        }
        let names = &self.snapshot.names;
        starts.sort_by(|a, b| {
            a.0.cmp(&b.0)
                .then_with(|| names.get(a.1).cmp(names.get(b.1)))
                .then(a.2.cmp(&b.2))
        });
        let mut order = Vec::new();
        for (_, name, object) in starts {
            if self.node_of[object.at()] == NONE {
                self.put(object, ObjectIndex::NONE, NONE, name, NONE);
                order.push(object);
            }
        }
        order
    }

    fn start_name(&mut self, object: ObjectIndex) -> u32 {
        match self.graph.class_behind(object) {
            Some(class) => {
                let name = label::without_address(self.graph.class(class).shown());
                let name = format!("class {name}");
                self.snapshot.names.id(&name)
            }
            None => self.of_class[self.graph.class_of(object).at()],
        }
    }

    /// Assigns an object that another one refers to a node.
    fn reach(&mut self, object: ObjectIndex, referrer: ObjectIndex, node: u32, field: u32) {
        let class = self.of_class[self.graph.class_of(object).at()];
        let nodes = &self.snapshot.nodes;
        let mut up = node;
        for _ in 0..FOLDED {
            let Some(at) = nodes.get(up as usize).filter(|_| field == NONE) else {
                break;
            };
            // A tree or a list counts with its head.
            if at.class == class && at.parent != NONE {
                let at = &mut self.snapshot.nodes[up as usize];
                at.count += 1;
                at.bytes = at.bytes.saturating_add(self.graph.shallow_bytes(object));
                self.node_of[object.at()] = up;
                return;
            }
            up = at.parent;
        }
        let deep = nodes[node as usize].depth >= MAX_DEPTH || nodes.len() >= MAX_NODES;
        if deep {
            let bytes = self.graph.shallow_bytes(object);
            let sum = &mut self.snapshot.nodes[node as usize].bytes;
            *sum = sum.saturating_add(bytes);
            self.node_of[object.at()] = node;
            return;
        }
        self.put(object, referrer, node, class, field);
    }

    fn put(
        &mut self,
        object: ObjectIndex,
        referrer: ObjectIndex,
        parent: u32,
        class: u32,
        field: u32,
    ) {
        let nodes = &mut self.snapshot.nodes;
        let new = nodes.len() as u32;
        let node = *self
            .children
            .entry((parent, class, field))
            .or_insert_with(|| {
                let depth = nodes.get(parent as usize).map_or(0, |p| p.depth + 1);
                nodes.push(Node {
                    parent,
                    class,
                    field,
                    depth,
                    count: 0,
                    bytes: 0,
                    first: object,
                    referrer,
                });
                new
            });
        let at = &mut nodes[node as usize];
        at.count += 1;
        at.bytes = at.bytes.saturating_add(self.graph.shallow_bytes(object));
        self.node_of[object.at()] = node;
    }
}

/// Returns the growth of at least `loops` objects from each of `snapshots` to the next. `graph` is
/// the last dump and provides the names of references.
pub fn compare(snapshots: &[Snapshot], graph: &HeapGraph, loops: u64) -> Growth {
    let Some((last, earlier)) = snapshots.split_last() else {
        return Growth::default();
    };
    let loops = loops.max(1);
    let grows = |counts: &[u64]| {
        let mut pairs = counts.windows(2);
        counts.len() > 1 && pairs.all(|pair| pair[1] >= pair[0].saturating_add(loops))
    };
    let mut growth = Growth {
        dumps: snapshots.len(),
        ..Growth::default()
    };
    for class in last.classes.keys() {
        let sums = || snapshots.iter().map(|s| s.classes.get(class));
        let counts: Vec<u64> = sums().map(|sum| sum.map_or(0, |s| s.0)).collect();
        if grows(&counts) {
            growth.classes.push(Grown {
                class: class.clone(),
                path: Vec::new(),
                counts,
                bytes: sums().map(|sum| sum.map_or(0, |s| s.1)).collect(),
            });
        }
    }
    growth.classes.sort_by(|a, b| {
        let by_size = b.more_bytes().cmp(&a.more_bytes());
        by_size.then_with(|| a.class.cmp(&b.class))
    });
    growth.paths = paths(last, earlier, graph, grows);
    growth.classes_total = growth.classes.len();
    growth.paths_total = growth.paths.len();
    growth
}

fn paths(
    last: &Snapshot,
    earlier: &[Snapshot],
    graph: &HeapGraph,
    grows: impl Fn(&[u64]) -> bool,
) -> Vec<Grown> {
    let before: Vec<(HashMap<u64, usize>, Vec<u64>)> = earlier
        .iter()
        .map(|snapshot| {
            let keys = snapshot.keys().into_iter().enumerate();
            (keys.map(|(at, key)| (key, at)).collect(), snapshot.sums())
        })
        .collect();
    let keys = last.keys();
    let sums = last.sums();
    let of = |at: usize| {
        let mut counts = Vec::with_capacity(earlier.len() + 1);
        let mut bytes = Vec::with_capacity(earlier.len() + 1);
        for (snapshot, (nodes, sums)) in earlier.iter().zip(&before) {
            let found = nodes.get(&keys[at]).copied();
            counts.push(found.map_or(0, |at| snapshot.nodes[at].count));
            bytes.push(found.map_or(0, |at| sums[at]));
        }
        counts.push(last.nodes[at].count);
        bytes.push(sums[at]);
        (counts, bytes)
    };
    // Parents come first, so growth above a node is known when the node is visited.
    let mut below = vec![false; last.nodes.len()];
    let mut found: Vec<(usize, Vec<u64>, Vec<u64>)> = Vec::new();
    for (at, node) in last.nodes.iter().enumerate() {
        let parent = node.parent as usize;
        if node.parent != NONE && below[parent] {
            below[at] = true;
            continue;
        }
        let (counts, bytes) = of(at);
        if grows(&counts) {
            below[at] = true;
            found.push((at, counts, bytes));
        }
    }
    let children = largest_children(last, &sums);
    let grown = found.into_iter().map(|(at, mut counts, bytes)| {
        // Collection internals grow with the elements, so the elements are reported.
        let mut shown = at;
        while is_inside(last.names.get(last.nodes[shown].class))
            && let Some(&child) = children.get(&shown)
        {
            shown = child;
        }
        let inner = of(shown).0;
        if shown != at && grows(&inner) {
            counts = inner;
        } else {
            shown = at;
        }
        Grown {
            class: last.names.get(last.nodes[shown].class).to_owned(),
            path: path(last, graph, at),
            counts,
            bytes,
        }
    });
    let mut all: Vec<Grown> = grown.filter(|row| row.more_bytes() > 0).collect();
    all.sort_by(|a, b| {
        let by_size = b.more_bytes().cmp(&a.more_bytes());
        by_size
            .then_with(|| a.class.cmp(&b.class))
            .then_with(|| a.path.cmp(&b.path))
    });
    all
}

/// Returns, for each node, the child that leads to the most bytes.
fn largest_children(snapshot: &Snapshot, sums: &[u64]) -> HashMap<usize, usize> {
    let mut largest: HashMap<usize, usize> = HashMap::new();
    for (at, node) in snapshot.nodes.iter().enumerate() {
        if node.parent != NONE {
            let slot = largest.entry(node.parent as usize).or_insert(at);
            if sums[at] > sums[*slot] {
                *slot = at;
            }
        }
    }
    largest
}

/// Returns the path to a node, one step per reference, without the internals of collections.
fn path(snapshot: &Snapshot, graph: &HeapGraph, at: usize) -> Vec<String> {
    let mut steps = Vec::new();
    let mut at = at;
    let mut element = false;
    while snapshot.nodes[at].parent != NONE {
        let node = &snapshot.nodes[at];
        let parent = node.parent as usize;
        let owner = &snapshot.nodes[parent];
        let class = snapshot.names.get(owner.class);
        let class = class.strip_prefix("class ").unwrap_or(class);
        let inside = owner.parent != NONE && is_inside(class);
        if inside {
            element = true;
        } else {
            let name = reference(graph, node.referrer, node.first);
            let step = match (name, element && label::is_collection(class)) {
                (_, true) => format!("{class} [x]"),
                (Some(name), false) => format!("{class}.{name}"),
                (None, false) => class.to_owned(),
            };
            steps.push(step);
            element = false;
        }
        at = parent;
    }
    steps.reverse();
    steps
}

fn is_inside(class: &str) -> bool {
    class.ends_with("[]") || label::is_collection(class) && class.contains('$')
}

fn reference(graph: &HeapGraph, owner: ObjectIndex, target: ObjectIndex) -> Option<String> {
    if owner == ObjectIndex::NONE {
        return None;
    }
    match link(graph, owner, target, Follow::STRONG).place {
        Place::Field(name) | Place::Static(name) => Some(name),
        Place::Element(_) | Place::Elements | Place::Unnamed => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::leaks::tests::made::{Heap, Is, Obj};
    use super::*;

    /// Builds a heap whose registry has `listeners` listeners and whose cache has `cached` entries.
    fn dump(listeners: usize, cached: usize, chain: usize) -> HeapGraph {
        let mut heap = Heap::new();
        heap.class("app.Listener", "java.lang.Object", &[("text", Is::Null)]);
        heap.class("app.Link", "java.lang.Object", &[("next", Is::Null)]);
        let listeners: Vec<Obj> = (0..listeners)
            .map(|_| {
                let text = heap.string("0123456789");
                heap.new_object("app.Listener", &[("text", Is::Ref(text))])
            })
            .collect();
        let list = heap.list(&listeners, 3);
        heap.fixed("app.Registry", "LISTENERS", Is::Ref(list));
        let cached: Vec<Obj> = (0..cached).map(|_| heap.string("cached")).collect();
        let cache = heap.list(&cached, 0);
        heap.fixed("app.Registry", "CACHE", Is::Ref(cache));
        let mut link = heap.new_object("app.Link", &[]);
        for _ in 1..chain {
            link = heap.new_object("app.Link", &[("next", Is::Ref(link))]);
        }
        heap.fixed("app.Registry", "CHAIN", Is::Ref(link));
        heap.graph()
    }

    fn compared(dumps: &[(usize, usize, usize)], loops: u64) -> Growth {
        let graphs: Vec<HeapGraph> = dumps.iter().map(|&(l, c, n)| dump(l, c, n)).collect();
        let snapshots: Vec<Snapshot> = graphs.iter().map(Snapshot::from_graph).collect();
        compare(&snapshots, graphs.last().expect("there is one"), loops)
    }

    #[test]
    fn the_topmost_that_grows_is_told_with_all_it_leads_to() {
        let growth = compared(&[(3, 5, 10), (5, 5, 10)], 1);
        assert_eq!(growth.paths.len(), 1);
        let row = &growth.paths[0];
        assert_eq!(row.class, "app.Listener");
        assert_eq!(
            row.path,
            ["app.Registry.LISTENERS", "java.util.ArrayList [x]"]
        );
        assert_eq!(row.counts, [3, 5]);
        let each = (8 + 4) + (8 + 8) + (16 + 10);
        assert_eq!(row.bytes, [3 * each, 5 * each]);
        let classes: Vec<&str> = growth.classes.iter().map(|c| c.class.as_str()).collect();
        assert_eq!(classes, ["byte[]", "java.lang.String", "app.Listener"]);
        let mut cut = growth.clone();
        cut.cut(2);
        assert_eq!((cut.classes.len(), cut.classes_total), (2, 3));
        assert_eq!((cut.paths.len(), cut.paths_total), (1, 1));
        cut.keep(|class| class == "byte[]");
        assert_eq!((cut.classes_total, cut.paths_total), (1, 0));
    }

    #[test]
    fn what_grows_must_grow_each_time_and_by_enough() {
        assert_eq!(
            compared(&[(3, 5, 10), (5, 5, 10), (5, 6, 10)], 1)
                .paths
                .len(),
            0
        );
        assert_eq!(
            compared(&[(3, 5, 10), (5, 6, 10), (7, 7, 10)], 1)
                .paths
                .len(),
            2
        );
        assert_eq!(
            compared(&[(3, 5, 10), (5, 6, 10), (7, 7, 10)], 2)
                .paths
                .len(),
            1
        );
        assert_eq!(compared(&[(5, 5, 10), (3, 5, 10)], 1).paths.len(), 0);
        assert_eq!(compared(&[(5, 5, 10)], 1).paths.len(), 0);
        assert!(compare(&[], &dump(1, 1, 1), 1).paths.is_empty());
    }

    #[test]
    fn links_of_a_list_count_with_its_head() {
        let growth = compared(&[(1, 1, 10), (1, 1, 50_000)], 1);
        assert_eq!(growth.paths.len(), 1);
        assert_eq!(growth.paths[0].class, "app.Link");
        assert_eq!(growth.paths[0].path, ["app.Registry.CHAIN"]);
        assert_eq!(growth.paths[0].counts, [10, 50_000]);
    }
}
