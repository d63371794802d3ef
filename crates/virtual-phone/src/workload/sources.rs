//! Activity of the synthetic apps and daemons: the callsites that allocate, with their stacks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::code::Builder;
use super::{FrameDef, HeapDef, Life, Phase, Site, mix};

impl Builder {
    /// Returns the heaps of an ordinary app: a leak, a cache, churn, a bitmap pool, a database,
    /// startup.
    pub(crate) fn app(&mut self) -> Vec<HeapDef> {
        let (kb, always) = (1024, Phase::Always);
        let sites = vec![
            self.site(
                "leak",
                &[
                    MAIN,
                    RESUME,
                    REFRESH,
                    &[
                        "libexample Java_com_example_app_telemetry_Telemetry_subscribe",
                        "libexample example::telemetry::EventHistory::Append",
                    ],
                    NEW,
                ],
                120.0,
                (8 * kb, 16 * kb),
                Life::Forever,
                always,
            ),
            self.site(
                "small leak",
                &[
                    MAIN,
                    RESUME,
                    REFRESH,
                    &[
                        "libexample Java_com_example_app_telemetry_Telemetry_subscribe",
                        "libexample example::telemetry::Listener::Create",
                    ],
                    NEW,
                ],
                90.0,
                (48, 96),
                Life::Forever,
                always,
            ),
            self.site(
                "cache",
                &[
                    WORKER,
                    &[
                        "libexample example::feed::FeedLoader::Fetch",
                        "libexample example::feed::FeedCache::Put",
                    ],
                    NEW,
                ],
                60.0,
                (2 * kb, 6 * kb),
                Life::Millis(3_000, 4_000),
                always,
            ),
            self.site(
                "churn",
                &[
                    WORKER,
                    &[
                        "libexample example::feed::FeedLoader::Parse",
                        "libjson json::Parse",
                        "libjson json::Parser::ParseValue",
                        "libjson json::Parser::ParseObject",
                    ],
                    NEW,
                ],
                2_400.0,
                (16, 400),
                Life::Millis(0, 30),
                always,
            ),
            self.site(
                "churn on the main thread",
                &[
                    MAIN,
                    DRAW,
                    &[
                        "libhwui android::uirenderer::renderthread::RenderThread::threadLoop",
                        "libhwui SkArena::allocBytes",
                    ],
                    MALLOC,
                ],
                900.0,
                (32, 2_048),
                Life::Millis(0, 20),
                always,
            ),
            self.site(
                "bitmap pool",
                &[
                    MAIN,
                    DRAW,
                    &[
                        "libandroid_runtime android::bitmap::Bitmap_creator",
                        "libhwui android::Bitmap::allocateHeapBitmap",
                    ],
                    CALLOC,
                ],
                8.0,
                (96 * kb, 192 * kb),
                Life::Millis(600, 900),
                Phase::Burst {
                    period: 2_000,
                    on: 1_500,
                },
            ),
            self.site(
                "video frame",
                &[
                    WORKER,
                    &[
                        "libengine engine::Tick",
                        "libengine engine::VideoSource::NextFrame",
                    ],
                    MALLOC,
                ],
                0.4,
                (1536 * kb, 1536 * kb),
                Life::Millis(800, 800),
                always,
            ),
            self.site(
                "database",
                &[
                    MAIN,
                    RESUME,
                    &[
                        "boot android.database.sqlite.SQLiteConnection.executeForCursorWindow",
                        "libandroid_runtime android::nativeExecuteForCursorWindow",
                        "libsqlite sqlite3_step",
                        "libsqlite sqlite3VdbeExec",
                        "libsqlite sqlite3MemMalloc",
                    ],
                    MALLOC,
                ],
                180.0,
                (64, 4 * kb),
                Life::Millis(50, 400),
                always,
            ),
            self.site(
                "interpreted code",
                &[
                    MAIN,
                    &[
                        "vdex com.example.app.ui.SettingsFragment.onCreateView",
                        "libart nterp_helper",
                        "boot android.view.LayoutInflater.inflate",
                        "libandroid_runtime android::NativeOpenXmlAsset",
                    ],
                    NEW,
                ],
                12.0,
                (128, 2 * kb),
                Life::Millis(1_000, 2_000),
                always,
            ),
            self.site(
                "compiled just in time",
                &[
                    MAIN,
                    &[
                        "jit com.example.app.feed.FeedAdapter.onBindViewHolder",
                        "libart art_quick_generic_jni_trampoline",
                        "libexample Java_com_example_app_feed_Native_bind",
                    ],
                    NEW,
                ],
                40.0,
                (256, 1_200),
                Life::Millis(100, 300),
                always,
            ),
            self.site(
                "unwinding failed",
                &[
                    &[
                        "none ERROR MEMORY_INVALID",
                        "libengine engine::VideoSource::NextFrame",
                    ],
                    MALLOC,
                ],
                3.0,
                (kb, 4 * kb),
                Life::Millis(500, 700),
                always,
            ),
            self.site(
                "startup",
                &[
                    MAIN,
                    CREATE,
                    &[
                        "libexample JNI_OnLoad",
                        "libexample example::Config::LoadDefaults",
                    ],
                    NEW,
                ],
                2_500.0,
                (64, 1_500),
                Life::Forever,
                Phase::First(800),
            ),
            self.site(
                "startup resources",
                &[
                    MAIN,
                    CREATE,
                    &[
                        "boot android.content.res.ResourcesImpl.<init>",
                        "libandroidfw android::AssetManager2::SetConfiguration",
                    ],
                    MALLOC,
                ],
                300.0,
                (kb, 8 * kb),
                Life::Forever,
                Phase::First(800),
            ),
        ];
        let art = vec![
            self.site(
                "strings",
                &[
                    JAVA_MAIN,
                    &[
                        "odex com.example.app.feed.FeedAdapter.onBindViewHolder",
                        "boot java.lang.StringBuilder.toString",
                        "boot java.lang.StringFactory.newStringFromBytes",
                    ],
                ],
                1_500.0,
                (24, 160),
                Life::Millis(0, 200),
                always,
            ),
            self.site(
                "views",
                &[
                    JAVA_MAIN,
                    &[
                        "odex com.example.app.ui.FeedActivity.onResume",
                        "boot android.view.LayoutInflater.createView",
                        "boot java.lang.reflect.Constructor.newInstance0",
                    ],
                ],
                120.0,
                (120, 900),
                Life::Millis(500, 4_000),
                always,
            ),
            self.site(
                "boxed numbers",
                &[
                    JAVA_MAIN,
                    &[
                        "odex com.example.app.stats.Counter.add",
                        "boot java.lang.Long.valueOf",
                    ],
                ],
                2_000.0,
                (16, 16),
                Life::Millis(0, 100),
                always,
            ),
            self.site(
                "byte arrays",
                &[JAVA_MAIN, &["odex com.example.app.net.Http.read"]],
                30.0,
                (8 * kb, 32 * kb),
                Life::Millis(10, 100),
                always,
            ),
        ];
        let arena = vec![self.site(
            "arena block",
            &[
                WORKER,
                &[
                    "libengine engine::Tick",
                    "libengine engine::Scene::Grow",
                    "libexample example::Arena::NewBlock",
                ],
            ],
            10.0,
            (64 * kb, 64 * kb),
            Life::Millis(900, 1_100),
            always,
        )];
        let heap = |name, sites| HeapDef {
            name,
            sites,
            in_turn: None,
        };
        vec![
            heap("libc.malloc", sites),
            heap("com.android.art", art),
            heap("com.example.arena", arena),
        ]
    }

    /// Returns the sites whose allocations outside the Java heap live as long as an activity: the
    /// pixels of its header, the render data of its views.
    pub(crate) fn activity(&mut self) -> Vec<Site> {
        let inflate = &["boot android.view.LayoutInflater.inflate"];
        vec![
            self.site(
                "header of an activity",
                &[
                    MAIN,
                    RESUME,
                    inflate,
                    &[
                        "libandroid_runtime android::bitmap::Bitmap_creator",
                        "libhwui android::Bitmap::allocateHeapBitmap",
                    ],
                    CALLOC,
                ],
                0.0,
                (192 << 10, 192 << 10),
                Life::Forever,
                Phase::Activity(1),
            ),
            self.site(
                "views of an activity",
                &[
                    MAIN,
                    RESUME,
                    inflate,
                    &["libandroid_runtime android::NativeOpenXmlAsset"],
                    NEW,
                ],
                0.0,
                (1_504, 1_504),
                Life::Forever,
                Phase::Activity(40),
            ),
        ]
    }

    /// Returns the heaps of an app's `:service`.
    pub(crate) fn service(&mut self) -> Vec<HeapDef> {
        let sites = vec![
            self.site(
                "location updates",
                &[
                    BINDER,
                    &[
                        "odex com.example.app.location.LocationService.onUpdate",
                        "libart art_quick_generic_jni_trampoline",
                        "libexample Java_com_example_app_location_Filter_push",
                        "libexample example::location::KalmanFilter::Update",
                    ],
                    NEW,
                ],
                50.0,
                (64, 512),
                Life::Millis(200, 1_000),
                Phase::Always,
            ),
            self.site(
                "shared code",
                &[
                    BINDER,
                    &[
                        "boot [DEDUPED] android.os.Parcel.?",
                        "libart art_quick_generic_jni_trampoline",
                        "libbinder android::Parcel::continueWrite",
                    ],
                    REALLOC,
                ],
                30.0,
                (256, 1_024),
                Life::Millis(300, 900),
                Phase::Always,
            ),
            self.site(
                "track",
                &[
                    BINDER,
                    &[
                        "odex com.example.app.location.LocationService.onUpdate",
                        "libart art_quick_generic_jni_trampoline",
                        "libexample Java_com_example_app_location_Filter_push",
                        "libexample example::location::Track::Append",
                    ],
                    NEW,
                ],
                10.0,
                (128, 128),
                Life::Forever,
                Phase::Always,
            ),
        ];
        vec![
            HeapDef {
                name: "libc.malloc",
                sites,
                in_turn: None,
            },
            HeapDef {
                name: "com.android.art",
                sites: Vec::new(),
                in_turn: None,
            },
        ]
    }

    /// Returns the heaps of a native daemon.
    pub(crate) fn daemon(&mut self) -> Vec<HeapDef> {
        let sites = vec![
            self.site(
                "transactions",
                &[
                    NATIVE_BINDER,
                    &["libutils android::RefBase::incStrong"],
                    NEW,
                ],
                240.0,
                (48, 800),
                Life::Millis(5, 60),
                Phase::Always,
            ),
            self.site(
                "parcels",
                &[
                    NATIVE_BINDER,
                    &["libbinder android::Parcel::continueWrite"],
                    REALLOC,
                ],
                160.0,
                (128, 2_048),
                Life::Millis(1, 20),
                Phase::Always,
            ),
            self.site(
                "layers",
                &[
                    NATIVE_BINDER,
                    &["surfaceflinger android::SurfaceFlinger::createBufferStateLayer"],
                    NEW,
                ],
                4.0,
                (2_048, 4_096),
                Life::Millis(2_000, 6_000),
                Phase::Always,
            ),
        ];
        vec![HeapDef {
            name: "libc.malloc",
            sites,
            in_turn: None,
        }]
    }

    /// Returns the heaps of an app with `count` callsites in a tree of calls.
    pub(crate) fn heavy(&mut self, count: usize) -> Vec<HeapDef> {
        let mut heaps = self.app();
        let root: Vec<u32> = WORKER.iter().map(|f| self.frame(f, None, 0)).collect();
        let leaf: Vec<u32> = NEW.iter().map(|f| self.frame(f, None, 0)).collect();
        let mapping = self.mapping("libscene");
        let (size, base) = {
            let m = &self.mappings[mapping];
            (m.end - m.start, m.exact_offset)
        };
        // A tree with ten branches per level: its paths are the callsites.
        let mut nodes: BTreeMap<(u64, u64), u32> = BTreeMap::new();
        let leaves: Vec<Arc<str>> = (0..5_000)
            .map(|n| {
                let name = format!("Leaf{n}");
                format!("_ZN6engine5scene{}{name}5SpawnEv", name.len()).into()
            })
            .collect();
        let mut sites = Vec::with_capacity(count);
        for index in 0..count {
            let mut frames = root.clone();
            let mut rest = index;
            let mut node = 0u64;
            for level in 0..12u64 {
                node = mix(&[node, level, (rest % 10) as u64]) % 4_000;
                rest /= 10;
                let frame = match nodes.get(&(node, level)) {
                    Some(frame) => *frame,
                    None => {
                        let name = format!("Node{node}");
                        let length = name.len();
                        let frame = self.add(FrameDef {
                            mapping,
                            function: format!("_ZN6engine5scene{length}{name}6UpdateEf").into(),
                            rel_pc: ((mix(&[node, level]) % size) & !3) + base,
                        });
                        nodes.insert((node, level), frame);
                        frame
                    }
                };
                frames.push(frame);
            }
            // The last call differs for each site, so that no two are the same.
            frames.push(self.frames.len() as u32);
            self.frames.push(FrameDef {
                mapping,
                function: leaves[index % leaves.len()].clone(),
                rel_pc: index as u64 * 4 % size + base,
            });
            frames.extend(&leaf);
            let site = self.named_site(
                "scene".into(),
                frames,
                0.0,
                (4_096, 4_608),
                Life::Millis(900, 1_100),
                Phase::Always,
            );
            sites.push(site);
        }
        let per_tick = count.div_ceil(100);
        let malloc = &mut heaps[0];
        sites.append(&mut malloc.sites);
        malloc.sites = sites;
        malloc.in_turn = Some((count, per_tick));
        heaps
    }
}

/// Root frames of an app's main thread.
const MAIN: &[&str] = &[
    "libc __libc_init",
    "app_process main",
    "libandroid_runtime android::AndroidRuntime::start",
    "libart art_quick_invoke_static_stub",
    "boot com.android.internal.os.ZygoteInit.main",
    "boot android.app.ActivityThread.main",
    "boot android.os.Looper.loop",
    "boot android.os.Handler.dispatchMessage",
];
const RESUME: &[&str] = &[
    "boot android.app.Activity.performResume",
    "odex com.example.app.ui.FeedActivity.onResume",
];
const REFRESH: &[&str] = &[
    "odex com.example.app.feed.FeedPresenter.refresh",
    "libart art_quick_generic_jni_trampoline",
];
const CREATE: &[&str] = &[
    "boot android.app.ActivityThread.handleBindApplication",
    "odex com.example.app.ExampleApplication.onCreate",
    "boot java.lang.System.loadLibrary",
];
const DRAW: &[&str] = &[
    "boot android.view.Choreographer.doFrame",
    "boot android.view.ViewRootImpl.performDraw",
    "odex com.example.app.ui.FeedView.onDraw",
];
/// Root frames of the same thread in ART's own heap: Java frames only.
const JAVA_MAIN: &[&str] = &[
    "boot com.android.internal.os.ZygoteInit.main",
    "boot android.app.ActivityThread.main",
    "boot android.os.Looper.loop",
    "boot android.os.Handler.dispatchMessage",
];
/// Root frames of a native thread of the app.
const WORKER: &[&str] = &[
    "libc __start_thread",
    "libc __pthread_start",
    "libexample example::Worker::Run",
];
const BINDER: &[&str] = &[
    "libc __start_thread",
    "libc __pthread_start",
    "libbinder android::IPCThreadState::getAndExecuteCommand",
    "libandroid_runtime JavaBBinder::onTransact",
    "boot android.os.Binder.execTransact",
];
const NATIVE_BINDER: &[&str] = &[
    "libc __start_thread",
    "libc __pthread_start",
    "libbinder android::IPCThreadState::getAndExecuteCommand",
    "libbinder android::BBinder::transact",
];
const NEW: &[&str] = &["libc++ operator new", "libc malloc"];
const MALLOC: &[&str] = &["libc malloc"];
const CALLOC: &[&str] = &["libc calloc"];
const REALLOC: &[&str] = &["libc realloc"];
