//! Classification of objects by Android class, by the names of their superclasses.

use std::collections::HashMap;

use heaptap_model::heap_graph::{ClassIndex, ClassKind, HeapGraph, ObjectIndex};

/// Android class that a rule covers. The nearest superclass with a kind determines it. Those before
/// [`Kind::LifecycleRegistry`] are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// `android.app.Activity`.
    Activity,
    /// `android.app.Fragment`.
    PlatformFragment,
    /// `android.support.v4.app.Fragment`.
    SupportFragment,
    /// `androidx.fragment.app.Fragment`.
    AndroidxFragment,
    /// `android.view.View`.
    View,
    /// `android.widget.Editor`.
    Editor,
    /// `com.android.internal.policy.DecorContext`.
    DecorContext,
    /// `android.content.ContextWrapper`, except Activity, Service and Application.
    ContextWrapper,
    /// `android.app.ContextImpl`.
    ContextImpl,
    /// `android.app.Service`.
    Service,
    /// `android.view.Window`.
    Window,
    /// `android.view.ViewRootImpl`.
    ViewRoot,
    /// `android.widget.Toast`.
    Toast,
    /// `android.os.MessageQueue`.
    MessageQueue,
    /// `androidx.lifecycle.ViewModel`.
    ViewModel,
    /// `androidx.compose.runtime.CompositionImpl`.
    Composition,
    /// `androidx.compose.runtime.Recomposer`.
    Recomposer,
    /// `mortar.MortarScope`.
    MortarScope,
    /// `androidx.lifecycle.LifecycleRegistry`.
    LifecycleRegistry,
    /// Weak reference through which LeakCanary watches an object.
    Watched,
    /// `android.app.Application`.
    Application,
    /// `android.app.ActivityThread`.
    ActivityThread,
    /// `android.view.inputmethod.InputMethodManager`.
    InputMethodManager,
    /// `java.lang.ClassLoader`.
    ClassLoader,
    /// `java.lang.Thread`.
    Thread,
    /// `android.app.Dialog`.
    Dialog,
    /// `android.os.Message`.
    Message,
    /// `android.animation.Animator`.
    Animator,
    /// `android.app.LoadedApk`.
    LoadedApk,
    /// `android.os.Binder`.
    Binder,
    /// `androidx.lifecycle.ViewModelStore`.
    ViewModelStore,
    /// `kotlinx.coroutines.JobSupport`.
    Job,
}

/// As its name.
impl serde::Serialize for Kind {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Kind {
    /// Returns a description of a leaking object of this kind, such as `destroyed Activity`.
    pub fn leaked(self) -> &'static str {
        self.words().1
    }

    /// Returns a stable name for JSON.
    pub fn name(self) -> &'static str {
        self.words().0
    }

    fn words(self) -> (&'static str, &'static str) {
        match self {
            Kind::Activity => ("activity", "destroyed Activity"),
            fragment if fragment.is_fragment() => ("fragment", "removed Fragment"),
            Kind::View => ("view", "detached View"),
            Kind::Editor => ("editor", "text editor of a detached View"),
            Kind::DecorContext | Kind::ContextWrapper | Kind::ContextImpl => {
                ("context", "Context of a destroyed component")
            }
            Kind::Service => ("service", "stopped Service"),
            Kind::Window => ("window", "destroyed Window"),
            Kind::ViewRoot => ("view-root", "removed window root"),
            Kind::Toast => ("toast", "Toast that is over"),
            Kind::MessageQueue => ("message-queue", "queue of a Looper that quit"),
            Kind::ViewModel => ("view-model", "cleared ViewModel"),
            Kind::Composition => ("composition", "disposed Composition"),
            Kind::Recomposer => ("recomposer", "Recomposer that was shut down"),
            Kind::MortarScope => ("mortar-scope", "dead MortarScope"),
            Kind::LifecycleRegistry => ("lifecycle", "destroyed lifecycle"),
            _ => ("watched", "object that should be gone"),
        }
    }

    /// Returns whether objects of this kind are fragments.
    pub(super) fn is_fragment(self) -> bool {
        matches!(
            self,
            Kind::PlatformFragment | Kind::SupportFragment | Kind::AndroidxFragment
        )
    }

    /// Returns whether the search covers objects of this kind. Objects of other kinds are judged
    /// only on the path to one.
    pub(super) fn is_sought(self) -> bool {
        self < Kind::LifecycleRegistry
    }
}

fn of_name(name: &str) -> Option<Kind> {
    Some(match name {
        "android.app.Activity" => Kind::Activity,
        "android.app.Fragment" => Kind::PlatformFragment,
        "android.support.v4.app.Fragment" => Kind::SupportFragment,
        "androidx.fragment.app.Fragment" => Kind::AndroidxFragment,
        "android.view.View" => Kind::View,
        "android.widget.Editor" => Kind::Editor,
        "com.android.internal.policy.DecorContext" => Kind::DecorContext,
        "android.content.ContextWrapper" => Kind::ContextWrapper,
        "android.app.ContextImpl" => Kind::ContextImpl,
        "android.app.Service" => Kind::Service,
        "android.view.Window" => Kind::Window,
        "android.view.ViewRootImpl" => Kind::ViewRoot,
        "android.widget.Toast" => Kind::Toast,
        "android.os.MessageQueue" => Kind::MessageQueue,
        "androidx.lifecycle.ViewModel" => Kind::ViewModel,
        "androidx.compose.runtime.CompositionImpl" => Kind::Composition,
        "androidx.compose.runtime.Recomposer" => Kind::Recomposer,
        "mortar.MortarScope" => Kind::MortarScope,
        "androidx.lifecycle.LifecycleRegistry" => Kind::LifecycleRegistry,
        "leakcanary.KeyedWeakReference" | "com.squareup.leakcanary.KeyedWeakReference" => {
            Kind::Watched
        }
        "android.app.Application" => Kind::Application,
        "android.app.ActivityThread" => Kind::ActivityThread,
        "android.view.inputmethod.InputMethodManager" => Kind::InputMethodManager,
        "java.lang.ClassLoader" => Kind::ClassLoader,
        "java.lang.Thread" => Kind::Thread,
        "android.app.Dialog" => Kind::Dialog,
        "android.os.Message" => Kind::Message,
        "android.animation.Animator" => Kind::Animator,
        "android.app.LoadedApk" => Kind::LoadedApk,
        "android.os.Binder" => Kind::Binder,
        "androidx.lifecycle.ViewModelStore" => Kind::ViewModelStore,
        "kotlinx.coroutines.JobSupport" => Kind::Job,
        _ => return None,
    })
}

/// Kind of every class of a graph.
pub(super) struct Kinds {
    by_class: Vec<Option<Kind>>,
}

impl Kinds {
    pub fn from_graph(graph: &HeapGraph) -> Kinds {
        let classes = graph.classes();
        let mut by_class: Vec<Option<Option<Kind>>> = vec![None; classes.len()];
        let mut below = Vec::new();
        for start in 0..classes.len() {
            // The walk ends at the first class that is already known, so a tall hierarchy is
            // climbed once. This also ends a cycle of superclasses.
            let mut at = Some(ClassIndex(start as u32));
            let mut kind = None;
            while let Some(class) = at {
                if let Some(known) = by_class[class.at()] {
                    kind = known;
                    break;
                }
                by_class[class.at()] = Some(None);
                below.push(class);
                let class = graph.class(class);
                if !is_class_type(&class.name)
                    && let Some(named) = of_name(class.shown()).or_else(|| of_name(&class.name))
                {
                    kind = Some(named);
                    break;
                }
                at = class.superclass;
            }
            for class in below.drain(..) {
                by_class[class.at()] = Some(kind);
            }
        }
        Kinds {
            by_class: by_class.into_iter().map(Option::flatten).collect(),
        }
    }

    /// Returns whether the graph has a class of a searched kind.
    pub fn any_sought(&self) -> bool {
        self.by_class.iter().flatten().any(|kind| kind.is_sought())
    }

    /// Returns whether the graph has a class of a kind.
    pub fn has(&self, kind: Kind) -> bool {
        self.by_class.contains(&Some(kind))
    }

    pub fn of_class(&self, class: ClassIndex) -> Option<Kind> {
        self.by_class[class.at()]
    }

    /// Returns the objects of searched kinds and the watching references, with their kinds,
    /// ascending.
    pub fn sought(&self, graph: &HeapGraph) -> Vec<(ObjectIndex, Kind)> {
        let any = self
            .by_class
            .iter()
            .flatten()
            .any(|k| k.is_sought() || *k == Kind::Watched);
        if !any {
            return Vec::new();
        }
        graph
            .objects()
            .filter_map(|object| {
                let kind = self.of_class(graph.class_of(object))?;
                (kind.is_sought() || kind == Kind::Watched).then_some((object, kind))
            })
            .filter(|&(object, _)| is_instance(graph, object))
            .collect()
    }
}

/// Returns whether a name is that of a class object's type in a heap graph.
fn is_class_type(name: &str) -> bool {
    name.starts_with("java.lang.Class<")
}

/// Returns whether an object is neither a class object nor a placeholder.
pub(super) fn is_instance(graph: &HeapGraph, object: ObjectIndex) -> bool {
    graph.class_behind(object).is_none()
        && graph.class(graph.class_of(object)).kind != ClassKind::Class
        && !graph.is_placeholder(object)
}

/// First class of each name, by deobfuscated name if there is one.
pub(super) struct ByName<'g> {
    map: HashMap<&'g str, ClassIndex>,
}

impl<'g> ByName<'g> {
    pub fn from_graph(graph: &'g HeapGraph) -> ByName<'g> {
        let mut map = HashMap::new();
        for (at, class) in graph.classes().iter().enumerate() {
            // Of several classes with the same name, prefer one with statics.
            let index = ClassIndex(at as u32);
            let slot = map.entry(class.shown()).or_insert(index);
            if class.object.is_some() && graph.class(*slot).object.is_none() {
                *slot = index;
            }
        }
        ByName { map }
    }

    pub fn find(&self, name: &str) -> Option<ClassIndex> {
        self.map.get(name).copied()
    }
}
