//! The code of the synthetic apps: files mapped into a process, functions in them, and the
//! sites that allocate. Names, layouts and addresses are those of a phone.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::workload::{FrameDef, HeapDef, Life, MappingDef, Phase, Site, hash, mix};
use crate::phone::kernel::Kernel;
use crate::phone::process::{Process, Role};

/// Collects the mappings and frames of one process.
pub(super) struct Builder {
    pub(super) mappings: Vec<MappingDef>,
    pub(super) frames: Vec<FrameDef>,
    known: BTreeMap<FrameDef, u32>,
    paths: BTreeMap<&'static str, usize>,
    seed: u64,
    bits_32: bool,
    /// Directory of the app's APK.
    code: String,
    android: u32,
}

/// What a path key stands for: path, file offset of the ELF, load bias.
fn mapped(builder: &Builder, key: &'static str) -> (String, u64, u64) {
    let lib = if builder.bits_32 { "lib" } else { "lib64" };
    let isa = if builder.bits_32 { "arm" } else { "arm64" };
    let code = &builder.code;
    match key {
        "libc" => (
            format!("/apex/com.android.runtime/{lib}/bionic/libc.so"),
            0,
            0,
        ),
        "libart" if builder.android == 10 => {
            (format!("/apex/com.android.runtime/{lib}/libart.so"), 0, 0)
        }
        "libart" => (format!("/apex/com.android.art/{lib}/libart.so"), 0, 0),
        "boot" => (format!("/system/framework/{isa}/boot-framework.oat"), 0, 0),
        "libc++" => (format!("/system/{lib}/libc++.so"), 0, 0),
        "libhwui" => (format!("/system/{lib}/libhwui.so"), 0, 0x1000),
        "libsqlite" => (format!("/system/{lib}/libsqlite.so"), 0, 0),
        "libruntime" => (format!("/system/{lib}/libandroid_runtime.so"), 0, 0),
        "libbinder" => (format!("/system/{lib}/libbinder.so"), 0, 0),
        "libutils" => (format!("/system/{lib}/libutils.so"), 0, 0),
        "libsurfaceflinger" => ("/system/bin/surfaceflinger".to_owned(), 0, 0),
        "libstagefright" => (format!("/system/{lib}/libstagefright.so"), 0, 0),
        "daemon" => ("/system/bin/daemon".to_owned(), 0, 0),
        "odex" => (format!("{code}/oat/{isa}/base.odex"), 0, 0),
        "vdex" => (format!("{code}/oat/{isa}/base.vdex"), 0, 0),
        "jit" => ("/memfd:jit-cache (deleted)".to_owned(), 0, 0),
        "libexample" => (format!("{code}/lib/{isa}/libexample.so"), 0, 0x1000),
        // Stored in the APK and mapped from there.
        "libjson" => (format!("{code}/base.apk!libjson.so"), 0x2d_4000, 0),
        "libengine" => (format!("{code}/base.apk!libengine.so"), 0x91_8000, 0x4000),
        _ => (String::new(), 0, 0),
    }
}

impl Builder {
    pub(super) fn new(kernel: &Kernel, process: &Process) -> Builder {
        let code = match &process.role {
            Role::App { package, .. } => {
                let state = kernel.state();
                let package = state.packages.iter().find(|p| p.name == package);
                package.map(|p| p.code_path()).unwrap_or_default()
            }
            _ => String::new(),
        };
        Builder {
            mappings: Vec::new(),
            frames: Vec::new(),
            known: BTreeMap::new(),
            paths: BTreeMap::new(),
            // Processes forked from one zygote share addresses of the system's libraries;
            // here all of a phone do.
            seed: kernel.spec.seed,
            bits_32: process.bits_32,
            code,
            android: kernel.spec.android,
        }
    }

    fn mapping(&mut self, key: &'static str) -> usize {
        if let Some(known) = self.paths.get(key) {
            return *known;
        }
        let (path, start_offset, load_bias) = mapped(self, key);
        let random = mix(&[self.seed, hash(&path)]);
        let size = 0x10_0000 + (random >> 44 << 12) % 0x60_0000;
        let start = match self.bits_32 {
            true => 0xa000_0000 + (random & 0x1_ffff) * 0x2000,
            false => 0x7a_0000_0000 + (random & 0xff_ffff) * 0x1_0000,
        };
        // Code that the runtime makes has no build id.
        let anonymous = matches!(key, "jit" | "vdex" | "none");
        let name = hash(&path);
        let build_id = (0..20).map(|i| (mix(&[name, i]) & 0xff) as u8);
        let exact = 0x1000 + (random >> 20 & 0x3f) * 0x1000;
        self.mappings.push(MappingDef {
            path,
            build_id: if anonymous {
                Vec::new()
            } else {
                build_id.collect()
            },
            start,
            end: start + size,
            start_offset,
            exact_offset: start_offset + exact,
            load_bias,
        });
        self.paths.insert(key, self.mappings.len() - 1);
        self.mappings.len() - 1
    }

    /// A frame: `mapping function`, or `mapping` alone for code without symbols; `variant`
    /// tells calls from different places of one function apart.
    fn frame(&mut self, text: &'static str, variant: u64) -> u32 {
        let (key, function) = text.split_once(' ').unwrap_or((text, ""));
        let mapping = self.mapping(key);
        let function: Arc<str> = function.into();
        let m = &self.mappings[mapping];
        let place = (mix(&[hash(text), variant]) % (m.end - m.start)) & !3;
        let rel_pc = place + (m.exact_offset - m.start_offset) + m.load_bias;
        self.add(FrameDef {
            mapping,
            function,
            rel_pc,
        })
    }

    fn add(&mut self, frame: FrameDef) -> u32 {
        if let Some(known) = self.known.get(&frame) {
            return *known;
        }
        let id = self.frames.len() as u32;
        self.frames.push(frame.clone());
        self.known.insert(frame, id);
        id
    }

    fn site(
        &mut self,
        name: &'static str,
        frames: &[&[&'static str]],
        per_second: f64,
        size: (u64, u64),
        life: Life,
        phase: Phase,
    ) -> Site {
        let variant = hash(name);
        let all: Vec<&'static str> = frames.concat();
        let ids: Vec<u32> = all
            .iter()
            .enumerate()
            .map(|(i, f)| {
                // Roots are shared; where a stack forks, the callers differ in their place.
                let own = i + 4 >= all.len() && i + 1 < all.len();
                self.frame(f, if own { variant } else { 0 })
            })
            .collect();
        self.named_site(name.into(), ids, per_second, size, life, phase)
    }

    fn named_site(
        &mut self,
        name: Arc<str>,
        frames: Vec<u32>,
        per_second: f64,
        size: (u64, u64),
        life: Life,
        phase: Phase,
    ) -> Site {
        let stack = frames
            .iter()
            .map(|f| self.frames[*f as usize].function.clone())
            .collect::<Vec<_>>();
        Site {
            name,
            frames,
            stack: stack.into(),
            per_second,
            size,
            life,
            phase,
        }
    }

    /// An ordinary app: a leak, a cache, churn, a bitmap pool, a database, startup.
    pub(super) fn app(&mut self) -> Vec<HeapDef> {
        let (kb, always) = (1024, Phase::Always);
        let sites = vec![
            self.site("leak", &[MAIN, RESUME, &[
                "libexample Java_com_example_app_telemetry_Telemetry_subscribe",
                "libexample _ZN7example9telemetry13EventRecorder9SubscribeERKNSt6__ndk112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE",
                "libexample _ZN7example9telemetry12EventHistory6AppendEPKhm",
            ], NEW], 120.0, (8 * kb, 16 * kb), Life::Forever, always),
            self.site("small leak", &[MAIN, RESUME, &[
                "libexample Java_com_example_app_telemetry_Telemetry_subscribe",
                "libexample _ZN7example9telemetry8Listener6CreateEv",
            ], NEW], 90.0, (48, 96), Life::Forever, always),
            self.site("cache", &[WORKER, &[
                "libexample _ZN7example4feed10FeedLoader5FetchEi",
                "libexample _ZN7example4feed9FeedCache3PutERKNS0_7ArticleE",
            ], NEW], 60.0, (2 * kb, 6 * kb), Life::Millis(3_000, 4_000), always),
            self.site("churn", &[WORKER, &[
                "libexample _ZN7example4feed10FeedLoader5ParseERKNSt6__ndk112basic_stringIcNS2_11char_traitsIcEENS2_9allocatorIcEEEE",
                "libjson", "libjson", "libjson",
            ], NEW], 2_400.0, (16, 400), Life::Millis(0, 30), always),
            self.site("churn on the main thread", &[MAIN, DRAW, &[
                "libhwui _ZN7android10uirenderer12RenderThread10threadLoopEv",
                "libhwui _ZN7SkArena10allocBytesEm",
            ], MALLOC], 900.0, (32, 2_048), Life::Millis(0, 20), always),
            self.site("bitmap pool", &[MAIN, DRAW, &[
                "libruntime _ZN7android6bitmapL14Bitmap_creatorEP7_JNIEnvP8_jobject",
                "libhwui _ZN7android6Bitmap18allocateHeapBitmapEP8SkBitmap",
            ], CALLOC], 8.0, (96 * kb, 192 * kb), Life::Millis(600, 900),
                Phase::Burst { period: 2_000, on: 1_500 }),
            self.site("video frame", &[WORKER, &[
                "libengine", "libengine",
            ], MALLOC], 0.4, (1536 * kb, 1536 * kb), Life::Millis(800, 800), always),
            self.site("database", &[MAIN, RESUME, &[
                "boot android.database.sqlite.SQLiteConnection.executeForCursorWindow",
                "libruntime _ZN7androidL28nativeExecuteForCursorWindowEP7_JNIEnvP7_jclassllliib",
                "libsqlite sqlite3_step", "libsqlite sqlite3VdbeExec", "libsqlite sqlite3MemMalloc",
            ], MALLOC], 180.0, (64, 4 * kb), Life::Millis(50, 400), always),
            self.site("interpreted code", &[MAIN, &[
                "vdex com.example.app.ui.SettingsFragment.onCreateView",
                "libart nterp_helper",
                "boot android.view.LayoutInflater.inflate",
                "libruntime _ZN7android15android_content20AssetManager_OpenXmlEv",
            ], NEW], 12.0, (128, 2 * kb), Life::Millis(1_000, 2_000), always),
            self.site("compiled just in time", &[MAIN, &[
                "jit com.example.app.feed.FeedAdapter.onBindViewHolder",
                "libart art_quick_generic_jni_trampoline",
                "libexample Java_com_example_app_feed_Native_bind",
            ], NEW], 40.0, (256, 1_200), Life::Millis(100, 300), always),
            self.site("unwinding failed", &[&[
                "none ERROR MEMORY_INVALID", "libengine",
            ], MALLOC], 3.0, (kb, 4 * kb), Life::Millis(500, 700), always),
            self.site("startup", &[MAIN, CREATE, &[
                "libexample JNI_OnLoad",
                "libexample _ZN7example6Config12LoadDefaultsEv",
            ], NEW], 2_500.0, (64, 1_500), Life::Forever, Phase::First(800)),
            self.site("startup resources", &[MAIN, CREATE, &[
                "boot android.content.res.ResourcesImpl.<init>",
                "libruntime _ZN7android13AssetManager216SetConfigurationERKNS_15ResTable_configE",
            ], MALLOC], 300.0, (kb, 8 * kb), Life::Forever, Phase::First(800)),
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
                &["libengine", "libexample _ZN7example5Arena8NewBlockEm"],
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

    /// The `:service` of an app.
    pub(super) fn service(&mut self) -> Vec<HeapDef> {
        let sites = vec![
            self.site(
                "location updates",
                &[
                    BINDER,
                    &[
                        "odex com.example.app.location.LocationService.onUpdate",
                        "libexample Java_com_example_app_location_Filter_push",
                        "libexample _ZN7example8location12KalmanFilter6UpdateERKNS0_3FixE",
                    ],
                    NEW,
                ],
                50.0,
                (64, 512),
                Life::Millis(200, 1_000),
                Phase::Always,
            ),
            self.site(
                "track",
                &[
                    BINDER,
                    &[
                        "odex com.example.app.location.LocationService.onUpdate",
                        "libexample _ZN7example8location5Track6AppendERKNS0_3FixE",
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

    /// A native daemon.
    pub(super) fn daemon(&mut self) -> Vec<HeapDef> {
        let sites = vec![
            self.site(
                "transactions",
                &[
                    NATIVE_BINDER,
                    &["libutils _ZNK7android7RefBase9incStrongEPKv"],
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
                    &["libbinder _ZN7android6Parcel13continueWriteEm"],
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
                    &["libsurfaceflinger _ZN7android14SurfaceFlinger17createBufferStateEv"],
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

    /// An app with a great many callsites: `count` of them, in a tree of calls.
    pub(super) fn heavy(&mut self, count: usize) -> Vec<HeapDef> {
        let mut heaps = self.app();
        let root: Vec<u32> = WORKER.iter().map(|f| self.frame(f, 0)).collect();
        let leaf: Vec<u32> = NEW.iter().map(|f| self.frame(f, 0)).collect();
        let mapping = self.mapping("libengine");
        let (size, base, bias) = {
            let m = &self.mappings[mapping];
            (
                m.end - m.start,
                m.exact_offset - m.start_offset,
                m.load_bias,
            )
        };
        // A tree of ten branches a level: its paths are the callsites.
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
                            rel_pc: ((mix(&[node, level]) % size) & !3) + base + bias,
                        });
                        nodes.insert((node, level), frame);
                        frame
                    }
                };
                frames.push(frame);
            }
            // The last call differs for each site, so that no two are one.
            frames.push(self.frames.len() as u32);
            self.frames.push(FrameDef {
                mapping,
                function: leaves[index % leaves.len()].clone(),
                rel_pc: index as u64 * 4 % size + base + bias,
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

/// Root of the main thread of an app.
const MAIN: &[&str] = &[
    "libc __libc_init",
    "libruntime main",
    "libruntime _ZN7android14AndroidRuntime5startEPKcRKNS_6VectorINS_7String8EEEb",
    "libart art_quick_invoke_static_stub",
    "boot com.android.internal.os.ZygoteInit.main",
    "boot android.app.ActivityThread.main",
    "boot android.os.Looper.loop",
    "boot android.os.Handler.dispatchMessage",
];
const RESUME: &[&str] = &[
    "boot android.app.Activity.performResume",
    "odex com.example.app.ui.FeedActivity.onResume",
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
/// The same thread as ART's own heap sees it: Java frames alone.
const JAVA_MAIN: &[&str] = &[
    "boot com.android.internal.os.ZygoteInit.main",
    "boot android.app.ActivityThread.main",
    "boot android.os.Looper.loop",
    "boot android.os.Handler.dispatchMessage",
];
/// Root of a native thread of the app.
const WORKER: &[&str] = &[
    "libc __start_thread",
    "libc _ZL15__pthread_startPv",
    "libexample _ZN7example6Worker3RunEv",
];
const BINDER: &[&str] = &[
    "libc __start_thread",
    "libc _ZL15__pthread_startPv",
    "libbinder _ZN7android14IPCThreadState20getAndExecuteCommandEv",
    "libruntime _ZN11JavaBBinder10onTransactEjRKN7android6ParcelEPS1_j",
    "boot android.os.Binder.execTransact",
];
const NATIVE_BINDER: &[&str] = &[
    "libc __start_thread",
    "libc _ZL15__pthread_startPv",
    "libbinder _ZN7android14IPCThreadState20getAndExecuteCommandEv",
    "libbinder _ZN7android7BBinder8transactEjRKNS_6ParcelEPS1_j",
];
const NEW: &[&str] = &["libc++ _Znwm", "libc malloc"];
const MALLOC: &[&str] = &["libc malloc"];
const CALLOC: &[&str] = &["libc calloc"];
const REALLOC: &[&str] = &["libc realloc"];
