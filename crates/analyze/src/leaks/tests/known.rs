//! Known leaks: the table, and a dump for each of its patterns with and without its conditions.

use std::collections::BTreeSet;

use super::*;
use crate::leaks::known_leaks::{Form, Pattern, is_library, matches, patterns};
use heaptap_model::heap_graph::Device;

fn lines() -> impl Iterator<Item = (usize, Vec<&'static str>)> {
    let lines = include_str!("../known_leaks.txt").lines().enumerate();
    lines
        .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'))
        .map(|(at, line)| (at + 1, line.split(" | ").collect()))
}

#[test]
fn table_has_only_valid_and_unique_lines_in_order() {
    let mut seen = BTreeSet::new();
    let mut before: Option<[&str; 4]> = None;
    let mut counts = [0; 6];
    for (at, line) in lines() {
        let (kind, wanted) = (line[0], [8, 8, 8, 3, 3, 2]);
        let kind = ["I", "S", "N", "X", "W", "P"]
            .iter()
            .position(|&k| k == kind);
        let kind = kind.unwrap_or_else(|| panic!("line {at}: unknown kind"));
        counts[kind] += 1;
        assert_eq!(line.len(), wanted[kind], "line {at}: columns");
        assert!(
            line.iter()
                .all(|column| column.trim() == *column && !column.is_empty())
        );
        assert!(
            seen.insert(line[..line.len().min(3)].to_vec()) || line[4] != "-",
            "line {at}: repeated"
        );
        if kind > 2 {
            assert!(
                line[0] != "P" || line[1].ends_with('.'),
                "line {at}: a package ends with ."
            );
            continue;
        }
        assert_eq!(
            line[2] == "-",
            line[0] == "N",
            "line {at}: roots have no field"
        );
        for part in line[3].split(',') {
            let numbers = part.split('@').next().unwrap_or_default();
            let is_level = |text: &str| text.parse::<u8>().is_ok_and(|level| level < 50);
            let is_range = match numbers.split_once('-') {
                Some((from, to)) => {
                    (is_level(from) || from.is_empty()) && (is_level(to) || to.is_empty())
                }
                None => is_level(numbers) || line[3] == "*",
            };
            assert!(is_range, "line {at}: releases {}", line[3]);
        }
        assert!(
            line[4] == "-" || line[5] == "-",
            "line {at}: a maker or a library"
        );
        for sentence in [line[6], line[7]].iter().filter(|&&s| s != "-") {
            let first = sentence.chars().next().unwrap_or('.');
            assert!(
                !sentence.ends_with('.') && !sentence.contains(". "),
                "line {at}"
            );
            assert!(first.is_lowercase(), "line {at}: {sentence}");
        }
        let owner = [line[4], line[5]].map(str::trim);
        let key = [
            if owner == ["-", "-"] { "" } else { "owned" },
            line[5],
            line[4],
            line[1],
        ];
        if let Some(before) = before.filter(|before| before[..3] == key[..3]) {
            assert!(before[3] <= key[3], "line {at}: order");
        }
        before = Some(key);
    }
    // Instance fields, statics, JNI roots; ignored, weak, packages.
    assert!(
        counts[0] > 75 && counts[1] > 25 && counts[2] > 15,
        "{counts:?}"
    );
    assert_eq!(counts[3..5], [3, 1]);
    assert!(counts[5] > 50, "{counts:?}");
}

/// Device of a dump: API level, manufacturer, build.
type On<'a> = (Option<i64>, Option<&'a str>, Option<&'a str>);

/// Makes a dump in which only that reference holds a destroyed activity.
fn leaking_by(form: Form, class: &str, field: &str, on: On<'_>) -> HeapGraph {
    let mut heap = android();
    let (sdk, maker, build) = on;
    if let Some(sdk) = sdk {
        heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(sdk as i32));
    }
    for (field, text) in [("MANUFACTURER", maker), ("ID", build)] {
        if let Some(text) = text {
            let text = heap.string(text);
            heap.fixed("android.os.Build", field, Is::Ref(text));
        }
    }
    if form != Form::Static {
        heap.field(class, field);
    }
    let activity = destroyed(&mut heap);
    match form {
        Form::Static => heap.fixed(class, field, Is::Ref(activity)),
        Form::JniGlobal => {
            let holder = heap.new_object(class, &[(field, Is::Ref(activity))]);
            heap.root(holder, RootKind::JniGlobal);
        }
        _ => {
            let held = match class {
                "java.lang.ThreadLocal$ThreadLocalMap$Entry" => thread_state(&mut heap, activity),
                _ => activity,
            };
            let holder = heap.new_object(class, &[(field, Is::Ref(held))]);
            heap.fixed("android.test.Holder", "sHolder", Is::Ref(holder));
        }
    }
    heap.graph()
}

/// Makes the pair that kotlinx.coroutines keeps in a thread local.
fn thread_state(heap: &mut Heap, held: Obj) -> Obj {
    let context = "kotlin.coroutines.CombinedContext";
    heap.field(context, "element");
    heap.field("kotlin.Pair", "first");
    let context = heap.new_object(context, &[("element", Is::Ref(held))]);
    heap.new_object("kotlin.Pair", &[("first", Is::Ref(context))])
}

/// Returns the only group of a dump through a pattern.
fn group(pattern: &Pattern, on: On<'_>) -> LeakGroup {
    let class = pattern.class.replace('#', "7").replace('*', "Part");
    let field = match pattern.field {
        "*" | "-" => "held",
        field => field,
    };
    let mut groups = find(&leaking_by(pattern.form, &class, field, on)).groups;
    assert_eq!(groups.len(), 1, "{} {on:?}", pattern.name());
    groups.remove(0)
}

#[test]
fn each_pattern_is_known_where_it_applies_and_only_there() {
    let mut count = 0;
    let lines = lines().filter(|(_, line)| line[0] != "P");
    for (pattern, (_, line)) in patterns().iter().zip(lines) {
        assert_eq!((pattern.class, pattern.field), (line[1], line[2]));
        if matches!(pattern.form, Form::Ignored | Form::WeakTarget) {
            continue;
        }
        count += 1;
        let name = pattern.name();
        let (maker, other) = match line[4] {
            "-" => (Some("Google"), None),
            "!Google" => (Some("TES"), Some("google")),
            maker => (Some(maker), Some("Other")),
        };
        let lower = maker.map(str::to_lowercase);
        let (from, to) = pattern.api();
        let is_known = |on| group(pattern, on).library;
        for sdk in [Some(from), to].into_iter().flatten() {
            let known = is_known((Some(sdk), lower.as_deref(), None));
            let known = known.unwrap_or_else(|| panic!("{name} on {sdk}"));
            assert_eq!(known.pattern.name(), name);
            assert!(
                !known.unknown.contains(&"release") && !known.unknown.contains(&"manufacturer")
            );
        }
        let outside = [(from > 1).then(|| from - 1), to.map(|to| to + 1)];
        for sdk in outside.into_iter().flatten() {
            let group = group(pattern, (Some(sdk), maker, None));
            assert_eq!(group.library, None, "{name} on {sdk}");
            let advice = &group.advice;
            let wrong = ["make it static", "Clear ", " to null"];
            let wrong = wrong.into_iter().find(|words| advice.contains(words));
            assert_eq!(wrong, None, "{name}: {advice}");
        }
        if let Some(other) = other {
            assert_eq!(
                is_known((Some(from), Some(other), None)),
                None,
                "{name} of {other}"
            );
        }
        let unknown = is_known((None, None, None))
            .expect("the reference decides")
            .unknown;
        assert_eq!(unknown.contains(&"release"), line[3] != "*", "{name}");
        assert_eq!(unknown.contains(&"manufacturer"), other.is_some(), "{name}");
        let advice = group(pattern, (None, None, None)).advice;
        assert_eq!(
            advice.contains("the reference alone decides"),
            !unknown.is_empty()
        );
        let remedy = if line[7] == "-" {
            "App code cannot fix it"
        } else {
            line[7]
        };
        assert!(
            advice.contains(remedy) && advice.contains(line[6]),
            "{name}: {advice}"
        );
    }
    assert!(count >= 145, "{count}");
}

#[test]
fn owners_are_those_of_the_devices_where_they_leak() {
    const BACK: &str = "android.window.WindowOnBackInvokedDispatcher$OnBackInvokedCallbackWrapper";
    // Form, class, field; API level, manufacturer and build of the device; the owner, if known. The
    // last is a class of the app with the same field.
    let cases = "
        I android.view.ViewGroup mPreSortedChildren on 30 Google: Android 11
        I android.view.ViewGroup mPreSortedChildren on 31 Google: -
        I android.view.inputmethod.InputMethodManager mLastSrvView on 28 huawei: HUAWEI's Android
        I android.view.inputmethod.InputMethodManager mLastSrvView on 28 samsung: -
        I android.view.inputmethod.InputMethodManager mLastSrvView on 29 HUAWEI: -
        I android.view.inputmethod.InputMethodManager mNextServedView on 35 Google: Android 15
        I android.view.inputmethod.InputMethodManager mNextServedView on 36 Google: -
        N android.widget.Toast$TN mNextView on 29 Google: Android 10
        N android.app.AppOpsManager$3 this$0 on 32 Google: Android 12L
        N android.app.AppOpsManager$3 this$0 on 33 Google: -
        N android.app.AppOpsManager$2 this$0 on 32 Google: -
        I android.view.View$$ExternalSyntheticLambda12 f$0 on 33 Google: Android 13
        I android.view.View$$ExternalSyntheticLambdaX f$0 on 33 Google: -
        I BACK mCallback on 32 Google TPP2.220218.008: Android 12L
        I BACK mCallback on 32 Google SP2A.220405.004: -
        I BACK mCallback on 33 Google TPP2.220218.008: -
        I BACK mCallback on 34 Google UP1A: Android 14
        S android.content.res.ResourcesImpl mAppContext on 31 OnePlus: OnePlus's Android
        S android.net.ConnectivityManager sInstance on 23 Google: Android 6
        I android.net.ConnectivityManager sInstance on 23 Google: -
        I WV.R9 e on 33 Google: Android System WebView
        I WV.R9 f on 33 Google: -
        I com.bumptech.glide.manager.DefaultConnectivityMonitor listener on 34 Google: Glide (before 4.13.0)
        I com.google.maps.api.android.lib6.gmm6.Draw a on 34 Google: Google Maps (16.1 to 17.0)
        I com.google.maps.api.Other a on 34 Google: -
        I androidx.biometric.BiometricViewModel mClientCallback on 34 Google: androidx.biometric (1.0.1; fixed in 1.1.0)
        I app.InputMethodManager mNextServedView on 30 Google: -
    ";
    for case in cases.trim().lines() {
        let (reference, whose) = case.split_once(": ").expect("an owner");
        let words: Vec<&str> = reference.split_whitespace().collect();
        let [form, class, field, "on", sdk, maker, build @ ..] = &words[..] else {
            panic!("{case}");
        };
        let form = match *form {
            "I" => Form::Instance,
            "N" => Form::JniGlobal,
            "S" => Form::Static,
            _ => panic!("{case}"),
        };
        let class = if *class == "BACK" { BACK } else { class };
        let on = (
            Some(sdk.parse().expect("an API level")),
            Some(*maker),
            build.first().copied(),
        );
        let graph = leaking_by(form, class, field, on);
        let known = find(&graph).groups.remove(0).library;
        let found = known.as_ref().map_or("-", |known| known.whose.as_str());
        assert_eq!(found, whose, "{case}");
    }
}

#[test]
fn field_of_a_superclass_is_known_in_all_subclasses() {
    let mut heap = android();
    heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(30));
    heap.class(
        "android.view.ViewGroup",
        "android.view.View",
        &[("mCurrentDragChild", Is::Null)],
    );
    let own = &[("mCurrentDragChild", Is::Null)];
    heap.class("app.Other", "android.view.View", own);
    heap.class("app.Row", "android.view.ViewGroup", &[("mine", Is::Null)]);
    let activities = [
        destroyed(&mut heap),
        destroyed(&mut heap),
        destroyed(&mut heap),
    ];
    let row = [
        ("mCurrentDragChild", Is::Ref(activities[0])),
        ("mine", Is::Ref(activities[1])),
    ];
    let row = heap.new_object("app.Row", &row);
    // A second instance, because positions are looked up once per class.
    let second = heap.new_object("app.Row", &[("mine", Is::Null)]);
    let other = ("mCurrentDragChild", Is::Ref(activities[2]));
    let other = heap.new_object("app.Other", &[other]);
    let all = heap.list(&[second, row, other], 0);
    keep(&mut heap, "VIEWS", all);
    let graph = heap.graph();
    let leaks = find(&graph);
    let known = leaks.groups.iter().filter(|group| group.library.is_some());
    let known: Vec<ObjectIndex> = known
        .flat_map(|group| &group.leaks)
        .map(|l| l.object)
        .collect();
    assert_eq!(known, [index(&graph, activities[0])]);
    assert_eq!(leaks.groups.len(), 3);
}

#[test]
fn device_of_a_heap_graph_is_that_of_its_trace() {
    let imm = "android.view.inputmethod.InputMethodManager";
    for (sdk, maker, expected) in [
        (Some(28), Some("Huawei"), Some("HUAWEI's Android")),
        (Some(28), Some("Google"), None),
        (Some(34), Some("HUAWEI"), None),
        (Some(28), None, Some("HUAWEI's Android")),
    ] {
        let mut graph = leaking_by(Form::Instance, imm, "mLastSrvView", (None, None, None));
        graph.facts.device = Device {
            sdk,
            manufacturer: maker.map(str::to_owned),
            build: None,
        };
        let leaks = find(&graph);
        assert_eq!((leaks.sdk, leaks.manufacturer.as_deref()), (sdk, maker));
        let known = leaks.groups[0].library.as_ref();
        assert_eq!(
            known.map(|known| known.whose.as_str()),
            expected,
            "{sdk:?} {maker:?}"
        );
    }
}

/// Makes a dump with a message in a queue, one of an idle looper, and one that the app keeps.
#[test]
fn object_of_a_message_is_known_only_outside_of_queues() {
    for (sdk, expected) in [
        (Some(30), [false, true]),
        (Some(31), [false, false]),
        (None, [false, true]),
    ] {
        let mut heap = android();
        if let Some(sdk) = sdk {
            heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(sdk));
        }
        heap.field("android.os.MessageQueue", "mMessages");
        heap.class("app.Other", "android.app.Activity", &[]);
        let queued = destroyed(&mut heap);
        let idle = heap.new_object("app.Other", &[("mDestroyed", Is::Bool(true))]);
        let second = heap.new_object("android.os.Message", &[("obj", Is::Ref(queued))]);
        let first = heap.new_object("android.os.Message", &[("next", Is::Ref(second))]);
        let queue = heap.new_object("android.os.MessageQueue", &[("mMessages", Is::Ref(first))]);
        heap.fixed("android.test.Holder", "sQueue", Is::Ref(queue));
        let message = heap.new_object("android.os.Message", &[("obj", Is::Ref(idle))]);
        heap.thread("worker", 9);
        heap.thread_root(message, RootKind::JavaFrame, 9);
        let leaks = find(&heap.graph());
        let is_known = ["app.Main", "app.Other"].map(|class| {
            let group = leaks.groups.iter().find(|group| group.class == class);
            group.expect("it leaks").library.is_some()
        });
        assert_eq!(is_known, expected, "{sdk:?}");
    }
}

#[test]
fn child_of_a_job_is_known_only_once_it_completed() {
    for (state, expected) in [("kotlinx.coroutines.Empty", false), ("app.Result", true)] {
        let mut heap = android();
        heap.field("kotlinx.coroutines.ChildHandleNode", "childJob");
        heap.field("kotlinx.coroutines.StandaloneCoroutine", "_state");
        heap.field("kotlinx.coroutines.StandaloneCoroutine", "held");
        let activity = destroyed(&mut heap);
        let state = heap.new_object(state, &[]);
        let child = [("_state", Is::Ref(state)), ("held", Is::Ref(activity))];
        let child = heap.new_object("kotlinx.coroutines.StandaloneCoroutine", &child);
        let node = [("childJob", Is::Ref(child))];
        let node = heap.new_object("kotlinx.coroutines.ChildHandleNode", &node);
        keep(&mut heap, "NODE", node);
        assert_eq!(find(&heap.graph()).groups[0].library.is_some(), expected);
    }
}

#[test]
fn references_of_leakcanary_and_of_the_choreographer_are_not_followed() {
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let canary = "leakcanary.internal.InternalLeakCanary";
    heap.fixed(canary, "resumedActivity", Is::Ref(activity));
    let receiver = "android.view.DisplayEventReceiver";
    heap.class(receiver, "java.lang.Object", &[("mMessageQueue", Is::Null)]);
    let frames = "android.view.Choreographer$FrameDisplayEventReceiver";
    heap.class(frames, receiver, &[]);
    let queue = [("mQuitting", Is::Bool(true))];
    let queue = heap.new_object("android.os.MessageQueue", &queue);
    let frames = heap.new_object(frames, &[("mMessageQueue", Is::Ref(queue))]);
    heap.root(frames, RootKind::JniGlobal);
    let leaks = find(&heap.graph());
    assert!(leaks.groups.is_empty(), "{:?}", leaks.groups);
    assert_eq!(leaks.unheld.len(), 2);
}

#[test]
fn target_of_an_animator_leaks_while_it_might_run() {
    // Also if it repeats without end.
    for (started, repeats, expected) in [(true, 0, 1), (true, -1, 1), (false, -1, 0)] {
        let mut heap = android();
        let flags = [
            ("mStarted", Is::Bool(false)),
            ("mRunning", Is::Bool(false)),
            ("mRepeatCount", Is::Int(0)),
        ];
        heap.class(
            "android.animation.ValueAnimator",
            "java.lang.Object",
            &flags,
        );
        let target = [("mTarget", Is::Null)];
        heap.class(
            "android.animation.ObjectAnimator",
            "android.animation.ValueAnimator",
            &target,
        );
        let activity = destroyed(&mut heap);
        let weak = [("referent", Is::Ref(activity))];
        let weak = heap.new_object("java.lang.ref.WeakReference", &weak);
        let animator = [
            ("mStarted", Is::Bool(started)),
            ("mRepeatCount", Is::Int(repeats)),
            ("mTarget", Is::Ref(weak)),
        ];
        let animator = heap.new_object("android.animation.ObjectAnimator", &animator);
        heap.fixed(
            "android.animation.AnimationHandler",
            "sHandler",
            Is::Ref(animator),
        );
        let leaks = find(&heap.graph());
        assert_eq!(leaks.groups.len(), expected);
        assert_eq!(leaks.unheld.len(), 1 - expected);
        for group in &leaks.groups {
            assert_eq!(group.certainty, Certainty::Certain);
            let path = group.path.iter().filter_map(|step| step.reference.as_ref());
            let path: Vec<String> = path.map(Reference::shown).collect();
            assert_eq!(path, ["sHandler", "mTarget", "referent"]);
        }
        // A strong path is better evidence.
        let mut heap = android();
        heap.field("android.animation.ObjectAnimator", "mTarget");
        let activity = destroyed(&mut heap);
        let weak = [("referent", Is::Ref(activity))];
        let weak = heap.new_object("java.lang.ref.WeakReference", &weak);
        let animator = [("mTarget", Is::Ref(weak))];
        let animator = heap.new_object("android.animation.ObjectAnimator", &animator);
        keep(&mut heap, "ANIMATOR", animator);
        let holder = heap.new_object("app.Holder", &[("held", Is::Ref(activity))]);
        let holder = heap.new_object("app.Holder", &[("held", Is::Ref(holder))]);
        let holder = heap.new_object("app.Holder", &[("held", Is::Ref(holder))]);
        keep(&mut heap, "HOLDER", holder);
        let path = &find(&heap.graph()).groups[0].path;
        assert!(path.iter().any(|step| step.class == "app.Holder"));
    }
}

#[test]
fn classes_of_libraries_are_not_the_app_s() {
    for library in [
        "com.bumptech.glide.RequestManager",
        "androidx.fragment.app.Fragment",
        "kotlin.Pair",
        "java.util.ArrayList",
        "io.reactivex.rxjava3.internal.Foo",
        "WV.R9",
        "com.google.android.material.tabs.TabLayout",
    ] {
        assert!(is_library(library), "{library}");
    }
    for own in ["app.Main", "com.example.glide.Main", "rxapp.Main", "a.b"] {
        assert!(!is_library(own), "{own}");
    }
    for (pattern, class, expected) in [
        ("a.B$#", "a.B$12", true),
        ("a.B$#", "a.B$", false),
        ("a.B$#", "a.B$1x", false),
        ("a.b.*", "a.b.c.D", true),
        ("a.b.*", "a.bc", false),
        ("a.B", "a.B$1", false),
    ] {
        assert_eq!(matches(pattern, class), expected, "{pattern} {class}");
    }
}
