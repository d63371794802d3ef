//! Access of the rules to the objects that they judge: kinds, fields and flags.

use std::borrow::Cow;
use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::leaks::kinds::{Kind, Kinds, is_instance};
use crate::leaks::live::Live;
use crate::leaks::verdict::{Certainty, Verdict};
use crate::lookup;
use crate::paths::short;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, Value};

/// Rules applied to one graph, with a cache of verdicts.
pub(in crate::leaks) struct Rules<'g> {
    pub graph: &'g HeapGraph,
    pub kinds: &'g Kinds,
    pub live: &'g Live,
    /// Views that fragments still reference after their view was destroyed, by the fragment's
    /// class.
    pub stale_views: Cow<'g, BTreeMap<ObjectIndex, String>>,
    pub(super) judged: RefCell<HashMap<ObjectIndex, Verdict>>,
    /// View models in stores, looked up for the first one without a flag.
    pub(super) stored: OnceCell<Option<BTreeSet<ObjectIndex>>>,
}

/// Maximum number of steps from a context to the one it wraps, or from a view to its parent.
pub(super) const MAX_STEPS: usize = 1_000;

impl<'g> Rules<'g> {
    pub fn new(graph: &'g HeapGraph, kinds: &'g Kinds, live: &'g Live) -> Rules<'g> {
        Rules {
            graph,
            kinds,
            live,
            stale_views: Cow::default(),
            judged: RefCell::default(),
            stored: OnceCell::new(),
        }
    }

    pub fn kind(&self, object: ObjectIndex) -> Option<Kind> {
        if !is_instance(self.graph, object) {
            return None;
        }
        self.kinds.of_class(self.graph.class_of(object))
    }

    pub(super) fn get(&self, object: ObjectIndex, class: &str, name: &str) -> Option<Value> {
        lookup::get(self.graph, object, class, name)
    }

    pub(super) fn name_of(&self, object: ObjectIndex) -> &'g str {
        short(self.graph.class(self.graph.class_of(object)).shown())
    }

    pub(super) fn flag(&self, object: ObjectIndex, class: &str, name: &str, flag: Flag) -> Verdict {
        let value = self.get(object, class, name).and_then(Value::boolean);
        match (value, flag) {
            (Some(true), _) => Verdict::leaking(Certainty::Certain, format!("{name} is true")),
            (Some(false), Flag::EndsLife) => Verdict::in_use(format!("{name} is false")),
            (Some(false), Flag::MayEnd) => Verdict::unknown(format!("{name} is false")),
            (None, _) => Verdict::default(),
        }
    }
}

/// Meaning of a flag whose value is false.
#[derive(Clone, Copy)]
pub(super) enum Flag {
    /// The flag is set whenever the lifecycle of such an object ends.
    EndsLife,
    /// The flag is set for some objects only.
    MayEnd,
}
