//! Holders of objects, by field name: the first referrer, climbed up through arrays and collection
//! internals to code that a developer has written. Without reversed references, each step up is one
//! pass over all references for all requested objects.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::parts::WORTH_THREADS;
use crate::{fields, label};
use heaptap_base::parallel;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, ObjectSet, ReferenceKind, Referrers};

/// Objects whose holders are requested.
#[derive(Debug, Default)]
pub(super) struct Holders {
    wanted: Vec<ObjectIndex>,
}

/// Holders found.
pub(super) struct Held {
    names: HashMap<ObjectIndex, String>,
}

/// Maximum number of steps up.
const MAX_STEPS: usize = 6;

impl Holders {
    pub fn want(&mut self, object: ObjectIndex) {
        self.wanted.push(object);
    }

    /// Finds the holders among the objects that `is_reachable` selects, by reversed references of all
    /// kinds if they are known.
    pub fn find(
        mut self,
        graph: &HeapGraph,
        is_reachable: &(dyn Fn(ObjectIndex) -> bool + Sync),
        referrers: Option<&Referrers>,
    ) -> Held {
        let mut owners: HashMap<ObjectIndex, ObjectIndex> = HashMap::new();
        let asked = self.wanted.clone();
        for _ in 0..MAX_STEPS {
            self.wanted.retain(|object| !owners.contains_key(object));
            if self.wanted.is_empty() {
                break;
            }
            match referrers {
                Some(referrers) => {
                    let best = |&object: &ObjectIndex| {
                        Some((object, best(graph, is_reachable, referrers, object)?))
                    };
                    owners.extend(self.wanted.iter().filter_map(best));
                }
                None => step(graph, is_reachable, &self.wanted, &mut owners),
            }
            let up = self.wanted.iter().filter_map(|object| owners.get(object));
            self.wanted = up
                .copied()
                .filter(|&owner| is_inside(graph, owner))
                .collect();
        }
        let names = asked
            .into_iter()
            .filter_map(|object| Some((object, name(graph, &owners, object)?)))
            .collect();
        Held { names }
    }
}

/// Returns the most descriptive referrer of an object, and the first of several equal ones.
fn best(
    graph: &HeapGraph,
    is_reachable: &(dyn Fn(ObjectIndex) -> bool + Sync),
    referrers: &Referrers,
    object: ObjectIndex,
) -> Option<ObjectIndex> {
    // The referent of a weak reference is not held by it.
    let holds = |owner: ObjectIndex| {
        let class = graph.class(graph.class_of(owner));
        ReferenceKind::of_class(class.kind).is_none() || graph.references(owner).contains(&object)
    };
    let owners = referrers.to(object);
    owners
        .filter(|&owner| is_reachable(owner) && holds(owner))
        .min_by_key(|&owner| rank(graph, owner))
}

/// Finds such a referrer of each requested object.
fn step(
    graph: &HeapGraph,
    is_reachable: &(dyn Fn(ObjectIndex) -> bool + Sync),
    wanted: &[ObjectIndex],
    owners: &mut HashMap<ObjectIndex, ObjectIndex>,
) {
    let is_wanted = ObjectSet::from_graph(graph.len(), wanted.iter().copied());
    let found = parallel::ranges(graph.len(), WORTH_THREADS, |range| {
        let mut best: HashMap<ObjectIndex, (u8, ObjectIndex)> = HashMap::new();
        for owner in range.map(|at| ObjectIndex(at as u32)) {
            for &target in graph.references(owner) {
                if target == ObjectIndex::NONE
                    || !is_wanted.contains(target)
                    || !is_reachable(owner)
                {
                    continue;
                }
                let rank = rank(graph, owner);
                if best.get(&target).is_none_or(|&(best, _)| rank < best) {
                    best.insert(target, (rank, owner));
                }
            }
        }
        best
    });
    let mut ranks: HashMap<ObjectIndex, u8> = HashMap::new();
    for (target, (rank, owner)) in found.into_iter().flatten() {
        if ranks.get(&target).is_none_or(|&best| rank < best) {
            ranks.insert(target, rank);
            owners.insert(target, owner);
        }
    }
}

/// Returns how uninformative a holder is: a class gives the name of its static, a link of a
/// collection only that there are others.
fn rank(graph: &HeapGraph, owner: ObjectIndex) -> u8 {
    if graph.class_behind(owner).is_some() {
        return 0;
    }
    match (is_inside(graph, owner), graph.class(graph.class_of(owner))) {
        (false, _) => 1,
        (true, class) if class.is_array() => 2,
        (true, class) if !class.shown().contains('$') => 3,
        (true, _) => 4,
    }
}

/// Returns whether a holder is uninformative by itself: an array or a part of a collection.
fn is_inside(graph: &HeapGraph, object: ObjectIndex) -> bool {
    if graph.class_behind(object).is_some() {
        return false;
    }
    let class = graph.class(graph.class_of(object));
    class.is_array() || label::is_collection(class.shown())
}

impl Held {
    pub fn name(&self, object: ObjectIndex) -> Option<String> {
        self.names.get(&object).cloned()
    }
}

/// Returns a name such as `a.B.FIELD`, with `[x]` if the object is in an array or a collection
/// there.
fn name(
    graph: &HeapGraph,
    owners: &HashMap<ObjectIndex, ObjectIndex>,
    object: ObjectIndex,
) -> Option<String> {
    let mut target = object;
    let mut owner = *owners.get(&target)?;
    let mut element = "";
    for _ in 0..MAX_STEPS {
        if !is_inside(graph, owner) {
            break;
        }
        let Some(&next) = owners.get(&owner) else {
            break;
        };
        element = " [x]";
        (target, owner) = (owner, next);
    }
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
            (Some(at), _) => format!("{class} [{at}]"),
            (None, Some(name)) => format!("{class}.{name}"),
            (None, None) => class.clone().into_owned(),
        });
        ControlFlow::Break(())
    });
    let by = by.unwrap_or_else(|| class.into_owned());
    Some(by + element)
}
