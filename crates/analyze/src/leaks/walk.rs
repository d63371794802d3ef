//! Walk from the roots to leaking objects: breadth first, better evidence first. It ends at leaking
//! objects, so an object held only by another leak is not reported twice.

use std::collections::{HashMap, VecDeque};
use std::ops::ControlFlow;

use super::known_leaks::{Form, Known, Pattern, matches};
use super::live::{Live, thread_name};
use crate::fields::{self, NamedField};
use crate::lookup;
use heaptap_model::heap_graph::{
    BasicType, ClassIndex, ClassKind, HeapGraph, ObjectIndex, ObjectSet, Reachable, RootKind, Value,
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
    /// Numbers of known leaks, by the objects reached through their references.
    known: HashMap<ObjectIndex, usize>,
}

/// Object to walk at its evidence level.
struct Next {
    object: ObjectIndex,
    parent: ObjectIndex,
    /// Known leak through which the object is reached.
    known: Option<usize>,
}

/// Reference to an object: its owner, its worst evidence level, and the known leak that it is.
struct Found {
    next: Next,
    worst: usize,
}

/// Special handling of a class's references.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Special {
    No,
    /// Instances are class objects, whose statics have names.
    ClassObject,
    /// Some fields are lists of the garbage collector.
    ByName,
    /// Some fields match a pattern.
    Marked,
}

impl Walk {
    /// Walks until all of `ends` are found or nothing is left. `queues` are all message queues.
    pub fn new(
        graph: &HeapGraph,
        reachable: &Reachable,
        live: &Live,
        known: &[Known],
        queues: &[ObjectIndex],
        ends: &ObjectSet,
        count: usize,
    ) -> Walk {
        let mut marks = Marks::new(graph, known, queues);
        let mut walk = Walk {
            parent: vec![ObjectIndex::NONE; graph.len()],
            seen: ObjectSet::new(graph.len()),
            locals: HashMap::new(),
            known: HashMap::new(),
        };
        let mut later = walk.starts(graph, reachable, live, &marks);
        let mut left = count;
        let mut found = Vec::new();
        let mut queue = VecDeque::new();
        for level in 0..LEVELS {
            for next in std::mem::take(&mut later[level]) {
                walk.follow(next, &mut queue);
            }
            while let Some(object) = queue.pop_front() {
                if ends.contains(object) {
                    left -= 1;
                    if left == 0 {
                        return walk;
                    }
                    continue;
                }
                if marks.special[graph.class_of(object).at()] == Special::No {
                    for &target in graph.references(object) {
                        if target != ObjectIndex::NONE && walk.reach(target, object) {
                            queue.push_back(target);
                        }
                    }
                    continue;
                }
                found.clear();
                marks.references(object, &mut found);
                for Found { next, worst } in found.drain(..) {
                    match worst > level {
                        true => later[worst].push(next),
                        false => walk.follow(next, &mut queue),
                    }
                }
            }
        }
        walk
    }

    /// Queues an object that was not reached before.
    fn follow(&mut self, next: Next, queue: &mut VecDeque<ObjectIndex>) {
        if self.reach(next.object, next.parent) {
            queue.push_back(next.object);
            let known = next.known.map(|known| (next.object, known));
            self.known.extend(known);
        }
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
        marks: &Marks<'_>,
    ) -> [Vec<Next>; LEVELS] {
        let mut threads = HashMap::new();
        for root in graph.roots() {
            if root.kind == RootKind::ThreadObject {
                threads.extend(root.thread.map(|serial| (serial, root.object)));
            }
        }
        let mut in_passing = HashMap::new();
        let name = |object| graph.class(graph.class_of(object)).shown();
        type Start<'a> = (usize, u8, &'a str, ObjectIndex, ObjectIndex, Option<usize>);
        let mut starts: Vec<Start<'_>> = Vec::new();
        for root in graph.roots() {
            let Some((mut level, rank)) = rank(root.kind) else {
                continue;
            };
            let is_stub = |form| form == Form::JniGlobal;
            let known = match root.kind {
                RootKind::JniGlobal => marks.own(graph.class_of(root.object), is_stub).next(),
                _ => None,
            };
            if known.is_some() {
                level = LIBRARY;
            }
            let mut holder = ObjectIndex::NONE;
            if level == LOCAL {
                let thread = root.thread.and_then(|serial| threads.get(&serial).copied());
                if let Some(thread) = thread.filter(|&t| t != root.object) {
                    // Objects that the main thread, the finalizer watchdog or LeakCanary uses right
                    // now are not leaks.
                    let passes = in_passing.entry(thread).or_insert_with(|| {
                        let name = thread_name(graph, thread);
                        live.main_thread == Some(thread)
                            || matches!(
                                name.as_deref(),
                                Some("main" | "FinalizerWatchdogDaemon" | "LeakCanary-Heap-Dump")
                            )
                    });
                    if *passes {
                        continue;
                    }
                    holder = thread;
                    self.locals.entry(root.object).or_insert(thread);
                }
            }
            starts.push((level, rank, name(root.object), root.object, holder, known));
        }
        for class in graph.classes() {
            if let Some(object) = class.object.filter(|&object| reachable.contains(object)) {
                let none = ObjectIndex::NONE;
                starts.push((GOOD, 4, class.shown(), object, none, None));
            }
        }
        starts.sort_unstable();
        let mut all: [Vec<Next>; LEVELS] = Default::default();
        for (level, _, _, object, parent, known) in starts {
            all[level].push(Next {
                object,
                parent,
                known,
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

    /// Returns the number of the known leak through which the object was reached.
    pub fn known(&self, object: ObjectIndex) -> Option<usize> {
        self.known.get(&object).copied()
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

/// Patterns by class, each class looked up once.
struct Marks<'a> {
    graph: &'a HeapGraph,
    known: &'a [Known],
    special: Vec<Special>,
    /// Numbers of the patterns with a field or root of exactly that class.
    by_class: HashMap<ClassIndex, Vec<usize>>,
    /// Positions of the marked fields among all fields of an instance, with their patterns.
    positions: HashMap<ClassIndex, Vec<(usize, usize)>>,
    /// Messages in a queue, if a pattern depends on it.
    queued: ObjectSet,
}

const MESSAGE: &str = "android.os.Message";
const CHILD: &str = "kotlinx.coroutines.ChildHandleNode";
const THREAD_LOCAL: &str = "java.lang.ThreadLocal$ThreadLocalMap$Entry";

impl<'a> Marks<'a> {
    fn new(graph: &'a HeapGraph, known: &'a [Known], queues: &[ObjectIndex]) -> Marks<'a> {
        let mut exact: HashMap<&str, Vec<usize>> = HashMap::new();
        let mut ranges = Vec::new();
        for (at, Known { pattern, .. }) in known.iter().enumerate() {
            match pattern.class.ends_with(['*', '#']) {
                true => ranges.push((at, pattern.class)),
                false => exact.entry(pattern.class).or_default().push(at),
            }
        }
        let mut marks = Marks {
            graph,
            known,
            special: vec![Special::No; graph.classes().len()],
            by_class: HashMap::new(),
            positions: HashMap::new(),
            queued: ObjectSet::new(graph.len()),
        };
        for (at, class) in (0..).zip(graph.classes()) {
            let name = class.shown();
            let mut all = exact.get(name).cloned().unwrap_or_default();
            let others = ranges.iter().filter(|(_, range)| matches(range, name));
            all.extend(others.map(|&(at, _)| at));
            if !all.is_empty() {
                marks.by_class.insert(ClassIndex(at), all);
            }
        }
        for at in 0..marks.special.len() {
            let mut special = Special::No;
            // Only hostile dumps have taller hierarchies.
            for class in graph.ancestry(ClassIndex(at as u32)).take(64) {
                if is_collectors_list(graph.class(class).shown()) {
                    special = Special::ByName;
                    break;
                }
                let is_field = |form| !matches!(form, Form::Static | Form::JniGlobal);
                if marks.own(class, is_field).next().is_some() {
                    special = Special::Marked;
                }
            }
            if graph.classes()[at].kind == ClassKind::Class {
                special = Special::ClassObject;
            }
            marks.special[at] = special;
        }
        for class in graph.classes() {
            if let Some(object) = class.object {
                marks.special[graph.class_of(object).at()] = Special::ClassObject;
            }
        }
        if known.iter().any(|known| known.pattern.class == MESSAGE) {
            let next = |object, name| lookup::any(graph, object, name)?.object();
            for &queue in queues {
                let mut message = next(queue, "mMessages");
                while let Some(object) = message.filter(|&object| marks.queued.insert(object)) {
                    message = next(object, "next");
                }
            }
        }
        marks
    }

    /// Returns the numbers of the patterns of exactly that class with such a form.
    fn own(&self, class: ClassIndex, is: impl Fn(Form) -> bool) -> impl Iterator<Item = usize> {
        let all = self.by_class.get(&class).into_iter().flatten().copied();
        all.filter(move |&at| is(self.known[at].pattern.form))
    }

    /// Returns the number of the pattern that a field of an object matches.
    fn of_field(&self, of: ClassIndex, field: &NamedField<'_>) -> Option<usize> {
        let name = field.name?;
        let declaring = field.declared_in;
        let is_static = field.is_static;
        let is = move |form| match form {
            Form::Static => is_static,
            Form::Instance | Form::WeakTarget => !is_static,
            Form::Ignored => true,
            Form::JniGlobal => false,
        };
        // A pattern can name a class below the one that declares the field.
        for class in self.graph.ancestry(of).take(64) {
            let is_declaring = declaring.is_none_or(|declaring| declaring == class);
            let matched = self.own(class, is).find(|&at| {
                let pattern = self.known[at].pattern;
                pattern.field == name || pattern.field == "*" && is_declaring
            });
            if matched.is_some() || declaring == Some(class) {
                return matched;
            }
        }
        None
    }

    /// Collects the references of an object of a special class.
    fn references(&mut self, object: ObjectIndex, found: &mut Vec<Found>) {
        let graph = self.graph;
        let class = graph.class_of(object);
        if self.special[class.at()] != Special::Marked {
            return self.named(object, found);
        }
        if !self.positions.contains_key(&class) {
            let positions = self.positions_of(object);
            if positions.is_empty() {
                self.special[class.at()] = Special::No;
            }
            self.positions.insert(class, positions);
        }
        let mut marked = self.marked(object, &self.positions[&class]);
        for &target in graph.references(object) {
            if target != ObjectIndex::NONE {
                // Another field can refer to the same object.
                let at = marked.iter().position(|(marked, _)| *marked == target);
                let pattern = at.map(|at| marked.swap_remove(at).1);
                self.add(object, target, pattern, found);
            }
        }
    }

    /// Returns the positions of the fields of an object that match patterns, with their patterns.
    fn positions_of(&self, object: ObjectIndex) -> Vec<(usize, usize)> {
        let class = self.graph.class_of(object);
        let mut positions = Vec::new();
        let mut at = 0;
        fields::visit(self.graph, object, |field| {
            if field.value.basic_type() == BasicType::Object {
                positions.extend(self.of_field(class, &field).map(|pattern| (at, pattern)));
            }
            at += 1;
            ControlFlow::Continue(())
        });
        positions
    }

    /// Returns the references of an object at such positions.
    fn marked(
        &self,
        object: ObjectIndex,
        positions: &[(usize, usize)],
    ) -> Vec<(ObjectIndex, usize)> {
        let mut marked = Vec::new();
        let mut left = positions;
        let mut at = 0;
        let mut agrees = true;
        fields::visit(self.graph, object, |field| {
            let Some((&(position, pattern), rest)) = left.split_first() else {
                return ControlFlow::Break(());
            };
            if position == at {
                let name = self.known[pattern].pattern.field;
                agrees &= name == "*" || field.name == Some(name);
                marked.extend(field.value.object().map(|target| (target, pattern)));
                left = rest;
            }
            at += 1;
            ControlFlow::Continue(())
        });
        // In heap graphs of Android 11, objects of a class can have their fields in another order.
        match agrees && left.is_empty() {
            true => marked,
            false => self.marked(object, &self.positions_of(object)),
        }
    }

    /// Adds a reference with the pattern that its field matches.
    fn add(
        &self,
        object: ObjectIndex,
        target: ObjectIndex,
        marked: Option<usize>,
        found: &mut Vec<Found>,
    ) {
        let mut add = |parent, object, worst, known| {
            let next = Next {
                object,
                parent,
                known,
            };
            found.push(Found { next, worst });
        };
        let pattern: Option<&Pattern> = marked.map(|at| self.known[at].pattern);
        match pattern.map(|pattern| pattern.form) {
            Some(Form::Ignored) => {}
            Some(Form::Instance | Form::Static) if self.applies(pattern, object, target) => {
                add(object, target, LIBRARY, marked);
            }
            Some(Form::WeakTarget) => {
                add(object, target, GOOD, None);
                if is_started(self.graph, object) {
                    for referent in self.graph.referents_of(target) {
                        add(target, referent.target, WEAK, None);
                    }
                }
            }
            _ => add(object, target, GOOD, None),
        }
    }

    /// Returns whether a reference that matches a pattern leaks. A message in a queue will be
    /// handled, and a child that runs belongs to its parent: their owners hold them on purpose.
    fn applies(&self, pattern: Option<&Pattern>, object: ObjectIndex, target: ObjectIndex) -> bool {
        match pattern.map(|pattern| pattern.class) {
            Some(MESSAGE) => !self.queued.contains(object),
            Some(CHILD) => !is_running(self.graph, target),
            Some(THREAD_LOCAL) => is_thread_state(self.graph, target),
            _ => true,
        }
    }
}

/// Returns whether a coroutine has not completed; false if the dump does not contain its state.
fn is_running(graph: &HeapGraph, job: ObjectIndex) -> bool {
    let state = lookup::one_of(graph, job, &["_state$volatile", "_state"]);
    let Some(state) = state.and_then(Value::object) else {
        return false;
    };
    let incomplete = [
        "kotlinx.coroutines.Empty",
        "kotlinx.coroutines.JobNode",
        "kotlinx.coroutines.NodeList",
        "kotlinx.coroutines.InactiveNodeList",
        "kotlinx.coroutines.JobSupport$Finishing",
    ];
    let class = graph.class_of(state);
    incomplete.iter().any(|name| graph.is_a(class, name))
}

/// Returns whether the value of a thread local is the pair that kotlinx.coroutines keeps there: the
/// context of a coroutine and the state of the thread before it.
fn is_thread_state(graph: &HeapGraph, value: ObjectIndex) -> bool {
    let first = lookup::get(graph, value, "kotlin.Pair", "first").and_then(Value::object);
    first.is_some_and(|first| {
        let class = graph.class(graph.class_of(first)).shown();
        class.starts_with("kotlin.coroutines.")
    })
}

/// Returns whether an animator might run. Frames of a running one read its weak target again.
fn is_started(graph: &HeapGraph, animator: ObjectIndex) -> bool {
    ["mStarted", "mRunning"].iter().any(|flag| {
        let value = lookup::get(graph, animator, "android.animation.ValueAnimator", flag);
        value.and_then(Value::boolean) != Some(false)
    })
}

/// Class that declares `referent`, which this walk does not follow.
pub(super) const REFERENCE: &str = "java.lang.ref.Reference";

/// Returns whether a class has lists of the garbage collector.
fn is_collectors_list(class: &str) -> bool {
    matches!(
        class,
        "java.lang.ref.FinalizerReference"
            | "java.lang.ref.Finalizer"
            | "sun.misc.Cleaner"
            | "jdk.internal.ref.Cleaner"
    )
}

/// Returns whether a field leads through a list of the garbage collector.
pub(super) fn is_collectors_own(class: &str, field: &str) -> bool {
    is_collectors_list(class)
        && matches!(
            field,
            "prev" | "next" | "element" | "zombie" | "head" | "first" | "unfinalized"
        )
}

impl Marks<'_> {
    /// Collects the references of an object by the names of its fields.
    fn named(&self, object: ObjectIndex, found: &mut Vec<Found>) {
        let graph = self.graph;
        let behind = graph.class_behind(object);
        let of = behind.unwrap_or(graph.class_of(object));
        let mut told = Vec::new();
        fields::visit(graph, object, |field| {
            let Value::Object(target) = field.value else {
                return ControlFlow::Continue(());
            };
            told.push(target);
            let declaring = behind.or(field.declared_in).unwrap_or(of);
            let class = graph.class(declaring).shown();
            let name = field.name.unwrap_or_default();
            if is_collectors_own(class, name) || class == REFERENCE && name == "referent" {
                return ControlFlow::Continue(());
            }
            // HotSpot's constants of a class, resolved by its code.
            if name == "<resolved_references>" {
                found.push(Found {
                    next: Next {
                        object: target,
                        parent: object,
                        known: None,
                    },
                    worst: WEAK,
                });
                return ControlFlow::Continue(());
            }
            let field = NamedField {
                declared_in: Some(declaring),
                is_static: behind.is_some(),
                ..field
            };
            self.add(object, target, self.of_field(of, &field), found);
            ControlFlow::Continue(())
        });
        told.sort_unstable();
        // The superclass and loader of a class object are not fields.
        for &target in graph.references(object) {
            if target != ObjectIndex::NONE && told.binary_search(&target).is_err() {
                self.add(object, target, None, found);
            }
        }
    }
}
