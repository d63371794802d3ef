//! Walk from the roots to leaking objects: breadth first, better evidence first. It ends at leaking
//! objects, so an object held only by another leak is not reported twice.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use super::live::{Live, thread_name};
use super::platform_leaks::Pattern;
use crate::fields;
use heaptap_model::heap_graph::{
    ClassIndex, ClassKind, HeapGraph, ObjectIndex, ObjectSet, Reachable, RootKind, Value,
};

/// Evidence levels of references and roots. A level is walked after everything at better levels.
const GOOD: usize = 0;
const LIBRARY: usize = 1;
const LOCAL: usize = 2;
const WEAK: usize = 3;
const LEVELS: usize = 4;

/// Referrers on the best paths.
pub(super) struct Walk {
    parent: Vec<ObjectIndex>,
    seen: ObjectSet,
    /// Threads by the objects that their local variables hold.
    locals: HashMap<ObjectIndex, ObjectIndex>,
    /// Pattern numbers of objects reached by a reference through which the platform leaks.
    library: HashMap<ObjectIndex, usize>,
}

/// Object to walk at its evidence level.
struct Next {
    object: ObjectIndex,
    parent: ObjectIndex,
    /// Pattern by which the platform leaks the object.
    pattern: Option<usize>,
}

/// Special handling of a class's references.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    No,
    /// Instances are class objects, whose statics have names.
    ClassObject,
    /// Some fields are lists of the garbage collector or leak in the platform.
    ByName,
}

impl Walk {
    /// Walks until all of `ends` are found or nothing is left.
    pub fn of(
        graph: &HeapGraph,
        reachable: &Reachable,
        live: &Live,
        patterns: &[Pattern],
        ends: &ObjectSet,
        count: usize,
    ) -> Walk {
        let special = special(graph, patterns);
        let mut walk = Walk {
            parent: vec![ObjectIndex::NONE; graph.len()],
            seen: ObjectSet::new(graph.len()),
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
                if ends.contains(object) {
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

    /// Records the first referrer of an object. Returns whether there was none before.
    fn reach(&mut self, object: ObjectIndex, parent: ObjectIndex) -> bool {
        let new = self.seen.insert(object);
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
                    // Objects that the main thread or the finalizer watchdog uses right now are not
                    // leaks.
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

    /// Returns whether a strong path reaches the object.
    pub fn reaches(&self, object: ObjectIndex) -> bool {
        self.seen.contains(object)
    }

    /// Returns the referrer of the object on its path.
    pub fn parent(&self, object: ObjectIndex) -> Option<ObjectIndex> {
        let parent = self.parent[object.at()];
        (parent != ObjectIndex::NONE).then_some(parent)
    }

    /// Returns whether a path leads from that thread to the object through a local variable.
    pub fn is_local(&self, thread: ObjectIndex, object: ObjectIndex) -> bool {
        self.locals.get(&object) == Some(&thread) && self.parent(object) == Some(thread)
    }

    /// Returns the pattern number if the object's path passes through a reference by which the
    /// platform leaks it.
    pub fn library(&self, object: ObjectIndex) -> Option<usize> {
        self.library.get(&object).copied()
    }
}

/// Returns whether the path of an object without a referrer begins at a loaded class, which its
/// loader keeps alive, and not at a root of the dump.
pub(super) fn is_class_start(graph: &HeapGraph, object: ObjectIndex) -> bool {
    let mut roots = graph.roots_of(object).iter();
    roots.all(|root| rank(root.kind).is_none())
}

/// Returns the evidence level of a root and its rank within the level; `None` for roots that do not
/// hold objects.
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
        // Only hostile dumps have taller hierarchies.
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

/// Class that declares `referent`, which this walk does not follow.
pub(super) const REFERENCE: &str = "java.lang.ref.Reference";

/// Returns whether a field leads through a list of the garbage collector.
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

/// Returns the references of an object by name, each with its worst evidence level and the pattern
/// by which the platform leaks it.
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
            // HotSpot's constants of a class, resolved by its code.
            None if name == "<resolved_references>" => WEAK,
            None => GOOD,
        };
        found.push((target, level, pattern));
        ControlFlow::Continue(())
    });
    let mut told: Vec<ObjectIndex> = found.iter().map(|f| f.0).chain(skipped).collect();
    told.sort_unstable();
    // The superclass and loader of a class object are not fields.
    for &target in graph.references(object) {
        if target != ObjectIndex::NONE && told.binary_search(&target).is_err() {
            found.push((target, GOOD, None));
        }
    }
}
