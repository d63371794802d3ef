//! Common objects of every process with a Java heap: class loader, threads, main looper,
//! ActivityThread, resources, contexts. [`super::screens`] owns the objects on the screen.

use super::builder::{Builder, NONE};
use super::heap::{Obj, RootKind, Space, Value};
use super::inputs::{Inputs, Role};
use super::structures::{Bitmap, array_map, list};

/// Heap of a process under construction.
pub(super) struct Skeleton<'a> {
    pub(super) b: Builder,
    pub(super) inputs: &'a Inputs,
    pub(super) bitmaps: Vec<Bitmap>,
    pub(super) newest_cleaner: Option<Obj>,
    pub(super) newest_finalizer: Option<Obj>,
    threads: u32,
    thread_group: Obj,
    pub(super) loader: Obj,
    pub(super) main_thread: Obj,
    pub(super) main_looper: Obj,
    pub(super) main_queue: Obj,
    pub(super) main_locals: Vec<(Obj, Obj)>,
    pub(super) activity_thread: Obj,
    pub(super) loaded_apk: Obj,
    pub(super) resources: Obj,
    /// Records of ActivityThread.mActivities: token and record.
    pub(super) activities: Vec<(Obj, Obj)>,
    /// Running services: token and service.
    pub(super) services: Vec<(Obj, Obj)>,
    /// Decor, ViewRootImpl and layout parameters of each window on the screen.
    pub(super) windows: Vec<[Obj; 3]>,
}

impl<'a> Skeleton<'a> {
    /// Creates everything except the application's own objects.
    pub(super) fn new(inputs: &'a Inputs) -> Skeleton<'a> {
        let mut b = Builder::new(inputs.obfuscated, &inputs.apk);
        let group = b.within(Space::Zygote, |b| b.object("java.lang.ThreadGroup", NONE));
        b.set_static("java.lang.ThreadGroup.mainThreadGroup", group);
        let boot = b.within(Space::BootImage, |b| {
            b.object("java.lang.BootClassLoader", NONE)
        });
        b.set_static("java.lang.BootClassLoader.instance", boot);
        let loader = b.object("dalvik.system.PathClassLoader parent", &[boot]);
        b.root(loader, RootKind::RootJniGlobal, 0);
        let activity_thread = b.object("android.app.ActivityThread", NONE);
        let nothing = group;
        let mut s = Skeleton {
            b,
            inputs,
            bitmaps: Vec::new(),
            newest_cleaner: None,
            newest_finalizer: None,
            threads: 0,
            thread_group: group,
            loader,
            main_thread: nothing,
            main_looper: nothing,
            main_queue: nothing,
            main_locals: Vec::new(),
            activity_thread,
            loaded_apk: nothing,
            resources: nothing,
            activities: Vec::new(),
            services: Vec::new(),
            windows: Vec::new(),
        };
        s.class_path();
        s.main_thread = s.thread("main", false);
        let main = s.main_thread;
        s.looper();
        s.daemons();
        s.package();
        s.build();
        s.b.root(main, RootKind::RootJavaFrame, 1);
        s
    }

    fn class_path(&mut self) {
        let b = &mut self.b;
        let path = b.string(&self.inputs.apk);
        let element = b.object("dalvik.system.DexPathList$Element path", &[path]);
        let elements = b.array("dalvik.system.DexPathList$Element[]", vec![Some(element)]);
        let list = b.object(
            "dalvik.system.DexPathList definingContext dexElements",
            &[self.loader, elements],
        );
        b.set(self.loader, "pathList", list);
        b.loader = Some(self.loader);
    }

    /// Adds a running thread.
    pub(super) fn thread(&mut self, name: &str, daemon: bool) -> Obj {
        self.threads += 1;
        let name = self.b.string(name);
        let lock = self.b.object("java.lang.Object", NONE);
        let number = i64::from(self.threads);
        let thread = self.b.object("java.lang.Thread name lock group contextClassLoader nativePeer tid priority=5 daemon started=true", &[Value::from(name), lock.into(), self.thread_group.into(), self.loader.into(), (0x7a00_0000_0000 + number * 0x1_0000).into(), number.into(), daemon.into()]);
        self.b
            .root(thread, RootKind::RootThreadObject, self.threads);
        thread
    }

    /// Returns ART's number of the newest thread.
    pub(super) fn newest_thread(&self) -> u32 {
        self.threads
    }

    /// Adds a looper with an empty queue to a thread.
    fn looper(&mut self) {
        let b = &mut self.b;
        let idle = b.object("java.util.ArrayList", NONE);
        let queue = b.object(
            "android.os.MessageQueue mIdleHandlers mPtr=0x7a0020000000 mBlocked=true",
            &[idle],
        );
        let looper = b.object(
            "android.os.Looper mQueue mThread mInLoop=true",
            &[queue, self.main_thread],
        );
        b.set_static("android.os.Looper.sMainLooper", looper);
        let local = b.object("java.lang.ThreadLocal threadLocalHashCode=0x61c88647", NONE);
        b.set_static("android.os.Looper.sThreadLocal", local);
        self.main_locals.push((local, looper));
        self.main_looper = looper;
        self.main_queue = queue;
    }

    fn daemons(&mut self) {
        for place in [
            "java.lang.Daemons$HeapTaskDaemon.INSTANCE",
            "java.lang.Daemons$ReferenceQueueDaemon.INSTANCE",
            "java.lang.Daemons$FinalizerDaemon.INSTANCE",
            "java.lang.Daemons$FinalizerWatchdogDaemon.INSTANCE",
        ] {
            let class = place.trim_end_matches(".INSTANCE");
            let name = class.trim_start_matches("java.lang.Daemons$");
            let thread = self.thread(name, true);
            let text = self.b.string(name);
            let daemon = self.b.instance(class, "thread name", &[thread, text]);
            self.b.set(thread, "target", daemon);
            self.b.set_static(place, daemon);
        }
        let queue = |b: &mut Builder| b.object("java.lang.ref.ReferenceQueue", NONE);
        let finalized = self.b.within(Space::Zygote, queue);
        self.b
            .set_static("java.lang.ref.FinalizerReference.queue", finalized);
        let queue = self.b.within(Space::Zygote, queue);
        self.b.set_static("sun.misc.Cleaner.dummyQueue", queue);
        let lock = self
            .b
            .within(Space::Zygote, |b| b.object("java.lang.Object", NONE));
        self.b.set(queue, "lock", lock);
        // The daemon waits on it.
        self.b.root(lock, RootKind::RootMonitorUsed, 0);
        for n in 1..=3 {
            let binder = self.thread(&format!("binder:{}_{n}", self.inputs.pid), false);
            let lock = self.b.peek(binder, "lock").object();
            if let Some(lock) = lock.filter(|_| n == 1) {
                self.b.root(lock, RootKind::RootJniMonitor, self.threads);
                self.b.root(binder, RootKind::RootNativeStack, self.threads);
            }
        }
    }

    fn package(&mut self) {
        let inputs = self.inputs;
        let b = &mut self.b;
        let data = format!("/data/user/0/{}", inputs.package);
        let texts = [&inputs.package, &inputs.process, &inputs.apk, &data];
        let [package, process, apk, data] = texts.map(|text| Value::Ref(b.string(text)));
        let info = b.object(
            "android.content.pm.ApplicationInfo packageName processName sourceDir dataDir uid \
             targetSdkVersion=33 longVersionCode flags=0x3800be46",
            &[
                package,
                process,
                apk,
                data,
                inputs.uid.into(),
                (inputs.version as i64).into(),
            ],
        );
        let name = b.string(&inputs.package);
        let receivers = array_map(b, &[]);
        let services = array_map(b, &[]);
        self.loaded_apk = b.object("android.app.LoadedApk mActivityThread mApplicationInfo mClassLoader mPackageName mReceivers mServices", &[self.activity_thread, info, self.loader, name, receivers, services]);
        let assets = b.within(Space::Zygote, |b| {
            b.object("android.content.res.AssetManager", NONE)
        });
        b.set_static("android.content.res.AssetManager.sSystem", assets);
        let configuration = b.object("android.content.res.Configuration densityDpi=420 fontScale=1.0 orientation=1 screenWidthDp=411", NONE);
        let drawables = b.object("android.util.SparseArray", NONE);
        let implementation = b.object(
            "android.content.res.ResourcesImpl mAssets mConfiguration mDrawableCache",
            &[assets, configuration, drawables],
        );
        self.resources = b.object(
            "android.content.res.Resources mResourcesImpl mClassLoader",
            &[implementation, self.loader],
        );
    }

    /// Adds a ContextImpl whose outer context is `outer`.
    pub(super) fn context(&mut self, outer: Obj) -> Obj {
        let name = self.b.string(&self.inputs.package);
        self.b.object("android.app.ContextImpl mMainThread mOuterContext mPackageInfo mResources mClassLoader mOpPackageName", &[self.activity_thread, outer, self.loaded_apk, self.resources, self.loader, name])
    }

    /// Adds the Application object of a class.
    pub(super) fn application(&mut self, class: &'static str) -> Obj {
        let application = self.b.instance(class, "mLoadedApk", &[self.loaded_apk]);
        let context = self.context(application);
        self.b.set(application, "mBase", context);
        self.b.set(self.loaded_apk, "mApplication", application);
        let all = list(&mut self.b, &[application], 10);
        let fields = "mInitialApplication mAllApplications";
        self.b
            .fill(self.activity_thread, fields, &[application, all]);
        application
    }

    /// Posts a message that runs `callback` later to the main thread's queue.
    pub(super) fn post(&mut self, handler: Obj, callback: Obj, when: i64) {
        let next = self.b.peek(self.main_queue, "mMessages");
        let message = self.b.object(
            "android.os.Message callback target when next",
            &[callback.into(), handler.into(), when.into(), next],
        );
        self.b.set(self.main_queue, "mMessages", message);
    }

    /// Adds a handler on the main thread.
    pub(super) fn handler(&mut self, class: &'static str) -> Obj {
        self.b.instance(
            class,
            "mLooper mQueue",
            &[self.main_looper, self.main_queue],
        )
    }

    /// Sets the properties of the phone that apps see.
    fn build(&mut self) {
        for (place, text) in [
            ("android.os.Build.BRAND", "google"),
            ("android.os.Build.MANUFACTURER", "Google"),
            ("android.os.Build.MODEL", self.inputs.model),
            (
                "android.os.Build$VERSION.RELEASE",
                &self.inputs.android.to_string(),
            ),
        ] {
            let text = self.b.within(Space::Zygote, |b| b.string(text));
            self.b.set_static(place, text);
        }
        let sdk = self.inputs.sdk;
        self.b.set_static("android.os.Build$VERSION.SDK_INT", sdk);
    }

    /// Adds the objects created meanwhile to the lists of the framework.
    pub(super) fn complete(&mut self) {
        let handler = self.handler("android.app.ActivityThread$H");
        self.b.set(handler, "this$0", self.activity_thread);
        self.b
            .set_static("android.app.ActivityThread.sMainThreadHandler", handler);
        let instrumentation = self.b.object(
            "android.app.Instrumentation mThread",
            &[self.activity_thread],
        );
        let fields = "mH mInstrumentation mLooper";
        let values = [handler, instrumentation, self.main_looper];
        self.b.fill(self.activity_thread, fields, &values);
        for (field, entries) in [
            ("mActivities", self.activities.clone()),
            ("mServices", self.services.clone()),
        ] {
            let map = array_map(&mut self.b, &entries);
            self.b.set(self.activity_thread, field, map);
        }
        let binder = self.b.object(
            "android.app.ActivityThread$ApplicationThread this$0",
            &[self.activity_thread],
        );
        self.b.root(binder, RootKind::RootJniGlobal, 0);
        let system = self.inputs.role == Role::System;
        self.b.set(self.activity_thread, "mSystemThread", system);
        self.b.set_static(
            "android.app.ActivityThread.sCurrentActivityThread",
            self.activity_thread,
        );
        let windows = self.b.object("android.view.WindowManagerGlobal", NONE);
        for (i, field) in ["mViews", "mRoots", "mParams"].into_iter().enumerate() {
            let items: Vec<Obj> = self.windows.iter().map(|w| w[i]).collect();
            let items = list(&mut self.b, &items, 10);
            self.b.set(windows, field, items);
        }
        self.b.set_static(
            "android.view.WindowManagerGlobal.sDefaultWindowManager",
            windows,
        );
        let locals = self.main_locals.clone();
        self.thread_locals(self.main_thread, &locals);
        self.b
            .set_static("sun.misc.Cleaner.first", self.newest_cleaner);
        self.b.set_static(
            "java.lang.ref.FinalizerReference.head",
            self.newest_finalizer,
        );
    }
}
