//! Advice for developers: what to do about a leak, by the way in which the code registered what
//! holds it (`ways.txt`), otherwise by the app's field on the path.

use std::cell::{OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::LazyLock;

use super::kinds::Kind;
use super::known_leaks::{Known, is_library};
use super::steps::{RawStep, Reference, Shape, Step};
use crate::lookup;
use crate::paths::{Place, link, short};
use heaptap_model::heap_graph::{ClassIndex, Follow, HeapGraph, ObjectIndex, Value};

/// Maximum number of entries of a table of thread locals that is read.
const MAX_THREAD_LOCALS: usize = 1 << 16;

/// Way to register an object.
pub(super) struct Way {
    places: Vec<WayPlace>,
    /// Whether a field of the app on the path is the better advice.
    is_weak: bool,
    /// Whether the holder releases the object by itself.
    pub is_passing: bool,
    sentence: &'static str,
}

struct WayPlace {
    class: &'static str,
    field: &'static str,
    state: Option<&'static str>,
}

static WAYS: LazyLock<Vec<Way>> = LazyLock::new(|| {
    let lines = include_str!("ways.txt").lines();
    lines.filter_map(Way::parse).collect()
});

impl Way {
    /// Parses a line of the table; `None` for comments.
    fn parse(line: &'static str) -> Option<Way> {
        let line = line.split_once('#').map_or(line, |(before, _)| before);
        let (places, sentence) = line.split_once(" | ")?;
        let marks = places.len() - places.trim_start_matches(['~', '?', ' ']).len();
        let place = |text: &'static str| {
            let (place, state) = match text.split_once('@') {
                Some((place, state)) => (place, Some(state)),
                None => (text, None),
            };
            let (class, field) = place.rsplit_once('.')?;
            Some(WayPlace {
                class,
                field,
                state,
            })
        };
        Some(Way {
            places: places[marks..]
                .split_whitespace()
                .filter_map(place)
                .collect(),
            is_weak: places[..marks].contains('~'),
            is_passing: places[..marks].contains('?'),
            sentence,
        })
    }
}

/// Returns whether a name fits a pattern with at most one `*`.
fn fits(pattern: &str, name: &str) -> bool {
    match pattern.split_once('*') {
        Some((begin, end)) => {
            name.len() >= begin.len() + end.len() && name.starts_with(begin) && name.ends_with(end)
        }
        None => pattern == name,
    }
}

/// Way found on a path.
#[derive(Clone, Copy)]
pub(super) struct FoundWay {
    /// Number of the way in the table.
    pub number: usize,
    pub way: &'static Way,
    /// Step whose reference is a place of the way.
    at: usize,
    /// Object that was registered.
    pub registered: ObjectIndex,
}

/// Path to a leak, before its internals are folded for output.
pub(super) struct Held<'a> {
    pub kind: Kind,
    pub class: &'a str,
    pub raw: &'a [RawStep],
    pub suspects: &'a [bool],
}

/// Places with the numbers of their ways.
type Places = Rc<[(usize, &'static WayPlace)]>;

/// Advice on the leaks of one heap.
pub(super) struct Adviser<'g> {
    graph: &'g HeapGraph,
    /// Places in which objects of a class can register others, with the number of their way.
    places: RefCell<HashMap<ClassIndex, Places>>,
    /// Names of the fields that hold each `ThreadLocal`.
    thread_locals: OnceCell<HashMap<ObjectIndex, String>>,
}

impl<'g> Adviser<'g> {
    pub fn new(graph: &'g HeapGraph) -> Adviser<'g> {
        Adviser {
            graph,
            places: RefCell::default(),
            thread_locals: OnceCell::new(),
        }
    }

    /// Returns the class of an object; of a class object, the class that it represents.
    fn class_index(&self, object: ObjectIndex) -> ClassIndex {
        let behind = self.graph.class_behind(object);
        behind.unwrap_or_else(|| self.graph.class_of(object))
    }

    fn class(&self, object: ObjectIndex) -> &'g str {
        self.graph.class(self.class_index(object)).shown()
    }

    fn is_a(&self, object: ObjectIndex, class: &str) -> bool {
        self.graph.is_a(self.graph.class_of(object), class)
    }

    fn places_of(&self, class: ClassIndex) -> Places {
        let known = self.places.borrow().get(&class).cloned();
        known.unwrap_or_else(|| {
            let line = self.graph.ancestry(class).take(64);
            let names: Vec<&str> = line.map(|class| self.graph.class(class).shown()).collect();
            let ways = WAYS.iter().enumerate();
            let all = ways.flat_map(|(at, way)| way.places.iter().map(move |place| (at, place)));
            let fitting = all.filter(|(_, place)| names.iter().any(|name| fits(place.class, name)));
            let found: Places = fitting.collect();
            self.places.borrow_mut().insert(class, Rc::clone(&found));
            found
        })
    }

    /// Returns the state that a place can ask for.
    fn state(&self, object: ObjectIndex) -> Option<&'g str> {
        let graph = self.graph;
        if self.is_a(object, "java.lang.Thread") {
            let target = lookup::get(graph, object, "java.lang.Thread", "target")?.object()?;
            let queue = "java.util.concurrent.locks.AbstractQueuedSynchronizer";
            // A worker of a pool is locked while it runs a task.
            let state = lookup::get(graph, target, queue, "state")?.integer()?;
            return (state == 0).then_some("Idle");
        }
        let state = |object| lookup::one_of(graph, object, &["_state$volatile", "_state"]);
        let mut at = object;
        // A chain of continuations ends at the coroutine.
        for _ in 0..100 {
            if let Some(Value::Object(state)) = state(at) {
                return self.class(state).rsplit(['.', '$']).next();
            }
            at = lookup::any(graph, at, "completion")?.object()?;
        }
        None
    }

    /// Returns the way in which the leak was registered, if there is one.
    pub fn way(&self, held: &Held<'_>) -> Option<FoundWay> {
        let mut best: Option<(usize, usize)> = None;
        for (at, step) in held.raw.iter().enumerate().rev() {
            let Some(reference) = step.reference.as_ref().filter(|_| held.suspects[at]) else {
                continue;
            };
            let places = self.places_of(self.class_index(step.object));
            let mut fitting = places.iter().filter(|(way, place)| {
                best.is_none_or(|(best, _)| *way <= best)
                    && fits(place.field, reference.generic())
                    && place
                        .state
                        .is_none_or(|state| self.state(step.object) == Some(state))
            });
            if let Some(&(way, _)) = fitting.next() {
                best = Some((way, at));
            }
        }
        let (way, at) = best?;
        Some(FoundWay {
            number: way,
            way: &WAYS[way],
            at,
            registered: self.registered(held, at),
        })
    }

    /// Returns the object of the app that was registered at a step of a path.
    fn registered(&self, held: &Held<'_>, at: usize) -> ObjectIndex {
        let raw = held.raw;
        let end = raw[raw.len() - 1].object;
        let is_own = |step: &&RawStep| {
            let behind = self.graph.class_behind(step.object);
            behind.is_none() && is_app(self.class(step.object)) && step.object != end
        };
        // The app's class behind the reference, or the one that declares the reference.
        let declaring = raw[at]
            .declared_in
            .map(|class| self.graph.class(class).shown());
        let is_apps = is_app(declaring.unwrap_or_else(|| self.class(raw[at].object)));
        let from = if is_apps { at } else { at + 1 };
        let Some(after) = raw[from..].iter().find(is_own) else {
            let mut before = raw[..=at].iter().rev().take(2).filter(is_own);
            return before.next().map_or(end, |step| step.object);
        };
        after.object
    }

    /// Returns the first key in the map that an `ArrayMap` has for the leak as its key: the receivers
    /// and connections of a context are in such maps.
    fn of_context(&self, held: &Held<'_>, at: usize) -> Option<ObjectIndex> {
        let [_, map, leak] = &held.raw[at..] else {
            return None;
        };
        let Some(Reference::Element(Some(key))) = &map.reference else {
            return None;
        };
        let slots = |map| {
            let array = lookup::any(self.graph, map, "mArray")?.object()?;
            Some(self.graph.references(array))
        };
        let key: usize = key.parse().ok()?;
        let slots_of_map = slots(map.object)?;
        let value = slots_of_map
            .get(key..key + 2)
            .filter(|pair| pair[0] == leak.object)?[1];
        let first = slots(Some(value).filter(|&value| value != ObjectIndex::NONE)?)?.first();
        first.copied().filter(|&object| object != ObjectIndex::NONE)
    }

    /// Returns the function that started the coroutine nearest to the leak.
    fn function(&self, held: &Held<'_>, found: &FoundWay) -> String {
        let continuation = "kotlin.coroutines.jvm.internal.BaseContinuationImpl";
        let coroutine = held
            .raw
            .iter()
            .rfind(|step| is_app(self.class(step.object)) && self.is_a(step.object, continuation));
        let object = coroutine.map_or(found.registered, |step| step.object);
        enclosing_function(short(self.class(object)))
    }

    /// Returns the name of the `ThreadLocal` by which a thread holds an object.
    fn thread_local(&self, thread: ObjectIndex, value: ObjectIndex) -> Option<String> {
        let graph = self.graph;
        let entry = ["threadLocals", "inheritableThreadLocals"]
            .iter()
            .find_map(|name| {
                let map = lookup::any(graph, thread, name)?.object()?;
                let table = lookup::any(graph, map, "table")?.object()?;
                if graph.references(table).len() > MAX_THREAD_LOCALS {
                    return None;
                }
                let mut entries = lookup::elements(graph, table).into_iter();
                entries.find(|&(_, entry)| {
                    lookup::any(graph, entry, "value").and_then(Value::object) == Some(value)
                })
            })?;
        let key = graph
            .referents()
            .iter()
            .find(|weak| weak.owner == entry.1)?
            .target;
        let class = self.class(key);
        if !class.starts_with("java.lang.") {
            return Some(short(class).to_owned());
        }
        let names = self.thread_locals.get_or_init(|| {
            let mut names = HashMap::new();
            let classes = (0..graph.classes().len() as u32).map(ClassIndex);
            let is_local: Vec<bool> = classes
                .map(|class| graph.is_a(class, "java.lang.ThreadLocal"))
                .collect();
            for object in graph.objects() {
                for &target in graph.references(object) {
                    if target != ObjectIndex::NONE && is_local[graph.class_of(target).at()] {
                        let (Place::Field(name) | Place::Static(name)) =
                            link(graph, object, target, Follow::STRONG).place
                        else {
                            continue;
                        };
                        let name = format!("{}.{name}", short(self.class(object)));
                        names.entry(target).or_insert(name);
                    }
                }
            }
            names
        });
        names.get(&key).cloned()
    }

    fn sentence(&self, held: &Held<'_>, found: &FoundWay, root: &str) -> String {
        let step = &held.raw[found.at];
        let object = step.object;
        let field = step.reference.as_ref().map(Reference::shown);
        let of_context = self.of_context(held, found.at);
        let own = of_context.unwrap_or(found.registered);
        let local = || {
            let next = held.raw.get(found.at + 1)?.object;
            let name = self.thread_local(object, next)?;
            Some(format!("The ThreadLocal {name}"))
        };
        let fill = [
            ("{it}", short(held.class).to_owned()),
            ("{own}", described(short(self.class(own)))),
            ("{function}", self.function(held, found)),
            ("{owner}", short(self.class(object)).to_owned()),
            ("{field}", field.unwrap_or_default()),
            ("{thread}", thread_of(root)),
            ("{when}", self.when(held).to_owned()),
        ];
        let mut text = found.way.sentence.to_owned();
        if text.contains("{local}") {
            let local =
                local().unwrap_or_else(|| "A ThreadLocal that nothing else refers to".to_owned());
            text = text.replace("{local}", &local);
        }
        for (name, value) in fill {
            text = text.replace(name, &value);
        }
        text
    }

    fn is_in_dialog(&self, held: &Held<'_>) -> bool {
        let mut raw = held.raw.iter();
        raw.any(|step| self.is_a(step.object, "android.app.Dialog"))
    }

    /// Returns when to act.
    fn when(&self, held: &Held<'_>) -> &'static str {
        match self.is_in_dialog(held) {
            true => "when the dialog is dismissed (setOnDismissListener)",
            false => end_of_life(held.kind),
        }
    }

    /// Returns the next step for a leak with that path.
    pub fn of(
        &self,
        held: &Held<'_>,
        library: Option<&Known>,
        path: &[Step],
        root: &str,
    ) -> String {
        if let Some(known) = library {
            return known.advice();
        }
        let found = self.way(held);
        let suspects = || path.iter().enumerate().filter(|(_, step)| step.suspect);
        let is_own = |step: &Step| is_app(declaring(step));
        let into_collection = |at: usize| {
            let next = path.get(at + 1);
            next.is_some_and(|next| {
                matches!(next.reference, Some(Reference::Element(_))) && next.suspect
            })
        };
        // A collection of the app is a registry of its own.
        let registry = suspects()
            .rfind(|&(at, step)| is_own(step) && !is_captured(step) && into_collection(at));
        if let Some(found) = found
            .filter(|found| !found.way.is_weak && registry.is_none_or(|(at, _)| at <= found.at))
        {
            return self.sentence(held, &found, root);
        }
        if let Some((_, step)) = suspects().next_back()
            && let Some(Reference::Field(field)) = &step.reference
            && !is_own(step)
            && is_context(field, held.kind)
            && !self.is_in_dialog(held)
        {
            return format!(
                "Get the {} from applicationContext instead of the {}, unless it is bound to the \
                 UI.",
                short(&step.class),
                short(held.class)
            );
        }
        let own = registry.or_else(|| {
            suspects().rfind(|(_, step)| is_own(step) && !is_captured(step) && can_clear(step))
        });
        let carrier = suspects()
            .next_back()
            .filter(|(_, step)| is_own(step) && is_captured(step));
        let when = self.when(held);
        let Some((at, step)) = own else {
            if let Some(found) = found {
                return self.sentence(held, &found, root);
            }
            return without_own_field(held, path, root, carrier.map(|(_, step)| step), when);
        };
        let what = short(held.class);
        let owner = short(&step.class);
        let mut next = path.get(at + 1..).unwrap_or_default().iter();
        let element = next.find(|step| is_app(&step.class));
        let element = match element.filter(|step| short(&step.class) != what) {
            Some(step) => described(short(&step.class)),
            None => "it".to_owned(),
        };
        let or_other = format!(", or store an object there that does not hold the {what}");
        let action = match (&step.reference, into_collection(at)) {
            (Some(Reference::Static(field)), true) => {
                format!("remove {element} from {owner}.{field} {when}{or_other}")
            }
            (Some(Reference::Static(field)), false) => {
                format!("set {owner}.{field} to null {when}{or_other}")
            }
            (Some(Reference::Field(field)), true) => {
                format!("remove {element} from {owner}.{field} {when}")
            }
            (Some(Reference::Field(field)), false) if is_context(field, held.kind) => format!(
                "pass applicationContext to {owner} instead of the {what}: its {field} outlives \
                 the activity"
            ),
            (Some(Reference::Field(field)), false) => match delegated(path, at) {
                Some(property) => format!("use a delegate for {property} that releases it {when}"),
                None => format!("clear {owner}.{field} {when}"),
            },
            _ => format!("remove {element} from the {owner} {when}"),
        };
        match carrier {
            Some((_, step)) => format!("{}: {action}.", carries(step)),
            None => format!("{}.", capitalized(&action)),
        }
    }
}

/// Returns the advice if no field of the app can be cleared.
fn without_own_field(
    held: &Held<'_>,
    path: &[Step],
    root: &str,
    carrier: Option<&Step>,
    when: &str,
) -> String {
    let what = short(held.class);
    if let Some(step) = carrier {
        return format!("{}: unregister or cancel it {when}.", carries(step));
    }
    let suspects = || path.iter().filter(|step| step.suspect);
    let is_named = |step: &&Step| {
        matches!(
            step.reference,
            Some(Reference::Static(_) | Reference::Field(_))
        )
    };
    let is_own = |step: &&Step| is_named(step) && is_app(declaring(step));
    let named = suspects()
        .rfind(is_own)
        .or_else(|| suspects().rfind(is_named))
        .or_else(|| suspects().next_back());
    let Some((step, reference)) = named.and_then(|step| Some((step, step.reference.as_ref()?)))
    else {
        return match path.len() {
            0 | 1 => format!("{root} holds it directly: release that reference {when}."),
            _ => format!("Release it {when}."),
        };
    };
    let owner = short(&step.class);
    match reference {
        Reference::Static(field) | Reference::Field(field) if !is_app(declaring(step)) => {
            format!(
                "{owner}.{field} is not a field of the app: find the call that gave the {what} to the \
             {owner}, and undo it {when}."
            )
        }
        Reference::Static(field) | Reference::Field(field) => format!(
            "{owner}.{field} lives as long as the process: give what it holds a shorter scope, or \
             do not let it hold the {what}."
        ),
        Reference::Element(_) if step.shape == Shape::Array => {
            format!("Clear its slot in the {owner} {when}.")
        }
        Reference::Element(_) => format!("Remove it from the {owner} {when}."),
        _ => format!("Find out how {owner} holds it, and release it {when}."),
    }
}

/// Returns whether the developer can change what a class does.
fn is_app(class: &str) -> bool {
    let mut places = WAYS.iter().flat_map(|way| &way.places);
    !is_library(class) && !places.any(|place| fits(place.class, class))
}

/// Returns whether code can set the reference to null: a singleton of Kotlin cannot.
fn can_clear(step: &Step) -> bool {
    match &step.reference {
        Some(Reference::Static(field)) => {
            !matches!(field.as_str(), "INSTANCE" | "Companion") && !field.ends_with("$delegate")
        }
        Some(Reference::Field(field)) => !field.ends_with("$delegate"),
        _ => false,
    }
}

/// Returns the property of Kotlin whose delegate a step is, such as `Page.binding`: the code of a
/// delegate is seldom the app's.
fn delegated(path: &[Step], at: usize) -> Option<String> {
    let holder = path.get(at.checked_sub(1)?)?;
    let field = holder.reference.as_ref()?.shown();
    let property = field.strip_suffix("$delegate")?;
    Some(format!("{}.{property}", short(&holder.class)))
}

/// Returns whether a field holds a context that the application's can replace.
fn is_context(field: &str, leaked: Kind) -> bool {
    let field = field.to_lowercase();
    leaked == Kind::Activity && (field.ends_with("context") || field == "ctx")
}

/// Returns the description of an object that a compiler made hold others.
fn carries(step: &Step) -> String {
    let class = short(&step.class);
    match &step.reference {
        Some(Reference::Field(field)) if field.starts_with("this$") && is_named(class) => {
            format!("{class} is an inner class that holds its outer object")
        }
        _ if is_lambda(class) => format!("The lambda {class} captured it"),
        _ => format!("The anonymous class {class} holds it"),
    }
}

/// Returns the name of a class in a sentence.
fn described(class: &str) -> String {
    match (is_lambda(class), is_named(class)) {
        (true, _) => format!("the lambda {class}"),
        (false, false) => format!("the anonymous class {class}"),
        (false, true) => class.to_owned(),
    }
}

fn is_lambda(class: &str) -> bool {
    class.contains("$$Lambda") || class.contains("$$ExternalSyntheticLambda")
}

fn is_named(class: &str) -> bool {
    let last = class.rsplit('$').next().unwrap_or(class);
    !last.starts_with(|c: char| c.is_ascii_digit())
}

/// Returns `Main.load` for the class `Main$load$1` that the compiler made of a lambda or a suspending
/// function, `Main` if the function is not known.
fn enclosing_function(class: &str) -> String {
    let parts: Vec<&str> = class.split('$').collect();
    let is_function = |part: &&str| part.starts_with(|c: char| c.is_lowercase());
    match parts.iter().skip(1).position(is_function) {
        Some(at) => format!("{}.{}", parts[..=at].join("$"), parts[at + 1]),
        None => parts[0].to_owned(),
    }
}

/// Returns the thread in the description of a root, such as `thread main`.
fn thread_of(root: &str) -> String {
    let at = root.find("thread ").map(|at| &root[at..]);
    at.unwrap_or("thread").to_owned()
}

fn capitalized(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_ascii_uppercase());
    first.into_iter().chain(chars).collect()
}

/// Returns the class whose code sets the reference.
fn declaring(step: &Step) -> &str {
    step.declared_in.as_deref().unwrap_or(&step.class)
}

fn end_of_life(kind: Kind) -> &'static str {
    match kind {
        Kind::Activity | Kind::DecorContext | Kind::ContextWrapper | Kind::ContextImpl => {
            "when the activity is destroyed (onDestroy)"
        }
        Kind::Window | Kind::ViewRoot => "when its window is closed",
        Kind::PlatformFragment | Kind::SupportFragment | Kind::AndroidxFragment => {
            "when the fragment is destroyed (onDestroy)"
        }
        Kind::View | Kind::Editor => {
            "when the view is destroyed (onDestroyView of a fragment, onDestroy of an activity)"
        }
        Kind::Service => "when the service is destroyed (onDestroy)",
        Kind::ViewModel => "when the view model is cleared (onCleared)",
        Kind::Composition | Kind::Recomposer => "when the composition is disposed (onDispose)",
        Kind::Toast => "when the toast disappears",
        Kind::MessageQueue => "when its thread ends",
        _ => "when its lifecycle ends",
    }
}

/// Returns whether a compiler uses the field to pass captured values to a lambda, an anonymous class
/// or an inner class.
fn is_captured(step: &Step) -> bool {
    let Some(Reference::Field(field)) = &step.reference else {
        return false;
    };
    let class = short(&step.class);
    let prefixes = ["this$", "arg$", "f$", "val$", "$", "L$"];
    prefixes.iter().any(|prefix| field.starts_with(prefix)) || is_lambda(class)
}
