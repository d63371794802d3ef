//! Leaks in constructed heaps with the Android classes that the rules cover, by topic below.

mod chance;
mod known;
pub(crate) mod made;
mod paths;
mod rules;
mod ways;

use super::*;
use heaptap_model::heap_graph::{HeapGraph, ObjectId, ObjectIndex, RootKind};
use made::{Heap, Is, Obj};

/// Creates a heap with the Android classes that the rules cover.
fn android() -> Heap {
    let mut heap = Heap::new();
    // Classes, superclasses, and fields, which are null without a value.
    let classes = "
        android.content.Context
        android.content.ContextWrapper: android.content.Context { mBase }
        android.app.ContextImpl: android.content.Context { mOuterContext }
        android.app.Activity: android.content.ContextWrapper { mDestroyed=false mDecor }
        android.app.Application: android.content.ContextWrapper
        android.app.Service: android.content.ContextWrapper
        android.app.Fragment { mFragmentManager mCalled=false mView }
        androidx.fragment.app.Fragment { mFragmentManager mCalled=false mView mMaxState mLifecycleRegistry mPreviousWho }
        android.view.View { mContext mParent mAttachInfo mWindowAttachCount=0 }
        android.widget.TextView: android.view.View
        com.android.internal.policy.DecorView: android.view.View
        android.widget.Editor { mTextView }
        android.view.ViewRootImpl { mView mContext }
        android.view.Window { mDestroyed=false mContext }
        android.widget.Toast { mTN }
        android.widget.Toast$TN { mWM mView }
        android.os.MessageQueue { mQuitting=false }
        android.os.Message { obj next }
        androidx.lifecycle.ViewModel { mCleared=false }
        androidx.compose.runtime.CompositionImpl { disposed=false }
        androidx.compose.runtime.Recomposer { _state }
        kotlinx.coroutines.flow.StateFlowImpl { _state }
        androidx.compose.runtime.Recomposer$State
        mortar.MortarScope { dead=false }
        androidx.lifecycle.LifecycleRegistry { state }
        androidx.lifecycle.Lifecycle$State
        android.app.ActivityThread { mActivities mServices }
        android.app.ActivityThread$ActivityClientRecord { activity }
        android.util.ArrayMap { mArray mSize=0 }
        java.lang.ref.Reference { referent }
        java.lang.ref.WeakReference: java.lang.ref.Reference
        leakcanary.KeyedWeakReference: java.lang.ref.WeakReference { retainedUptimeMillis=-1L description }
        app.Main: android.app.Activity
        app.Holder { held next }
        android.view.inputmethod.InputMethodManager { mNextServedView }
    ";
    for line in classes.trim().lines() {
        let (head, fields) = line.trim().split_once(" { ").unwrap_or((line, " }"));
        let (name, superclass) = head.split_once(": ").unwrap_or((head, "java.lang.Object"));
        let fields = fields.trim_end_matches('}').split_whitespace();
        let fields = fields.map(|field| match field.split_once('=') {
            None => (field, Is::Null),
            Some((field, "false")) => (field, Is::Bool(false)),
            Some((field, "0")) => (field, Is::Int(0)),
            Some((field, "-1L")) => (field, Is::Long(-1)),
            Some(_) => panic!("{line}"),
        });
        heap.class(name.trim(), superclass, &fields.collect::<Vec<_>>());
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
