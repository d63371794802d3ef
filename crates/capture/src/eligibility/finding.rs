//! What heaptap says of a phone or a target before anything is recorded: an id for scripts,
//! and what, why and the fix for people. Owns the words; the rules are in `decide`.

use serde::{Deserialize, Serialize};

use super::packages::{AppType, Package};
use super::processes::Process;
use heaptap_model::units::ByteSize;
use heaptap_model::untrusted::shell::{Shell, quoted};

/// Stable ids of findings; `docs/eligibility.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum FindingId {
    SdkLow,
    NotInstalled,
    NotRunning,
    Subproc,
    OtherUser,
    UserRelease,
    PlatformOnly,
    SystemUid,
    UidRange,
    Isolated,
    Critical,
    Zygote,
    NativeNoJava,
    Arch,
    NativeBridge,
    MallocDebug,
    Wrapped,
    SharedUid,
    Frozen,
    Cached,
    Stopped,
    ScreenOff,
    TracedOff,
    Busy,
    SessionLimit,
    Space,
    Unknown,
    NoAllocation,
    NoDump,
    Refused,
}

impl FindingId {
    /// The id as scripts see it, such as `USER_RELEASE`.
    pub fn as_str(self) -> &'static str {
        use FindingId as F;
        match self {
            F::SdkLow => "SDK_LOW",
            F::NotInstalled => "NOT_INSTALLED",
            F::NotRunning => "NOT_RUNNING",
            F::Subproc => "SUBPROC",
            F::OtherUser => "OTHER_USER",
            F::UserRelease => "USER_RELEASE",
            F::PlatformOnly => "PLATFORM_ONLY",
            F::SystemUid => "SYSTEM_UID",
            F::UidRange => "UID_RANGE",
            F::Isolated => "ISOLATED",
            F::Critical => "CRITICAL",
            F::Zygote => "ZYGOTE",
            F::NativeNoJava => "NATIVE_NO_JAVA",
            F::Arch => "ARCH",
            F::NativeBridge => "NATIVE_BRIDGE",
            F::MallocDebug => "MALLOC_DEBUG",
            F::Wrapped => "WRAPPED",
            F::SharedUid => "SHARED_UID",
            F::Frozen => "FROZEN",
            F::Cached => "CACHED",
            F::Stopped => "STOPPED",
            F::ScreenOff => "SCREEN_OFF",
            F::TracedOff => "TRACED_OFF",
            F::Busy => "BUSY",
            F::SessionLimit => "SESSION_LIMIT",
            F::Space => "SPACE",
            F::Unknown => "UNKNOWN",
            F::NoAllocation => "NO_ALLOCATION",
            F::NoDump => "NO_DUMP",
            F::Refused => "REFUSED",
        }
    }
}

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Good to know.
    Note,
    /// May spoil or shorten the recording.
    Warning,
    /// There would be nothing to see.
    Blocks,
}

/// What a finding is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Native heap profiles alone.
    Native,
    /// Java heap dumps alone.
    Java,
    /// Both.
    Both,
}

/// One thing to say, with its reason and its remedy. Texts are safe to show.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    /// For scripts.
    pub id: FindingId,
    /// How much it matters.
    pub severity: Severity,
    /// Which kind of profile it is about.
    pub scope: Scope,
    /// What is the matter.
    pub what: String,
    /// Why that matters.
    pub why: String,
    /// What would help.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

/// What goes into the manifest of an app that adb may profile.
pub const MANIFEST_SNIPPET: &str = "<profileable android:shell=\"true\"/>";

impl Finding {
    fn new(id: FindingId, severity: Severity, scope: Scope, what: impl Into<String>) -> Finding {
        Finding {
            id,
            severity,
            scope,
            what: what.into(),
            why: String::new(),
            fix: None,
        }
    }

    fn why(mut self, why: impl Into<String>) -> Finding {
        self.why = why.into();
        self
    }

    fn fix(mut self, fix: impl Into<String>) -> Finding {
        self.fix = Some(fix.into());
        self
    }

    pub(super) fn sdk_low(scope: Scope, system: &str) -> Finding {
        let (kind, needs) = match scope {
            Scope::Java => ("Java heap dumps", "Android 11"),
            _ => ("Native heap profiles", "Android 10"),
        };
        Finding::new(
            FindingId::SdkLow,
            Severity::Blocks,
            scope,
            format!("{kind} need {needs}; this phone runs {system}"),
        )
        .why("its system has no such data source")
        .fix(format!("use a phone or an emulator with {needs} or newer"))
    }

    pub(super) fn not_installed(name: &str, user: u32, similar: &[&str]) -> Finding {
        let f = Finding::new(
            FindingId::NotInstalled,
            Severity::Blocks,
            Scope::Both,
            format!("No package {name} is installed for user {user}, and no process has that name"),
        )
        .why("there is nothing to profile");
        if similar.is_empty() {
            f.fix("`heaptap apps` lists what is installed; `--user ID` looks at another user")
        } else {
            f.fix(format!("did you mean {}?", similar.join(", or ")))
        }
    }

    pub(super) fn not_running(name: &str, severity: Severity) -> Finding {
        let f = Finding::new(
            FindingId::NotRunning,
            severity,
            Scope::Both,
            format!("No process matches {name}"),
        );
        match severity {
            Severity::Blocks => f
                .why("--no-startup records running processes alone")
                .fix("start it first, or record from its start: --no-running, or --launch"),
            _ => f
                .why("a recording waits for it to start; a Java heap dump needs it running")
                .fix("start it, now or once the recording runs; `record --launch` starts it"),
        }
    }

    pub(super) fn no_process(name: &str, similar: &[&str]) -> Finding {
        let f = Finding::new(
            FindingId::NotRunning,
            Severity::Blocks,
            Scope::Both,
            format!("No process matches {name}"),
        )
        .why("no program that runs and no installed app has that name");
        if similar.is_empty() {
            f.fix("start it first; `heaptap apps` lists the apps")
        } else {
            f.fix(format!("did you mean {}?", similar.join(", or ")))
        }
    }

    pub(super) fn no_user(user: u32, users: &[u32]) -> Finding {
        let users: Vec<String> = users.iter().map(u32::to_string).collect();
        Finding::new(
            FindingId::OtherUser,
            Severity::Blocks,
            Scope::Both,
            format!("The phone has no user {user}"),
        )
        .why(match users.as_slice() {
            [only] => format!("its only user is {only}"),
            [rest @ .., last] => format!("its users are {} and {last}", rest.join(", ")),
            [] => "it names none".to_owned(),
        })
        .fix("leave out --user, or name one of those")
    }

    pub(super) fn no_match(pattern: &str) -> Finding {
        Finding::new(
            FindingId::NotRunning,
            Severity::Blocks,
            Scope::Both,
            format!("No process matches {pattern}"),
        )
        .why("patterns are resolved to the processes that run")
        .fix("start it first, or give its whole name: that can be recorded from its start")
    }

    pub(super) fn pid_gone(pid: u32) -> Finding {
        Finding::new(
            FindingId::NotRunning,
            Severity::Blocks,
            Scope::Both,
            format!("No process has the pid {pid}"),
        )
        .why("it has ended, or the number is wrong")
        .fix("name the process instead: a name also matches after a restart")
    }

    pub(super) fn subprocesses(name: &str, others: &[&str], package: &str) -> Finding {
        Finding::new(
            FindingId::Subproc,
            Severity::Note,
            Scope::Both,
            format!("{package} also runs {}", others.join(", ")),
        )
        .why(match others.len() {
            1 => format!("the name {name} does not cover it"),
            _ => format!("the name {name} does not cover them"),
        })
        .fix(format!(
            "add them: -n {}; or all of them: --package {}",
            quoted(format!("{name},{}", others.join(","))),
            quoted(package)
        ))
    }

    pub(super) fn other_users(name: &str, users: &[u32], pids: &[u32]) -> Finding {
        let list = |v: &[u32]| v.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        Finding::new(
            FindingId::OtherUser,
            Severity::Note,
            Scope::Both,
            format!("{name} runs for users {}", list(users)),
        )
        .why("a name matches in all of them")
        .fix(format!(
            "single one out with --user, or by pid ({})",
            list(pids)
        ))
    }

    pub(super) fn user_release(package: &Package) -> Finding {
        let name = &package.name;
        if package.app_type == Some(AppType::PlatformOnly) {
            return Finding::new(
                FindingId::PlatformOnly,
                Severity::Blocks,
                Scope::Both,
                format!("{name} lets only the system profile it"),
            )
            .why("this is a production build, which refuses sessions of adb then")
            .fix(manifest_fix());
        }
        Finding::new(
            FindingId::UserRelease,
            Severity::Blocks,
            Scope::Both,
            format!("{name} is neither debuggable nor profileable from adb"),
        )
        .why(
            "this is a production build, which asks the app's manifest; the profile would be empty",
        )
        .fix(manifest_fix())
    }

    pub(super) fn system_uid(name: &str, uid: u32) -> Finding {
        Finding::new(
            FindingId::SystemUid,
            Severity::Blocks,
            Scope::Both,
            format!("{name} runs as a user of the platform (uid {uid})"),
        )
        .why("production builds never let adb profile those, whatever a manifest says")
        .fix("use a userdebug build, or an emulator image without Google Play")
    }

    pub(super) fn uid_range(name: &str, uid: u32) -> Finding {
        Finding::new(
            FindingId::UidRange,
            Severity::Blocks,
            Scope::Both,
            format!(
                "{name} runs with uid {uid}, which belongs to no package that allows profiling"
            ),
        )
        .why("production builds profile apps alone, and their SDK sandboxes from Android 13 on")
        .fix("use a userdebug build")
    }

    pub(super) fn isolated(name: &str) -> Finding {
        Finding::new(
            FindingId::Isolated,
            Severity::Blocks,
            Scope::Both,
            format!("{name} is an isolated process"),
        )
        .why("its uid belongs to no package, so production builds refuse sessions of adb")
        .fix("profile the app's main process, or use a userdebug build")
    }

    pub(super) fn critical(name: &str) -> Finding {
        Finding::new(
            FindingId::Critical,
            Severity::Blocks,
            Scope::Both,
            format!("{name} may never be profiled"),
        )
        .why("SELinux forbids it on every build")
        .fix(
            "on a userdebug build: --disable-selinux (`su root setenforce 0`; lowers the \
             phone's security, undone afterwards)",
        )
    }

    pub(super) fn zygote(name: &str, permissive: bool) -> Finding {
        Finding::new(
            FindingId::Zygote,
            if permissive {
                Severity::Warning
            } else {
                Severity::Blocks
            },
            Scope::Both,
            format!("{name} is a zygote, from which apps are forked"),
        )
        .why(if permissive {
            "with SELinux permissive an attempt may work, and may take all apps down"
        } else {
            "it does not answer to the profiler, and SELinux forbids it"
        })
        .fix("profile the app's own processes")
    }

    pub(super) fn kernel_thread(name: &str) -> Finding {
        Finding::new(
            FindingId::Critical,
            Severity::Blocks,
            Scope::Both,
            format!("{name} is a thread of the kernel"),
        )
        .why("it has no heap of its own")
    }

    pub(super) fn native_no_java(name: &str) -> Finding {
        Finding::new(
            FindingId::NativeNoJava,
            Severity::Note,
            Scope::Java,
            format!("{name} has no Java runtime"),
        )
        .why("it is a native program: there is no Java heap to dump")
    }

    pub(super) fn arch_x86() -> Finding {
        Finding::new(
            FindingId::Arch,
            Severity::Blocks,
            Scope::Native,
            "Android 10 cannot profile native heaps on x86",
        )
        .why("its heapprofd does not unwind there")
        .fix("use an x86 image of Android 11 or newer, or an ARM phone")
    }

    pub(super) fn arch_32(name: &str) -> Finding {
        Finding::new(
            FindingId::Arch,
            Severity::Blocks,
            Scope::Native,
            format!("{name} has 32 bits on a phone of 64"),
        )
        .why("Android 10 and 11 profile no native heaps of 32 bits there")
        .fix("install the app's 64-bit build (`adb install --abi arm64-v8a`), or use Android 12")
    }

    pub(super) fn native_bridge(bridge: &str) -> Finding {
        Finding::new(
            FindingId::NativeBridge,
            Severity::Note,
            Scope::Native,
            format!("Apps built for another processor are translated here ({bridge})"),
        )
        .why("stacks of translated code show the translator, not the app")
        .fix("install a build for this phone's own ABI")
    }

    pub(super) fn malloc_debug(name: &str, property: &str) -> Finding {
        Finding::new(
            FindingId::MallocDebug,
            Severity::Blocks,
            Scope::Native,
            format!("malloc debugging is switched on for {name} ({property})"),
        )
        .why("heapprofd and malloc_debug hook the same functions: it cannot attach")
        .fix(format!(
            "adb shell setprop {property} '\"\"', then restart the process"
        ))
    }

    pub(super) fn wrapped(name: &str) -> Finding {
        Finding::new(
            FindingId::Wrapped,
            Severity::Note,
            Scope::Native,
            format!("{name} is started through a wrapper (wrap.{name})"),
        )
        .why("a sanitizer or another allocator in it would hide the heap from heapprofd")
        .fix(format!(
            "adb shell setprop {} '\"\"', then restart the app",
            // The shell of the phone reads it once more.
            quoted(Shell::Sh.quoted(format!("wrap.{name}")))
        ))
    }

    pub(super) fn shared_uid(package: &str, others: &[&str]) -> Finding {
        Finding::new(
            FindingId::SharedUid,
            Severity::Warning,
            Scope::Both,
            format!("{package} shares its uid with {}", others.join(", ")),
        )
        .why("the first of them in the phone's list decides for all, and they differ")
        .fix("make them all profileable, or see `heaptap check` for each")
    }

    pub(super) fn frozen(name: &str) -> Finding {
        Finding::new(
            FindingId::Frozen,
            Severity::Warning,
            Scope::Both,
            format!("{name} is frozen"),
        )
        .why("the profiler attaches only once it runs and allocates")
        .fix("bring the app to the foreground")
    }

    pub(super) fn cached(name: &str, can_freeze: bool) -> Finding {
        Finding::new(
            FindingId::Cached,
            Severity::Warning,
            Scope::Both,
            format!("{name} is cached in the background"),
        )
        .why(if can_freeze {
            "Android may freeze or kill it at any time; the profiler attaches once it runs and allocates"
        } else {
            "Android may kill it at any time; the profiler attaches once it runs and allocates"
        })
        .fix("bring the app to the foreground")
    }

    pub(super) fn stopped(process: &Process) -> Finding {
        Finding::new(
            FindingId::Stopped,
            Severity::Warning,
            Scope::Both,
            format!("{} ({}) is stopped", process.name, process.pid),
        )
        .why("a debugger or SIGSTOP holds it; the profiler attaches once it runs on")
        .fix("let it continue")
    }

    pub(super) fn screen_off() -> Finding {
        Finding::new(
            FindingId::ScreenOff,
            Severity::Note,
            Scope::Both,
            "The screen is off",
        )
        .why("apps do little then, and the profiler attaches only when they allocate")
        .fix("adb shell input keyevent KEYCODE_WAKEUP")
    }

    pub(super) fn traced_off() -> Finding {
        Finding::new(
            FindingId::TracedOff,
            Severity::Blocks,
            Scope::Both,
            "The phone's tracing daemon is off",
        )
        .why("nothing can be recorded without it")
        .fix("adb shell setprop persist.traced.enable 1")
    }

    pub(super) fn busy(what: String) -> Finding {
        Finding::new(FindingId::Busy, Severity::Warning, Scope::Native, what)
            .why("a process can be in one heap profile at a time: the second gets no samples")
            .fix("stop the other recording, or wait for it; `heaptap status` lists heaptap's own")
    }

    pub(super) fn other_sessions(list: &str) -> Finding {
        Finding::new(
            FindingId::Busy,
            Severity::Note,
            Scope::Native,
            format!("Other tracing sessions are running: {list}"),
        )
        .why("if one of them profiles the same process, that one keeps it")
    }

    pub(super) fn session_limit(count: usize) -> Finding {
        Finding::new(
            FindingId::SessionLimit,
            Severity::Blocks,
            Scope::Both,
            format!("adb's shell has {count} tracing sessions running already"),
        )
        .why("the phone takes five of one user")
        .fix("stop some: `heaptap status`, or adb shell killall -INT perfetto")
    }

    pub(super) fn space(free: u64) -> Finding {
        Finding::new(
            FindingId::Space,
            Severity::Warning,
            Scope::Both,
            format!("Only {} are free on the phone", ByteSize(free)),
        )
        .why("the recording ends when its file cannot grow")
        .fix("delete something on the phone, or record with a larger --interval")
    }

    pub(super) fn unknown(name: &str) -> Finding {
        Finding::new(
            FindingId::Unknown,
            Severity::Warning,
            Scope::Both,
            format!("It could not be found out whether {name} may be profiled"),
        )
        .why("the phone did not answer; an empty profile would mean that it may not")
        .fix(manifest_fix())
    }

    pub(super) fn no_dump(name: &str) -> Finding {
        Finding::new(
            FindingId::NoDump,
            Severity::Warning,
            Scope::Java,
            format!("{name} gave no heap dump"),
        )
        .why("it was busy, frozen or ended before it began to write, or has no Java heap")
        .fix(
            "bring the app to the front and dump again; `heaptap dump --hprof` asks it another way",
        )
    }

    pub(super) fn no_allocation(name: &str, heaps: &[String]) -> Finding {
        let why = if heaps.is_empty() {
            "the profiler attaches at the first allocation, and counts from there".to_owned()
        } else {
            format!(
                "the profiler attaches at the first allocation; and the process may have no heap \
                 called {}",
                heaps.join(", ")
            )
        };
        Finding::new(
            FindingId::NoAllocation,
            Severity::Warning,
            Scope::Native,
            format!("{name} allocated nothing that was sampled while it was recorded"),
        )
        .why(why)
        .fix("use the app while recording, record longer, or from its start: --launch")
    }

    pub(super) fn refused(line: &str) -> Finding {
        Finding::new(
            FindingId::Refused,
            Severity::Blocks,
            Scope::Both,
            format!("The phone's log says: {line}"),
        )
        .why("this is why there are no samples")
    }
}

fn manifest_fix() -> String {
    format!(
        "add {MANIFEST_SNIPPET} inside <application> of the app's manifest, or install a debug \
         build, or use a userdebug phone"
    )
}
