//! The walk from the roots to objects that should be gone: breadth first, what is better
//! evidence first. It ends at such objects, so that one held only by another is not told twice.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use super::library::Pattern;
use super::live::{Live, thread_name};
use crate::fields;
use heaptap_model::heap_graph::{
    ClassIndex, ClassKind, HeapGraph, ObjectIndex, Reachable, RootKind, Value,
};

/// Bits by object.
#[derive(Debug, Clone)]
pub(super) struct Marks {
    words: Vec<u64>,
}

impl Marks {
    pub fn new(len: usize) -> Marks {
        Marks {
            words: vec![0; len.div_ceil(64)],
        }
    }

    pub fn has(&self, object: ObjectIndex) -> bool {
        self.words[object.at() / 64] >> (object.at() % 64) & 1 == 1
    }

    /// Marks it; whether it was not before.
    pub fn add(&mut self, object: ObjectIndex) -> bool {
        let word = &mut self.words[object.at() / 64];
        let bit = 1 << (object.at() % 64);
        let new = *word & bit == 0;
        *word |= bit;
        new
    }
}

/// How good the evidence of a reference or a root is; worse ones are walked when nothing better
/// is left.
const GOOD: usize = 0;
const LIBRARY: usize = 1;
const LOCAL: usize = 2;
const WEAK: usize = 3;
const LEVELS: usize = 4;

/// Why a path begins where it does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Start {
    /// A root of the dump.
    Root(RootKind),
    /// A class that is reachable: its loader keeps it, and it keeps its statics.
    Class,
}

/// Who refers to whom on the best paths.
pub(super) struct Walk {
    parent: Vec<ObjectIndex>,
    seen: Marks,
    /// Objects that local variables of these threads hold.
    locals: HashMap<ObjectIndex, ObjectIndex>,
    /// Objects reached by a reference that the platform leaks, by its number.
    library: HashMap<ObjectIndex, usize>,
}

/// An object to walk to when nothing better is left.
struct Next {
    object: ObjectIndex,
    parent: ObjectIndex,
    /// The pattern by which the platform leaks it.
    pattern: Option<usize>,
}

/// What is special about references of a class.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    No,
    /// Its instances are class objects: their statics have names.
    ClassObject,
    /// Lists of the collector's own, or fields that the platform leaks through.
    ByName,
}

impl Walk {
    /// Walks until all of `ends` are found or nothing is left.
    pub fn of(
        graph: &HeapGraph,
        reachable: &Reachable,
        live: &Live,
        patterns: &[Pattern],
        ends: &Marks,
        count: usize,
    ) -> Walk {
        let special = special(graph, patterns);
        let mut walk = Walk {
            parent: vec![ObjectIndex::NONE; graph.len()],
            seen: Marks::new(graph.len()),
            locals: HashMap::new(),
            library: HashMap::new(),
        };
        let mut later = walk.starts(graph, reachable, live);
        let mut left = count;
        let mut found = Vec::new();
        let mut queue = VecDeque::new();
        for level in 0..LEVELS {
            for next in std::mem::take(&mut later[level]) {
                if walk.reach(next.object, next.parent) {
                    queue.push_back(next.object);
                    walk.library
                        .extend(next.pattern.map(|pattern| (next.object, pattern)));
                }
            }
            while let Some(object) = queue.pop_front() {
                if ends.has(object) {
                    left -= 1;
                    if left == 0 {
                        return walk;
                    }
                    continue;
                }
                if special[graph.class_of(object).at()] == Special::No {
                    for &target in graph.references(object) {
                        if target != ObjectIndex::NONE && walk.reach(target, object) {
                            queue.push_back(target);
                        }
                    }
                    continue;
                }
                found.clear();
                named(graph, object, patterns, &mut found);
                for &(target, worst, pattern) in &found {
                    if worst > level {
                        later[worst].push(Next {
                            object: target,
                            parent: object,
                            pattern,
                        });
                    } else if walk.reach(target, object) {
                        queue.push_back(target);
                        walk.library.extend(pattern.map(|p| (target, p)));
                    }
                }
            }
        }
        walk
    }

    /// Notes the first who refers to an object; whether nobody did before.
    fn reach(&mut self, object: ObjectIndex, parent: ObjectIndex) -> bool {
        let new = self.seen.add(object);
        if new {
            self.parent[object.at()] = parent;
        }
        new
    }

    fn starts(
        &mut self,
        graph: &HeapGraph,
        reachable: &Reachable,
        live: &Live,
    ) -> [Vec<Next>; LEVELS] {
        let mut threads = HashMap::new();
        for root in graph.roots() {
            if root.kind == RootKind::ThreadObject {
                threads.extend(root.thread.map(|serial| (serial, root.object)));
            }
        }
        let mut in_passing = HashMap::new();
        let name = |object| graph.class(graph.class_of(object)).shown();
        let mut starts: Vec<(usize, u8, &str, ObjectIndex, ObjectIndex)> = Vec::new();
        for root in graph.roots() {
            let Some((level, rank)) = rank(root.kind) else {
                continue;
            };
            let mut holder = ObjectIndex::NONE;
            if level == LOCAL {
                let thread = root.thread.and_then(|serial| threads.get(&serial).copied());
                if let Some(thread) = thread.filter(|&t| t != root.object) {
                    // What the main thread or the finalizer's is doing right now is no leak.
                    let passes = in_passing.entry(thread).or_insert_with(|| {
                        let name = thread_name(graph, thread);
                        live.main_thread == Some(thread)
                            || matches!(name.as_deref(), Some("main" | "FinalizerWatchdogDaemon"))
                    });
                    if *passes {
                        continue;
                    }
                    holder = thread;
                    self.locals.entry(root.object).or_insert(thread);
                }
            }
            starts.push((level, rank, name(root.object), root.object, holder));
        }
        for class in graph.classes() {
            if let Some(object) = class.object.filter(|&object| reachable.contains(object)) {
                starts.push((GOOD, 4, class.shown(), object, ObjectIndex::NONE));
            }
        }
        starts.sort_unstable();
        let mut all: [Vec<Next>; LEVELS] = Default::default();
        for (level, _, _, object, parent) in starts {
            all[level].push(Next {
                object,
                parent,
                pattern: None,
            });
        }
        all
    }

    /// Whether a strong path was found.
    pub fn reaches(&self, object: ObjectIndex) -> bool {
        self.seen.has(object)
    }

    /// Who refers to it on its path.
    pub fn parent(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let parent = self.parent[object.at()];
        (parent != ObjectIndex::NONE).then_some(parent)
    }

    /// Whether a path goes from that thread to the object through a local variable.
    pub fn is_local(&self, thread: ObjectIndex, object: ObjectIndex) -> bool {
        self.locals.get(&object) == Some(&thread) && self.parent(object) == Some(thread)
    }

    /// The number of the pattern by which the platform leaks it, where its path comes through
    /// that reference.
    pub fn library(&self, object: ObjectIndex) -> Option<usize> {
        self.library.get(&object).copied()
    }

    /// Why the path of an object without parent begins there.
    pub fn start_of(&self, graph: &HeapGraph, object: ObjectIndex) -> Start {
        let best = graph
            .roots_of(object)
            .iter()
            .filter_map(|root| Some((rank(root.kind)?, root.kind)))
            .min();
        match best {
            Some((_, kind)) => Start::Root(kind),
            None => Start::Class,
        }
    }
}

/// How good a root is, and its place among those as good; `None` for roots that hold nothing.
fn rank(kind: RootKind) -> Option<(usize, u8)> {
    use RootKind::*;
    Some(match kind {
        ThreadObject => (GOOD, 0),
        JniGlobal => (GOOD, 1),
        StickyClass => (GOOD, 2),
        ThreadBlock => (GOOD, 3),
        JavaFrame => (LOCAL, 0),
        JniLocal => (LOCAL, 1),
        NativeStack => (LOCAL, 2),
        MonitorUsed => (LOCAL, 3),
        JniMonitor => (LOCAL, 4),
        Debugger => (WEAK, 0),
        InternedString => (WEAK, 1),
        Unknown => (WEAK, 2),
        VmInternal => (WEAK, 3),
        Finalizing | ReferenceCleanup | Unreachable => return None,
    })
}

fn special(graph: &HeapGraph, patterns: &[Pattern]) -> Vec<Special> {
    let mut all = vec![Special::No; graph.classes().len()];
    let names = [
        "java.lang.ref.FinalizerReference",
        "java.lang.ref.Finalizer",
        "sun.misc.Cleaner",
        "jdk.internal.ref.Cleaner",
    ];
    let by_name = |class: ClassIndex| {
        let name = graph.class(class).shown();
        names.contains(&name) || patterns.iter().any(|p| !p.is_static && p.class == name)
    };
    let named: Vec<bool> = (0..all.len() as u32)
        .map(|class| by_name(ClassIndex(class)))
        .collect();
    for (at, special) in all.iter_mut().enumerate() {
        // Tall hierarchies are hostile; no real one of these is.
        let mut line = graph.ancestry(ClassIndex(at as u32)).take(64);
        if line.any(|class| named[class.at()]) {
            *special = Special::ByName;
        }
        if graph.classes()[at].kind == ClassKind::Class {
            *special = Special::ClassObject;
        }
    }
    for class in graph.classes() {
        if let Some(object) = class.object {
            all[graph.class_of(object).at()] = Special::ClassObject;
        }
    }
    all
}

/// Declares `referent`, which keeps nothing here.
pub(super) const REFERENCE: &str = "java.lang.ref.Reference";

/// Fields that lead through lists of the collector's own.
pub(super) fn is_collectors_own(class: &str, field: &str) -> bool {
    let lists = matches!(
        class,
        "java.lang.ref.FinalizerReference"
            | "java.lang.ref.Finalizer"
            | "sun.misc.Cleaner"
            | "jdk.internal.ref.Cleaner"
    );
    lists
        && matches!(
            field,
            "prev" | "next" | "element" | "zombie" | "head" | "first" | "unfinalized"
        )
}

/// References of an object by name, with the worst evidence among them and the pattern that the
/// platform leaks by.
fn named(
    graph: &HeapGraph,
    object: ObjectIndex,
    patterns: &[Pattern],
    found: &mut Vec<(ObjectIndex, usize, Option<usize>)>,
) {
    let behind = graph.class_behind(object);
    let mut skipped = Vec::new();
    fields::visit(graph, object, |field| {
        let Value::Object(target) = field.value else {
            return ControlFlow::Continue(());
        };
        let declaring = match behind {
            Some(class) => Some(class),
            None => field.declared_in,
        };
        let class = graph
            .class(declaring.unwrap_or(graph.class_of(object)))
            .shown();
        let name = field.name.unwrap_or_default();
        if is_collectors_own(class, name) || class == REFERENCE && name == "referent" {
            skipped.push(target);
            return ControlFlow::Continue(());
        }
        let pattern = patterns
            .iter()
            .position(|p| p.field == name && p.class == class && p.is_static == behind.is_some());
        let level = match pattern {
            Some(_) => LIBRARY,
            // HotSpot's constants of a class: whatever its code once resolved.
            None if name == "<resolved_references>" => WEAK,
            None => GOOD,
        };
        found.push((target, level, pattern));
        ControlFlow::Continue(())
    });
    let mut told: Vec<ObjectIndex> = found.iter().map(|f| f.0).chain(skipped).collect();
    told.sort_unstable();
    // A class object's superclass and loader are no fields.
    for &target in graph.references(object) {
        if target != ObjectIndex::NONE && told.binary_search(&target).is_err() {
            found.push((target, GOOD, None));
        }
    }
}
