//! Compares heaptap's eligibility with the phone's recordings: every process of a virtual phone, on
//! every Android version and build. The phone has its own rules, shares no code with heaptap's, and
//! is reached over a real socket.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Cursor;
use std::time::Duration;

use heaptap_adb::{Address, Command, Device, Selector, Server};
use heaptap_capture::config::{CaptureSpec, DeviceLimits, Targets};
use heaptap_capture::eligibility::{
    self, Answer, AppType, AssessOptions, Assessment, DeviceFacts, EmptyTarget, Evidence,
    FindingId, ListOptions, ProcessReport, Recorded, Scope, empty_targets, explain,
};
use perfetto_heap::{Trace, TraceError};
use virtual_phone::{PhoneSpec, VirtualPhone};

const SOON: Duration = Duration::from_secs(60);

/// Processes of the virtual phone that do not allocate: they are attached once they do.
const IDLE_APPS: [&str; 2] = ["com.example.idle", "com.example.frozen"];
const BUSY_DAEMONS: [&str; 4] = ["surfaceflinger", "mediaserver", "audioserver", "statsd"];

struct Bench {
    phone: VirtualPhone,
    device: Device,
    facts: DeviceFacts,
}

async fn boot(spec: &str) -> Bench {
    let spec = PhoneSpec::parse(spec).expect("a good spec");
    let phone = VirtualPhone::start(spec).expect("a port");
    let server = Server::at(Address::new("127.0.0.1", phone.addr().port()));
    let device = server.select(&Selector::Only).await.expect("one phone");
    let facts = eligibility::facts(&device)
        .await
        .expect("a phone that answers");
    Bench {
        phone,
        device,
        facts,
    }
}

impl Bench {
    async fn assess(&self, targets: &Targets) -> Assessment {
        eligibility::assess(
            &self.device,
            &self.facts,
            targets,
            &AssessOptions::default(),
        )
        .await
        .expect("a phone that answers")
    }

    async fn name(&self, name: &str) -> Assessment {
        self.assess(&names(&[name])).await
    }

    /// Every process of the phone.
    async fn everything(&self) -> Assessment {
        let all = eligibility::resolve_pids(&self.device, &self.facts, &names(&["*"]), None)
            .await
            .expect("a phone that answers");
        self.assess(&Targets {
            pids: all.into_iter().map(|(pid, _)| pid).collect(),
            ..Targets::default()
        })
        .await
    }

    /// Records five seconds of the phone's time; returns the pids in the trace, and whether each
    /// has samples.
    async fn record(&self, targets: Targets) -> BTreeMap<u32, bool> {
        let spec = CaptureSpec {
            targets,
            duration: Some(Duration::from_secs(5)),
            ..CaptureSpec::default()
        };
        let encoded = spec.encode(&DeviceLimits::default()).expect("a good spec");
        let path = "/data/misc/perfetto-traces/eligibility";
        let perfetto = Command::program("perfetto").args(["-c", "-", "-o", path]);
        let out = self
            .device
            .run_with_stdin(&perfetto, &encoded.bytes, SOON)
            .await
            .expect("a phone that answers");
        assert_eq!(out.exit, 0, "{out:?}");
        let mut bytes = Vec::new();
        let mut sink = |block: &[u8]| {
            bytes.extend_from_slice(block);
            Ok(())
        };
        self.device
            .pull(path, &mut sink, SOON)
            .await
            .expect("the trace");
        let mut trace = Trace::open(Box::new(Cursor::new(bytes))).expect("a readable trace");
        let mut seen = BTreeMap::new();
        trace
            .read_dumps(|dump| -> Result<(), TraceError> {
                let pid = u32::try_from(dump.pid).expect("a pid");
                *seen.entry(pid).or_insert(false) |= !dump.samples.is_empty();
                Ok(())
            })
            .expect("a readable trace");
        seen
    }
}

fn names(names: &[&str]) -> Targets {
    Targets {
        names: names.iter().map(|n| (*n).to_owned()).collect(),
        ..Targets::default()
    }
}

fn processes(assessment: &Assessment) -> impl Iterator<Item = &ProcessReport> {
    assessment.targets.iter().flat_map(|t| &t.processes)
}

fn allocates(p: &ProcessReport) -> bool {
    let name = p.process.name.rsplit('/').next().unwrap_or_default();
    if p.process.has_art() {
        !IDLE_APPS.contains(&name)
    } else {
        BUSY_DAEMONS.contains(&name)
    }
}

/// Assesses every process, records all of them at once, and compares.
async fn hold_to_what_is_recorded(spec: &str) {
    let bench = boot(spec).await;
    let assessment = bench.everything().await;
    let reports: Vec<&ProcessReport> = processes(&assessment).collect();
    assert!(reports.len() > 40, "{spec}: {} processes", reports.len());
    let pids: Vec<u32> = reports.iter().map(|p| p.process.pid).collect();
    let recorded = bench
        .record(Targets {
            pids,
            ..Targets::default()
        })
        .await;
    let mut answers = BTreeSet::new();
    for p in reports {
        let at = format!("{spec}: {} ({:?})", p.process.name, p.findings);
        let sampled = recorded.get(&p.process.pid) == Some(&true);
        answers.insert(p.native);
        match p.native {
            Answer::Yes => assert_eq!(sampled, allocates(p), "{at}"),
            Answer::No => {
                assert!(!sampled, "{at}");
                let target = EmptyTarget {
                    name: p.process.name.clone(),
                    pid: Some(p.process.pid),
                    ..EmptyTarget::default()
                };
                let preflight = assessment.preflight_facts(&bench.facts);
                let evidence = Evidence {
                    preflight: Some(&preflight),
                    ..Evidence::default()
                };
                let cause = &explain(&target, &evidence)[0];
                assert_ne!(cause.id, FindingId::NoAllocation, "{at}");
            }
            Answer::Unknown => assert!(p.process.name.contains("zygote"), "{at}"),
            other => panic!("{at}: {other:?} of a running process"),
        }
    }
    assert!(answers.len() > 1, "{spec}: {answers:?}");
}

async fn on_every_version(rest: &str) {
    for android in 10..=16 {
        hold_to_what_is_recorded(&format!("android={android},speed=60,{rest}")).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn production_builds_record_what_is_said() {
    on_every_version("build=user").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn userdebug_builds_record_what_is_said() {
    on_every_version("build=userdebug").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn permissive_builds_record_what_is_said() {
    on_every_version("build=eng,selinux=permissive").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn phones_of_other_abis_record_what_is_said() {
    for abi in ["x86_64", "armeabi-v7a"] {
        for android in [11, 12, 16] {
            hold_to_what_is_recorded(&format!("android={android},abi={abi},speed=60")).await;
        }
    }
    // Android 10 records nothing on x86.
    let bench = boot("android=10,abi=x86_64,build=userdebug").await;
    let a = bench.name("com.example.app").await;
    assert_eq!(a.targets[0].native, Answer::No);
    assert!(a.device.iter().any(|f| f.id == FindingId::Arch));
}

/// The verdicts that users get, verbatim.
#[tokio::test(flavor = "multi_thread")]
async fn apps_of_every_kind_get_the_verdict_of_the_table() {
    use Answer::{No, OnlyFromStartup, Yes};
    for android in 10..=16u32 {
        for build in ["user", "userdebug"] {
            let bench = boot(&format!("android={android},build={build}")).await;
            let open = |answer| if build == "user" { answer } else { Yes };
            let legacy = if android <= 11 { No } else { Yes };
            for (name, native, id) in [
                ("com.example.app", Yes, Some(FindingId::Subproc)),
                ("com.example.app:service", Yes, None),
                ("com.example.profileable", Yes, None),
                ("com.example.platform", open(No), None),
                ("com.example.closed", open(No), None),
                ("com.example.frozen", Yes, Some(FindingId::Frozen)),
                (
                    "com.example.stopped",
                    OnlyFromStartup,
                    Some(FindingId::NotRunning),
                ),
                ("com.example.work", Yes, None),
                ("com.example.chat", Yes, Some(FindingId::OtherUser)),
                ("com.example.legacy", legacy, None),
                ("com.android.settings", open(No), None),
                ("com.android.systemui", open(No), None),
                ("system_server", open(No), None),
                ("surfaceflinger", open(No), None),
                ("/system/bin/surfaceflinger", open(No), None),
                ("vold", No, Some(FindingId::Critical)),
                ("zygote64", No, Some(FindingId::Zygote)),
                ("com.exmaple.app", No, Some(FindingId::NotInstalled)),
            ] {
                let a = bench.name(name).await;
                let at = format!("{name} on {android} {build}: {:?}", a.targets);
                assert_eq!(a.targets[0].native, native, "{at}");
                let java = match native {
                    OnlyFromStartup if android >= 11 => Answer::OnceRunning,
                    _ if name == "com.example.legacy" && android >= 11 => Yes,
                    Yes if android >= 11 && !name.contains("surfaceflinger") => Yes,
                    _ => No,
                };
                assert_eq!(a.targets[0].java, java, "{at}");
                let ids: Vec<FindingId> =
                    a.findings(Scope::Both).iter().map(|(_, f)| f.id).collect();
                if let Some(id) = id {
                    assert!(ids.contains(&id), "{ids:?} {at}");
                }
                assert_eq!(a.all_eligible(Scope::Native), native != No, "{at}");
                assert_eq!(a.refusal(Scope::Native).is_some(), native == No, "{at}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_recording_gets_its_cause_from_the_phones_log() {
    let bench = boot("android=14,build=user,speed=60").await;
    let a = bench.name("com.example.closed").await;
    let pid = a.targets[0].processes[0].process.pid;
    let recorded = bench.record(a.resolved.clone()).await;
    let recorded: Vec<Recorded> = recorded
        .into_iter()
        .map(|(pid, has_samples)| Recorded {
            pid,
            has_samples,
            ..Recorded::default()
        })
        .collect();
    let preflight = a.preflight_facts(&bench.facts);
    let empty = empty_targets(&preflight, &recorded);
    assert_eq!(empty.iter().map(|e| e.pid).collect::<Vec<_>>(), [Some(pid)]);
    let log = eligibility::read_log(&bench.device, preflight.clock_s)
        .await
        .expect("a log");
    // Known only from the log.
    let evidence = Evidence {
        log: &log,
        ..Evidence::default()
    };
    let cause = &explain(&empty[0], &evidence)[0];
    assert_eq!(cause.id, FindingId::Refused, "{log:?}");
    assert!(cause.what.contains("not profileable"), "{cause:?}");
    assert!(cause.what.contains("com.example.closed"), "{cause:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn malloc_debugging_is_seen_before_and_after() {
    let bench = boot("android=14,build=userdebug,speed=60").await;
    let set = Command::program("setprop").args(["libc.debug.malloc.options", "backtrace"]);
    let out = bench
        .device
        .run(&set, SOON)
        .await
        .expect("a phone that answers");
    assert_eq!(out.exit, 0, "{out:?}");
    let facts = eligibility::facts(&bench.device)
        .await
        .expect("a phone that answers");
    let bench = Bench { facts, ..bench };
    let a = bench.name("com.example.app").await;
    assert_eq!(a.targets[0].native, Answer::No);
    assert_eq!(
        a.targets[0].processes[0].findings[0].id,
        FindingId::MallocDebug
    );
    assert_eq!(bench.record(a.resolved).await, BTreeMap::new());
    let log = eligibility::read_log(&bench.device, bench.facts.clock_s)
        .await
        .expect("a log");
    let target = EmptyTarget {
        name: "com.example.app".to_owned(),
        pid: Some(a.targets[0].processes[0].process.pid),
        ..EmptyTarget::default()
    };
    let evidence = Evidence {
        log: &log,
        ..Evidence::default()
    };
    assert_eq!(
        explain(&target, &evidence)[0].id,
        FindingId::MallocDebug,
        "{log:?}"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_recorded_with_all_its_processes() {
    let bench = boot("android=14,build=user,speed=60").await;
    for (package, expected) in [
        (
            "com.example.app",
            vec!["com.example.app", "com.example.app:service"],
        ),
        ("com.example.browser", vec!["com.example.browser"]),
    ] {
        let a = bench
            .assess(&Targets {
                packages: vec![package.to_owned()],
                ..Targets::default()
            })
            .await;
        assert_eq!(a.resolved.names, expected);
        let recorded = bench.record(a.resolved.clone()).await;
        let sampled: Vec<&str> = processes(&a)
            .filter(|p| recorded.get(&p.process.pid) == Some(&true))
            .map(|p| p.process.name.as_str())
            .collect();
        assert_eq!(sampled, expected);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn facts_of_the_phone_are_read_whole() {
    for (android, build) in [(10, "user"), (14, "user"), (16, "userdebug")] {
        let bench = boot(&format!("android={android},build={build}")).await;
        let f = &bench.facts;
        assert_eq!(f.serial, bench.phone.serials()[0]);
        let sdk = BTreeMap::from([(10, 29), (14, 34), (16, 36)])[&android];
        assert_eq!((f.sdk, f.api()), (Some(sdk), Some(sdk)));
        assert_eq!(f.is_user_build(), Some(build == "user"));
        assert_eq!(f.root.is_some(), build == "userdebug");
        assert_eq!(f.shell_uid, Some(2000));
        assert_eq!(f.tracing_on, Some(true));
        assert_eq!(f.screen_on, Some(true));
        assert_eq!(f.users.len(), 2);
        assert!(f.model.is_some() && f.fingerprint.is_some() && f.release.is_some());
        assert!(f.boot_id.is_some() && f.uptime.is_some() && f.clock_s.is_some());
        assert!(
            f.free_bytes.is_some_and(|b| b > 1 << 30),
            "{:?}",
            f.free_bytes
        );
        assert!(f.perfetto_version.is_some());
        assert_eq!(f.is_64_bit(), Some(true));
        assert!(android == 10 || f.sessions.is_some());
    }
    let off = boot("android=14,fault=traced-off").await;
    assert_eq!(off.facts.tracing_on, Some(false));
    let a = off.name("com.example.app").await;
    assert_eq!(a.device[0].id, FindingId::TracedOff);
    assert!(a.refusal(Scope::Native).is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn packages_are_listed_with_what_they_allow() {
    for (android, build) in [(10, "user"), (14, "user"), (14, "userdebug")] {
        let bench = boot(&format!("android={android},build={build}")).await;
        let list = |filter: Option<&str>, all| {
            let options = ListOptions {
                filter: filter.map(str::to_owned),
                all,
                user: None,
            };
            let (device, facts) = (bench.device.clone(), bench.facts.clone());
            async move {
                eligibility::list_apps(&device, &facts, &options)
                    .await
                    .expect("a list")
            }
        };
        let installed = list(None, false).await;
        let of = |name: &str| {
            let app = installed.iter().find(|a| a.package.name == name);
            app.unwrap_or_else(|| panic!("{name} is not listed"))
        };
        let app = of("com.example.app");
        assert_eq!(app.package.app_type, Some(AppType::Debuggable));
        assert_eq!((app.processes.len(), app.native), (2, Answer::Yes));
        assert_eq!(
            of("com.example.profileable").package.app_type,
            Some(AppType::Profileable)
        );
        assert_eq!(of("com.example.stopped").native, Answer::OnlyFromStartup);
        let closed = of("com.example.closed");
        let expected = if build == "user" {
            Answer::No
        } else {
            Answer::Yes
        };
        assert_eq!(closed.native, expected);
        assert!(installed.iter().all(|a| a.system == Some(false)));
        let all = list(None, true).await;
        assert!(all.len() > installed.len());
        assert!(all.iter().any(|a| a.package.name == "com.android.settings"));
        let found = list(Some("SystemUI"), false).await;
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].system, Some(true));
    }
}

/// The real binary.
fn heaptap(bench: &Bench, args: &[&str]) -> (i32, String, String) {
    let out = crate::program::heaptap()
        .args(["--adb-server", &bench.phone.addr().to_string()])
        .args(args)
        .output()
        .expect("the program was built");
    let text = |bytes| String::from_utf8(bytes).expect("UTF-8");
    let code = out.status.code().expect("it was not killed");
    (code, text(out.stdout), text(out.stderr))
}

#[tokio::test(flavor = "multi_thread")]
async fn check_advises_commands_for_the_same_device() {
    let bench = boot("android=14,build=user").await;
    let server = bench.phone.addr().to_string();
    for (name, command) in [("nosuch", "apps"), ("com.example.closed", "check")] {
        let (_, text, _) = heaptap(&bench, &["check", "-n", name]);
        let bare = format!("`heaptap {command}`");
        assert!(!text.contains(&bare), "{text}");
    }
    let (_, text, _) = heaptap(&bench, &["check", "-n", "nosuch"]);
    let advice = format!("`heaptap apps --adb-server {server}`");
    assert!(text.contains(&advice), "{text}");
    // Apps name their own heaps as they like.
    let named = ["check", "-n", "com.example.app", "--heap", "bogus"];
    let (code, _, said) = heaptap(&bench, &named);
    assert_eq!(code, 0);
    assert!(
        said.contains("only a recording shows whether the app has a heap"),
        "{said}"
    );
    let (_, _, said) = heaptap(
        &bench,
        &["check", "-n", "com.example.app", "--heap", "malloc"],
    );
    assert!(said.contains("did you mean libc.malloc?"), "{said}");
    assert!(!said.contains("only a recording"), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn check_exits_with_4_where_any_is_not_eligible() {
    let bench = boot("android=14,build=user").await;
    for (args, code, says) in [
        (
            &["check", "-n", "com.example.app"][..],
            0,
            "native: yes  java: yes",
        ),
        (
            &["check", "-n", "com.example.stopped"],
            0,
            "native: only from startup",
        ),
        (
            &["check", "-n", "com.example.closed"],
            4,
            "<profileable android:shell=\"true\"/>",
        ),
        (
            &["check", "-n", "com.example.app,com.example.closed"],
            4,
            "USER_RELEASE",
        ),
        (
            &["check", "-n", "com.exmaple.app"],
            4,
            "did you mean com.example.app",
        ),
        (&["check", "-n", "surfaceflinger"], 4, "SYSTEM_UID"),
        (
            &["check", "--package", "com.example.app"],
            0,
            "package com.example.app: 2 processes",
        ),
        (
            &["check", "-n", "com.example.app*"],
            4,
            "com.example.app.demo",
        ),
        (&["check", "-p", "99999"], 4, "no process has PID 99999"),
        (
            &["check", "-n", "com.example.chat", "--user", "10"],
            0,
            "uid 1010241",
        ),
    ] {
        let (got, stdout, stderr) = heaptap(&bench, args);
        assert_eq!(got, code, "{args:?}: {stdout}{stderr}");
        assert!(stdout.contains(says), "{args:?}: {stdout}{stderr}");
    }
    let daemon = boot("android=14,build=userdebug").await;
    assert_eq!(heaptap(&daemon, &["check", "-n", "surfaceflinger"]).0, 0);
    // It could start later, but who mistypes a name would wait for ever.
    for (command, typed, meant) in [
        ("check", "surfaceflingr", "did you mean surfaceflinger?"),
        ("dump", "surfaceflingr", "did you mean surfaceflinger?"),
        ("check", "2050", "did you mean `-p 2050`?"),
    ] {
        let (_, stdout, stderr) = heaptap(&daemon, &[command, "-n", typed]);
        assert!(
            (stdout.clone() + &stderr).contains(meant),
            "{stdout}{stderr}"
        );
    }
    assert_eq!(
        heaptap(
            &daemon,
            &["check", "-n", "surfaceflinger", "--heap", "java"]
        )
        .0,
        4
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn check_and_apps_speak_json() {
    let bench = boot("android=13,build=user").await;
    let json = |args: &[&str]| -> serde_json::Value {
        let (_, stdout, stderr) = heaptap(&bench, args);
        serde_json::from_str(&stdout).unwrap_or_else(|e| panic!("{e}: {stdout}{stderr}"))
    };
    let check = json(&["check", "-n", "com.example.closed", "--json"]);
    assert_eq!(check["eligible"], false);
    assert_eq!(check["device"]["sdk"], 33);
    let process = &check["targets"][0]["processes"][0];
    assert_eq!(process["native"], "no");
    assert_eq!(process["findings"][0]["id"], "USER_RELEASE");
    let apps = json(&["apps", "--json"]);
    let apps = apps["apps"].as_array().expect("a list");
    let of = |name: &str| {
        apps.iter()
            .find(|a| a["name"] == name)
            .expect("it is listed")
    };
    assert_eq!(of("com.example.app")["app_type"], "debuggable");
    assert_eq!(of("com.example.app")["native"], "yes");
    assert_eq!(of("com.example.closed")["native"], "no");
    let (code, stdout, _) = heaptap(&bench, &["apps", "example.app"]);
    assert_eq!(code, 0);
    assert!(
        stdout
            .lines()
            .any(|l| l.contains("com.example.app ") && l.contains("debuggable"))
    );
    assert!(!stdout.contains("systemui"), "{stdout}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_not_be_profiled_is_refused_before_anything_is_recorded() {
    let bench = boot("android=14,build=user").await;
    let out = tempfile::tempdir().expect("a folder");
    let directory = out.path().join("recording");
    let directory = directory.to_str().expect("UTF-8");
    let (code, _, stderr) = heaptap(
        &bench,
        &[
            "record",
            "-n",
            "com.example.closed",
            "-d",
            "1s",
            "-o",
            directory,
        ],
    );
    assert_eq!(code, 4, "{stderr}");
    assert!(
        stderr.contains("neither debuggable nor profileable"),
        "{stderr}"
    );
    assert!(stderr.contains("--no-check"), "{stderr}");
    assert!(
        !std::path::Path::new(directory).exists(),
        "no folder is left behind"
    );
    assert_eq!(
        bench.phone.list("/data/misc/perfetto-traces"),
        Vec::<String>::new()
    );
    assert!(bench.phone.truth().is_empty());
}
