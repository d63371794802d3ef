//! Tests of the shell calls, against an adb server in memory whose device answers by a function:
//! missing tools, silent services, and the order of the queried sources.

use std::io;
use std::sync::{Arc, Mutex};

use prost::Message as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use crate::config::Targets;
use crate::eligibility::{
    Answer, AppTypeSource, AssessOptions, EligibilityError, FindingId, ListOptions, Root, assess,
    facts, list_apps, resolve_each, resolve_pids,
};
use heaptap_adb::{Connect, Connecting, Device, DeviceError, Server, Stream, parse_list};
use heaptap_proto::perfetto::{
    PackagesList, Trace, TraceConfig, TracePacket, packages_list::PackageInfo,
};

/// Response of the device to a command.
enum Reply {
    /// Standard output and exit code.
    Says(Vec<u8>, u8),
    /// No answer.
    Hangs,
    /// The connection ends without an exit code.
    Breaks,
}

fn says(text: &str) -> Reply {
    Reply::Says(text.as_bytes().to_vec(), 0)
}

fn missing() -> Reply {
    Reply::Says(Vec::new(), 127)
}

type Answers = dyn Fn(&str, &[u8]) -> Reply + Send + Sync;

/// The adb server, and the commands that reached the device.
#[derive(Clone)]
struct Phone {
    answers: Arc<Answers>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Phone {
    fn new(answers: impl Fn(&str, &[u8]) -> Reply + Send + Sync + 'static) -> Phone {
        Phone {
            answers: Arc::new(answers),
            asked: Arc::default(),
        }
    }

    fn device(&self) -> Device {
        let listed = parse_list("S\tdevice");
        Server::over(self.clone()).device(&listed[0], &listed)
    }

    fn asked(&self, what: &str) -> usize {
        let asked = self.asked.lock().expect("no test panics with it");
        asked.iter().filter(|c| c.contains(what)).count()
    }

    async fn serve(self, mut stream: DuplexStream) -> io::Result<()> {
        loop {
            let mut length = [0; 4];
            stream.read_exact(&mut length).await?;
            let length = String::from_utf8_lossy(&length).into_owned();
            let length = usize::from_str_radix(&length, 16).map_err(io::Error::other)?;
            let mut request = vec![0; length];
            stream.read_exact(&mut request).await?;
            let request = String::from_utf8_lossy(&request).into_owned();
            if request.ends_with(":features") {
                return stream.write_all(b"OKAY0010shell_v2,stat_v2").await;
            }
            stream.write_all(b"OKAY").await?;
            if let Some(command) = request
                .strip_prefix("shell,v2,raw:")
                .or_else(|| request.strip_prefix("shell,v2:"))
            {
                return self.run(command, stream).await;
            }
        }
    }

    async fn run(self, command: &str, mut stream: DuplexStream) -> io::Result<()> {
        let mut stdin = Vec::new();
        loop {
            let mut head = [0; 5];
            stream.read_exact(&mut head).await?;
            let length = u32::from_le_bytes([head[1], head[2], head[3], head[4]]);
            let mut payload = vec![0; length as usize];
            stream.read_exact(&mut payload).await?;
            match head[0] {
                0 => stdin.extend(payload),
                4 => break,
                _ => {}
            }
        }
        self.asked
            .lock()
            .expect("no test panics with it")
            .push(command.to_owned());
        match (self.answers)(command, &stdin) {
            Reply::Says(stdout, exit) => {
                for (id, bytes) in [(1, stdout.as_slice()), (3, &[exit])] {
                    stream.write_all(&[id]).await?;
                    let length = u32::try_from(bytes.len()).map_err(io::Error::other)?;
                    stream.write_all(&length.to_le_bytes()).await?;
                    stream.write_all(bytes).await?;
                }
                Ok(())
            }
            Reply::Hangs => std::future::pending().await,
            Reply::Breaks => Ok(()),
        }
    }
}

impl Connect for Phone {
    fn connect(&self) -> Connecting<'_> {
        Box::pin(async move {
            let (ours, theirs) = tokio::io::duplex(1 << 16);
            tokio::spawn(self.clone().serve(theirs));
            Ok(Box::new(ours) as Box<dyn Stream>)
        })
    }

    fn address(&self) -> String {
        "memory".to_owned()
    }
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
) -> Phone {
    Phone::new(move |command, stdin| {
        if let Some(reply) = more(command, stdin) {
            return reply;
        }
        if command.contains("getprop;") {
            says(&properties(sdk, build))
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

fn names(names: &[&str]) -> Targets {
    Targets {
        names: names.iter().map(|n| (*n).to_owned()).collect(),
        ..Targets::default()
    }
}

async fn answer_of(phone: &Phone, name: &str) -> (Answer, Option<AppTypeSource>) {
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
    assert_eq!(phone.asked("perfetto -c"), 0);
    assert_eq!(
        phone.asked("su root"),
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
    assert_eq!(phone.asked("--user 10"), 1);
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
    assert_eq!(phone.asked("simpleperf_app_runner"), 0);
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
    let phone = Phone::new(|_, _| missing());
    let device = phone.device();
    let f = facts(&device).await.expect("it answers, if badly");
    assert_eq!((f.api(), f.is_user_build()), (None, None));
    let a = assess(&device, &f, &names(&["com.x"]), &AssessOptions::default())
        .await
        .expect("it answers, if badly");
    assert_eq!(a.targets[0].findings[0].id, FindingId::NotRunning);
    let list = list_apps(&device, &f, &ListOptions::default()).await;
    assert!(matches!(
        list,
        Err(EligibilityError::NoPackages { user: 0 })
    ));
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
            .then_some(Reply::Hangs)
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
    let phone = Phone::new(|_, _| Reply::Breaks);
    let lost = facts(&phone.device()).await;
    assert!(matches!(lost, Err(DeviceError::Lost { .. })), "{lost:?}");
    let phone = usual(34, "user", |command, _| {
        command.contains("simpleperf").then_some(Reply::Breaks)
    });
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    let options = AssessOptions::default();
    let lost = assess(&device, &f, &names(&["com.example.app"]), &options).await;
    assert!(matches!(
        lost,
        Err(EligibilityError::Device(DeviceError::Lost { .. }))
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
            return Some(says(&lines.collect::<String>()));
        }
        None
    });
    let device = phone.device();
    let f = facts(&device).await.expect("the shell answers");
    let before = phone.asked("");
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
    let calls = phone.asked("") - before;
    assert_eq!(phone.asked("simpleperf_app_runner"), 2);
    assert!(calls <= 6 + 3 * 8, "{calls} calls");
}
