//! Leak search: rules, then paths, groups and sizes.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};

use super::advice::{Adviser, Held};
use super::kinds::{ByName, Kind, Kinds};
use super::known_leaks::Known;
use super::leak::{Leak, LeakGroup, Leaks, Nested, Unheld};
use super::live::Live;
use super::retained::{self, KeptByLeak};
use super::rules::Rules;
use super::signature::{of_pattern, of_references, settle, suspects};
use super::steps::{RawStep, Reference, References, Shape, Step};
use super::verdict::{Certainty, Status, Verdict};
use super::walk::{self, Walk};
use crate::label::without_address;
use crate::lookup;
use crate::paths::{self, short};
use crate::repetition::{self, Hop, Repeated};
use heaptap_base::units::counted;
use heaptap_model::heap_graph::{
    Follow, HeapGraph, ObjectIndex, ObjectSet, Reachable, Retained, ShortestPaths, Value,
};

/// Maximum number of steps of all paths together. A hostile dump can have a path of a million steps
/// to each of a million objects.
const MAX_STEPS: usize = 20_000_000;

/// Finds the leaks of a heap. Walks the graph three times if there are leaks. Examines only the
/// classes if there are no objects to judge.
pub fn find(graph: &HeapGraph) -> Leaks {
    find_with(graph, true)
}

/// Judges single objects by the rules of [`find`].
pub struct Judge {
    kinds: Kinds,
    live: Live,
    stale_views: BTreeMap<ObjectIndex, String>,
}

impl Judge {
    /// Reads the platform state of a heap. `texts` includes descriptions given by the app.
    pub fn new(graph: &HeapGraph, texts: bool) -> Judge {
        let kinds = Kinds::from_graph(graph);
        let live = Live::new(graph, &ByName::from_graph(graph), &kinds, texts);
        let mut rules = Rules::new(graph, &kinds, &live);
        rules.find_stale_views(&fragments(&kinds.sought(graph)));
        Judge {
            stale_views: rules.stale_views.into_owned(),
            kinds,
            live,
        }
    }

    /// Returns the verdict on an object of that heap.
    pub fn verdict(&self, graph: &HeapGraph, object: ObjectIndex) -> Verdict {
        let mut rules = Rules::new(graph, &self.kinds, &self.live);
        rules.stale_views = Cow::Borrowed(&self.stale_views);
        rules.judge(object)
    }
}

fn fragments(sought: &[(ObjectIndex, Kind)]) -> Vec<ObjectIndex> {
    sought
        .iter()
        .filter(|(_, kind)| kind.is_fragment())
        .map(|&(object, _)| object)
        .collect()
}

/// Like [`find`]; without `texts`, nothing that the app wrote into strings is in the result: no map keys,
/// names of threads and descriptions.
pub fn find_with(graph: &HeapGraph, texts: bool) -> Leaks {
    let kinds = Kinds::from_graph(graph);
    let names = ByName::from_graph(graph);
    let live = Live::new(graph, &names, &kinds, texts);
    let mut rules = Rules::new(graph, &kinds, &live);
    let sought = kinds.sought(graph);
    rules.find_stale_views(&fragments(&sought));
    let leaking = leaking(&rules, &sought);
    let mut leaks = Leaks {
        sdk: live.device.sdk,
        manufacturer: live.device.manufacturer.clone(),
        untold: untold(graph, &kinds, &live, &sought),
        is_covered: kinds.any_sought(),
        ..Leaks::default()
    };
    if leaking.is_empty() {
        return leaks;
    }
    let marks = ObjectSet::from_graph(graph.len(), leaking.iter().map(|found| found.0));
    let known = Known::on(&live.device);
    let queues = sought
        .iter()
        .filter(|(_, kind)| *kind == Kind::MessageQueue);
    let queues: Vec<ObjectIndex> = queues.map(|&(queue, _)| queue).collect();
    let reachable = Reachable::new(graph, Follow::STRONG);
    let walk = Walk::new(
        graph,
        &reachable,
        &live,
        &known,
        &queues,
        &marks,
        leaking.len(),
    );
    let (held, apart): (Vec<_>, Vec<_>) = leaking
        .into_iter()
        .partition(|&(object, _, _)| walk.reaches(object));
    let ends: Vec<ObjectIndex> = held.iter().map(|h| h.0).collect();
    let (kept, claimed) = retained::of(graph, &ends, &marks);
    leaks.unheld = unheld(graph, &reachable, &apart, &claimed);
    let finder = Finder {
        graph,
        rules: &rules,
        walk: &walk,
        references: References::new(graph, &walk, &ends, texts),
        known: &known,
        adviser: Adviser::new(graph),
        ends: &marks,
        classes: paths_to_classes(graph, &starting_classes(graph, &walk, &ends)),
    };
    let (groups, left_out) = finder.groups(held, kept);
    leaks.groups = groups;
    if left_out > 0 {
        leaks.untold.push(format!(
            "{} left out because all paths together are too long",
            counted(
                left_out,
                "more object leaks; its path is",
                "more objects leak; their paths are",
            )
        ));
    }
    leaks
}

/// Returns the paths to classes; `None` for no classes, because a search without a target would
/// walk the whole graph.
fn paths_to_classes(graph: &HeapGraph, classes: &[ObjectIndex]) -> Option<ShortestPaths> {
    (!classes.is_empty()).then(|| ShortestPaths::to(graph, Follow::STRONG, classes))
}

/// Returns the classes that are not roots themselves and at which paths to `ends` begin.
fn starting_classes(graph: &HeapGraph, walk: &Walk, ends: &[ObjectIndex]) -> Vec<ObjectIndex> {
    let mut seen = ObjectSet::new(graph.len());
    let mut classes = Vec::new();
    for &end in ends {
        let mut at = end;
        // The path above an object is walked once.
        while seen.insert(at) {
            match walk.parent(at) {
                Some(parent) => at = parent,
                None => {
                    if walk::is_class_start(graph, at) {
                        classes.push(at);
                    }
                    break;
                }
            }
        }
    }
    classes
}

type Found = (ObjectIndex, Kind, Verdict);

fn leaking(rules: &Rules<'_>, sought: &[(ObjectIndex, Kind)]) -> Vec<Found> {
    let mut all: Vec<Found> = Vec::new();
    for &(object, kind) in sought {
        if !kind.is_sought() {
            continue;
        }
        let stale = rules.stale_views.contains_key(&object);
        if kind == Kind::View && !stale && !rules.is_root_view(object) {
            continue;
        }
        let verdict = rules.judge(object);
        if verdict.status == Status::Leaking {
            all.push((object, kind, verdict));
        }
    }
    for &object in rules.live.watched.keys() {
        let kind = rules.kind(object).filter(|kind| kind.is_sought());
        let verdict = rules.judge(object);
        if verdict.status == Status::Leaking {
            all.push((object, kind.unwrap_or(Kind::Watched), verdict));
        }
    }
    all.sort_by_key(|(object, _, _)| *object);
    all.dedup_by_key(|(object, _, _)| *object);
    all
}

/// Returns the reasons why objects could not be judged.
fn untold(
    graph: &HeapGraph,
    kinds: &Kinds,
    live: &Live,
    sought: &[(ObjectIndex, Kind)],
) -> Vec<String> {
    let mut all = Vec::new();
    let mut tell = |text: &str| all.push(text.to_owned());
    if graph.is_empty() {
        tell("the dump does not contain any objects");
    } else if graph.facts.losses.lacks_objects() {
        tell("parts of the dump are missing, so leaks or their paths might be missing as well");
    }
    if !graph.is_empty() && !kinds.any_sought() && graph.is_of_java_se() {
        tell("the rules are about classes of Android, and this is a heap of Java SE");
    } else if !graph.is_empty() && !kinds.any_sought() {
        tell(
            "the dump does not contain any class that the rules cover; if its names are \
             obfuscated, pass the app's R8 mapping with `--mapping`",
        );
    }
    let has = |kind: Kind| sought.iter().any(|&(_, k)| k == kind);
    if !graph.contents().has_values() {
        let mut unjudged: Vec<&str> = [
            (Kind::Window, "windows"),
            (Kind::MessageQueue, "loopers"),
            (Kind::Composition, "compositions"),
        ]
        .into_iter()
        .filter_map(|(kind, name)| has(kind).then_some(name))
        .collect();
        if has(Kind::ViewModel) && !kinds.has(Kind::ViewModelStore) {
            unjudged.push("view models");
        }
        if !unjudged.is_empty() {
            tell(&format!(
                "a heap graph does not contain values, so {} cannot be judged; \
                 `dump --hprof` records them",
                unjudged.join(" and ")
            ));
        }
        if has(Kind::Activity) && live.activities.is_none() {
            tell(
                "ActivityThread.mActivities is not in this dump, so activities are judged by \
                 their lifecycle alone",
            );
        }
    }
    if has(Kind::Service) && live.services.is_none() {
        tell("ActivityThread.mServices is not in this dump, so services cannot be judged");
    }
    all
}

/// Returns the objects that no path reaches, by class, except those kept by other leaks.
fn unheld(
    graph: &HeapGraph,
    reachable: &Reachable,
    apart: &[Found],
    kept: &ObjectSet,
) -> Vec<Unheld> {
    let mut counts: BTreeMap<(&str, Kind, bool), u64> = BTreeMap::new();
    for &(object, kind, _) in apart {
        if !kept.contains(object) {
            let class = graph.class(graph.class_of(object)).shown();
            let in_passing = reachable.contains(object);
            *counts.entry((class, kind, in_passing)).or_default() += 1;
        }
    }
    counts
        .into_iter()
        .map(|((class, kind, in_passing), count)| Unheld {
            class: class.to_owned(),
            kind,
            count,
            in_passing,
            is_unknown: graph.facts.losses.lacks_objects(),
        })
        .collect()
}

struct Finder<'a> {
    graph: &'a HeapGraph,
    rules: &'a Rules<'a>,
    walk: &'a Walk,
    references: References<'a>,
    known: &'a [Known],
    adviser: Adviser<'a>,
    /// Leaking objects.
    ends: &'a ObjectSet,
    /// Paths to the classes at which paths begin; `None` without such classes.
    classes: Option<ShortestPaths>,
}

impl Finder<'_> {
    fn groups(&self, held: Vec<Found>, kept: Vec<KeptByLeak>) -> (Vec<LeakGroup>, u64) {
        let mut all: Vec<(Found, Retained, Vec<Nested>)> = held
            .into_iter()
            .zip(kept)
            .map(|(found, (kept, nested))| {
                // Classes of different loaders can have the same name.
                let mut counts = BTreeMap::<String, u64>::new();
                for (class, count) in nested {
                    *counts.entry(self.class_name(class)).or_default() += count;
                }
                let nested = counts.into_iter();
                let nested = nested.map(|(class, count)| Nested { class, count });
                (found, kept, nested.collect())
            })
            .collect();
        // The first leak of a group is shown.
        all.sort_by(|(a, a_kept, _), (b, b_kept, _)| {
            let by_size = b_kept.total_bytes().cmp(&a_kept.total_bytes());
            a.2.certainty
                .cmp(&b.2.certainty)
                .then(by_size)
                .then(a.0.cmp(&b.0))
        });
        let mut groups: Vec<LeakGroup> = Vec::new();
        let mut by_key: HashMap<(String, String), usize> = HashMap::new();
        // Group and leak of each registered object, by the way in which it was registered.
        let mut by_cause: HashMap<(usize, ObjectIndex), (usize, usize)> = HashMap::new();
        let mut steps = 0;
        let mut left_out = 0;
        for ((object, kind, verdict), kept, nested) in all {
            if steps > MAX_STEPS {
                left_out += 1;
                continue;
            }
            let raw = self.references.path(self.walk, object);
            steps += raw.len();
            let suspects = self.suspects(&raw);
            let library = self.library(object);
            let signature = match library {
                Some(known) => of_pattern(&known.pattern.name()),
                None => self.signature(&raw, &suspects),
            };
            let class = self.class_name(self.graph.class_of(object));
            let way = self.adviser.way(&Held {
                kind,
                class: &class,
                raw: &raw,
                suspects: &suspects,
            });
            let mut leak = Leak {
                object,
                id: self.graph.id(object),
                certainty: verdict.certainty,
                reason: verdict.reason,
                kept,
                nested,
            };
            if way.is_some_and(|found| found.way.is_passing) {
                leak.certainty = Certainty::Possible;
                leak.reason += "; only an idle thread of a pool holds it";
            }
            let holder = suspects.iter().position(|&suspect| suspect);
            let holder = holder.and_then(|at| self.rules.kind(raw[at].object));
            if kind.is_fragment()
                && holder.is_some_and(|kind| kind == Kind::Activity || kind.is_fragment())
            {
                leak.certainty = Certainty::Possible;
                leak.reason += "; what keeps it is alive and might add it again";
            }
            let cause = way.filter(|_| library.is_none());
            let cause = cause.map(|found| (found.number, self.window_of(found.registered)));
            let key = (signature, class);
            let known = by_key.get(&key).copied();
            let same_cause = cause.and_then(|cause| by_cause.get(&cause).copied());
            let at = match (known, same_cause) {
                (Some(at), _) => {
                    let group = &mut groups[at];
                    group.kept.add(kept);
                    group.certainty = group.certainty.min(leak.certainty);
                    group.leaks.push(leak);
                    at
                }
                (None, Some((at, first))) => {
                    let group = &mut groups[at];
                    group.kept.add(kept);
                    group.certainty = group.certainty.min(leak.certainty);
                    group.leaks[first].add(leak, key.1);
                    continue;
                }
                (None, None) => {
                    let raw = self.with_root_of_class(raw);
                    let path = self.steps(&raw);
                    let root = self.root(&raw);
                    let suspects: Vec<bool> = path.iter().map(|step| step.suspect).collect();
                    let held = Held {
                        kind,
                        class: &key.1,
                        raw: &raw,
                        suspects: &suspects,
                    };
                    let advice = self.adviser.of(&held, library, &path, &root);
                    let (path, path_left_out) = folded(path);
                    by_key.insert(key.clone(), groups.len());
                    groups.push(LeakGroup {
                        signature: key.0,
                        kind,
                        what: kind.leaked(),
                        class: key.1,
                        certainty: leak.certainty,
                        library: library.cloned(),
                        count: 0,
                        count_before: None,
                        leaks: vec![leak],
                        kept,
                        dominated: Retained::default(),
                        root,
                        path,
                        path_left_out,
                        advice,
                    });
                    groups.len() - 1
                }
            };
            if let Some(cause) = cause {
                let leak = (at, groups[at].leaks.len() - 1);
                by_cause.entry(cause).or_insert(leak);
            }
        }
        for group in &mut groups {
            group.count = group.leaks.len() as u64;
        }
        groups.sort_by(|a, b| {
            let possible = |g: &LeakGroup| g.certainty == Certainty::Possible;
            let key = |g: &LeakGroup| (g.library.is_some(), possible(g));
            key(a)
                .cmp(&key(b))
                .then(b.kept.total_bytes().cmp(&a.kept.total_bytes()))
                .then_with(|| a.class.cmp(&b.class))
                .then_with(|| a.signature.cmp(&b.signature))
        });
        (groups, left_out)
    }

    /// Returns the view of a window root, which is one window with it; otherwise the object.
    fn window_of(&self, object: ObjectIndex) -> ObjectIndex {
        let is_root = self.rules.kind(object) == Some(Kind::ViewRoot);
        let view = is_root.then(|| lookup::any(self.graph, object, "mView"));
        view.flatten().and_then(Value::object).unwrap_or(object)
    }

    fn suspects(&self, raw: &[RawStep]) -> Vec<bool> {
        let own = raw.iter().map(|r| self.rules.judge(r.object).status);
        suspects(&settle(&own.collect::<Vec<Status>>()))
    }

    /// Returns the signature of the suspected references.
    fn signature(&self, raw: &[RawStep], suspects: &[bool]) -> String {
        let suspected = raw.iter().zip(suspects).filter(|(_, suspect)| **suspect);
        of_references(suspected.filter_map(|(step, _)| {
            let class = self.graph.class_of(step.object);
            let class = self.graph.class_behind(step.object).unwrap_or(class);
            let name = without_address(self.graph.class(class).shown());
            Some((name, step.reference.as_ref()?))
        }))
    }

    fn class_name(&self, class: heaptap_model::heap_graph::ClassIndex) -> String {
        without_address(self.graph.class(class).shown()).into_owned()
    }

    /// Returns the known leak that the path to an object passes.
    fn library(&self, object: ObjectIndex) -> Option<&Known> {
        let mut at = Some(object);
        while let Some(object) = at {
            if let Some(known) = self.walk.known(object) {
                return self.known.get(known);
            }
            at = self.walk.parent(object);
        }
        None
    }

    /// Extends a path that begins at a loaded class to the root that keeps the class, the same root
    /// that `paths` names.
    fn with_root_of_class(&self, raw: Vec<RawStep>) -> Vec<RawStep> {
        let (Some(classes), Some(first)) = (&self.classes, raw.first()) else {
            return raw;
        };
        let class = first.object;
        if !walk::is_class_start(self.graph, class) {
            return raw;
        }
        let objects = classes.path(class);
        let is_way = self.graph.root_kind(objects[0]).is_some();
        // A leaking object might also be what keeps the class.
        if !is_way || objects.iter().any(|&object| self.ends.contains(object)) {
            return raw;
        }
        let mut whole = self.references.along(&objects);
        whole.extend(raw);
        whole
    }

    fn root(&self, raw: &[RawStep]) -> String {
        let Some(first) = raw.first() else {
            return String::new();
        };
        // A local variable is held by a frame; the thread only owns the frame.
        let local = raw
            .get(1)
            .filter(|_| first.reference == Some(Reference::Local));
        let held = local.map_or(first.object, |local| local.object);
        match paths::root_reason(self.graph, held) {
            Some(reason) => reason.in_words(self.rules.live.texts),
            None => "loaded class".to_owned(),
        }
    }

    fn steps(&self, raw: &[RawStep]) -> Vec<Step> {
        let verdicts: Vec<Verdict> = raw.iter().map(|r| self.rules.judge(r.object)).collect();
        let own: Vec<Status> = verdicts.iter().map(|v| v.status).collect();
        let settled = settle(&own);
        let suspects = suspects(&settled);
        let classes: Vec<(String, Shape)> = raw.iter().map(|r| self.what(r.object)).collect();
        raw.iter()
            .enumerate()
            .map(|(at, raw)| {
                let (status, because) = settled[at];
                let own_reason = &verdicts[at].reason;
                let reason = match because {
                    None => own_reason.clone(),
                    Some(other) => {
                        let other_class = short(&classes[other].0);
                        let word = match status {
                            Status::Leaking => "leaks",
                            _ => "is in use",
                        };
                        match (own[at], own_reason.as_str()) {
                            (Status::Unknown, "") => format!("{other_class} {word}"),
                            (_, own) => format!("{other_class} {word} ({own})"),
                        }
                    }
                };
                Step {
                    id: self.graph.id(raw.object),
                    class: classes[at].0.clone(),
                    shape: classes[at].1,
                    status,
                    reason,
                    reference: raw.reference.clone(),
                    declared_in: raw.declared_in.map(|class| self.class_name(class)),
                    suspect: suspects[at],
                    repeated: None,
                    left_out: 0,
                }
            })
            .collect()
    }

    fn what(&self, object: ObjectIndex) -> (String, Shape) {
        let class = self.graph.class_of(object);
        if let Some(behind) = self.graph.class_behind(object) {
            return (self.class_name(behind), Shape::Class);
        }
        let shape = match self.rules.kind(object) {
            Some(Kind::Thread) => Shape::Thread,
            _ if self.graph.class(class).is_array() => Shape::Array,
            _ => Shape::Instance,
        };
        (self.class_name(class), shape)
    }
}

/// Shortens a path: repetitions are folded, and the middle of what remains too long is omitted.
/// Returns the steps and the number of omitted ones.
fn folded(path: Vec<Step>) -> (Vec<Step>, u64) {
    let references: Vec<_> = path
        .windows(2)
        .map(|pair| {
            let alike = (pair[0].generic(), pair[0].status, pair[0].suspect);
            (alike, &pair[0].class, &pair[1].class)
        })
        .collect();
    let hops = repetition::hops(&references);
    let rounds: Vec<Option<Repeated<String>>> = hops
        .iter()
        .map(|hop| {
            let round = path[hop.from..hop.from + hop.round].iter();
            (hop.times() > 1).then(|| Repeated {
                times: hop.times() as u64,
                round: round.filter_map(Step::generic).collect(),
            })
        })
        .collect();
    let left_out = hops.iter().map(Hop::left_out).sum();
    let mut steps: Vec<Option<Step>> = path.into_iter().map(Some).collect();
    let mut kept = Vec::with_capacity(hops.len() + 1);
    let mut before = 0;
    for (hop, repeated) in hops.iter().zip(rounds) {
        kept.extend(steps[hop.from].take().map(|step| Step {
            repeated,
            left_out: before,
            ..step
        }));
        before = hop.left_out();
    }
    kept.extend(steps.pop().flatten().map(|step| Step {
        left_out: before,
        ..step
    }));
    (kept, left_out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dsl;

    #[test]
    fn the_graph_is_walked_only_where_a_path_begins_at_a_class() {
        let heap = dsl::heap(
            r"
            root    java.lang.Class<app.Main>  8 root=sticky_class -> SCREEN:screen
            screen  app.Screen                16
            ",
        );
        assert!(paths_to_classes(&heap.graph, &[]).is_none());
        let paths = paths_to_classes(&heap.graph, &[heap.at("root")]);
        assert_eq!(paths.unwrap().order(), [heap.at("root")]);
    }
}
