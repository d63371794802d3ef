//! Each rule: activities, fragments, views, services, watched objects.

use super::*;

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

    // Nothing proves it without the platform's list.
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
        // Not in a window: the app can keep it for reuse.
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
    // Below wrappers and not in a window, but of a destroyed activity; its child is not reported.
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
    // The child leads to the wrapper and leaks with it; it is not reported separately.
    assert_eq!(all.len(), 2);
    assert!(all.contains(&index(&graph, view)) && all.contains(&index(&graph, wrapper)));
    let nested: Vec<u64> = leaks
        .groups
        .iter()
        .flat_map(|g| &g.leaks[0].nested)
        .filter(|nested| nested.class == "app.Main")
        .map(|nested| nested.count)
        .collect();
    assert_eq!(nested, [1], "only one of them keeps the activity");
}

#[test]
fn nested_leaks_of_two_classes_of_one_name_are_counted_together() {
    let mut heap = android();
    let fields = [("mDestroyed", Is::Bool(true))];
    let first = heap.new_object("app.Main", &fields);
    // Another loader's class.
    heap.class("app.Main", "android.app.Activity", &[]);
    let second = heap.new_object("app.Main", &fields);
    let both = heap.list(&[first, second], 0);
    heap.class("app.Outer", "android.app.Activity", &[("all", Is::Null)]);
    let outer = heap.new_object("app.Outer", &[fields[0], ("all", Is::Ref(both))]);
    keep(&mut heap, "OUTER", outer);
    let leaks = find(&heap.graph());
    let [group] = &leaks.groups[..] else {
        panic!("{:?}", leaks.groups);
    };
    let nested = group.leaks[0].nested.iter();
    let counts: Vec<_> = nested.map(|n| (n.class.as_str(), n.count)).collect();
    assert_eq!(counts, [("app.Main", 2)]);
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
            // A queue of a looper that quit does little harm.
            let expected = match class {
                "android.os.MessageQueue" => expected.and(POSSIBLE),
                _ => expected,
            };
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
fn dialog_shows_only_while_its_views_are_attached() {
    for (attached, expected) in [
        (true, "a dialog that is showing"),
        (false, "a dialog whose views are not in a window"),
    ] {
        let mut heap = android();
        let fields = [("mContext", Is::Null), ("mDecor", Is::Null)];
        heap.class("android.app.Dialog", "java.lang.Object", &fields);
        let info = heap.new_object("app.Holder", &[]);
        let info = if attached { Is::Ref(info) } else { Is::Null };
        let decor = heap.new_object("android.view.View", &[("mAttachInfo", info)]);
        let activity = destroyed(&mut heap);
        let dialog = heap.new_object(
            "android.app.Dialog",
            &[("mContext", Is::Ref(activity)), ("mDecor", Is::Ref(decor))],
        );
        keep(&mut heap, "DIALOG", dialog);
        let leaks = find(&heap.graph());
        let path = &leaks.groups[0].path;
        let step = path.iter().find(|step| step.class == "android.app.Dialog");
        assert_eq!(step.map(|step| step.reason.as_str()), Some(expected));
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
fn texts_of_the_platform_are_short_and_plain() {
    let long = format!("a\n<b>{}", "c".repeat(99));
    for (text, expected) in [
        ("Google", Some("Google")),
        (&long, Some(&*format!("ab{}", "c".repeat(58)))),
        ("\0\0", None),
    ] {
        let mut heap = android();
        let manufacturer = heap.string(text);
        heap.fixed("android.os.Build", "MANUFACTURER", Is::Ref(manufacturer));
        assert_eq!(find(&heap.graph()).manufacturer.as_deref(), expected);
    }
}

#[test]
fn what_leakcanary_watched_and_found_retained_leaks() {
    // An object can be watched twice.
    for (values, times, expected) in [
        (true, &[12_345][..], CERTAIN),
        (true, &[-1], None),
        (true, &[-1, 12_345], CERTAIN),
        (true, &[12_345, -1], CERTAIN),
        (false, &[12_345], LIKELY),
    ] {
        let mut heap = android();
        if !values {
            heap = heap.without_values();
        }
        let object = heap.new_object("app.Holder", &[]);
        let why = heap.string("app.Presenter received onCleared");
        for &since in times {
            let watch = heap.new_object(
                "leakcanary.KeyedWeakReference",
                &[
                    ("referent", Is::Ref(object)),
                    ("retainedUptimeMillis", Is::Long(since)),
                    ("description", Is::Ref(why)),
                ],
            );
            keep(&mut heap, "WATCH", watch);
        }
        keep(&mut heap, "OBJECT", object);
        assert_eq!(certainty(heap, object), expected, "{values} {times:?}");
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

/// Adds an object that holds others by fields of its class.
fn holding(heap: &mut Heap, class: &str, superclass: &str, fields: &[(&str, Obj)]) -> Obj {
    heap.find(superclass);
    if heap.declared().iter().all(|name| name != class) {
        heap.class(class, superclass, &[]);
    }
    for (field, _) in fields {
        heap.field(class, field);
    }
    let set: Vec<(&str, Is)> = fields.iter().map(|&(f, o)| (f, Is::Ref(o))).collect();
    heap.new_object(class, &set)
}

const OBJECT: &str = "java.lang.Object";

#[test]
fn fragment_whose_view_is_gone_leaks_the_views_that_others_keep_for_it() {
    // What holds the view, whether the view has a parent, is another fragment's, is found.
    for (by, has_parent, is_shown, found) in [
        ("adapter", true, false, true),
        ("adapter", true, true, false),
        ("adapter", false, false, true),
        ("data binding", false, false, true),
        ("delegate", false, false, true),
        ("observer", true, false, true),
        ("pool", true, false, false),
        ("cache", false, false, false),
        ("cache", true, false, true),
    ] {
        let mut heap = android();
        let attached = ("mWindowAttachCount", Is::Int(1));
        let root = heap.new_object("android.view.View", &[attached]);
        let parent = if has_parent { Is::Ref(root) } else { Is::Null };
        let view = heap.new_object("android.view.View", &[attached, ("mParent", parent)]);
        let binding = "app.PageBindingImpl";
        let (field, kept) = match by {
            "adapter" => {
                let observer = "androidx.recyclerview.widget.RecyclerView$RecyclerViewDataObserver";
                let observer = holding(&mut heap, observer, OBJECT, &[("this$0", view)]);
                let observers = heap.list(&[observer], 0);
                let of = "androidx.recyclerview.widget.RecyclerView$AdapterDataObservable";
                let observable = holding(&mut heap, of, OBJECT, &[("mObservers", observers)]);
                let adapter = [("mObservable", observable)];
                (
                    "adapter",
                    holding(&mut heap, "app.Adapter", OBJECT, &adapter),
                )
            }
            "data binding" => (
                "views",
                holding(&mut heap, binding, OBJECT, &[("mRoot", view)]),
            ),
            "delegate" => {
                let binding = holding(&mut heap, binding, OBJECT, &[("mRoot", view)]);
                let delegate = holding(&mut heap, "app.Bound", OBJECT, &[("binding", binding)]);
                ("binding$delegate", delegate)
            }
            "observer" => {
                let observer = holding(&mut heap, "app.Page$1", OBJECT, &[("$list", view)]);
                let state = "androidx.lifecycle.LifecycleRegistry$ObserverWithState";
                let state = holding(&mut heap, state, OBJECT, &[("lifecycleObserver", observer)]);
                let all = heap.list(&[state], 0);
                let registry = "androidx.lifecycle.LifecycleRegistry";
                heap.field(registry, "observerMap");
                let all = [("observerMap", Is::Ref(all))];
                ("mLifecycleRegistry", heap.new_object(registry, &all))
            }
            "cache" => {
                let cached = heap.array("java.lang.Object[]", &[Some(view)]);
                (
                    "cache",
                    holding(&mut heap, "app.Cache", OBJECT, &[("views", cached)]),
                )
            }
            _ => {
                let pool = "androidx.recyclerview.widget.RecyclerView$RecycledViewPool";
                (
                    "pool",
                    holding(&mut heap, pool, OBJECT, &[("mScrap", view)]),
                )
            }
        };
        let fragment = "androidx.fragment.app.Fragment";
        heap.class("app.Page", fragment, &[]);
        heap.field("app.Page", field);
        let manager = heap.new_object("app.Holder", &[]);
        let managed = ("mFragmentManager", Is::Ref(manager));
        let page = heap.new_object("app.Page", &[managed, (field, Is::Ref(kept))]);
        keep(&mut heap, "PAGE", page);
        let other = heap.new_object(fragment, &[managed, ("mView", Is::Ref(root))]);
        if is_shown {
            keep(&mut heap, "OTHER", other);
        }
        let expected = if found { LIKELY } else { None };
        if !is_shown {
            heap.set(other, "mView", Is::Null);
        }
        assert_eq!(
            certainty(heap, view),
            expected,
            "{by} {has_parent} {is_shown}"
        );
    }
}

#[test]
fn detached_view_leaks_with_the_owner_in_its_tags_also_in_a_heap_graph() {
    for (state, attached, expected) in [
        ("DESTROYED", false, LIKELY),
        ("DESTROYED", true, None),
        ("CREATED", false, None),
    ] {
        let mut heap = android().without_values();
        let state = constant(&mut heap, "androidx.lifecycle.Lifecycle$State", state);
        let registry = "androidx.lifecycle.LifecycleRegistry";
        let registry = heap.new_object(registry, &[("state", Is::Ref(state))]);
        let owner = "androidx.fragment.app.FragmentViewLifecycleOwner";
        let owner = holding(
            &mut heap,
            owner,
            OBJECT,
            &[("mLifecycleRegistry", registry)],
        );
        let values = heap.array("java.lang.Object[]", &[None, Some(owner)]);
        let tags = holding(
            &mut heap,
            "android.util.SparseArray",
            OBJECT,
            &[("mValues", values)],
        );
        heap.field("android.view.View", "mKeyedTags");
        let info = if attached { Is::Ref(owner) } else { Is::Null };
        let set = [("mKeyedTags", Is::Ref(tags)), ("mAttachInfo", info)];
        let view = heap.new_object("android.view.View", &set);
        keep(&mut heap, "VIEW", view);
        assert_eq!(certainty(heap, view), expected, "{attached}");
    }
}

#[test]
fn looper_of_android_17_has_quit_when_its_stack_says_so() {
    for (quits, expected) in [(true, POSSIBLE), (false, None)] {
        let mut heap = android().without_values();
        let mark = heap.new_object(OBJECT, &[]);
        let other = heap.new_object(OBJECT, &[]);
        heap.fixed(
            "android.os.MessageStack",
            "QUITTING_NODE_OBJ",
            Is::Ref(mark),
        );
        let object = ("obj", Is::Ref(if quits { mark } else { other }));
        let top = heap.new_object("android.os.Message", &[object]);
        let stack = holding(
            &mut heap,
            "android.os.MessageStack",
            OBJECT,
            &[("mTopValue", top)],
        );
        heap.field("android.os.MessageQueue", "mStack");
        let queue = heap.new_object("android.os.MessageQueue", &[("mStack", Is::Ref(stack))]);
        keep(&mut heap, "QUEUE", queue);
        assert_eq!(certainty(heap, queue), expected);
    }
}

#[test]
fn looper_has_quit_by_the_flag_of_its_release() {
    // Until Android 4.3, since then, and the concurrent queue of Android 16.
    for flag in ["mQuiting", "mQuitting", "mQuittingValue"] {
        for (quits, expected) in [(true, POSSIBLE), (false, None)] {
            let mut heap = android();
            let queue = "android.os.MessageQueue";
            heap.class(queue, OBJECT, &[(flag, Is::Bool(quits))]);
            let queue = heap.new_object(queue, &[(flag, Is::Bool(quits))]);
            keep(&mut heap, "QUEUE", queue);
            assert_eq!(certainty(heap, queue), expected, "{flag}");
        }
    }
}

#[test]
fn service_that_the_system_did_not_start_is_a_delegate() {
    for (has_thread, expected) in [(true, CERTAIN), (false, None)] {
        let mut heap = android();
        heap.field("android.app.Service", "mThread");
        let thread = heap.new_object("app.Holder", &[]);
        let thread = if has_thread {
            Is::Ref(thread)
        } else {
            Is::Null
        };
        let service = heap.new_object("android.app.Service", &[("mThread", thread)]);
        activity_thread(&mut heap, &[], &[]);
        keep(&mut heap, "SERVICE", service);
        assert_eq!(certainty(heap, service), expected);
    }
}

#[test]
fn view_of_a_destroyed_service_leaks() {
    let mut heap = android();
    let service = heap.new_object("android.app.Service", &[]);
    let wrapper = "android.content.ContextWrapper";
    let wrapper = heap.new_object(wrapper, &[("mBase", Is::Ref(service))]);
    let view = heap.new_object("android.view.View", &[("mContext", Is::Ref(wrapper))]);
    activity_thread(&mut heap, &[], &[]);
    keep(&mut heap, "VIEW", view);
    assert_eq!(certainty(heap, view), CERTAIN);
}

#[test]
fn view_model_leaks_when_no_store_contains_it() {
    for (stored, expected) in [(true, None), (false, LIKELY)] {
        let mut heap = android().without_values();
        let model = heap.new_object("androidx.lifecycle.ViewModel", &[]);
        let pair = [Some(model), stored.then_some(model)];
        let array = heap.array("java.lang.Object[]", &pair);
        let map = heap.new_object("android.util.ArrayMap", &[("mArray", Is::Ref(array))]);
        let store = "androidx.lifecycle.ViewModelStore";
        let store = holding(&mut heap, store, OBJECT, &[("map", map)]);
        keep(&mut heap, "STORE", store);
        keep(&mut heap, "MODEL", model);
        assert_eq!(certainty(heap, model), expected, "{stored}");
    }
}

#[test]
fn references_of_leakcanary_1_are_of_retained_objects() {
    let mut heap = android();
    let object = heap.new_object("app.Holder", &[]);
    let name = heap.string("detail screen");
    let watch = "com.squareup.leakcanary.KeyedWeakReference";
    heap.class(watch, "java.lang.ref.WeakReference", &[("name", Is::Null)]);
    let fields = [("referent", Is::Ref(object)), ("name", Is::Ref(name))];
    let watch = heap.new_object(watch, &fields);
    keep(&mut heap, "WATCH", watch);
    keep(&mut heap, "OBJECT", object);
    let leaks = find(&heap.graph());
    let leak = &leaks.groups[0].leaks[0];
    assert_eq!(leak.certainty, Certainty::Certain);
    assert!(leak.reason.contains("detail screen"), "{}", leak.reason);
}

#[test]
fn removed_fragment_that_a_living_activity_keeps_might_be_added_again() {
    let mut heap = android();
    let called = ("mCalled", Is::Bool(true));
    let page = heap.new_object("androidx.fragment.app.Fragment", &[called]);
    heap.field("app.Main", "page");
    let activity = heap.new_object("app.Main", &[("page", Is::Ref(page))]);
    keep(&mut heap, "ACTIVITY", activity);
    assert_eq!(certainty(heap, page), POSSIBLE);
}

#[test]
fn reason_says_that_an_activity_was_recreated() {
    let mut heap = android();
    heap.class(
        "app.Turned",
        "app.Main",
        &[("mChangingConfigurations", Is::Bool(true))],
    );
    let (destroyed, changing) = ("mDestroyed", "mChangingConfigurations");
    let set = [(destroyed, Is::Bool(true)), (changing, Is::Bool(true))];
    let activity = heap.new_object("app.Turned", &set);
    keep(&mut heap, "ACTIVITY", activity);
    let mut graph = heap.graph();
    // The field is declared by the platform's class.
    let classes = graph.classes_mut();
    let from = classes
        .iter()
        .position(|class| class.name == "app.Turned")
        .unwrap();
    classes[from].deobfuscated = Some("android.app.Activity".to_owned());
    let leaks = find(&graph);
    assert!(leaks.groups[0].leaks[0].reason.contains("rotation"));
}
