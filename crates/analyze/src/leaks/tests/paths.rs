//! Paths to leaks, their groups, kept bytes, and advice.

use heaptap_model::heap_graph::Follow;

use super::*;

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
        "Remove it from Keeper.LEAKED when the activity is destroyed (onDestroy), or store an \
         object there that does not hold the Main."
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
    // Another holder is blamed first.
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
    // Objects in use by the main thread are not leaks.
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
    assert_eq!(
        ways,
        [
            (
                "Java frame of thread worker".to_owned(),
                "<local variable>".to_owned()
            ),
            ("thread worker".to_owned(), "<thread local>".to_owned())
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
}

#[test]
fn what_nothing_refers_to_in_a_dump_without_its_roots_is_unknown() {
    let mut heap = android();
    destroyed(&mut heap);
    let mut graph = heap.graph();
    assert!(!find(&graph).unheld[0].is_unknown);
    graph.facts.losses.truncated = true;
    graph.root_unreachable(Follow::STRONG);
    let leaks = find(&graph);
    assert!(leaks.groups.is_empty(), "{:?}", leaks.groups);
    assert!(leaks.unheld[0].is_unknown);
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
    let shared = heap.primitives(heaptap_model::heap_graph::BasicType::Byte, &[0; 1000]);
    let public = heap.primitives(heaptap_model::heap_graph::BasicType::Byte, &[0; 500]);
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
            "A pending message holds it (Main): call removeCallbacks",
        ),
        // The app cannot clear a field of the library.
        (
            "android.app.LoadedApk",
            "mApplication",
            "Set Keeper.HOLDER to null",
        ),
    ] {
        let advice = match class {
            // Since Android 12, the looper does not keep its last message.
            "android.os.Message" => {
                let mut heap = android();
                heap.class("android.os.Build$VERSION", object, &[]);
                heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(34));
                let activity = destroyed(&mut heap);
                let message = heap.new_object(class, &[(field, Is::Ref(activity))]);
                let queue = "android.os.MessageQueue";
                heap.field(queue, "mMessages");
                let queue = heap.new_object(queue, &[("mMessages", Is::Ref(message))]);
                keep(&mut heap, "HOLDER", queue);
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
