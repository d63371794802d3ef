//! Common objects of every process with a Java heap: class loader, threads, main looper,
//! ActivityThread, resources, contexts. [`super::screens`] owns the objects on the screen.

use super::builder::Builder;
use super::heap::{Obj, RootKind, Space, Value};
use super::structures::{Bitmap, array_map, list};
use super::{Inputs, Role};

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
        let group = b.within(Space::Zygote, |b| b.object("java.lang.ThreadGroup", &[]));
        b.set_static("java.lang.ThreadGroup", "mainThreadGroup", group);
        let boot = b.within(Space::Image, |b| b.object("java.lang.BootClassLoader", &[]));
        b.set_static("java.lang.BootClassLoader", "instance", boot);
        let loader = b.object("dalvik.system.PathClassLoader", &[("parent", boot.into())]);
        b.root(loader, RootKind::JniGlobal, 0);
        let activity_thread = b.object("android.app.ActivityThread", &[]);
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
        s.b.root(main, RootKind::JavaFrame, 1);
        s
    }

    fn class_path(&mut self) {
        let b = &mut self.b;
        let path = b.string(&self.inputs.apk);
        let element = b.object(
            "dalvik.system.DexPathList$Element",
            &[("path", path.into())],
        );
        let elements = b.array("dalvik.system.DexPathList$Element[]", vec![Some(element)]);
        let list = b.object(
            "dalvik.system.DexPathList",
            &[
                ("definingContext", self.loader.into()),
                ("dexElements", elements.into()),
            ],
        );
        b.set(self.loader, "pathList", list);
        b.set_loader(self.loader);
    }

    /// Adds a running thread.
    pub(super) fn thread(&mut self, name: &str, daemon: bool) -> Obj {
        self.threads += 1;
        let name = self.b.string(name);
        let lock = self.b.object("java.lang.Object", &[]);
        let thread = self.b.object(
            "java.lang.Thread",
            &[
                ("name", name.into()),
                ("lock", lock.into()),
                ("group", self.thread_group.into()),
                ("contextClassLoader", self.loader.into()),
                (
                    "nativePeer",
                    Value::Long(0x7a00_0000_0000 + i64::from(self.threads) * 0x1_0000),
                ),
                ("tid", Value::Long(i64::from(self.threads))),
                ("priority", 5.into()),
                ("daemon", daemon.into()),
                ("started", true.into()),
            ],
        );
        self.b.root(thread, RootKind::ThreadObject, self.threads);
        thread
    }

    /// Returns ART's number of the newest thread.
    pub(super) fn newest_thread(&self) -> u32 {
        self.threads
    }

    /// Adds a looper with an empty queue to a thread.
    fn looper(&mut self) {
        let b = &mut self.b;
        let idle = b.object("java.util.ArrayList", &[]);
        let queue = b.object(
            "android.os.MessageQueue",
            &[
                ("mIdleHandlers", idle.into()),
                ("mPtr", Value::Long(0x7a00_2000_0000)),
                ("mBlocked", true.into()),
            ],
        );
        let looper = b.object(
            "android.os.Looper",
            &[
                ("mQueue", queue.into()),
                ("mThread", self.main_thread.into()),
                ("mInLoop", true.into()),
            ],
        );
        b.set_static("android.os.Looper", "sMainLooper", looper);
        let local = b.object(
            "java.lang.ThreadLocal",
            &[("threadLocalHashCode", 0x61c8_8647.into())],
        );
        b.set_static("android.os.Looper", "sThreadLocal", local);
        self.main_locals.push((local, looper));
        self.main_looper = looper;
        self.main_queue = queue;
    }

    fn daemons(&mut self) {
        for (class, name) in [
            ("java.lang.Daemons$HeapTaskDaemon", "HeapTaskDaemon"),
            (
                "java.lang.Daemons$ReferenceQueueDaemon",
                "ReferenceQueueDaemon",
            ),
            ("java.lang.Daemons$FinalizerDaemon", "FinalizerDaemon"),
            (
                "java.lang.Daemons$FinalizerWatchdogDaemon",
                "FinalizerWatchdogDaemon",
            ),
        ] {
            let thread = self.thread(name, true);
            let text = self.b.string(name);
            let daemon = self
                .b
                .object(class, &[("thread", thread.into()), ("name", text.into())]);
            self.b.set(thread, "target", daemon);
            self.b.set_static(class, "INSTANCE", daemon);
        }
        let queue = self.b.within(Space::Zygote, |b| {
            b.object("java.lang.ref.ReferenceQueue", &[])
        });
        self.b
            .set_static("java.lang.ref.FinalizerReference", "queue", queue);
        let queue = self.b.within(Space::Zygote, |b| {
            b.object("java.lang.ref.ReferenceQueue", &[])
        });
        self.b.set_static("sun.misc.Cleaner", "dummyQueue", queue);
        let lock = self
            .b
            .within(Space::Zygote, |b| b.object("java.lang.Object", &[]));
        self.b.set(queue, "lock", lock);
        // The daemon waits on it.
        self.b.root(lock, RootKind::MonitorUsed, 0);
        for n in 1..=3 {
            let binder = self.thread(&format!("binder:{}_{n}", self.inputs.pid), false);
            let lock = self.b.peek(binder, "lock").object();
            if let Some(lock) = lock.filter(|_| n == 1) {
                self.b.root(lock, RootKind::JniMonitor, self.threads);
                self.b.root(binder, RootKind::NativeStack, self.threads);
            }
        }
    }

    fn package(&mut self) {
        let inputs = self.inputs;
        let b = &mut self.b;
        let text = |b: &mut Builder, t: &str| Value::Ref(b.string(t));
        let values = [
            ("packageName", text(b, &inputs.package)),
            ("processName", text(b, &inputs.process)),
            ("sourceDir", text(b, &inputs.apk)),
            (
                "dataDir",
                text(b, &format!("/data/user/0/{}", inputs.package)),
            ),
            ("uid", Value::Int(inputs.uid as i32)),
            ("targetSdkVersion", 33.into()),
            ("longVersionCode", Value::Long(inputs.version as i64)),
            ("flags", 0x3800_be46.into()),
        ];
        let info = b.object("android.content.pm.ApplicationInfo", &values);
        let name = b.string(&inputs.package);
        let receivers = array_map(b, &[]);
        let services = array_map(b, &[]);
        self.loaded_apk = b.object(
            "android.app.LoadedApk",
            &[
                ("mActivityThread", self.activity_thread.into()),
                ("mApplicationInfo", info.into()),
                ("mClassLoader", self.loader.into()),
                ("mPackageName", name.into()),
                ("mReceivers", receivers.into()),
                ("mServices", services.into()),
            ],
        );
        let assets = b.within(Space::Zygote, |b| {
            b.object("android.content.res.AssetManager", &[])
        });
        b.set_static("android.content.res.AssetManager", "sSystem", assets);
        let configuration = b.object(
            "android.content.res.Configuration",
            &[
                ("densityDpi", 420.into()),
                ("fontScale", Value::Float(1.0)),
                ("orientation", 1.into()),
                ("screenWidthDp", 411.into()),
            ],
        );
        let drawables = b.object("android.util.SparseArray", &[]);
        let implementation = b.object(
            "android.content.res.ResourcesImpl",
            &[
                ("mAssets", assets.into()),
                ("mConfiguration", configuration.into()),
                ("mDrawableCache", drawables.into()),
            ],
        );
        self.resources = b.object(
            "android.content.res.Resources",
            &[
                ("mResourcesImpl", implementation.into()),
                ("mClassLoader", self.loader.into()),
            ],
        );
    }

    /// Adds a ContextImpl whose outer context is `outer`.
    pub(super) fn context(&mut self, outer: Obj) -> Obj {
        let name = self.b.string(&self.inputs.package);
        self.b.object(
            "android.app.ContextImpl",
            &[
                ("mMainThread", self.activity_thread.into()),
                ("mOuterContext", outer.into()),
                ("mPackageInfo", self.loaded_apk.into()),
                ("mResources", self.resources.into()),
                ("mClassLoader", self.loader.into()),
                ("mOpPackageName", name.into()),
            ],
        )
    }

    /// Adds the Application object of a class.
    pub(super) fn application(&mut self, class: &'static str) -> Obj {
        let application = self
            .b
            .object(class, &[("mLoadedApk", self.loaded_apk.into())]);
        let context = self.context(application);
        self.b.set(application, "mBase", context);
        self.b.set(self.loaded_apk, "mApplication", application);
        self.b
            .set(self.activity_thread, "mInitialApplication", application);
        let all = list(&mut self.b, &[application], 10);
        self.b.set(self.activity_thread, "mAllApplications", all);
        application
    }

    /// Posts a message that runs `callback` later to the main thread's queue.
    pub(super) fn post(&mut self, handler: Obj, callback: Obj, when: i64) {
        let next = self.b.peek(self.main_queue, "mMessages");
        let message = self.b.object(
            "android.os.Message",
            &[
                ("callback", callback.into()),
                ("target", handler.into()),
                ("when", when.into()),
                ("next", next),
            ],
        );
        self.b.set(self.main_queue, "mMessages", message);
    }

    /// Adds a handler on the main thread.
    pub(super) fn handler(&mut self, class: &'static str) -> Obj {
        self.b.object(
            class,
            &[
                ("mLooper", self.main_looper.into()),
                ("mQueue", self.main_queue.into()),
            ],
        )
    }

    /// Sets the properties of the phone that apps see.
    fn build(&mut self) {
        let (brand, manufacturer) = ("google", "Google");
        for (field, text) in [
            ("BRAND", brand),
            ("MANUFACTURER", manufacturer),
            ("MODEL", self.inputs.model),
        ] {
            let text = self.b.within(Space::Zygote, |b| b.string(text));
            self.b.set_static("android.os.Build", field, text);
        }
        let release = self.inputs.android.to_string();
        let release = self.b.within(Space::Zygote, |b| b.string(&release));
        self.b
            .set_static("android.os.Build$VERSION", "RELEASE", release);
        let sdk = self.inputs.sdk as i32;
        self.b
            .set_static("android.os.Build$VERSION", "SDK_INT", sdk);
    }

    /// Adds the objects created meanwhile to the lists of the framework.
    pub(super) fn complete(&mut self) {
        let handler = self.handler("android.app.ActivityThread$H");
        self.b.set(handler, "this$0", self.activity_thread);
        self.b.set(self.activity_thread, "mH", handler);
        self.b
            .set_static("android.app.ActivityThread", "sMainThreadHandler", handler);
        let instrumentation = self.b.object(
            "android.app.Instrumentation",
            &[("mThread", self.activity_thread.into())],
        );
        self.b
            .set(self.activity_thread, "mInstrumentation", instrumentation);
        self.b
            .set(self.activity_thread, "mLooper", self.main_looper);
        for (field, entries) in [
            ("mActivities", self.activities.clone()),
            ("mServices", self.services.clone()),
        ] {
            let map = array_map(&mut self.b, &entries);
            self.b.set(self.activity_thread, field, map);
        }
        let binder = self.b.object(
            "android.app.ActivityThread$ApplicationThread",
            &[("this$0", self.activity_thread.into())],
        );
        self.b.root(binder, RootKind::JniGlobal, 0);
        let system = self.inputs.role == Role::System;
        self.b.set(self.activity_thread, "mSystemThread", system);
        self.b.set_static(
            "android.app.ActivityThread",
            "sCurrentActivityThread",
            self.activity_thread,
        );
        let windows = self.b.object("android.view.WindowManagerGlobal", &[]);
        for (i, field) in ["mViews", "mRoots", "mParams"].into_iter().enumerate() {
            let items: Vec<Obj> = self.windows.iter().map(|w| w[i]).collect();
            let items = list(&mut self.b, &items, 10);
            self.b.set(windows, field, items);
        }
        self.b.set_static(
            "android.view.WindowManagerGlobal",
            "sDefaultWindowManager",
            windows,
        );
        let locals = self.main_locals.clone();
        self.thread_locals(self.main_thread, &locals);
        self.b
            .set_static("sun.misc.Cleaner", "first", self.newest_cleaner);
        self.b.set_static(
            "java.lang.ref.FinalizerReference",
            "head",
            self.newest_finalizer,
        );
    }
}
