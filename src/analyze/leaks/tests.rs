//! Rules, paths and groups on heaps made here.

pub(in crate::analyze) mod made;

use super::*;
use crate::heap_graph::{HeapGraph, RootKind};
use made::{Heap, Is, Obj};

/// Android's classes, as far as the rules know them.
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

/// How sure it is that an object leaks, `None` where it is not told to.
fn certainty(heap: Heap, object: Obj) -> Option<Certainty> {
    let graph = heap.graph();
    let wanted = index(&graph, object);
    let leaks = find(&graph);
    let all = leaks.groups.iter().flat_map(|group| &group.leaks);
    all.filter(|leak| leak.object == wanted)
        .map(|leak| leak.certainty)
        .next()
}

/// An enum's constant, held by a static of its class.
fn constant(heap: &mut Heap, class: &str, name: &str) -> Obj {
    let object = heap.new_object(class, &[]);
    heap.fixed(class, name, Is::Ref(object));
    object
}

/// The platform's list of activities and services.
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

#[test]
fn an_activity_leaks_when_it_was_destroyed() {
    for (is_destroyed, expected) in [(true, CERTAIN), (false, None)] {
        let mut heap = android();
        let activity = heap.new_object("app.Main", &[("mDestroyed", Is::Bool(is_destroyed))]);
        keep(&mut heap, "ACTIVITY", activity);
        assert_eq!(certainty(heap, activity), expected);
    }
}

#[test]
fn in_a_heap_graph_an_activity_without_record_was_destroyed() {
    let mut heap = android().without_values();
    let (alive, gone) = (
        heap.new_object("app.Main", &[]),
        heap.new_object("app.Main", &[]),
    );
    activity_thread(&mut heap, &[alive], &[]);
    let both = heap.list(&[alive, gone], 2);
    keep(&mut heap, "BOTH", both);
    let graph = heap.graph();
    let leaks = find(&graph);
    assert_eq!(leaks.groups.len(), 1);
    assert_eq!(leaks.groups[0].certainty, Certainty::Likely);
    assert_eq!(leaks.groups[0].leaks.len(), 1);
    assert_eq!(leaks.groups[0].leaks[0].object, index(&graph, gone));
    assert!(leaks.groups[0].leaks[0].reason.contains("mActivities"));

    // Nothing proves it where the platform's list is not there.
    let mut heap = android().without_values();
    let unknown = heap.new_object("app.Main", &[]);
    keep(&mut heap, "ACTIVITY", unknown);
    let leaks = find(&heap.graph());
    assert!(leaks.groups.is_empty());
    assert!(leaks.untold.iter().any(|text| text.contains("mActivities")));
}

#[test]
fn a_fragment_leaks_when_it_was_removed_and_not_before_it_was_added() {
    for class in ["android.app.Fragment", "androidx.fragment.app.Fragment"] {
        for (values, managed, called, expected) in [
            (true, false, true, CERTAIN),
            (true, false, false, None),
            (true, true, true, None),
            (false, false, true, POSSIBLE),
            (false, true, true, None),
        ] {
            let mut heap = android();
            if !values {
                heap = heap.without_values();
            }
            heap.class("app.Page", class, &[]);
            let manager = heap.new_object("app.Holder", &[]);
            let page = heap.new_object(
                "app.Page",
                &[
                    ("mCalled", Is::Bool(called)),
                    (
                        "mFragmentManager",
                        if managed { Is::Ref(manager) } else { Is::Null },
                    ),
                ],
            );
            keep(&mut heap, "PAGE", page);
            let what = format!("{class} {values} {managed} {called}");
            assert_eq!(certainty(heap, page), expected, "{what}");
        }
    }
}

#[test]
fn a_heap_graph_tells_a_removed_fragment_by_the_name_it_had() {
    let mut heap = android().without_values();
    let who = heap.string("who");
    let page = heap.new_object(
        "androidx.fragment.app.Fragment",
        &[("mPreviousWho", Is::Ref(who))],
    );
    keep(&mut heap, "PAGE", page);
    assert_eq!(certainty(heap, page), LIKELY);
}

#[test]
fn the_lifecycle_of_androidx_tells_even_without_values() {
    for (state, expected) in [("DESTROYED", CERTAIN), ("RESUMED", None)] {
        let mut heap = android().without_values();
        let state = constant(&mut heap, "androidx.lifecycle.Lifecycle$State", state);
        let registry = heap.new_object(
            "androidx.lifecycle.LifecycleRegistry",
            &[("state", Is::Ref(state))],
        );
        let manager = heap.new_object("app.Holder", &[]);
        let page = heap.new_object(
            "androidx.fragment.app.Fragment",
            &[
                ("mLifecycleRegistry", Is::Ref(registry)),
                ("mFragmentManager", Is::Ref(manager)),
            ],
        );
        keep(&mut heap, "PAGE", page);
        assert_eq!(certainty(heap, page), expected);
    }
}

#[test]
fn a_view_leaks_when_its_window_or_its_activity_is_gone() {
    for (count, parent, attached, expected) in [
        (1, true, false, CERTAIN),
        (0, true, false, None),
        (1, true, true, None),
        // In no window: it may be kept for use again.
        (1, false, false, None),
    ] {
        let mut heap = android();
        let other = heap.new_object("app.Holder", &[]);
        let is = |given| if given { Is::Ref(other) } else { Is::Null };
        let view = heap.new_object(
            "android.widget.TextView",
            &[
                ("mWindowAttachCount", Is::Int(count)),
                ("mParent", is(parent)),
                ("mAttachInfo", is(attached)),
            ],
        );
        keep(&mut heap, "VIEW", view);
        let what = format!("{count} {parent} {attached}");
        assert_eq!(certainty(heap, view), expected, "{what}");
    }
    // Below wrappers and in no window, but of an activity that is gone; its child is not told.
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let wrapper = heap.new_object(
        "android.content.ContextWrapper",
        &[("mBase", Is::Ref(activity))],
    );
    let context = ("mContext", Is::Ref(wrapper));
    let view = heap.new_object("android.view.View", &[context]);
    let child = heap.new_object("android.view.View", &[context, ("mParent", Is::Ref(view))]);
    keep(&mut heap, "VIEW", view);
    keep(&mut heap, "VIEW_BELOW", child);
    let graph = heap.graph();
    let leaks = find(&graph);
    let all: Vec<ObjectIndex> = leaks
        .groups
        .iter()
        .flat_map(|g| &g.leaks)
        .map(|l| l.object)
        .collect();
    // The child leads to the wrapper, and leaks with it; it is not told by itself.
    assert_eq!(all.len(), 2);
    assert!(all.contains(&index(&graph, view)) && all.contains(&index(&graph, wrapper)));
    let nested: Vec<u64> = leaks
        .groups
        .iter()
        .filter_map(|g| g.leaks[0].nested.get("app.Main").copied())
        .collect();
    assert_eq!(nested, [1], "only one of them keeps the activity");
}

#[test]
fn contexts_in_a_circle_end() {
    let mut heap = android();
    let one = heap.new_object("android.content.ContextWrapper", &[]);
    let two = heap.new_object("android.content.ContextWrapper", &[("mBase", Is::Ref(one))]);
    heap.set(one, "mBase", Is::Ref(two));
    let own = heap.new_object("android.app.ContextImpl", &[]);
    heap.set(own, "mOuterContext", Is::Ref(own));
    let all = heap.list(&[one, own], 0);
    keep(&mut heap, "CIRCLE", all);
    assert!(find(&heap.graph()).groups.is_empty());
}

#[test]
fn services_are_those_that_the_activity_thread_lists() {
    for values in [true, false] {
        let mut heap = android();
        if !values {
            heap = heap.without_values();
        }
        let (alive, gone) = (
            heap.new_object("android.app.Service", &[]),
            heap.new_object("android.app.Service", &[]),
        );
        activity_thread(&mut heap, &[], &[alive]);
        let both = heap.list(&[alive, gone], 0);
        keep(&mut heap, "SERVICES", both);
        let graph = heap.graph();
        let leaks = find(&graph);
        let found: Vec<ObjectIndex> = leaks
            .groups
            .iter()
            .flat_map(|g| &g.leaks)
            .map(|l| l.object)
            .collect();
        assert_eq!(found, [index(&graph, gone)]);
    }
    let mut heap = android();
    let service = heap.new_object("android.app.Service", &[]);
    keep(&mut heap, "SERVICE", service);
    assert!(find(&heap.graph()).untold[0].contains("mServices"));
}

#[test]
fn flags_end_the_life_of_what_has_them_and_say_nothing_where_they_are_missing() {
    for (class, field) in [
        ("android.view.Window", "mDestroyed"),
        ("android.os.MessageQueue", "mQuitting"),
        ("androidx.lifecycle.ViewModel", "mCleared"),
        ("androidx.compose.runtime.CompositionImpl", "disposed"),
        ("mortar.MortarScope", "dead"),
    ] {
        for (values, set, expected) in [
            (true, true, CERTAIN),
            (true, false, None),
            (false, true, None),
        ] {
            let mut heap = android();
            if !values {
                heap = heap.without_values();
            }
            heap.class("app.Sub", class, &[]);
            let object = heap.new_object("app.Sub", &[(field, Is::Bool(set))]);
            keep(&mut heap, "OBJECT", object);
            assert_eq!(certainty(heap, object), expected, "{class} {values} {set}");
        }
    }
}

#[test]
fn references_that_are_null_tell_of_window_roots_and_toasts() {
    for empty in [true, false] {
        let expected = empty.then_some(Certainty::Certain);
        let mut heap = android().without_values();
        let view = heap.new_object("android.view.View", &[]);
        let is = if empty { Is::Null } else { Is::Ref(view) };
        let root = heap.new_object("android.view.ViewRootImpl", &[("mView", is)]);
        keep(&mut heap, "ROOT", root);
        assert_eq!(certainty(heap, root), expected);

        let mut heap = android().without_values();
        let view = heap.new_object("android.view.View", &[]);
        let is = if empty { Is::Null } else { Is::Ref(view) };
        let shower = heap.new_object(
            "android.widget.Toast$TN",
            &[("mWM", Is::Ref(view)), ("mView", is)],
        );
        let toast = heap.new_object("android.widget.Toast", &[("mTN", Is::Ref(shower))]);
        keep(&mut heap, "TOAST", toast);
        assert_eq!(certainty(heap, toast), expected);
    }
}

#[test]
fn states_of_a_recomposer_are_told_by_the_statics_of_their_enum() {
    for (name, expected) in [
        ("ShutDown", CERTAIN),
        ("ShuttingDown", CERTAIN),
        ("Idle", None),
    ] {
        let mut heap = android().without_values();
        let state = constant(&mut heap, "androidx.compose.runtime.Recomposer$State", name);
        let flow = heap.new_object(
            "kotlinx.coroutines.flow.StateFlowImpl",
            &[("_state", Is::Ref(state))],
        );
        let recomposer = heap.new_object(
            "androidx.compose.runtime.Recomposer",
            &[("_state", Is::Ref(flow))],
        );
        keep(&mut heap, "RECOMPOSER", recomposer);
        assert_eq!(certainty(heap, recomposer), expected, "{name}");
    }
}

#[test]
fn what_leakcanary_watched_and_found_retained_leaks() {
    for (values, since, expected) in [
        (true, 12_345, CERTAIN),
        (true, -1, None),
        (false, 12_345, LIKELY),
    ] {
        let mut heap = android();
        if !values {
            heap = heap.without_values();
        }
        let object = heap.new_object("app.Holder", &[]);
        let why = heap.string("app.Presenter received onCleared");
        let watch = heap.new_object(
            "leakcanary.KeyedWeakReference",
            &[
                ("referent", Is::Ref(object)),
                ("retainedUptimeMillis", Is::Long(since)),
                ("description", Is::Ref(why)),
            ],
        );
        keep(&mut heap, "WATCH", watch);
        keep(&mut heap, "OBJECT", object);
        assert_eq!(certainty(heap, object), expected, "{values} {since}");
    }
}

#[test]
fn views_that_a_fragment_kept_leak() {
    let mut heap = android();
    heap.class(
        "app.Page",
        "androidx.fragment.app.Fragment",
        &[("binding", Is::Null), ("title", Is::Null)],
    );
    heap.class(
        "app.PageBinding",
        "java.lang.Object",
        &[("rootView", Is::Null)],
    );
    let attached = ("mWindowAttachCount", Is::Int(1));
    let root = heap.new_object("android.view.View", &[attached]);
    let title = heap.new_object(
        "android.widget.TextView",
        &[attached, ("mParent", Is::Ref(root))],
    );
    let binding = heap.new_object("app.PageBinding", &[("rootView", Is::Ref(root))]);
    let manager = heap.new_object("app.Holder", &[]);
    let page = heap.new_object(
        "app.Page",
        &[
            ("mFragmentManager", Is::Ref(manager)),
            ("mCalled", Is::Bool(true)),
            ("binding", Is::Ref(binding)),
            ("title", Is::Ref(title)),
        ],
    );
    keep(&mut heap, "PAGE", page);
    let graph = heap.graph();
    let leaks = find(&graph);
    let mut found: Vec<ObjectIndex> = leaks
        .groups
        .iter()
        .flat_map(|g| &g.leaks)
        .map(|l| l.object)
        .collect();
    found.sort();
    assert_eq!(found, [index(&graph, root), index(&graph, title)]);
    assert!(
        leaks.groups[0].advice.contains("onDestroyView"),
        "{}",
        leaks.groups[0].advice
    );
}

#[test]
fn names_of_the_source_code_decide_not_those_of_the_obfuscator() {
    let mut heap = Heap::new();
    heap.class(
        "a.a",
        "java.lang.Object",
        &[("a", Is::Null), ("a", Is::Bool(false))],
    );
    heap.class("a.b", "a.a", &[("a", Is::Bool(true))]);
    heap.deobfuscate("a.a", "android.app.Activity", &[]);
    heap.deobfuscate("a.b", "app.Main", &[]);
    let object = heap.new_object("a.b", &[]);
    keep(&mut heap, "MAIN", object);
    let class = heap.find("a.a");
    let mut graph = heap.graph();
    let fields = &mut graph.classes_mut()[class.at()].fields;
    fields[0].deobfuscated = Some("mDecor".to_owned());
    fields[1].deobfuscated = Some("mDestroyed".to_owned());
    let leaks = find(&graph);
    assert!(
        leaks.groups.is_empty(),
        "the subclass's own `a` is another field"
    );
}

#[test]
fn a_path_names_what_is_suspected_and_leaves_out_the_insides_of_collections() {
    let mut heap = android();
    let activities: Vec<Obj> = (0..3).map(|_| destroyed(&mut heap)).collect();
    let list = heap.list(&activities, 7);
    keep(&mut heap, "LEAKED", list);
    let graph = heap.graph();
    let leaks = find(&graph);
    assert_eq!(leaks.groups.len(), 1);
    let group = &leaks.groups[0];
    assert_eq!(group.leaks.len(), 3);
    let path: Vec<String> = group
        .path
        .iter()
        .map(|step| {
            let reference = step.reference.as_ref().map(Reference::shown);
            format!(
                "{} {:?} {reference:?} {}",
                step.class, step.status, step.suspect
            )
        })
        .collect();
    assert_eq!(
        path,
        [
            "app.Keeper NotLeaking Some(\"LEAKED\") true",
            "java.util.ArrayList Unknown Some(\"[0]\") true",
            "app.Main Leaking None false",
        ]
    );
    assert_eq!(group.root, "system class");
    assert_eq!(
        group.advice,
        "Take it out of Keeper.LEAKED when the activity is destroyed (onDestroy), or keep there \
         what does not hold the Main."
    );
    assert_eq!(group.kept.count, 3);
    assert_eq!(group.kept.bytes, 3 * (8 + 4 * 3));
}

#[test]
fn the_platform_s_own_leaks_stand_apart_where_the_release_has_them() {
    for (sdk, is_library) in [(30, true), (36, false)] {
        let mut heap = android();
        heap.class("android.os.Build$VERSION", "java.lang.Object", &[]);
        heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(sdk));
        let activity = destroyed(&mut heap);
        let view = heap.new_object("android.view.View", &[("mContext", Is::Ref(activity))]);
        let manager = heap.new_object(
            "android.view.inputmethod.InputMethodManager",
            &[("mNextServedView", Is::Ref(view))],
        );
        heap.fixed(
            "android.view.inputmethod.InputMethodManager",
            "sInstance",
            Is::Ref(manager),
        );
        let leaks = find(&heap.graph());
        assert_eq!(leaks.sdk, Some(sdk.into()));
        assert_eq!(leaks.groups.len(), 1);
        assert_eq!(leaks.groups[0].library.is_some(), is_library, "{sdk}");
    }
    // Whatever else holds it is to blame first.
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let manager = heap.new_object(
        "android.view.inputmethod.InputMethodManager",
        &[("mNextServedView", Is::Ref(activity))],
    );
    heap.fixed(
        "android.view.inputmethod.InputMethodManager",
        "sInstance",
        Is::Ref(manager),
    );
    let holder = heap.new_object("app.Holder", &[("held", Is::Ref(activity))]);
    let farther = heap.new_object("app.Holder", &[("held", Is::Ref(holder))]);
    keep(&mut heap, "HOLDER", farther);
    let leaks = find(&heap.graph());
    assert_eq!(leaks.groups[0].library, None);
    assert!(
        leaks.groups[0].advice.starts_with("Clear Holder.held"),
        "{}",
        leaks.groups[0].advice
    );
}

#[test]
fn threads_hold_by_thread_locals_and_by_local_variables() {
    let mut heap = android();
    heap.class(
        "java.lang.ThreadLocal$ThreadLocalMap",
        "java.lang.Object",
        &[("table", Is::Null)],
    );
    heap.class(
        "java.lang.ThreadLocal$ThreadLocalMap$Entry",
        "java.lang.ref.WeakReference",
        &[("value", Is::Null)],
    );
    let (one, two, three) = (
        destroyed(&mut heap),
        destroyed(&mut heap),
        destroyed(&mut heap),
    );
    let entry = heap.new_object(
        "java.lang.ThreadLocal$ThreadLocalMap$Entry",
        &[("value", Is::Ref(one))],
    );
    let table = heap.array(
        "java.lang.ThreadLocal$ThreadLocalMap$Entry[]",
        &[None, Some(entry)],
    );
    let map = heap.new_object(
        "java.lang.ThreadLocal$ThreadLocalMap",
        &[("table", Is::Ref(table))],
    );
    let worker = heap.thread("worker", 7);
    heap.set(worker, "threadLocals", Is::Ref(map));
    heap.thread_root(two, RootKind::JavaFrame, 7);
    // What the main thread has in its hands is no leak.
    heap.thread("main", 1);
    heap.thread_root(three, RootKind::JavaFrame, 1);
    let graph = heap.graph();
    let leaks = find(&graph);
    let mut ways: Vec<(String, String)> = leaks
        .groups
        .iter()
        .map(|g| {
            (
                g.root.clone(),
                g.path[0].reference.as_ref().expect("it goes on").shown(),
            )
        })
        .collect();
    ways.sort();
    let root = "thread \"worker\"".to_owned();
    assert_eq!(
        ways,
        [
            (root.clone(), "<local variable>".to_owned()),
            (root, "<thread local>".to_owned())
        ]
    );
    assert!(
        leaks
            .groups
            .iter()
            .all(|g| g.leaks[0].object != index(&graph, three))
    );
}

#[test]
fn what_only_weak_references_hold_is_told_to_be_on_its_way() {
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let weak = heap.new_object(
        "java.lang.ref.WeakReference",
        &[("referent", Is::Ref(activity))],
    );
    keep(&mut heap, "WEAK", weak);
    let leaks = find(&heap.graph());
    assert!(leaks.groups.is_empty());
    assert_eq!(leaks.unheld.len(), 1);
    assert_eq!(
        (leaks.unheld[0].class.as_str(), leaks.unheld[0].count),
        ("app.Main", 1)
    );
    assert!(!leaks.found());
}

#[test]
fn what_the_main_thread_has_in_its_hands_is_told_and_no_leak() {
    let mut heap = android();
    let activity = destroyed(&mut heap);
    heap.thread("main", 1);
    heap.thread_root(activity, RootKind::JavaFrame, 1);
    let leaks = find(&heap.graph());
    assert!(leaks.groups.is_empty());
    assert!(leaks.unheld[0].in_passing);
}

#[test]
fn the_collector_s_own_lists_hold_nothing() {
    let mut heap = android();
    heap.class(
        "java.lang.ref.PhantomReference",
        "java.lang.ref.Reference",
        &[],
    );
    heap.class(
        "sun.misc.Cleaner",
        "java.lang.ref.PhantomReference",
        &[("next", Is::Null), ("thunk", Is::Null)],
    );
    heap.class(
        "java.lang.ref.FinalizerReference",
        "java.lang.ref.Reference",
        &[("next", Is::Null), ("zombie", Is::Null)],
    );
    let (one, two) = (destroyed(&mut heap), destroyed(&mut heap));
    let cleaner = heap.new_object("sun.misc.Cleaner", &[("referent", Is::Ref(one))]);
    heap.fixed("sun.misc.Cleaner", "first", Is::Ref(cleaner));
    let finalizer = heap.new_object(
        "java.lang.ref.FinalizerReference",
        &[("referent", Is::Ref(two))],
    );
    heap.fixed(
        "java.lang.ref.FinalizerReference",
        "head",
        Is::Ref(finalizer),
    );
    keep(&mut heap, "CLEANER", cleaner);
    let leaks = find(&heap.graph());
    assert!(leaks.groups.is_empty(), "{:?}", leaks.groups);
    assert_eq!(leaks.unheld[0].count, 2);
    assert!(!leaks.unheld[0].in_passing);
}

#[test]
fn shared_bytes_are_counted_once_and_never_for_what_else_is_held() {
    let mut heap = android();
    heap.class(
        "app.Big",
        "app.Main",
        &[("one", Is::Null), ("two", Is::Null)],
    );
    let shared = heap.primitives(crate::heap_graph::BasicType::Byte, &[0; 1000]);
    let public = heap.primitives(crate::heap_graph::BasicType::Byte, &[0; 500]);
    keep(&mut heap, "PUBLIC", public);
    for name in ["A", "B"] {
        let big = heap.new_object(
            "app.Big",
            &[
                ("mDestroyed", Is::Bool(true)),
                ("one", Is::Ref(shared)),
                ("two", Is::Ref(public)),
            ],
        );
        heap.native(big, 77);
        keep(&mut heap, name, big);
    }
    let leaks = find(&heap.graph());
    let own = 8 + 4 * 5;
    let mut kept: Vec<u64> = leaks.groups.iter().map(|g| g.kept.bytes).collect();
    kept.sort_unstable();
    assert_eq!(kept, [own, own + 1016]);
    assert!(leaks.groups.iter().all(|g| g.kept.native_bytes == 77));
}

#[test]
fn a_list_of_very_many_links_is_one_short_path() {
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let mut link = heap.new_object("app.Holder", &[("held", Is::Ref(activity))]);
    for _ in 0..200_000 {
        link = heap.new_object("app.Holder", &[("next", Is::Ref(link))]);
    }
    keep(&mut heap, "CHAIN", link);
    let leaks = find(&heap.graph());
    assert_eq!(leaks.groups.len(), 1);
    let group = &leaks.groups[0];
    assert!(group.path.len() <= 200);
    assert_eq!(group.path.last().map(|s| s.status), Some(Status::Leaking));
    assert_eq!(group.leaks[0].kept.count, 1);
}

/// Heaps of chance: any class with any fields, references to anywhere, rings and garbage.
fn random(seed: u64) -> HeapGraph {
    let mut chance = fastrand::Rng::with_seed(seed);
    let mut heap = android();
    if chance.bool() {
        heap = heap.without_values();
    }
    heap.class(
        "java.util.ArrayList",
        "java.lang.Object",
        &[("elementData", Is::Null), ("size", Is::Int(0))],
    );
    heap.class(
        "java.util.HashMap",
        "java.lang.Object",
        &[("size", Is::Int(0)), ("table", Is::Null)],
    );
    heap.class(
        "java.util.HashMap$Node",
        "java.lang.Object",
        &[("key", Is::Null), ("value", Is::Null), ("next", Is::Null)],
    );
    heap.class(
        "java.util.concurrent.ConcurrentHashMap",
        "java.util.HashMap",
        &[("counterCells", Is::Null)],
    );
    heap.class(
        "java.util.ArrayDeque",
        "java.lang.Object",
        &[
            ("head", Is::Int(0)),
            ("tail", Is::Int(0)),
            ("elements", Is::Null),
        ],
    );
    heap.class(
        "java.lang.Integer",
        "java.lang.Object",
        &[("value", Is::Int(0))],
    );
    heap.class(
        "android.graphics.Bitmap",
        "java.lang.Object",
        &[
            ("mWidth", Is::Int(0)),
            ("mHeight", Is::Int(0)),
            ("mBuffer", Is::Null),
            ("mNativePtr", Is::Long(0)),
        ],
    );
    let declared = heap.declared();
    let mut all: Vec<Obj> = Vec::new();
    for _ in 0..chance.usize(5..60) {
        let object = match chance.u8(0..10) {
            0 => heap.string("text"),
            1 => heap.primitives(crate::heap_graph::BasicType::Byte, &[7; 9]),
            2 => {
                let elements: Vec<Option<Obj>> = (0..chance.usize(0..80))
                    .map(|_| chance.choice(&all).copied().filter(|_| chance.bool()))
                    .collect();
                heap.array("java.lang.Object[]", &elements)
            }
            _ => {
                let class = chance.choice(&declared).expect("there are some").clone();
                heap.new_object(&class, &[])
            }
        };
        all.push(object);
    }
    for &object in &all {
        for (field, is) in heap.fields_of(object) {
            let any = chance.choice(&all).map_or(Is::Null, |&o| Is::Ref(o));
            let is = match is {
                _ if chance.u8(0..3) == 0 => continue,
                Is::Null | Is::Ref(_) => any,
                Is::Bool(_) => Is::Bool(chance.bool()),
                Is::Int(_) => Is::Int(chance.i32(..)),
                Is::Long(_) => Is::Long(chance.i64(..)),
            };
            heap.set(object, &field, is);
        }
    }
    for _ in 0..chance.usize(1..8) {
        let object = *chance.choice(&all).expect("there are some");
        match chance.u8(0..4) {
            0 => heap.fixed(
                "android.app.ActivityThread",
                "sCurrentActivityThread",
                Is::Ref(object),
            ),
            1 => heap.fixed("android.graphics.Bitmap", "dumpData", Is::Ref(object)),
            2 => heap.thread_root(object, RootKind::JavaFrame, chance.u32(0..3)),
            _ => keep(&mut heap, "ANY", object),
        }
    }
    heap.graph()
}

#[test]
fn heaps_of_chance_end_and_agree_with_themselves() {
    for seed in 0..400 {
        let graph = random(seed);
        let leaks = find(&graph);
        let reachable = crate::heap_graph::Reachable::of(&graph, crate::heap_graph::Follow::ALL);
        for group in &leaks.groups {
            assert!(!group.leaks.is_empty(), "{seed}");
            assert_eq!(
                group.path.last().map(|s| s.status),
                Some(Status::Leaking),
                "{seed}"
            );
            assert!(
                group.path.iter().all(|step| !step.class.is_empty()),
                "{seed}"
            );
            let count: u64 = group.leaks.iter().map(|leak| leak.kept.count).sum();
            assert_eq!(group.kept.count, count, "{seed}");
            for leak in &group.leaks {
                assert!(reachable.contains(leak.object), "{seed}");
                assert!(leak.kept.count >= 1, "{seed}");
            }
        }
        // What leaks keep is counted once.
        let kept: u64 = leaks.groups.iter().map(|group| group.kept.count).sum();
        assert!(kept <= graph.len() as u64, "{seed}");
        let waste = crate::analyze::waste::find(&graph, &reachable, 3);
        assert!(waste.strings.groups.len() <= 3, "{seed}");
        let snapshot = crate::analyze::growth::Snapshot::of(&graph);
        let same = crate::analyze::growth::compare(&[snapshot.clone(), snapshot], &graph, 1);
        assert!(same.paths.is_empty() && same.classes.is_empty(), "{seed}");
    }
}

#[test]
fn advice_is_what_the_suspected_reference_asks_for() {
    let hold = |class: &str, field: &str, superclass: &str| {
        let mut heap = android();
        heap.class(class, superclass, &[(field, Is::Null)]);
        let activity = destroyed(&mut heap);
        let holder = heap.new_object(class, &[(field, Is::Ref(activity))]);
        keep(&mut heap, "HOLDER", holder);
        find(&heap.graph()).groups[0].advice.clone()
    };
    let object = "java.lang.Object";
    for (class, field, begins) in [
        (
            "app.Main$Listener",
            "this$0",
            "Main$Listener is an inner class",
        ),
        (
            "app.Main$$Lambda$3",
            "arg$1",
            "The lambda Main$$Lambda$3 captured it",
        ),
        (
            "app.Main$$ExternalSyntheticLambda0",
            "f$0",
            "The lambda Main$$External",
        ),
        (
            "app.Presenter",
            "view",
            "Clear Presenter.view when the activity is destroyed",
        ),
        (
            "android.os.Message",
            "obj",
            "A message that waits holds it (obj)",
        ),
        // The library's field is not the app's to clear.
        (
            "android.app.LoadedApk",
            "mApplication",
            "Set Keeper.HOLDER to null",
        ),
    ] {
        let advice = match class {
            // Since Android 12 a message is no longer kept by its looper's last call.
            "android.os.Message" => {
                let mut heap = android();
                heap.class("android.os.Build$VERSION", object, &[]);
                heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(34));
                let activity = destroyed(&mut heap);
                let message = heap.new_object(class, &[(field, Is::Ref(activity))]);
                keep(&mut heap, "HOLDER", message);
                find(&heap.graph()).groups[0].advice.clone()
            }
            _ => hold(class, field, object),
        };
        assert!(advice.starts_with(begins), "{class}: {advice}");
    }
}

#[test]
fn very_many_leaks_of_one_cause_are_one_group() {
    let mut heap = android();
    let all: Vec<Obj> = (0..20_000).map(|_| destroyed(&mut heap)).collect();
    let list = heap.list(&all, 0);
    keep(&mut heap, "ALL", list);
    let leaks = find(&heap.graph());
    assert_eq!(leaks.groups.len(), 1);
    assert_eq!(leaks.groups[0].leaks.len(), 20_000);
    assert_eq!(leaks.groups[0].kept.count, 20_000);
}
