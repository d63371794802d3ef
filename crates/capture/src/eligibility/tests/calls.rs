//! Tests of the shell calls, against an adb server in memory whose device answers by a function:
//! missing tools, silent services, and the order of the queried sources.

use prost::Message as _;

use super::targets::names;
use crate::config::Targets;
use crate::eligibility::{
    Answer, AppTypeSource, AssessOptions, FindingId, ListOptions, Root, assess, facts, list_apps,
    resolve_each, resolve_pids,
};
use crate::error::CaptureError;
use crate::testing::{FakePhone, Reply, says};
use heaptap_adb::DeviceError;
use heaptap_proto::perfetto::{
    PackagesList, Trace, TraceConfig, TracePacket, packages_list::PackageInfo,
};

fn missing() -> Reply {
    Reply::Says(Vec::new(), 127)
}

fn properties(sdk: u32, build: &str) -> String {
    let debuggable = u8::from(build != "user");
    format!(
        "@@heaptap getprop\n[ro.build.version.sdk]: [{sdk}]\n[ro.build.type]: [{build}]\n\
         [ro.build.version.codename]: [REL]\n[ro.debuggable]: [{debuggable}]\n\
         [ro.product.cpu.abilist]: [arm64-v8a]\n[init.svc.traced]: [running]\n\
         @@heaptap id\n2000\n@@heaptap getenforce\nEnforcing\n"
    )
}

const PS: &str = "PID PPID UID S NAME\n700 1 0 S zygote64\n1000 700 10234 S com.example.app\n\
    1001 700 1010240 S com.example.work\n";
const PACKAGES: &str = "package:com.example.app uid:10234\npackage:com.example.closed uid:10237\n";

/// Returns a device with two packages, all tools, and `more` in addition.
fn usual(
    sdk: u32,
    build: &'static str,
    more: impl Fn(&str, &[u8]) -> Option<Reply> + Send + Sync + 'static,
) -> FakePhone {
    FakePhone::with_input(move |command, stdin| {
        if let Some(reply) = more(command, stdin) {
            return reply;
        }
        if command.contains("getprop;") {
            says(properties(sdk, build))
        } else if command.starts_with("ps ") {
            says(PS)
        } else if command.starts_with("pm list packages") && command.contains("--user 10") {
            says("package:com.example.work uid:1010240\n")
        } else if command.starts_with("pm list packages") {
            says(PACKAGES)
        } else if command.contains("simpleperf_app_runner") {
            says(
                "@@heaptap com.example.app\ndebuggable\n@@heaptap com.example.closed\n\
                 non_profileable\n@@heaptap com.example.work\nprofileable\n",
            )
        } else {
            missing()
        }
    })
}

async fn answer_of(phone: &FakePhone, name: &str) -> (Answer, Option<AppTypeSource>) {
    let device = phone.device();
    let f = facts(&device).await.expect("a phone that answers");
    let a = assess(&device, &f, &names(&[name]), &AssessOptions::default())
        .await
        .expect("a phone that answers");
    let t = &a.targets[0];
    (t.native, t.packages.first().and_then(|p| p.app_type_source))
}

#[tokio::test(start_paused = true)]
async fn android_12_and_later_are_asked_for_the_type_of_the_app() {
    let phone = usual(34, "user", |_, _| None);
    let runner = Some(AppTypeSource::AppRunner);
    assert_eq!(
        answer_of(&phone, "com.example.app").await,
        (Answer::Yes, runner)
    );
    assert_eq!(
        answer_of(&phone, "com.example.closed").await,
        (Answer::No, runner)
    );
    assert_eq!(phone.asked("perfetto -c").len(), 0);
    assert_eq!(
        phone.asked("su root").len(),
        0,
        "user builds are not asked for root"
    );
}

#[tokio::test(start_paused = true)]
async fn another_users_packages_are_asked_for_when_they_match() {
    let phone = usual(34, "user", |_, _| None);
    let (native, source) = answer_of(&phone, "com.example.work").await;
    assert_eq!(
        (native, source),
        (Answer::Yes, Some(AppTypeSource::AppRunner))
    );
    assert_eq!(phone.asked("--user 10").len(), 1);
}

#[tokio::test(start_paused = true)]
async fn android_10_is_asked_by_a_short_trace() {
    let phone = usual(29, "user", |command, stdin| {
        if !command.starts_with("perfetto -c") {
            return None;
        }
        let config = TraceConfig::decode(stdin).expect("a binary config");
        let source = config.data_sources[0].config.as_ref().expect("a source");
        assert_eq!(source.name(), "android.packages_list");
        let filter = source.packages_list_config.as_ref().expect("a filter");
        let packages = filter.package_name_filter.iter().map(|name| PackageInfo {
            name: Some(name.clone()),
            uid: Some(if name == "com.example.app" {
                10_234
            } else {
                10_237
            }),
            profileable_from_shell: Some(name == "com.example.app"),
            ..PackageInfo::default()
        });
        let list = PackagesList {
            packages: packages.collect(),
            ..PackagesList::default()
        };
        let trace = Trace {
            packet: vec![TracePacket {
                packages_list: Some(list),
                ..TracePacket::default()
            }],
        };
        Some(Reply::Says(trace.encode_to_vec(), 0))
    });
    let trace = Some(AppTypeSource::PackagesTrace);
    assert_eq!(
        answer_of(&phone, "com.example.app").await,
        (Answer::Yes, trace)
    );
    assert_eq!(
        answer_of(&phone, "com.example.closed").await,
        (Answer::No, trace)
    );
    assert_eq!(phone.asked("simpleperf_app_runner").len(), 0);
}

#[tokio::test(start_paused = true)]
async fn where_better_sources_fail_weak_ones_affirm() {
    let phone = usual(29, "user", |command, _| {
        (command == "run-as com.example.app id").then(|| says("uid=10234(u0_a234)\n"))
    });
    let run_as = Some(AppTypeSource::RunAs);
    assert_eq!(
        answer_of(&phone, "com.example.app").await,
        (Answer::Yes, run_as)
    );
    // A refusal proves nothing.
    assert_eq!(
        answer_of(&phone, "com.example.closed").await,
        (Answer::Unknown, None)
    );
}

#[tokio::test(start_paused = true)]
async fn root_reads_the_list_itself() {
    let phone = usual(30, "userdebug", |command, _| match command {
        "su root id -u" => Some(says("0\n")),
        "su root cat /data/system/packages.list" => Some(says(
            "com.example.app 10234 0 /data default none 0 1 1 @null\n",
        )),
        _ => None,
    });
    let f = facts(&phone.device()).await.expect("a phone that answers");
    assert_eq!(f.root, Some(Root::Su));
    let (native, source) = answer_of(&phone, "com.example.app").await;
    assert_eq!(
        (native, source),
        (Answer::Yes, Some(AppTypeSource::PackagesList))
    );
}

#[tokio::test(start_paused = true)]
async fn a_phone_without_any_tool_is_unknown_and_no_error() {
    let phone = FakePhone::with_input(|_, _| missing());
    let device = phone.device();
    let f = facts(&device).await.expect("it answers, if badly");
    assert_eq!((f.api(), f.is_user_build()), (None, None));
    let a = assess(&device, &f, &names(&["com.x"]), &AssessOptions::default())
        .await
        .expect("it answers, if badly");
    assert_eq!(a.targets[0].findings[0].id, FindingId::NotRunning);
    let list = list_apps(&device, &f, &ListOptions::default()).await;
    assert!(list.unwrap_err().is(&["no-packages"]));
}

#[tokio::test(start_paused = true)]
async fn silent_services_leave_facts_unknown() {
    let phone = usual(34, "user", |command, _| {
        let service = [
            "pm ",
            "am ",
            "simpleperf",
            "--query-raw",
            "run-as",
            "dumpsys",
        ];
        service
            .iter()
            .any(|s| command.contains(s))
            .then_some(Reply::Begins(String::new()))
    });
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    assert_eq!((f.api(), f.current_user), (Some(34), None));
    assert_eq!(
        answer_of(&phone, "com.example.app").await,
        (Answer::Unknown, None)
    );
}

#[tokio::test(start_paused = true)]
async fn a_lost_phone_is_an_error_and_never_an_answer() {
    let phone = FakePhone::with_input(|_, _| Reply::Lost);
    let lost = facts(&phone.device()).await;
    assert!(matches!(lost, Err(DeviceError::Lost { .. })), "{lost:?}");
    let phone = usual(34, "user", |command, _| {
        command.contains("simpleperf").then_some(Reply::Lost)
    });
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    let options = AssessOptions::default();
    let lost = assess(&device, &f, &names(&["com.example.app"]), &options).await;
    assert!(matches!(
        lost,
        Err(CaptureError::Device(DeviceError::Lost { .. }))
    ));
}

#[tokio::test(start_paused = true)]
async fn pids_are_resolved_anew() {
    let phone = usual(34, "user", |_, _| None);
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    let targets = Targets {
        packages: vec!["com.example.app".into()],
        ..names(&["com.example.w*"])
    };
    let pids = resolve_pids(&device, &f, &targets, None)
        .await
        .expect("the shell answers");
    let pids: Vec<u32> = pids.into_iter().map(|(pid, _)| pid).collect();
    assert_eq!(pids, [1000, 1001]);
}

#[tokio::test(start_paused = true)]
async fn targets_of_which_nothing_runs_are_told_as_they_were_typed() {
    let phone = usual(34, "user", |_, _| None);
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    let both = ["com.example.app", "com.example.nope"].map(str::to_owned);
    let targets = Targets {
        names: both.to_vec(),
        packages: both.to_vec(),
        pids: vec![999_999],
    };
    let resolved = resolve_each(&device, &f, &targets, None)
        .await
        .expect("the shell answers");
    assert!(!resolved.found.is_empty());
    assert_eq!(resolved.missing, ["999999", "com.example.nope"]);
}

#[tokio::test(start_paused = true)]
async fn hundreds_of_packages_are_asked_about_at_once() {
    let phone = usual(34, "user", |command, _| {
        if command.starts_with("pm list packages") {
            let lines = (0..400).map(|n| format!("package:com.app{n} uid:{}\n", 10_300 + n));
            return Some(says(lines.collect::<String>()));
        }
        None
    });
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    let before = phone.asked("").len();
    let apps = list_apps(
        &device,
        &f,
        &ListOptions {
            all: true,
            ..ListOptions::default()
        },
    )
    .await
    .expect("a list");
    assert_eq!(apps.len(), 400);
    // Two lists, ps, the trace, then two calls of 200; of the rest eight are tried by hand.
    let calls = phone.asked("").len() - before;
    assert_eq!(phone.asked("simpleperf_app_runner").len(), 2);
    assert!(calls <= 6 + 3 * 8, "{calls} calls");
}
