//! Leaks in constructed heaps with the Android classes that the rules cover, by topic below.

mod chance;
mod known;
pub(crate) mod made;
mod paths;
mod rules;
mod ways;

use super::*;
use heaptap_model::heap_graph::{HeapGraph, RootKind};
use made::{Heap, Is, Obj};

/// Creates a heap with the Android classes that the rules cover.
fn android() -> Heap {
    let mut heap = Heap::new();
    for (name, superclass, fields) in [
        ("android.content.Context", "", &[][..]),
        (
            "android.content.ContextWrapper",
            "android.content.Context",
            &[("mBase", Is::Null)],
        ),
        (
            "android.app.ContextImpl",
            "android.content.Context",
            &[("mOuterContext", Is::Null)],
        ),
        (
            "android.app.Activity",
            "android.content.ContextWrapper",
            &[("mDestroyed", Is::Bool(false)), ("mDecor", Is::Null)],
        ),
        (
            "android.app.Application",
            "android.content.ContextWrapper",
            &[],
        ),
        ("android.app.Service", "android.content.ContextWrapper", &[]),
        (
            "android.app.Fragment",
            "",
            &[
                ("mFragmentManager", Is::Null),
                ("mCalled", Is::Bool(false)),
                ("mView", Is::Null),
            ],
        ),
        (
            "androidx.fragment.app.Fragment",
            "",
            &[
                ("mFragmentManager", Is::Null),
                ("mCalled", Is::Bool(false)),
                ("mView", Is::Null),
                ("mMaxState", Is::Null),
                ("mLifecycleRegistry", Is::Null),
                ("mPreviousWho", Is::Null),
            ],
        ),
        (
            "android.view.View",
            "",
            &[
                ("mContext", Is::Null),
                ("mParent", Is::Null),
                ("mAttachInfo", Is::Null),
                ("mWindowAttachCount", Is::Int(0)),
            ],
        ),
        ("android.widget.TextView", "android.view.View", &[]),
        (
            "com.android.internal.policy.DecorView",
            "android.view.View",
            &[],
        ),
        ("android.widget.Editor", "", &[("mTextView", Is::Null)]),
        (
            "android.view.ViewRootImpl",
            "",
            &[("mView", Is::Null), ("mContext", Is::Null)],
        ),
        (
            "android.view.Window",
            "",
            &[("mDestroyed", Is::Bool(false)), ("mContext", Is::Null)],
        ),
        ("android.widget.Toast", "", &[("mTN", Is::Null)]),
        (
            "android.widget.Toast$TN",
            "",
            &[("mWM", Is::Null), ("mView", Is::Null)],
        ),
        (
            "android.os.MessageQueue",
            "",
            &[("mQuitting", Is::Bool(false))],
        ),
        (
            "android.os.Message",
            "",
            &[("obj", Is::Null), ("next", Is::Null)],
        ),
        (
            "androidx.lifecycle.ViewModel",
            "",
            &[("mCleared", Is::Bool(false))],
        ),
        (
            "androidx.compose.runtime.CompositionImpl",
            "",
            &[("disposed", Is::Bool(false))],
        ),
        (
            "androidx.compose.runtime.Recomposer",
            "",
            &[("_state", Is::Null)],
        ),
        (
            "kotlinx.coroutines.flow.StateFlowImpl",
            "",
            &[("_state", Is::Null)],
        ),
        ("androidx.compose.runtime.Recomposer$State", "", &[]),
        ("mortar.MortarScope", "", &[("dead", Is::Bool(false))]),
        (
            "androidx.lifecycle.LifecycleRegistry",
            "",
            &[("state", Is::Null)],
        ),
        ("androidx.lifecycle.Lifecycle$State", "", &[]),
        (
            "android.app.ActivityThread",
            "",
            &[("mActivities", Is::Null), ("mServices", Is::Null)],
        ),
        (
            "android.app.ActivityThread$ActivityClientRecord",
            "",
            &[("activity", Is::Null)],
        ),
        (
            "android.util.ArrayMap",
            "",
            &[("mArray", Is::Null), ("mSize", Is::Int(0))],
        ),
        ("java.lang.ref.Reference", "", &[("referent", Is::Null)]),
        (
            "java.lang.ref.WeakReference",
            "java.lang.ref.Reference",
            &[],
        ),
        (
            "leakcanary.KeyedWeakReference",
            "java.lang.ref.WeakReference",
            &[
                ("retainedUptimeMillis", Is::Long(-1)),
                ("description", Is::Null),
            ],
        ),
        ("app.Main", "android.app.Activity", &[]),
        ("app.Holder", "", &[("held", Is::Null), ("next", Is::Null)]),
        (
            "android.view.inputmethod.InputMethodManager",
            "",
            &[("mNextServedView", Is::Null)],
        ),
    ] {
        let superclass = match superclass {
            "" => "java.lang.Object",
            name => name,
        };
        heap.class(name, superclass, fields);
    }
    heap
}

fn destroyed(heap: &mut Heap) -> Obj {
    heap.new_object("app.Main", &[("mDestroyed", Is::Bool(true))])
}

/// Holds an object by a static of `app.Keeper`.
fn keep(heap: &mut Heap, field: &str, object: Obj) {
    heap.fixed("app.Keeper", field, Is::Ref(object));
}

fn index(graph: &HeapGraph, object: Obj) -> ObjectIndex {
    graph.find(ObjectId(object.0)).expect("it was made")
}

/// Returns the certainty that an object leaks; `None` if it is not reported.
fn certainty(heap: Heap, object: Obj) -> Option<Certainty> {
    let graph = heap.graph();
    let wanted = index(&graph, object);
    let leaks = find(&graph);
    let all = leaks.groups.iter().flat_map(|group| &group.leaks);
    all.filter(|leak| leak.object == wanted)
        .map(|leak| leak.certainty)
        .next()
}

/// Adds an enum constant held by a static of its class.
fn constant(heap: &mut Heap, class: &str, name: &str) -> Obj {
    let object = heap.new_object(class, &[]);
    heap.fixed(class, name, Is::Ref(object));
    object
}

/// Adds the platform's lists of activities and services.
fn activity_thread(heap: &mut Heap, alive: &[Obj], services: &[Obj]) {
    let mut slots = Vec::new();
    for &activity in alive {
        let record = heap.new_object(
            "android.app.ActivityThread$ActivityClientRecord",
            &[("activity", Is::Ref(activity))],
        );
        slots.extend([Some(activity), Some(record)]);
    }
    slots.push(None);
    let mut maps = Vec::new();
    let pairs = services.iter().flat_map(|&s| [Some(s), Some(s)]).collect();
    for slots in [slots, pairs] {
        let array = heap.array("java.lang.Object[]", &slots);
        maps.push(heap.new_object("android.util.ArrayMap", &[("mArray", Is::Ref(array))]));
    }
    let thread = heap.new_object(
        "android.app.ActivityThread",
        &[
            ("mActivities", Is::Ref(maps[0])),
            ("mServices", Is::Ref(maps[1])),
        ],
    );
    heap.fixed(
        "android.app.ActivityThread",
        "sCurrentActivityThread",
        Is::Ref(thread),
    );
}

const CERTAIN: Option<Certainty> = Some(Certainty::Certain);
const LIKELY: Option<Certainty> = Some(Certainty::Likely);
const POSSIBLE: Option<Certainty> = Some(Certainty::Possible);
