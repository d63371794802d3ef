//! Advice for each way to leak. A heap is one path, written as text:
//!
//! ```text
//! START > CLASS.FIELD > CLASS.FIELD > LEAK
//! ```
//!
//! `START` is `static CLASS.FIELD`, `jni`, `thread`, `local THREAD` or `threadlocal NAME`.
//! `CLASS:SUPERCLASS` names a superclass, `CLASS[]` is an array, `CLASS[@STATE]` gives the object a
//! `_state` of that class. `LEAK` is `activity` or `view`.

use super::*;

/// Creates the heap of a path. Returns it with its last object.
fn path(text: &str) -> (Heap, Obj) {
    let mut heap = android();
    heap.fixed("android.os.Build$VERSION", "SDK_INT", Is::Int(36));
    let mut tokens: Vec<&str> = text.split(" > ").map(str::trim).collect();
    let leak = tokens.pop().expect("a path ends");
    let activity = destroyed(&mut heap);
    let leak = match leak {
        "activity" => activity,
        "view" => heap.new_object(
            "android.widget.TextView",
            &[("mContext", Is::Ref(activity))],
        ),
        _ => panic!("unknown leak: {leak}"),
    };
    let mut held = leak;
    let start = tokens.remove(0);
    for token in tokens.into_iter().rev() {
        held = holder(&mut heap, token, held);
    }
    match start.split_once(' ').unwrap_or((start, "")) {
        ("static", place) => {
            let (class, field) = place.rsplit_once('.').expect("a class and its static");
            heap.fixed(class, field, Is::Ref(held));
        }
        ("jni", _) => heap.root(held, RootKind::JniGlobal),
        ("thread", _) => heap.thread_root(held, RootKind::ThreadObject, 9),
        ("local", name) => {
            heap.thread(name, 9);
            heap.thread_root(held, RootKind::JavaFrame, 9);
        }
        ("threadlocal", name) => {
            let local = "java.lang.ThreadLocal";
            heap.class(local, "java.lang.Object", &[]);
            let local = heap.new_object(local, &[]);
            let (class, field) = name.rsplit_once('.').expect("a class and its static");
            heap.fixed(class, field, Is::Ref(local));
            let entry = "java.lang.ThreadLocal$ThreadLocalMap$Entry";
            heap.class(entry, "java.lang.ref.WeakReference", &[("value", Is::Null)]);
            let value = [("referent", Is::Ref(local)), ("value", Is::Ref(held))];
            let entry = heap.new_object(entry, &value);
            let table = "java.lang.ThreadLocal$ThreadLocalMap$Entry[]";
            let table = heap.array(table, &[Some(entry)]);
            let map = "java.lang.ThreadLocal$ThreadLocalMap";
            heap.class(map, "java.lang.Object", &[("table", Is::Null)]);
            let map = heap.new_object(map, &[("table", Is::Ref(table))]);
            let thread = heap.thread("worker", 9);
            heap.set(thread, "threadLocals", Is::Ref(map));
        }
        _ => panic!("unknown start: {start}"),
    }
    (heap, leak)
}

/// Adds the object of a token that holds another.
fn holder(heap: &mut Heap, token: &str, held: Obj) -> Obj {
    if let Some(class) = token.strip_suffix("[]") {
        return heap.array(&format!("{class}[]"), &[Some(held)]);
    }
    if token == "list" {
        return heap.list(&[held], 1);
    }
    let (token, state) = match token.split_once("[@") {
        Some((token, state)) => (token, Some(state.trim_end_matches(']'))),
        None => (token, None),
    };
    let (class, field) = token.rsplit_once('.').expect("a class and its field");
    let (class, superclass) = class.split_once(':').unwrap_or((class, "java.lang.Object"));
    heap.find(superclass);
    if heap.declared().iter().all(|name| name != class) {
        heap.class(class, superclass, &[]);
    }
    // A field of the platform is that of the superclass.
    let is_inherited = superclass != "java.lang.Object" && field.starts_with('m');
    heap.field(if is_inherited { superclass } else { class }, field);
    let mut set = vec![(field, Is::Ref(held))];
    if let Some(state) = state {
        heap.field(class, "_state");
        let state = heap.new_object(state, &[]);
        set.push(("_state", Is::Ref(state)));
    }
    heap.new_object(class, &set)
}

/// Returns the advice for a path and the certainty of its leak.
fn advice(text: &str) -> (String, Certainty) {
    let (heap, leak) = path(text);
    let graph = heap.graph();
    let found = find(&graph);
    let leak = index(&graph, leak);
    let mut groups = found.groups.iter();
    let group = groups.find(|group| group.leaks.iter().any(|found| found.object == leak));
    let group = group.unwrap_or_else(|| panic!("not found: {text}"));
    (group.advice.clone(), group.certainty)
}

const LAMBDA: &str = "app.Main$load$1:kotlin.coroutines.jvm.internal.BaseContinuationImpl";
const POOL: &str = "static app.Pool.POOL > java.util.concurrent.ThreadPoolExecutor.workQueue";

/// Paths, and below each what its advice has and does not have.
const ADVICE: &str = r#"
static app.Keeper.LEAKED > list > activity
  has "Remove it from Keeper.LEAKED"; not "null"
static app.Tracker.INSTANCE > app.Tracker.view > view
  has "Clear Tracker.view"; not "INSTANCE"
static app.Keeper.repo$delegate > kotlin.SynchronizedLazyImpl._value > activity
  has "shorter scope"; not "_value", "null", "lear "
static app.Tracker.INSTANCE > app.Tracker.context > activity
  has "applicationContext", "Tracker"; not "lear ", "onDestroy", "null"
static app.Bus.LISTENERS > list > app.Main$1.this$0 > activity
  has "anonymous class Main$1", "Bus.LISTENERS"; not "static", "inner class"
static app.Bus.LISTENERS > list > app.Main$$ExternalSyntheticLambda0.f$0 > activity
  has "lambda Main$$ExternalSyntheticLambda0", "emove", "Bus.LISTENERS"; not "lear ", "static"
static app.Keeper.LISTENER > app.Main$onCreate$1.$name > activity
  has "Main$onCreate$1", "Keeper.LISTENER"; not "lear ", "$name"
static android.os.Looper.sMainLooper > android.os.Looper.mQueue
    > android.os.MessageQueue.mMessages > android.os.Message.next
    > android.os.Message.callback > app.Main$1.this$0 > activity
  has "removeCallbacks", "Main$1"; not "static"
static android.os.Looper.sMainLooper > android.os.Looper.mQueue
    > android.os.MessageQueue.mStack > android.os.MessageStack.mTopValue
    > android.os.Message.obj > activity
  has "removeCallbacksAndMessages(null)"; not "lear "
static android.lib.Pool.sPool > android.os.Message.callback > activity
  has "in no queue"; not "removeCallbacks"
static android.os.Looper.sMainLooper > android.os.Looper.mQueue
    > android.os.MessageQueue.mIdleHandlers > list > app.Idle.page > activity
  has "removeIdleHandler", "Idle"; not "removeCallbacks"
thread > java.util.TimerThread:java.lang.Thread.queue > java.util.TaskQueue.queue
    > java.util.TimerTask[] > app.Tick.this$0 > activity
  has "cancel()", "Tick"; not "inner"
{pool} > java.util.concurrent.ScheduledThreadPoolExecutor$DelayedWorkQueue.queue
    > java.util.concurrent.RunnableScheduledFuture[]
    > java.util.concurrent.FutureTask.callable
    > java.util.concurrent.Executors$RunnableAdapter.task > app.Job.page > activity
  has "Future", "Job"; not "lear "
local upload > app.Upload$1.this$0 > activity
  has "end or cancel", "Upload$1"; not "static", "lear "
thread > app.Worker:java.lang.Thread.this$0 > activity
  has "end or cancel", "Worker"; not "static", "inner"
local net > okhttp3.Call.callback > app.Api$await$2$1.$cont
    > kotlinx.coroutines.CancellableContinuationImpl.delegate
    > kotlinx.coroutines.internal.DispatchedContinuation.continuation > {LAMBDA}.this$0
    > activity
  has "coroutine of Main.load", "lifecycleScope", "invokeOnCancellation"; not "static", "lear ", "end or cancel that work"
static app.Sdk.CALLBACK > app.Api$await$2$1.$cont
    > kotlinx.coroutines.CancellableContinuationImpl.delegate[@kotlinx.coroutines.CancelledContinuation]
    > kotlinx.coroutines.internal.DispatchedContinuation.continuation > {LAMBDA}.L$0
    > activity
  has "invokeOnCancellation", "Main.load"; not "L$0", "null"
thread > kotlinx.coroutines.scheduling.Worker:java.lang.Thread.task
    > {LAMBDA}.L$0[@kotlinx.coroutines.JobSupport$Finishing] > activity
  has "isActive", "Main.load"; not "L$0"
static app.Keeper.MODEL > app.Model.scope
    > androidx.lifecycle.viewmodel.internal.CloseableCoroutineScope.coroutineContext
    > kotlinx.coroutines.JobImpl.child > {LAMBDA}.L$0 > view
  has "viewModelScope", "Main.load", "state"; not "L$0"
static app.Keeper.FLOW > kotlinx.coroutines.flow.StateFlowImpl.slots
    > kotlinx.coroutines.flow.StateFlowSlot[] > kotlinx.coroutines.flow.StateFlowSlot._state
    > kotlinx.coroutines.CancellableContinuationImpl.delegate > {LAMBDA}.this$0 > activity
  has "repeatOnLifecycle", "Main.load"; not "null", "lear "
static app.Keeper.CHANNEL > kotlinx.coroutines.channels.BufferedChannel.receiveSegment
    > {LAMBDA}.this$0 > activity
  has "close the channel"; not "null"
static app.Keeper.SUBJECT > io.reactivex.rxjava3.subjects.PublishSubject.subscribers
    > java.lang.Object[] > io.reactivex.rxjava3.internal.observers.LambdaObserver.onNext
    > app.Main$$ExternalSyntheticLambda1.f$0 > activity
  has "CompositeDisposable", "lambda Main$$ExternalSyntheticLambda1"; not "null", "dispose()"
static app.Keeper.DATA > androidx.lifecycle.LiveData.mObservers
    > androidx.arch.core.internal.SafeIterableMap.mStart
    > androidx.arch.core.internal.SafeIterableMap$Entry.mValue
    > androidx.lifecycle.LiveData$AlwaysActiveObserver.mObserver > app.Main$1.this$0
    > activity
  has "removeObserver", "Main$1"; not "static", "null"
static app.Keeper.DATA > androidx.lifecycle.LiveData.mObservers
    > androidx.arch.core.internal.SafeIterableMap.mStart
    > androidx.arch.core.internal.SafeIterableMap$Entry.mValue
    > androidx.lifecycle.LiveData$LifecycleBoundObserver.mObserver > app.Page$1.this$0 > view
  has "viewLifecycleOwner"; not "static", "null"
static app.Keeper.OWNER > androidx.lifecycle.LifecycleRegistry.observerMap
    > androidx.lifecycle.LifecycleRegistry$ObserverWithState.lifecycleObserver
    > app.Watcher.page > activity
  has "removeObserver", "Watcher"; not "lear ", "null"
static app.Keeper.ADAPTER
    > app.Shop:androidx.recyclerview.widget.RecyclerView$Adapter.mObservable
    > androidx.recyclerview.widget.RecyclerView$AdapterDataObservable.mObservers > list
    > androidx.recyclerview.widget.RecyclerView$RecyclerViewDataObserver.this$0 > view
  has "adapter of the view to null in onDestroyView", "Shop"; not "mObservers", "static"
static app.Keeper.APK > android.app.LoadedApk.mServices > android.util.ArrayMap.mArray
    > java.lang.Object[] > app.Main$conn$1.this$0 > activity
  has "unbindService", "Main$conn$1"; not "static", "receiver", "null"
static app.Keeper.APK > android.app.LoadedApk.mReceivers > android.util.ArrayMap.mArray
    > java.lang.Object[] > app.Net.page > activity
  has "unregisterReceiver", "Net"; not "lear ", "map"
jni > android.database.ContentObserver$Transport.mContentObserver > app.Files.page > activity
  has "unregisterContentObserver", "Files"; not "lear "
static app.Keeper.SENSORS > android.hardware.SystemSensorManager.mSensorListeners > list
    > app.Main$1.this$0 > activity
  has "unregisterListener", "onPause"; not "static"
static app.Keeper.PLACES > android.location.LocationManager.mListeners > list > app.Route.page
    > activity
  has "removeUpdates", "Route"; not "lear "
static android.net.ConnectivityManager.sCallbacks > list > app.Net.page > activity
  has "unregisterNetworkCallback", "Net"; not "sCallbacks", "lear "
static app.Keeper.APP > app.App:android.app.Application.mActivityLifecycleCallbacks > list
    > app.Screens.page > activity
  has "unregisterActivityLifecycleCallbacks", "Screens"; not "lear "
static app.Keeper.ANIMATOR
    > android.animation.ValueAnimator:android.animation.Animator.mUpdateListeners > list
    > app.Main$1.this$0 > activity
  has "cancel()", "animator"; not "static", "null"
threadlocal android.animation.AnimationHandler.sAnimatorHandler
    > android.animation.AnimationHandler.mAnimationCallbacks > list
    > app.Spin:android.animation.ValueAnimator.mUpdateListeners > list > app.Main$1.this$0
    > activity
  has "cancel() on the animator"; not "static", "remove()"
static app.Keeper.VIEWS > android.view.ViewTreeObserver.mOnPreDrawListeners > list
    > app.Main$1.this$0 > activity
  has "viewTreeObserver"; not "static"
static android.view.WindowManagerGlobal.sDefaultWindowManager
    > android.view.WindowManagerGlobal.mViews > list > view
  has "Dismiss the dialog", "before its activity ends"; not "Unregister", "WindowManagerGlobal"
static app.Keeper.SHEET > app.ShareSheet:android.app.Dialog.mContext > activity
  has "Keeper.SHEET", "the dialog is dismissed (setOnDismissListener)"; not "applicationContext", "onDestroy"
static app.Keeper.PAGE > app.Page.views$delegate > app.Bound.views > view
  has "delegate for Page.views"; not "lear ", "null"
static app.Keeper.MODEL > app.Model:androidx.lifecycle.ViewModel.page > activity
  has "Do not keep the Main in Model"; not "static"
jni > app.Stub:android.os.Binder.this$0 > activity
  has "Binder Stub", "static class with a WeakReference"; not "JNI"
thread > app.Loader:java.lang.Thread.page > activity
  has "end or cancel that work", "Loader"; not "lear "
static app.Keeper.SHARE > android.lib.ShareManager.mContext > activity
  has "Get the ShareManager from applicationContext"; not "lear ", "null"
threadlocal kotlinx.Undispatched.state > kotlin.Pair.first
    > kotlin.coroutines.CombinedContext.element > view
  has "not yours", "UndispatchedCoroutine.threadStateToRecover"; not "Pair", "lear ", "elements"
threadlocal kotlinx.Undispatched.state > kotlin.Pair.first > view
  has "ThreadLocal Undispatched.state", "remove()"; not "Pair", "lear "
static org.greenrobot.eventbus.EventBus.defaultInstance
    > org.greenrobot.eventbus.EventBus.typesBySubscriber > list
    > org.greenrobot.eventbus.Subscription.subscriber > activity
  has "unregister on the event bus for Main"; not "null", "lear ", "defaultInstance"
static app.DaggerApp.component > dagger.internal.DoubleCheck.instance > activity
  has "DaggerApp.component"; not "DoubleCheck.instance"
static com.bumptech.glide.Glide.glide > com.bumptech.glide.manager.TargetTracker.targets
    > list > view
  has "Glide.with(fragment)", "clear(target)"; not "null"
static app.Keeper.VIEW > androidx.compose.ui.platform.AbstractComposeView.composition
    > androidx.compose.ui.platform.WrappedComposition.owner > view
  has "disposeComposition()", "ViewCompositionStrategy"; not "null"
static androidx.compose.runtime.Recomposer._runningRecomposers
    > kotlinx.coroutines.flow.Held.value > androidx.compose.runtime.Recomposer.known > list
    > activity
  has "Recomposer", "dispose()"; not "null", "lear "
static androidx.localbroadcastmanager.content.LocalBroadcastManager.mInstance
    > androidx.localbroadcastmanager.content.LocalBroadcastManager.mReceivers > list
    > app.Net.page > activity
  has "LocalBroadcastManager.unregisterReceiver for Net"; not "null"
static android.hardware.display.DisplayManagerGlobal.sInstance
    > android.hardware.display.DisplayManagerGlobal.mDisplayListeners > list
    > android.hardware.display.DisplayManagerGlobal$DisplayListenerDelegate.mListener
    > app.Screen.page > activity
  has "unregisterDisplayListener for Screen"; not "null"
static app.Keeper.ACCESS
    > android.view.accessibility.AccessibilityManager.mTouchExplorationStateChangeListeners
    > list > app.Talk.page > activity
  has "AccessibilityManager that matches the add method, for Talk"; not "null"
static app.Keeper.AUDIO > android.media.AudioManager.mAudioFocusIdListenerMap > list
    > android.media.AudioManager$FocusRequestInfo.mRequest > app.Player.page > activity
  has "abandonAudioFocusRequest for Player"; not "null"
jni > android.telephony.TelephonyCallback.callback > app.Calls.page > activity
  has "unregisterTelephonyCallback for Calls"; not "null"
static app.Keeper.CAMERAS
    > android.hardware.camera2.CameraManager$CameraManagerGlobal.mCallbackMap > list
    > app.Shot.page > activity
  has "unregisterAvailabilityCallback for Shot"; not "null"
static app.Keeper.WEB > android.webkit.WebView.mProvider > app.Bridge.page > activity
  has "Remove the WebView from its parent", "destroy()"; not "null"
static app.Keeper.APP > app.App:android.app.Application.mCallbacksController
    > android.content.ComponentCallbacksController.mComponentCallbacks > list
    > app.Memory.page > activity
  has "unregisterComponentCallbacks for Memory"; not "null"
static app.Keeper.MOVE > android.view.ViewPropertyAnimator.mView > view
  has "animate().cancel()"; not "null"
static app.Keeper.FRAMES > android.view.Choreographer$CallbackRecord.action > app.Frames.page
    > activity
  has "removeFrameCallback for Frames"; not "null"
static app.Keeper.SCOPE > androidx.lifecycle.LifecycleCoroutineScopeImpl.coroutineContext
    > {LAMBDA}.this$0 > view
  has "viewLifecycleOwner.lifecycleScope", "Main.load"; not "null"
static app.Keeper.STATE
    > androidx.compose.runtime.snapshots.SnapshotStateObserver.observedScopeMaps > list
    > app.Scope.page > view
  has "stop() on your SnapshotStateObserver"; not "null"
static app.Keeper.EFFECT > androidx.compose.runtime.DisposableEffectImpl.onDispose
    > app.Leave.page > activity
  has "onDispose of a DisposableEffect", "Unregister Leave"; not "null"
static app.Keeper.LAUNCHED > androidx.compose.runtime.LaunchedEffectImpl.task > app.Tick.page
    > activity
  has "rememberUpdatedState"; not "null"
static app.Keeper.REMEMBERED > androidx.compose.runtime.SnapshotMutableStateImpl.next
    > activity
  has "Do not remember the Main"; not "lear "
static app.Keeper.IMAGES > coil3.request.ViewTargetRequestDelegate.target > view
  has "Dispose the Coil request"; not "null"
static app.Keeper.SAVED > androidx.savedstate.SavedStateRegistry.components > list
    > app.Saved.page > activity
  has "unregisterSavedStateProvider for Saved"; not "null"
static app.Keeper.WORK > androidx.work.impl.WorkerWrapper.worker > app.Sync.page > activity
  has "IDs as input data to Sync"; not "null"
static app.Keeper.PLAYER > androidx.media3.exoplayer.ExoPlayerImpl.listeners > list
    > app.Video.page > activity
  has "release() on the player"; not "null"
static app.Keeper.SOUND > android.media.MediaPlayer.mOnCompletionListener > app.Sound.page
    > activity
  has "release() on the player"; not "null"
static android.lib.Views.sViews > app.PageBinding.root > view
  has "the field with the PageBinding to null in onDestroyView"; not "static"
static android.lib.Graph.sGraph > dagger.internal.DoubleCheck.instance > activity
  has "in a narrower scope, such as ActivityScoped"; not "null"
static android.lib.Unknown.sInstance > android.lib.Unknown.mFocus > view
  has "not a field of the app"; not "lear ", "null", "static"
"#;

/// The cases of [`ADVICE`].
fn advice_cases() -> Vec<(String, Vec<&'static str>, Vec<&'static str>)> {
    let quoted = |text: &'static str| text.split('"').skip(1).step_by(2).collect();
    let mut cases = Vec::new();
    let mut path = String::new();
    for line in ADVICE.trim().lines() {
        let Some(parts) = line.strip_prefix("  has ") else {
            path = format!("{path} {}", line.trim());
            continue;
        };
        let (has, lacks) = parts.split_once("; not ").unwrap_or((parts, ""));
        let text = path.replace("{LAMBDA}", LAMBDA).replace("{pool}", POOL);
        let has: Vec<&str> = quoted(has);
        assert!(!text.is_empty() && !has.is_empty(), "{line}");
        cases.push((text.trim().to_owned(), has, quoted(lacks)));
        path.clear();
    }
    assert!(path.is_empty(), "{path} lacks its advice");
    cases
}

#[test]
fn advice_names_the_registration_that_holds_the_leak() {
    let mut wrong = Vec::new();
    let mut given = Vec::new();
    for (text, has, lacks) in advice_cases() {
        let (advice, certainty) = advice(&text);
        let lacking = has.iter().filter(|part| !advice.contains(**part));
        let having = lacks.iter().filter(|part| advice.contains(**part));
        let parts: Vec<_> = lacking.chain(having).collect();
        if !parts.is_empty() || certainty != Certainty::Certain {
            wrong.push(format!("{text}\n  {advice}\n  {certainty:?} {parts:?}"));
        }
        given.push(advice);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    // Each way of the table is that of a case; an idle pool has a test of its own.
    let lines = include_str!("../ways.txt").lines();
    let sentences =
        lines.filter_map(|line| line.split_once(" | ").filter(|_| !line.starts_with('#')));
    let without = sentences.filter(|(places, sentence)| {
        let parts = || sentence.split(['{', '}']).step_by(2);
        let is_it = |advice: &String| parts().all(|part| advice.contains(part));
        !places.starts_with('?') && !given.iter().any(is_it)
    });
    let without: Vec<&str> = without.map(|(places, _)| places).collect();
    assert!(without.is_empty(), "{without:?} {given:#?}");
}

#[test]
fn receiver_of_a_leaking_context_is_named() {
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let receiver = holder(&mut heap, "app.BatteryReceiver.held", activity);
    heap.set(receiver, "held", Is::Null);
    let map = |heap: &mut Heap, key, value| {
        let slots = heap.array("java.lang.Object[]", &[Some(key), Some(value)]);
        heap.new_object("android.util.ArrayMap", &[("mArray", Is::Ref(slots))])
    };
    let value = heap.new_object("app.Holder", &[]);
    let receivers = map(&mut heap, receiver, value);
    let contexts = map(&mut heap, activity, receivers);
    let apk = holder(&mut heap, "android.app.LoadedApk.mReceivers", contexts);
    keep(&mut heap, "APK", apk);
    let advice = &find(&heap.graph()).groups[0].advice;
    assert!(
        advice.contains("unregisterReceiver for BatteryReceiver"),
        "{advice}"
    );
}

#[test]
fn window_is_one_leak_with_its_root() {
    let mut heap = android();
    let activity = destroyed(&mut heap);
    let context = ("mContext", Is::Ref(activity));
    let decor = heap.new_object("com.android.internal.policy.DecorView", &[context]);
    let root = [context, ("mView", Is::Ref(decor))];
    let root = heap.new_object("android.view.ViewRootImpl", &root);
    let windows = "android.view.WindowManagerGlobal";
    heap.class(
        windows,
        "java.lang.Object",
        &[("mViews", Is::Null), ("mRoots", Is::Null)],
    );
    let (views, roots) = (heap.list(&[decor], 0), heap.list(&[root], 0));
    let lists = [("mViews", Is::Ref(views)), ("mRoots", Is::Ref(roots))];
    let global = heap.new_object(windows, &lists);
    heap.fixed(windows, "sDefaultWindowManager", Is::Ref(global));
    let leaks = find(&heap.graph());
    assert_eq!(leaks.groups.len(), 1, "{:?}", leaks.groups);
    assert!(leaks.groups[0].advice.starts_with("Dismiss the dialog"));
    let nested = &leaks.groups[0].leaks[0].nested;
    assert_eq!(nested.len(), 2, "{nested:?}");
}

#[test]
fn local_variable_of_an_idle_pool_thread_is_only_a_possible_leak() {
    for (state, expected) in [(0, Certainty::Possible), (1, Certainty::Certain)] {
        let mut heap = android();
        heap.field("java.lang.Thread", "target");
        let queue = "java.util.concurrent.locks.AbstractQueuedSynchronizer";
        heap.class(queue, "java.lang.Object", &[("state", Is::Int(0))]);
        let worker = "java.util.concurrent.ThreadPoolExecutor$Worker";
        heap.class(worker, queue, &[]);
        let worker = heap.new_object(worker, &[("state", Is::Int(state))]);
        let thread = heap.thread("pool-1-thread-1", 4);
        heap.set(thread, "target", Is::Ref(worker));
        let activity = destroyed(&mut heap);
        heap.thread_root(activity, RootKind::JavaFrame, 4);
        let leaks = find(&heap.graph());
        assert_eq!(leaks.groups[0].certainty, expected);
        let is_idle = leaks.groups[0].advice.contains("is idle");
        assert_eq!(is_idle, state == 0, "{}", leaks.groups[0].advice);
    }
}

#[test]
fn places_of_ways_are_well_formed() {
    let table = include_str!("../ways.txt");
    let names = [
        "it", "own", "function", "owner", "field", "thread", "local", "when",
    ];
    for line in table
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        let (places, sentence) = line.split_once(" | ").expect("places and a sentence");
        for place in places.trim_start_matches(['~', '?', ' ']).split(' ') {
            assert!(
                place.contains('.') && place.matches('*').count() <= 2,
                "{place}"
            );
        }
        for part in sentence.split('{').skip(1) {
            let name = part.split('}').next().unwrap_or_default();
            assert!(names.contains(&name), "{line}");
        }
        assert!(sentence.ends_with('.'), "{line}");
    }
}
