//! Rules that decide which objects should be gone, by the values of their fields. Each rule reads
//! the field that Android sets when the object's lifecycle ends. If the dump lacks the value (heap
//! graphs contain references only), the surrounding references are used.
//!
//! A missing field does not prove anything. A rule without its fields returns unknown.

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::kinds::{Kind, Kinds};
use super::known_leaks::is_library;
use super::live::{Live, thread_name};
use super::verdict::{Certainty, Status, Verdict};
use crate::lookup;
use crate::paths::short;
use heaptap_model::heap_graph::{HeapGraph, ObjectIndex, Value};

/// Rules applied to one graph, with a cache of verdicts.
pub(super) struct Rules<'g> {
    pub graph: &'g HeapGraph,
    pub kinds: &'g Kinds,
    pub live: &'g Live,
    /// Views that fragments still reference after their view was destroyed, by the fragment's
    /// class.
    pub stale_views: Cow<'g, BTreeMap<ObjectIndex, String>>,
    judged: RefCell<HashMap<ObjectIndex, Verdict>>,
}

/// Maximum number of steps from a context to the one it wraps, or from a view to its parent.
const MOST_STEPS: usize = 1_000;

impl<'g> Rules<'g> {
    pub fn new(graph: &'g HeapGraph, kinds: &'g Kinds, live: &'g Live) -> Rules<'g> {
        Rules {
            graph,
            kinds,
            live,
            stale_views: Cow::default(),
            judged: RefCell::default(),
        }
    }

    pub fn kind(&self, object: ObjectIndex) -> Option<Kind> {
        if !super::kinds::is_instance(self.graph, object) {
            return None;
        }
        self.kinds.of_class(self.graph.class_of(object))
    }

    /// Returns the verdict on an object, from the cache if possible.
    pub fn judge(&self, object: ObjectIndex) -> Verdict {
        if let Some(known) = self.judged.borrow().get(&object) {
            return known.clone();
        }
        let verdict = self.judge_anew(object);
        self.judged.borrow_mut().insert(object, verdict.clone());
        verdict
    }

    fn judge_anew(&self, object: ObjectIndex) -> Verdict {
        if self.graph.is_placeholder(object) {
            return Verdict::default();
        }
        if self.graph.class_behind(object).is_some() {
            return Verdict::in_use("a class stays as long as its loader");
        }
        let by_kind = match self.kind(object) {
            Some(kind) => self.judge_kind(object, kind),
            None => Verdict::default(),
        };
        if by_kind.status == Status::Unknown {
            if let Some(class) = self.stale_views.get(&object) {
                let reason = format!("{class} still references it although its mView is null");
                return Verdict::leaking(Certainty::Likely, reason);
            }
            if let Some(watched) = self.live.watched.get(&object) {
                let why = match &watched.description {
                    Some(text) => format!(" ({text})"),
                    None => String::new(),
                };
                match watched.retained {
                    Some(true) => {
                        let reason = format!("the app's LeakCanary reported it as retained{why}");
                        return Verdict::leaking(Certainty::Certain, reason);
                    }
                    None => {
                        let reason = format!("the app's LeakCanary watches it{why}");
                        return Verdict::leaking(Certainty::Likely, reason);
                    }
                    Some(false) => {}
                }
            }
        }
        by_kind
    }

    fn judge_kind(&self, object: ObjectIndex, kind: Kind) -> Verdict {
        match kind {
            Kind::Activity => self.activity(object),
            Kind::PlatformFragment => self.fragment(object, "android.app.Fragment"),
            Kind::SupportFragment => self.fragment(object, "android.support.v4.app.Fragment"),
            Kind::AndroidxFragment => self.androidx_fragment(object),
            Kind::View => self.view(object),
            Kind::Editor => self.by_other(object, "mTextView", "its text view"),
            Kind::DecorContext | Kind::ContextWrapper => self.wrapper(object),
            Kind::ContextImpl => self.context_impl(object),
            Kind::Service => self.service(object),
            Kind::Window => self.window(object),
            Kind::ViewRoot => self.view_root(object),
            Kind::Toast => self.toast(object),
            Kind::MessageQueue => self.message_queue(object),
            Kind::ViewModel => self.view_model(object),
            Kind::Composition => self.composition(object),
            Kind::Recomposer => self.recomposer(object),
            Kind::MortarScope => self.flag(object, "mortar.MortarScope", "dead", Flag::EndsLife),
            Kind::LifecycleRegistry => match self.lifecycle_state(object) {
                Some(state) if state == "DESTROYED" => Verdict::unknown("its state is DESTROYED"),
                Some(state) => Verdict::in_use(format!("its state is {state}")),
                None => Verdict::default(),
            },
            Kind::Application => Verdict::in_use("an Application lives as long as its process"),
            Kind::ActivityThread => Verdict::in_use("it lives as long as the process"),
            Kind::InputMethodManager => Verdict::in_use("it lives as long as the process"),
            Kind::ClassLoader => Verdict::in_use("class loaders are assumed to stay"),
            Kind::Thread => self.thread(object),
            Kind::Dialog => self.dialog(object),
            Kind::Message => Verdict::unknown("a pending message, or one in the message pool"),
            Kind::Animator => {
                Verdict::unknown("an animator; an endless animation holds its target")
            }
            Kind::LoadedApk => Verdict::unknown("holds the receivers passed to registerReceiver"),
            Kind::Binder => Verdict::unknown("a Binder lives until the other process releases it"),
            Kind::Watched => Verdict::default(),
        }
    }

    fn get(&self, object: ObjectIndex, class: &str, name: &str) -> Option<Value> {
        lookup::get(self.graph, object, class, name)
    }

    fn name_of(&self, object: ObjectIndex) -> &'g str {
        short(self.graph.class(self.graph.class_of(object)).shown())
    }

    fn flag(&self, object: ObjectIndex, class: &str, name: &str, flag: Flag) -> Verdict {
        let value = self.get(object, class, name).and_then(Value::boolean);
        match (value, flag) {
            (Some(true), _) => Verdict::leaking(Certainty::Certain, format!("{name} is true")),
            (Some(false), Flag::EndsLife) => Verdict::in_use(format!("{name} is false")),
            (Some(false), Flag::MayEnd) => Verdict::unknown(format!("{name} is false")),
            (None, _) => Verdict::default(),
        }
    }

    // Activities, services.

    fn activity(&self, object: ObjectIndex) -> Verdict {
        let class = "android.app.Activity";
        let by_flag = self.flag(object, class, "mDestroyed", Flag::EndsLife);
        if by_flag.status != Status::Unknown {
            return by_flag;
        }
        let records = self.live.activities.as_ref();
        if records.is_some_and(|records| records.contains(&object)) {
            return Verdict::in_use("ActivityThread.mActivities has a record of it");
        }
        // Activities of androidx update their lifecycle registry when they end.
        let registry = lookup::any(self.graph, object, "mLifecycleRegistry");
        let state = registry
            .and_then(Value::object)
            .and_then(|registry| self.lifecycle_state(registry));
        match (state, records) {
            (Some(state), _) if state == "DESTROYED" => {
                Verdict::leaking(Certainty::Likely, "its lifecycle is DESTROYED")
            }
            (_, Some(_)) => Verdict::leaking(
                Certainty::Likely,
                "ActivityThread.mActivities has no record of it, so it was destroyed",
            ),
            (Some(state), None) => Verdict::in_use(format!("its lifecycle is {state}")),
            (None, None) => Verdict::default(),
        }
    }

    fn service(&self, object: ObjectIndex) -> Verdict {
        match &self.live.services {
            None => Verdict::default(),
            Some(all) if all.contains(&object) => {
                Verdict::in_use("ActivityThread.mServices contains it")
            }
            Some(_) => Verdict::leaking(
                Certainty::Certain,
                "ActivityThread.mServices no longer contains it",
            ),
        }
    }

    /// Returns the name of the androidx `Lifecycle.State` of a `LifecycleRegistry`.
    fn lifecycle_state(&self, registry: ObjectIndex) -> Option<String> {
        if self.kind(registry) != Some(Kind::LifecycleRegistry) {
            return None;
        }
        let state = lookup::one_of(self.graph, registry, &["state", "mState"])?;
        lookup::constant(self.graph, state.object()?)
    }

    // Fragments.

    fn fragment(&self, object: ObjectIndex, class: &str) -> Verdict {
        match self.get(object, class, "mFragmentManager") {
            Some(Value::Null) => self.removed_fragment(object, class),
            Some(Value::Object(_)) => Verdict::in_use("mFragmentManager is set"),
            _ => Verdict::default(),
        }
    }

    /// Judges a fragment without a manager, which was removed or has not been added yet.
    fn removed_fragment(&self, object: ObjectIndex, class: &str) -> Verdict {
        let called = self.get(object, class, "mCalled").and_then(Value::boolean);
        let was_added = self.get(object, class, "mPreviousWho");
        match (called, was_added) {
            (Some(true), _) => Verdict::leaking(
                Certainty::Certain,
                "mFragmentManager is null and mCalled is true",
            ),
            (Some(false), _) => Verdict::unknown("mFragmentManager is null: not yet added"),
            (None, Some(Value::Object(_))) => Verdict::leaking(
                Certainty::Likely,
                "mFragmentManager is null and mPreviousWho is set, so it was added before",
            ),
            (None, _) if self.graph.contents().has_values() => Verdict::leaking(
                Certainty::Likely,
                "mFragmentManager is null: it was removed (this dump lacks mCalled to prove it)",
            ),
            (None, _) => Verdict::leaking(
                Certainty::Possible,
                "mFragmentManager is null: removed or never added (unknown in a heap graph)",
            ),
        }
    }

    fn androidx_fragment(&self, object: ObjectIndex) -> Verdict {
        let class = "androidx.fragment.app.Fragment";
        let state = self
            .get(object, class, "mLifecycleRegistry")
            .and_then(Value::object)
            .and_then(|registry| self.lifecycle_state(registry));
        if state.as_deref() == Some("DESTROYED") {
            return Verdict::leaking(Certainty::Certain, "its lifecycle is DESTROYED");
        }
        match self.get(object, class, "mFragmentManager") {
            Some(Value::Object(_)) => Verdict::in_use("mFragmentManager is set"),
            // Since androidx.fragment 1.1, a removed fragment returns to the state INITIALIZED.
            Some(Value::Null) if self.get(object, class, "mMaxState").is_some() => {
                self.removed_fragment(object, class)
            }
            Some(Value::Null) if state.is_none() => self.removed_fragment(object, class),
            Some(Value::Null) => Verdict::unknown("mFragmentManager is null: not yet added"),
            _ => Verdict::default(),
        }
    }

    /// Finds views that an app's fragment keeps in its own fields, directly or through a binding,
    /// although its view was destroyed.
    pub fn find_stale_views(&mut self, fragments: &[ObjectIndex]) {
        for &fragment in fragments {
            if self.judge(fragment).status == Status::Leaking {
                continue;
            }
            let base = [
                "androidx.fragment.app.Fragment",
                "android.app.Fragment",
                "android.support.v4.app.Fragment",
            ];
            let view = base
                .iter()
                .find_map(|class| self.get(fragment, class, "mView"));
            if view != Some(Value::Null) {
                continue;
            }
            let mut kept = BTreeSet::new();
            crate::fields::visit(self.graph, fragment, |field| {
                let own = field.declared_in.is_some_and(|class| {
                    !is_library(self.graph.class(class).shown()) && !field.is_static
                });
                if let (true, Some(target)) = (own, field.value.object()) {
                    kept.insert(target);
                }
                std::ops::ControlFlow::Continue(())
            });
            let bindings: Vec<ObjectIndex> = kept
                .iter()
                .filter(|&&o| self.name_of(o).ends_with("Binding"))
                .filter_map(|&o| lookup::any(self.graph, o, "rootView")?.object())
                .collect();
            kept.extend(bindings);
            let name = self.name_of(fragment).to_owned();
            for view in kept {
                let detached = self.kind(view) == Some(Kind::View)
                    && self.get(view, "android.view.View", "mAttachInfo") == Some(Value::Null)
                    && self.was_attached(view) != Some(false);
                if detached {
                    self.judged.borrow_mut().remove(&view);
                    self.stale_views.to_mut().insert(view, name.clone());
                }
            }
        }
    }

    // Views, windows.

    fn parent_view(&self, view: ObjectIndex) -> Option<ObjectIndex> {
        let parent = self.get(view, "android.view.View", "mParent")?.object()?;
        (self.kind(parent) == Some(Kind::View)).then_some(parent)
    }

    /// Returns whether a view has no parent view. The search covers only such views.
    pub fn is_root_view(&self, view: ObjectIndex) -> bool {
        self.parent_view(view).is_none()
    }

    fn was_attached(&self, view: ObjectIndex) -> Option<bool> {
        let count = self.get(view, "android.view.View", "mWindowAttachCount")?;
        Some(count.integer()? > 0)
    }

    /// Returns the verdict on the context in the class's field `mContext` if it leaks.
    fn leaking_context(&self, object: ObjectIndex, class: &str) -> Option<Verdict> {
        let context = self.get(object, class, "mContext")?.object()?;
        self.of_context(context, "its context")
            .filter(|verdict| verdict.status == Status::Leaking)
    }

    fn view(&self, object: ObjectIndex) -> Verdict {
        let class = "android.view.View";
        if let Some(verdict) = self.leaking_context(object, class) {
            return verdict;
        }
        let mut root = object;
        for _ in 0..MOST_STEPS {
            match self.parent_view(root) {
                Some(parent) => root = parent,
                None => break,
            }
        }
        let parent = self.get(root, class, "mParent");
        let in_window = matches!(parent, Some(Value::Object(_)))
            || self.graph.is_a(
                self.graph.class_of(root),
                "com.android.internal.policy.DecorView",
            );
        let attached = self.get(object, class, "mAttachInfo");
        let root_attached = self.get(root, class, "mAttachInfo");
        match (attached, in_window) {
            (Some(Value::Object(_)), true) if root != object => match root_attached {
                Some(Value::Null) => Verdict::leaking(
                    Certainty::Certain,
                    "it is attached below a root view that was detached",
                ),
                _ => Verdict::in_use("it is attached to a window"),
            },
            (Some(Value::Object(_)), _) => Verdict::in_use("it is attached to a window"),
            (Some(Value::Null), true) => match self.was_attached(object) {
                Some(true) => {
                    Verdict::leaking(Certainty::Certain, "it was detached from its window")
                }
                Some(false) => Verdict::unknown("it was never attached to its window"),
                None if self.graph.contents().has_values() => Verdict::default(),
                None => Verdict::leaking(
                    Certainty::Possible,
                    "mAttachInfo is null: detached or not yet shown (unknown in a heap graph)",
                ),
            },
            (Some(Value::Null), false) => {
                Verdict::unknown("it is not in a window; apps can keep views for reuse")
            }
            _ => Verdict::default(),
        }
    }

    fn window(&self, object: ObjectIndex) -> Verdict {
        // The flag is set only for windows of activities.
        let by_flag = self.flag(object, "android.view.Window", "mDestroyed", Flag::MayEnd);
        if by_flag.status == Status::Leaking {
            return by_flag;
        }
        self.leaking_context(object, "android.view.Window")
            .unwrap_or(by_flag)
    }

    fn view_root(&self, object: ObjectIndex) -> Verdict {
        let class = "android.view.ViewRootImpl";
        match self.get(object, class, "mView") {
            Some(Value::Null) => {
                return Verdict::leaking(
                    Certainty::Certain,
                    "mView is null: its window was removed",
                );
            }
            Some(_) => {}
            None => return Verdict::default(),
        }
        self.leaking_context(object, class).unwrap_or_default()
    }

    fn toast(&self, object: ObjectIndex) -> Verdict {
        let shower = self
            .get(object, "android.widget.Toast", "mTN")
            .and_then(Value::object);
        let Some(shower) = shower else {
            return Verdict::default();
        };
        let manager = lookup::any(self.graph, shower, "mWM");
        let view = lookup::any(self.graph, shower, "mView");
        match (manager, view) {
            (Some(Value::Object(_)), Some(Value::Null)) => {
                Verdict::leaking(Certainty::Certain, "it was shown and then hidden")
            }
            (Some(Value::Object(_)), Some(Value::Object(_))) => Verdict::in_use("it is visible"),
            _ => Verdict::default(),
        }
    }

    fn dialog(&self, object: ObjectIndex) -> Verdict {
        match self.get(object, "android.app.Dialog", "mDecor") {
            Some(Value::Null) => Verdict::unknown("a dialog that is not showing"),
            // A dialog can keep its views after its window was removed.
            Some(Value::Object(decor)) => {
                match self.get(decor, "android.view.View", "mAttachInfo") {
                    Some(Value::Object(_)) => Verdict::unknown("a dialog that is showing"),
                    Some(Value::Null) => {
                        Verdict::unknown("a dialog whose views are not in a window")
                    }
                    _ => Verdict::default(),
                }
            }
            _ => Verdict::default(),
        }
    }

    // Contexts.

    /// Judges the owner of a context. `whose` is "its context" or similar. Returns `None` if no
    /// activity is behind the context.
    fn of_context(&self, context: ObjectIndex, whose: &str) -> Option<Verdict> {
        let inner = self.unwrap_context(context)?;
        let kind = self.kind(inner);
        let verdict = match kind {
            Some(Kind::Activity) => self.activity(inner),
            _ => return None,
        };
        let name = self.name_of(inner);
        Some(match verdict.status {
            Status::Leaking => Verdict::leaking(
                verdict.certainty,
                format!("{whose} is {name}, which was destroyed"),
            ),
            Status::NotLeaking => Verdict::unknown(format!("{whose} is {name}, which is alive")),
            Status::Unknown => return None,
        })
    }

    /// Returns the activity at the end of a chain of wrappers.
    fn unwrap_context(&self, context: ObjectIndex) -> Option<ObjectIndex> {
        let mut at = context;
        // Hostile dumps contain cycles of contexts.
        for _ in 0..MOST_STEPS {
            let next = match self.kind(at)? {
                Kind::Activity => return Some(at),
                Kind::DecorContext => lookup::any(self.graph, at, "mPhoneWindow")
                    .and_then(Value::object)
                    .and_then(|window| self.get(window, "android.view.Window", "mContext")),
                Kind::ContextWrapper => self.get(at, "android.content.ContextWrapper", "mBase"),
                Kind::ContextImpl => {
                    let outer = self.get(at, "android.app.ContextImpl", "mOuterContext");
                    outer.filter(|outer| outer.object() != Some(at))
                }
                _ => return None,
            };
            at = next?.object()?;
        }
        None
    }

    fn wrapper(&self, object: ObjectIndex) -> Verdict {
        self.of_context(object, "the context it wraps")
            .unwrap_or_default()
    }

    fn context_impl(&self, object: ObjectIndex) -> Verdict {
        self.of_context(object, "its outer context")
            .unwrap_or_default()
    }

    /// Judges an object by another one that it belongs to.
    fn by_other(&self, object: ObjectIndex, field: &str, whose: &str) -> Verdict {
        let Some(other) = lookup::any(self.graph, object, field).and_then(Value::object) else {
            return Verdict::default();
        };
        if self.kind(other) != Some(Kind::View) {
            return Verdict::default();
        }
        let verdict = self.view(other);
        Verdict {
            reason: match verdict.reason.as_str() {
                "" => String::new(),
                reason => format!("{whose}: {reason}"),
            },
            ..verdict
        }
    }

    // The rest.

    fn message_queue(&self, object: ObjectIndex) -> Verdict {
        if self.live.main_queue == Some(object) {
            return Verdict::in_use("the main thread's queue");
        }
        let flag = lookup::one_of(self.graph, object, &["mQuitting", "mQuiting"]);
        match flag.and_then(Value::boolean) {
            Some(true) => Verdict::leaking(Certainty::Certain, "its looper has quit"),
            Some(false) => Verdict::in_use("its looper is running"),
            None => Verdict::default(),
        }
    }

    fn view_model(&self, object: ObjectIndex) -> Verdict {
        let class = "androidx.lifecycle.ViewModel";
        let own = self.get(object, class, "mCleared").and_then(Value::boolean);
        // Since lifecycle 2.8, the flag is in a separate object.
        let cleared = own.or_else(|| {
            let inner = self.get(object, class, "impl")?.object()?;
            lookup::any(self.graph, inner, "isCleared")?.boolean()
        });
        match cleared {
            Some(true) => Verdict::leaking(Certainty::Certain, "it was cleared"),
            Some(false) => Verdict::in_use("it was not cleared"),
            None => Verdict::default(),
        }
    }

    fn composition(&self, object: ObjectIndex) -> Verdict {
        let disposed = lookup::any(self.graph, object, "disposed").and_then(Value::boolean);
        let state = lookup::any(self.graph, object, "state").and_then(Value::integer);
        match (disposed, state) {
            (Some(true), _) | (None, Some(3)) => {
                Verdict::leaking(Certainty::Certain, "it was disposed")
            }
            (Some(false), _) | (None, Some(_)) => Verdict::in_use("it was not disposed"),
            (None, None) => Verdict::default(),
        }
    }

    fn recomposer(&self, object: ObjectIndex) -> Verdict {
        let state = lookup::any(self.graph, object, "_state")
            .and_then(Value::object)
            .and_then(|flow| lookup::one_of(self.graph, flow, &["_state$volatile", "_state"]))
            .and_then(Value::object)
            .and_then(|state| lookup::constant(self.graph, state));
        match state {
            Some(state) if state.starts_with("ShutDown") || state == "ShuttingDown" => {
                Verdict::leaking(Certainty::Certain, format!("its state is {state}"))
            }
            Some(state) => Verdict::in_use(format!("its state is {state}")),
            None => Verdict::default(),
        }
    }

    fn thread(&self, object: ObjectIndex) -> Verdict {
        if self.live.main_thread == Some(object) {
            return Verdict::in_use("the main thread runs as long as the process");
        }
        match thread_name(self.graph, object) {
            Some(name) if self.live.texts => Verdict::unknown(format!("thread \"{}\"", cut(&name))),
            _ => Verdict::default(),
        }
    }
}

/// Meaning of a flag whose value is false.
#[derive(Clone, Copy)]
enum Flag {
    /// The flag is set whenever the lifecycle of such an object ends.
    EndsLife,
    /// The flag is set for some objects only.
    MayEnd,
}

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}
