//! Rules that decide which objects should be gone, by the values of their fields. Each rule reads
//! the field that Android sets when the object's lifecycle ends. If the dump lacks the value (heap
//! graphs contain references only), the surrounding references are used.
//!
//! A missing field does not prove anything. A rule without its fields returns unknown.

mod access;
mod views;

use std::collections::{BTreeSet, VecDeque};
use std::ops::ControlFlow;

pub(super) use self::access::Rules;
use self::access::{Flag, MAX_STEPS};
use super::kinds::{Kind, is_instance};
use super::known_leaks::is_library;
use super::live::{map_values, thread_name};
use super::verdict::{Certainty, Status, Verdict};
use crate::lookup;
use heaptap_model::heap_graph::{ObjectIndex, Value};

/// Maximum number of objects examined for what one fragment keeps.
const MAX_KEPT: usize = 1_000;

impl Rules<'_> {
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
            Kind::LoadedApk => Verdict::unknown("holds registered receivers and bound connections"),
            Kind::Job => self.job(object),
            Kind::Binder => Verdict::unknown("a Binder lives until the other process releases it"),
            Kind::Watched | Kind::ViewModelStore => Verdict::default(),
        }
    }

    // Activities, services.

    fn activity(&self, object: ObjectIndex) -> Verdict {
        let class = "android.app.Activity";
        let mut by_flag = self.flag(object, class, "mDestroyed", Flag::EndsLife);
        if by_flag.status != Status::Unknown {
            let changing = self.get(object, class, "mChangingConfigurations");
            if by_flag.status == Status::Leaking && changing == Some(Value::Boolean(true)) {
                by_flag.reason += ", on rotation or another configuration change";
            }
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
            Some(_) => match self.get(object, "android.app.Service", "mThread") {
                Some(Value::Null) => Verdict::unknown(
                    "the system did not start it (mThread is null): another service delegates to it",
                ),
                _ => Verdict::leaking(
                    Certainty::Certain,
                    "ActivityThread.mServices no longer contains it",
                ),
            },
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

    /// Finds views that an app's fragment keeps although its view was destroyed: in its own fields,
    /// or by bindings, adapters, observers and delegates.
    pub fn find_stale_views(&mut self, fragments: &[ObjectIndex]) {
        let view_of = |rules: &Self, fragment| {
            let base = [
                "androidx.fragment.app.Fragment",
                "android.app.Fragment",
                "android.support.v4.app.Fragment",
            ];
            let mut views = base.iter().map(|class| rules.get(fragment, class, "mView"));
            views.find_map(|view| view)
        };
        let views = fragments.iter().filter_map(|&f| view_of(self, f)?.object());
        let shown: BTreeSet<ObjectIndex> = views.collect();
        let mut seen = BTreeSet::new();
        for &fragment in fragments {
            if self.judge(fragment).status == Status::Leaking
                || view_of(self, fragment) != Some(Value::Null)
            {
                continue;
            }
            let name = self.name_of(fragment).to_owned();
            for view in self.kept_views(fragment, &mut seen) {
                let is_stale = self.get(view, "android.view.View", "mAttachInfo")
                    == Some(Value::Null)
                    && self.was_attached(view) != Some(false)
                    && !self.line(view).any(|view| shown.contains(&view));
                if is_stale {
                    self.judged.borrow_mut().remove(&view);
                    self.stale_views.to_mut().insert(view, name.clone());
                }
            }
        }
    }

    /// Returns the views that a fragment keeps, except views without a parent in caches, which wait for
    /// reuse. Objects in `seen` were examined for another fragment.
    fn kept_views(
        &self,
        fragment: ObjectIndex,
        seen: &mut BTreeSet<ObjectIndex>,
    ) -> Vec<ObjectIndex> {
        let most = seen.len() + MAX_KEPT;
        seen.insert(fragment);
        let mut queue = VecDeque::from([fragment]);
        let mut views = Vec::new();
        while let Some(object) = queue.pop_front() {
            let is_fragment = object == fragment;
            let name = self.name_of(object);
            let is_cache = ["[]", "Holder", "Pool", "Cache"]
                .iter()
                .any(|of| name.contains(of));
            crate::fields::visit(self.graph, object, |field| {
                let own = |class| !is_library(self.graph.class(class).shown());
                let is_kept = !field.is_static
                    && field.name != Some("referent")
                    && (!is_fragment
                        || field.name == Some("mLifecycleRegistry")
                        || field.declared_in.is_some_and(own));
                let Some(target) = field.value.object().filter(|_| is_kept) else {
                    return ControlFlow::Continue(());
                };
                if !seen.insert(target) {
                    return ControlFlow::Continue(());
                }
                match self.kind(target) {
                    Some(Kind::View) if !is_cache || !self.is_root_view(target) => {
                        views.push(target);
                    }
                    None | Some(Kind::LifecycleRegistry | Kind::Job)
                        if self.is_followed(target) =>
                    {
                        queue.push_back(target);
                    }
                    _ => {}
                }
                match seen.len() < most {
                    true => ControlFlow::Continue(()),
                    false => ControlFlow::Break(()),
                }
            });
            if seen.len() >= most {
                break;
            }
        }
        views
    }

    /// Returns whether what an object refers to belongs to the fragment that keeps it.
    fn is_followed(&self, object: ObjectIndex) -> bool {
        let class = self.graph.class(self.graph.class_of(object)).shown();
        let apart = ["android.", "androidx.fragment.", "java.lang."];
        is_instance(self.graph, object)
            && class != "androidx.recyclerview.widget.RecyclerView$RecycledViewPool"
            && (class.ends_with("[]") || !apart.iter().any(|package| class.starts_with(package)))
    }

    // Contexts.

    /// Judges the owner of a context. `whose` is "its context" or similar. Returns `None` if neither
    /// an activity nor a service is behind the context.
    fn of_context(&self, context: ObjectIndex, whose: &str) -> Option<Verdict> {
        let inner = self.unwrap_context(context)?;
        let kind = self.kind(inner);
        let verdict = match kind {
            Some(Kind::Activity) => self.activity(inner),
            Some(Kind::Service) => self.service(inner),
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

    /// Returns the activity or service at the end of a chain of wrappers.
    fn unwrap_context(&self, context: ObjectIndex) -> Option<ObjectIndex> {
        let mut at = context;
        // Hostile dumps contain cycles of contexts.
        for _ in 0..MAX_STEPS {
            let next = match self.kind(at)? {
                Kind::Activity | Kind::Service => return Some(at),
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
        let outer = self.get(object, "android.app.ContextImpl", "mOuterContext");
        let outer = outer
            .and_then(Value::object)
            .and_then(|outer| self.kind(outer));
        if outer == Some(Kind::Application) {
            return Verdict::in_use("it is the context of the Application");
        }
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
        let stack = lookup::any(self.graph, object, "mStack").and_then(Value::object);
        let names = ["mQuitting", "mQuiting", "mQuittingValue"];
        let has_quit = match stack {
            Some(stack) => self.has_quit(stack),
            None => lookup::one_of(self.graph, object, &names).and_then(Value::boolean),
        };
        match has_quit {
            Some(true) => Verdict::leaking(
                Certainty::Possible,
                "its looper has quit; a Handler that is still held does little harm",
            ),
            Some(false) => Verdict::in_use("its looper is running"),
            None => Verdict::default(),
        }
    }

    /// Returns whether the last message of a queue says that its looper quit: Android 17.
    fn has_quit(&self, stack: ObjectIndex) -> Option<bool> {
        let class = self.graph.class_of(stack);
        let quitting = lookup::of_class(self.graph, class, "QUITTING_NODE_OBJ")?.object()?;
        match lookup::any(self.graph, stack, "mTopValue")? {
            Value::Object(top) => {
                let object = self.get(top, "android.os.Message", "obj")?;
                Some(object.object() == Some(quitting))
            }
            _ => Some(false),
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
            None => match self.stored.get_or_init(|| self.stored_view_models()) {
                Some(stored) if stored.contains(&object) => {
                    Verdict::in_use("a ViewModelStore contains it")
                }
                Some(_) => Verdict::leaking(
                    Certainty::Likely,
                    "no ViewModelStore contains it, so it was cleared",
                ),
                None => Verdict::default(),
            },
        }
    }

    /// Returns the view models in all stores; `None` if the dump lacks the contents of one.
    fn stored_view_models(&self) -> Option<BTreeSet<ObjectIndex>> {
        let mut all = None;
        for object in self.graph.objects() {
            if self.kind(object) != Some(Kind::ViewModelStore) {
                continue;
            }
            let map = lookup::one_of(self.graph, object, &["map", "mMap"])?.object()?;
            let stored: &mut BTreeSet<_> = all.get_or_insert_default();
            stored.extend(map_values(self.graph, map)?);
        }
        all
    }

    /// Describes a coroutine by its state.
    fn job(&self, object: ObjectIndex) -> Verdict {
        let state = lookup::one_of(self.graph, object, &["_state$volatile", "_state"]);
        let state = state
            .and_then(Value::object)
            .map(|state| self.name_of(state));
        match state.and_then(|name| name.rsplit('$').next()) {
            Some("Finishing") => Verdict::unknown("a coroutine that ends, but still runs"),
            Some("Empty" | "NodeList" | "InactiveNodeList") => {
                Verdict::unknown("a coroutine that runs")
            }
            Some(name) if name.starts_with("Completed") => {
                Verdict::unknown("a coroutine that has ended")
            }
            _ => Verdict::default(),
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

fn cut(text: &str) -> String {
    text.chars().take(60).collect()
}
