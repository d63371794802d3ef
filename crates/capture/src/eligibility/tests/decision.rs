//! The complete decision table: every kind of process on every build and version. The columns
//! are those of `docs/guide/troubleshooting.md`.

use crate::eligibility::decide::{Answer, decide_app, decide_device, decide_process};
use crate::eligibility::facts::{BuildType, DeviceFacts, Selinux};
use crate::eligibility::finding::FindingId as F;
use crate::eligibility::packages::{AppType, Package};
use crate::eligibility::processes::{Process, ProcessKind};

const VERSIONS: [u32; 9] = [28, 29, 30, 31, 32, 33, 34, 35, 36];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Build {
    User,
    Debug,
    DebugPermissive,
}

fn device(sdk: u32, build: Build) -> DeviceFacts {
    let mut d = DeviceFacts::read("S", b"");
    d.sdk = Some(sdk);
    d.build_type = Some(match build {
        Build::User => BuildType::User,
        _ => BuildType::Userdebug,
    });
    d.selinux = Some(match build {
        Build::DebugPermissive => Selinux::Permissive,
        _ => Selinux::Enforcing,
    });
    d.abis = vec!["arm64-v8a".into(), "armeabi-v7a".into()];
    d.tracing_on = Some(true);
    d.shell_uid = Some(2000);
    d
}

fn process(name: &str, uid: u32, kind: ProcessKind) -> Process {
    Process {
        pid: 4711,
        ppid: Some(700),
        uid: Some(uid),
        name: name.to_owned(),
        kind,
        bits: Some(64),
        state: Some('S'),
        oom_score_adj: Some(0),
        frozen: None,
        domain: None,
    }
}

fn package(name: &str, uid: u32, app_type: Option<AppType>) -> Package {
    Package {
        uid: Some(uid),
        app_type,
        ..Package::named(name)
    }
}

/// Expected result of a row of the table on one build.
#[derive(Clone, Copy)]
enum Cell {
    /// Native and Java, as far as the version has them.
    Both,
    /// Native only, without a Java runtime.
    Native,
    /// An attempt might work.
    Perhaps,
    /// Never, for this reason.
    Never(F),
    /// From Android 13 on, otherwise never.
    Since13(F),
}

fn expected(cell: Cell, sdk: u32) -> (Answer, Answer, Option<F>) {
    let (yes_native, yes_java) = (
        if sdk >= 29 { Answer::Yes } else { Answer::No },
        if sdk >= 30 { Answer::Yes } else { Answer::No },
    );
    let perhaps = |yes| {
        if yes == Answer::Yes {
            Answer::Unknown
        } else {
            Answer::No
        }
    };
    match cell {
        Cell::Both => (yes_native, yes_java, None),
        Cell::Native => (yes_native, Answer::No, Some(F::NativeNoJava)),
        Cell::Perhaps => (perhaps(yes_native), perhaps(yes_java), Some(F::Zygote)),
        Cell::Since13(_) if sdk >= 33 => (yes_native, yes_java, None),
        Cell::Never(id) | Cell::Since13(id) => (Answer::No, Answer::No, Some(id)),
    }
}

#[test]
fn every_kind_of_process_on_every_build_and_version() {
    use AppType as T;
    use Cell::{Both, Native, Never, Perhaps, Since13};
    use ProcessKind as K;
    // name, uid, kind, manifest; user, userdebug, userdebug permissive
    type Row = (&'static str, u32, K, Option<T>, Cell, Cell, Cell);
    #[rustfmt::skip]
    let table: [Row; 20] = [
        ("com.x", 10_234, K::App, Some(T::Debuggable), Both, Both, Both),
        ("com.x", 10_234, K::App, Some(T::Profileable), Both, Both, Both),
        ("com.x", 10_234, K::App, Some(T::PlatformOnly), Never(F::PlatformOnly), Both, Both),
        ("com.x", 10_234, K::App, Some(T::Closed), Never(F::UserRelease), Both, Both),
        ("com.x:remote", 1_010_234, K::App, Some(T::Profileable), Both, Both, Both),
        ("com.android.settings", 1000, K::App, Some(T::Profileable), Never(F::SystemUid), Both, Both),
        ("com.android.phone", 1_001_001, K::App, Some(T::Debuggable), Never(F::SystemUid), Both, Both),
        ("com.x_sdk_sandbox", 20_234, K::SdkSandbox, Some(T::Debuggable), Since13(F::UidRange), Both, Both),
        ("com.x_sdk_sandbox", 20_234, K::SdkSandbox, Some(T::Closed), Never(F::UserRelease), Both, Both),
        ("com.x:iso", 99_003, K::Isolated, None, Never(F::Isolated), Both, Both),
        ("com.x:iso", 90_003, K::Isolated, None, Never(F::Isolated), Both, Both),
        ("com.x", 30_000, K::App, None, Never(F::UidRange), Both, Both),
        ("zygote64", 0, K::Zygote, None, Never(F::Zygote), Never(F::Zygote), Perhaps),
        ("webview_zygote", 1053, K::Zygote, None, Never(F::Zygote), Never(F::Zygote), Perhaps),
        ("system_server", 1000, K::SystemServer, None, Never(F::SystemUid), Both, Both),
        ("/system/bin/surfaceflinger", 1000, K::Native, None, Never(F::SystemUid), Native, Native),
        ("/data/local/tmp/tool", 2000, K::Native, None, Never(F::SystemUid), Native, Native),
        ("/system/bin/vold", 0, K::Native, None, Never(F::Critical), Never(F::Critical), Native),
        ("keystore2", 1017, K::Native, None, Never(F::Critical), Never(F::Critical), Native),
        ("[kthreadd]", 0, K::KernelThread, None, Never(F::Critical), Never(F::Critical), Never(F::Critical)),
    ];
    for (name, uid, kind, app_type, user, debug, permissive) in table {
        for sdk in VERSIONS {
            for (build, cell) in [
                (Build::User, user),
                (Build::Debug, debug),
                (Build::DebugPermissive, permissive),
            ] {
                // Before 13 a sandbox is refused for its UID, regardless of the manifest.
                let cell = match cell {
                    Never(F::UserRelease) if uid == 20_234 && sdk < 33 => Never(F::UidRange),
                    cell => cell,
                };
                let owner = app_type.map(|t| package("com.x", uid % 100_000, Some(t)));
                let owners: Vec<&Package> = owner.iter().collect();
                let v = decide_process(&device(sdk, build), &process(name, uid, kind), &owners);
                let (native, java, id) = expected(cell, sdk);
                let at = format!("{name} ({app_type:?}) on {build:?} {sdk}: {:?}", v.findings);
                assert_eq!((v.native, v.java), (native, java), "{at}");
                if let Some(id) = id {
                    assert!(v.findings.iter().any(|f| f.id == id), "no {id:?}: {at}");
                }
                let blocks = |f: &&crate::eligibility::finding::Finding| {
                    f.severity == crate::eligibility::finding::Severity::Blocks
                };
                if matches!(cell, Both | Native) {
                    assert_eq!(v.findings.iter().find(blocks), None, "{at}");
                }
            }
        }
    }
}

#[test]
fn the_list_of_critical_processes_grew_with_android_12() {
    for (name, domain, on_11, on_12) in [
        ("/system/bin/apexd", None, Answer::Yes, Answer::No),
        ("/system/bin/logd", None, Answer::No, Answer::No),
        ("/system/bin/crash_dump64", None, Answer::Yes, Answer::No),
        (
            "/vendor/bin/hw/android.hardware.configstore@1.1-service",
            None,
            Answer::Yes,
            Answer::No,
        ),
        ("renamed", Some("vold"), Answer::No, Answer::No),
        ("vold", Some("mydaemon"), Answer::Yes, Answer::Yes),
        (
            "x",
            Some("hal_configstore_default"),
            Answer::Yes,
            Answer::No,
        ),
    ] {
        for (sdk, native) in [(30, on_11), (31, on_12), (36, on_12)] {
            let mut p = process(name, 0, ProcessKind::Native);
            p.domain = domain.map(str::to_owned);
            let v = decide_process(&device(sdk, Build::Debug), &p, &[]);
            assert_eq!(v.native, native, "{name} {domain:?} on {sdk}");
        }
    }
    // An app can choose its name freely.
    let app = process("vold", 10_234, ProcessKind::App);
    assert_eq!(
        decide_process(&device(34, Build::Debug), &app, &[]).native,
        Answer::Yes
    );
}

#[test]
fn abis_that_a_version_cannot_profile() {
    let app = |bits| {
        let mut p = process("com.x", 10_234, ProcessKind::App);
        p.bits = bits;
        p
    };
    let debuggable = package("com.x", 10_234, Some(AppType::Debuggable));
    for (sdk, bits, abi, native) in [
        (29, Some(32), "arm64-v8a", Answer::No),
        (30, Some(32), "arm64-v8a", Answer::No),
        (31, Some(32), "arm64-v8a", Answer::Yes),
        (30, Some(64), "arm64-v8a", Answer::Yes),
        (30, None, "arm64-v8a", Answer::Yes),
        (30, Some(32), "armeabi-v7a", Answer::Yes),
        (29, Some(64), "x86_64", Answer::No),
        (30, Some(64), "x86_64", Answer::Yes),
    ] {
        let mut d = device(sdk, Build::User);
        d.abis = vec![abi.into()];
        let v = decide_process(&d, &app(bits), &[&debuggable]);
        assert_eq!(v.native, native, "{bits:?} bits, {abi}, {sdk}");
        // Java heaps are dumped by the app itself.
        let java = if sdk >= 30 { Answer::Yes } else { Answer::No };
        assert_eq!(v.java, java, "{bits:?} bits, {abi}, {sdk}");
    }
}

#[test]
fn malloc_debugging_keeps_heapprofd_out_of_the_programs_it_is_for() {
    let app = process("com.x", 10_234, ProcessKind::App);
    let owner = package("com.x", 10_234, Some(AppType::Debuggable));
    type Props = (
        Option<&'static str>,
        Option<&'static str>,
        Option<(&'static str, &'static str)>,
    );
    let cases: [(Props, Answer, Option<F>); 6] = [
        (
            (Some("backtrace"), None, None),
            Answer::No,
            Some(F::MallocDebug),
        ),
        (
            (Some("backtrace"), Some("com.x"), None),
            Answer::No,
            Some(F::MallocDebug),
        ),
        (
            (Some("backtrace"), Some("app_process"), None),
            Answer::Yes,
            None,
        ),
        (
            (
                None,
                None,
                Some(("com.x", "LIBC_DEBUG_MALLOC_OPTIONS=leak")),
            ),
            Answer::No,
            Some(F::MallocDebug),
        ),
        (
            (None, None, Some(("com.x", "asanwrapper"))),
            Answer::Yes,
            Some(F::Wrapped),
        ),
        (
            (
                None,
                None,
                Some(("com.y", "LIBC_DEBUG_MALLOC_OPTIONS=leak")),
            ),
            Answer::Yes,
            None,
        ),
    ];
    for ((options, program, wrap), native, id) in cases {
        let mut d = device(34, Build::User);
        d.malloc_debug = options.map(str::to_owned);
        d.malloc_debug_program = program.map(str::to_owned);
        d.wraps = wrap
            .iter()
            .map(|(a, b)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        let v = decide_process(&d, &app, &[&owner]);
        assert_eq!(
            (v.native, v.java),
            (native, Answer::Yes),
            "{options:?} {program:?} {wrap:?}"
        );
        assert_eq!(
            v.findings.first().map(|f| f.id),
            id,
            "{options:?} {program:?} {wrap:?}"
        );
    }
}

#[test]
fn what_is_not_known_is_not_claimed() {
    let app = process("com.x", 10_234, ProcessKind::App);
    let d = device(34, Build::User);
    let unknown = package("com.x", 10_234, None);
    for (d, packages) in [
        (d.clone(), vec![]),
        (d.clone(), vec![&unknown]),
        (
            DeviceFacts {
                build_type: None,
                ..d.clone()
            },
            vec![&unknown],
        ),
    ] {
        let v = decide_process(&d, &app, &packages);
        assert_eq!((v.native, v.java), (Answer::Unknown, Answer::Unknown));
        assert_eq!(v.findings[0].id, F::Unknown);
    }
    let no_uid = Process {
        uid: None,
        ..app.clone()
    };
    assert_eq!(decide_process(&d, &no_uid, &[]).native, Answer::Unknown);
    // An unknown version refuses nothing.
    let debuggable = package("com.x", 10_234, Some(AppType::Debuggable));
    let d = DeviceFacts { sdk: None, ..d };
    assert_eq!(decide_process(&d, &app, &[&debuggable]).native, Answer::Yes);
}

#[test]
fn packages_with_one_uid_share_a_verdict() {
    let app = process("com.b", 10_234, ProcessKind::App);
    let d = device(34, Build::User);
    let of = |types: [Option<AppType>; 2]| {
        let (a, b) = (
            package("com.a", 10_234, types[0]),
            package("com.b", 10_234, types[1]),
        );
        let v = decide_process(&d, &app, &[&a, &b]);
        (v.native, v.findings.first().map(|f| (f.id, f.what.clone())))
    };
    let (open, closed) = (Some(AppType::Profileable), Some(AppType::Closed));
    assert_eq!(of([open, open]).0, Answer::Yes);
    let (native, finding) = of([closed, closed]);
    assert_eq!(native, Answer::No);
    assert!(finding.is_some_and(|(_, what)| what.starts_with("com.b ")));
    let (native, finding) = of([closed, open]);
    assert_eq!(native, Answer::Unknown);
    assert_eq!(finding.map(|f| f.0), Some(F::SharedUid));
    assert_eq!(of([open, None]).0, Answer::Unknown);
}

#[test]
fn states_that_delay_the_profiler_are_warnings() {
    let d = device(34, Build::User);
    let owner = package("com.x", 10_234, Some(AppType::Debuggable));
    let base = process("com.x", 10_234, ProcessKind::App);
    for (p, id) in [
        (
            Process {
                frozen: Some(true),
                oom_score_adj: Some(950),
                ..base.clone()
            },
            F::Frozen,
        ),
        (
            Process {
                oom_score_adj: Some(900),
                ..base.clone()
            },
            F::Cached,
        ),
        (
            Process {
                state: Some('T'),
                ..base.clone()
            },
            F::Stopped,
        ),
    ] {
        let v = decide_process(&d, &p, &[&owner]);
        assert_eq!(v.native, Answer::Yes);
        assert_eq!(v.findings.iter().map(|f| f.id).collect::<Vec<_>>(), [id]);
    }
    let quiet = Process {
        oom_score_adj: Some(899),
        ..base
    };
    assert!(decide_process(&d, &quiet, &[&owner]).findings.is_empty());
}

#[test]
fn an_app_that_does_not_run_is_recorded_from_its_start() {
    for (app_type, build, native, java) in [
        (
            Some(AppType::Debuggable),
            Build::User,
            Answer::OnlyFromStartup,
            Answer::OnceRunning,
        ),
        (Some(AppType::Closed), Build::User, Answer::No, Answer::No),
        (
            Some(AppType::Closed),
            Build::Debug,
            Answer::OnlyFromStartup,
            Answer::OnceRunning,
        ),
        (None, Build::User, Answer::Unknown, Answer::Unknown),
    ] {
        let p = package("com.x", 10_234, app_type);
        let v = decide_app(&device(34, build), "com.x", &[&p], p.uid);
        assert_eq!((v.native, v.java), (native, java), "{app_type:?} {build:?}");
    }
}

#[test]
fn a_phone_that_cannot_record_answers_no_for_every_process() {
    let owner = package("com.x", 10_234, Some(AppType::Debuggable));
    let app = process("com.x", 10_234, ProcessKind::App);
    let mut off = device(34, Build::User);
    off.tracing_on = Some(false);
    let v = decide_process(&off, &app, &[&owner]);
    assert_eq!((v.native, v.java), (Answer::No, Answer::No));
    assert_eq!(decide_device(&off)[0].id, F::TracedOff);

    let session = |uid| crate::eligibility::facts::TracingSession {
        id: 1,
        uid: Some(uid),
        state: "STARTED".into(),
        name: String::new(),
        start_realtime_ns: Some(1_000_000_000),
    };
    let mut full = device(34, Build::User);
    full.clock_s = Some(61);
    full.sessions = Some(vec![session(2000); 5]);
    assert_eq!(decide_device(&full)[0].id, F::SessionLimit);
    assert_eq!(decide_process(&full, &app, &[&owner]).native, Answer::No);
    full.sessions = Some(vec![session(1000)]);
    let note = &decide_device(&full)[0];
    assert_eq!(note.id, F::Busy);
    assert!(
        note.what
            .contains("unnamed with UID 1000, running for 60 s"),
        "{}",
        note.what
    );
    full.heap_session = true;
    assert!(decide_device(&full)[0].what.contains("heap profile"));
    assert_eq!(decide_process(&full, &app, &[&owner]).native, Answer::Yes);
}

#[test]
fn small_matters_of_a_phone_are_said() {
    let mut d = device(34, Build::User);
    d.free_bytes = Some(20 << 20);
    d.native_bridge = Some("libhoudini.so".into());
    d.screen_on = Some(false);
    let ids: Vec<F> = decide_device(&d).iter().map(|f| f.id).collect();
    assert_eq!(ids, [F::Space, F::NativeBridge, F::ScreenOff]);
    assert!(decide_device(&device(34, Build::User)).is_empty());
    let preview = DeviceFacts {
        sdk: Some(28),
        preview: Some("Q".into()),
        ..device(28, Build::User)
    };
    assert!(
        decide_device(&preview)
            .iter()
            .all(|f| f.scope == crate::eligibility::finding::Scope::Java)
    );
}
