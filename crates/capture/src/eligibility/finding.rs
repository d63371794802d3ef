//! Findings about a device or a target before a recording: an ID for scripts, and a problem,
//! a reason and a fix for people. This module owns the texts; the rules are in `decide`.

use std::fmt::Display;

use serde::{Deserialize, Serialize};

use FindingId as F;

use super::packages::{AppType, Package};
use super::processes::Process;
use heaptap_base::units::ByteSize;
use heaptap_base::untrusted::shell::{Shell, quoted};
use heaptap_model::names::could_be_app;

/// Stable IDs of findings; `docs/guide/troubleshooting.md` lists them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
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

display_as_serialized!(FindingId);

/// Effect of a finding on a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Information without effect on the recording.
    Note,
    /// Might spoil or shorten the recording.
    Warning,
    /// The recording would be empty.
    Blocks,
}

/// Kind of profile that a finding concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// Native heap profiles only.
    Native,
    /// Java heap dumps only.
    Java,
    Both,
}

/// A problem with its reason and its fix. Texts are sanitized.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Finding {
    pub id: FindingId,
    pub severity: Severity,
    pub scope: Scope,
    /// The problem; starts with the process name, if it concerns one.
    pub what: String,
    /// The reason, or the effect.
    pub why: String,
    /// The next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
    /// Whether `fix` asks if a similar name was meant.
    #[serde(skip)]
    pub asks: bool,
}

/// Manifest element of an app that adb can profile.
pub const MANIFEST_SNIPPET: &str = "<profileable android:shell=\"true\"/>";

/// Returns the message of all commands that need a process that runs.
pub fn no_running_process(targets: impl Display) -> String {
    let targets = targets.to_string();
    match targets.contains(['*', ',']) {
        true => format!("no running process matches {targets}"),
        false => format!("{targets} is not running"),
    }
}

/// A finding of native and Java recordings, unless [`Finding::scope`] limits it.
fn finding(id: F, severity: Severity, what: impl Into<String>) -> Finding {
    Finding {
        id,
        severity,
        scope: Scope::Both,
        what: what.into(),
        why: String::new(),
        fix: None,
        asks: false,
    }
}

fn blocks(id: F, what: impl Into<String>) -> Finding {
    finding(id, Severity::Blocks, what)
}

fn warns(id: F, what: impl Into<String>) -> Finding {
    finding(id, Severity::Warning, what)
}

fn notes(id: F, what: impl Into<String>) -> Finding {
    finding(id, Severity::Note, what)
}

impl Finding {
    fn scope(mut self, scope: Scope) -> Finding {
        self.scope = scope;
        self
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
            Scope::Java => ("Java heap graphs", "Android 11"),
            _ => ("native heap profiles", "Android 10"),
        };
        let what = format!("{kind} need {needs}; the device runs {system}");
        blocks(F::SdkLow, what)
            .scope(scope)
            .why("its system does not have this data source")
            .fix(match scope {
                Scope::Java => format!(
                    "dump a debuggable app with `heaptap dump --hprof`, or use {needs} or newer"
                ),
                _ => format!("use a device or an emulator with {needs} or newer"),
            })
    }

    /// Returns the finding for a named heap before Android 12.
    pub(super) fn no_choice_of_heaps(system: &str) -> Finding {
        let what = format!("a choice of native heaps needs Android 12; the device runs {system}");
        blocks(F::SdkLow, what)
            .scope(Scope::Native)
            .why("only libc.malloc would be recorded")
            .fix("leave out `--heap`, or use a device with Android 12 or newer")
    }

    fn asking(mut self, similar: &[&str]) -> Finding {
        self.asks = true;
        self.fix(format!("did you mean {}?", similar.join(" or ")))
    }

    pub(super) fn not_installed(name: &str, user: u32, similar: &[&str]) -> Finding {
        let what =
            format!("user {user} does not have a package {name}, and no process has that name");
        let f = blocks(F::NotInstalled, what).why("there is nothing to profile");
        match similar {
            [] => {
                f.fix("list the apps with `heaptap apps`, or choose another user with `--user ID`")
            }
            similar => f.asking(similar),
        }
    }

    pub(super) fn not_running(name: &str, severity: Severity) -> Finding {
        let f = finding(F::NotRunning, severity, no_running_process(name));
        match severity {
            Severity::Blocks => {
                let or_launch = if could_be_app(name) {
                    " or `--launch`"
                } else {
                    ""
                };
                f.why("`--no-startup` records only running processes")
                    .fix(format!(
                        "start it first, or record from its start with `--no-running`{or_launch}"
                    ))
            }
            _ => f
                .why("a recording waits for it to start; a Java heap dump needs a running process")
                .fix(start_it(name)),
        }
    }

    /// After the recording: it waited for the process to start.
    pub(super) fn never_started(name: &str) -> Finding {
        warns(F::NotRunning, format!("{name} was not running"))
            .why("it did not start while the recording ran")
            .fix(start_it(name))
    }

    /// Asks for what a name probably means: a process ID, or a similar name.
    pub(super) fn or_meant(self, name: &str, similar: &[&str]) -> Finding {
        if name.bytes().all(|byte| byte.is_ascii_digit()) {
            self.asking(&[&format!("`-p {name}`")])
        } else if similar.is_empty() {
            self
        } else {
            self.asking(similar)
        }
    }

    pub(super) fn no_process(name: &str, similar: &[&str]) -> Finding {
        blocks(F::NotRunning, no_running_process(name))
            .why("no running program and no installed app has that name")
            .fix("start it first, or list the apps with `heaptap apps`")
            .or_meant(name, similar)
    }

    pub(super) fn no_user(user: u32, users: &[u32]) -> Finding {
        let users: Vec<String> = users.iter().map(u32::to_string).collect();
        let what = format!("the device does not have user {user}");
        blocks(F::OtherUser, what)
            .why(match users.as_slice() {
                [only] => format!("its only user is {only}"),
                [rest @ .., last] => format!("its users are {} and {last}", rest.join(", ")),
                [] => "it does not list any users".to_owned(),
            })
            .fix("omit `--user`, or choose a user of the device")
    }

    pub(super) fn no_match(pattern: &str) -> Finding {
        blocks(F::NotRunning, no_running_process(pattern))
            .why("patterns match only running processes")
            .fix("start it first, or give its full name to record it from its start")
    }

    pub(super) fn pid_gone(pid: u32) -> Finding {
        blocks(F::NotRunning, format!("no process has PID {pid}"))
            .why("the process has ended, or the number is wrong")
            .fix("use the process name, which also matches after a restart")
    }

    pub(super) fn subprocesses(name: &str, others: &[&str], package: &str) -> Finding {
        let what = format!("{package} also runs {}", others.join(", "));
        notes(F::Subproc, what)
            .why(match others.len() {
                1 => format!("the name {name} does not cover it"),
                _ => format!("the name {name} does not cover them"),
            })
            .fix(format!(
                "use `-n {}` to include other processes, or `--package {}` to include all",
                quoted(format!("{name},{}", others.join(","))),
                quoted(package)
            ))
    }

    pub(super) fn other_users(name: &str, users: &[u32], pids: &[u32]) -> Finding {
        let list = |v: &[u32]| v.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        let what = format!("{name} runs for users {}", list(users));
        notes(F::OtherUser, what)
            .why("a name matches processes of all users")
            .fix(format!(
                "select one with `--user`, or by PID ({})",
                list(pids)
            ))
    }

    pub(super) fn user_release(package: &Package) -> Finding {
        let name = &package.name;
        if package.app_type == Some(AppType::PlatformOnly) {
            let what = format!("{name} can be profiled only by the system");
            return blocks(F::PlatformOnly, what)
                .why("the device runs a user build, which then refuses profiling from adb")
                .fix(manifest_fix());
        }
        let what = format!("{name} is neither debuggable nor profileable from adb");
        let why =
            "user builds profile only apps whose manifest allows it; the profile would be empty";
        blocks(F::UserRelease, what).why(why).fix(manifest_fix())
    }

    pub(super) fn system_uid(name: &str, uid: u32) -> Finding {
        let what = format!("{name} runs with a system UID ({uid})");
        blocks(F::SystemUid, what)
            .why("user builds never let adb profile system processes, regardless of the manifest")
            .fix("use a userdebug build or an emulator image without Google Play")
    }

    pub(super) fn uid_range(name: &str, uid: u32) -> Finding {
        let what =
            format!("{name} runs with UID {uid}, which does not belong to a profileable package");
        blocks(F::UidRange, what)
            .why("user builds profile only apps and, from Android 13, their SDK sandboxes")
            .fix("use a userdebug build")
    }

    pub(super) fn isolated(name: &str) -> Finding {
        blocks(F::Isolated, format!("{name} is an isolated process"))
            .why("its UID does not belong to a package, so user builds refuse profiling from adb")
            .fix("profile the app's main process, or use a userdebug build")
    }

    pub(super) fn critical(name: &str) -> Finding {
        blocks(F::Critical, format!("{name} cannot be profiled"))
            .why("SELinux forbids it on every build")
            .fix(
                "on a userdebug build, use `record --disable-selinux` (runs `su root setenforce 0`, \
                 which lowers the device's security until the end of the recording)",
            )
    }

    pub(super) fn zygote(name: &str, permissive: bool) -> Finding {
        let what = format!("{name} is a zygote, which forks app processes");
        match permissive {
            true => warns(F::Zygote, what).why(
                "with permissive SELinux an attempt might work, but it might also crash all apps",
            ),
            false => blocks(F::Zygote, what)
                .why("it does not respond to the profiler, and SELinux forbids profiling it"),
        }
        .fix("profile the app's own processes")
    }

    pub(super) fn kernel_thread(name: &str) -> Finding {
        blocks(F::Critical, format!("{name} is a kernel thread"))
            .why("it does not have a heap of its own")
    }

    pub(super) fn native_no_java(name: &str) -> Finding {
        let what = format!("{name} does not have a Java runtime");
        notes(F::NativeNoJava, what)
            .scope(Scope::Java)
            .why("a native program does not have a Java heap")
    }

    pub(super) fn arch_x86() -> Finding {
        blocks(F::Arch, "Android 10 cannot profile native heaps on x86")
            .scope(Scope::Native)
            .why("heapprofd of Android 10 does not unwind x86 stacks")
            .fix("use an x86 image with Android 11 or newer, or an ARM device")
    }

    pub(super) fn arch_32(name: &str) -> Finding {
        let what = format!("{name} is a 32-bit process on a 64-bit device");
        blocks(F::Arch, what)
            .scope(Scope::Native)
            .why("Android 10 and 11 do not profile 32-bit native heaps on 64-bit devices")
            .fix("install the 64-bit build (`adb install --abi arm64-v8a`) or use Android 12")
    }

    pub(super) fn native_bridge(bridge: &str) -> Finding {
        let what = format!("the device translates apps built for another processor ({bridge})");
        notes(F::NativeBridge, what)
            .scope(Scope::Native)
            .why("callstacks of translated code show the translator instead of the app")
            .fix("install a build for the device's own ABI")
    }

    pub(super) fn malloc_debug(name: &str, property: &str) -> Finding {
        let what = format!("{name} has malloc debugging enabled ({property})");
        blocks(F::MallocDebug, what)
            .scope(Scope::Native)
            .why("heapprofd cannot attach because malloc_debug hooks the same functions")
            .fix(format!(
                "run `adb shell setprop {property} '\"\"'`, then restart the process"
            ))
    }

    pub(super) fn wrapped(name: &str) -> Finding {
        let what = format!("{name} starts through a wrapper (wrap.{name})");
        let why =
            "a sanitizer or another allocator in the wrapper would hide the heap from heapprofd";
        notes(F::Wrapped, what)
            .scope(Scope::Native)
            .why(why)
            .fix(format!(
                "run `adb shell setprop {} '\"\"'`, then restart the app",
                // The shell of the device parses it a second time.
                quoted(Shell::Sh.quoted(format!("wrap.{name}")))
            ))
    }

    pub(super) fn shared_uid(package: &str, others: &[&str]) -> Finding {
        let what = format!("{package} shares its UID with {}", others.join(", "));
        let why =
            "their manifests differ, and the first package in the device's list decides for all";
        warns(F::SharedUid, what)
            .why(why)
            .fix("make all of them profileable, or run `heaptap check` for each")
    }

    pub(super) fn frozen(name: &str) -> Finding {
        warns(F::Frozen, format!("{name} is frozen"))
            .why("the profiler attaches only when the process runs and allocates")
            .fix("bring the app to the foreground")
    }

    pub(super) fn cached(name: &str, can_freeze: bool) -> Finding {
        let what = format!("{name} is cached in the background");
        let risk = if can_freeze { "freeze or kill" } else { "kill" };
        warns(F::Cached, what)
            .why(format!(
                "Android might {risk} it; the profiler attaches only when it runs and allocates"
            ))
            .fix("bring the app to the foreground")
    }

    pub(super) fn stopped(process: &Process) -> Finding {
        let what = format!("{} ({}) is stopped", process.name, process.pid);
        warns(F::Stopped, what)
            .why("a debugger or SIGSTOP suspended it; the profiler attaches when it continues")
            .fix("resume the process")
    }

    pub(super) fn screen_off() -> Finding {
        notes(F::ScreenOff, "the screen is off")
            .why("apps do little then, and the profiler attaches only when they allocate")
            .fix("run `adb shell input keyevent KEYCODE_WAKEUP`")
    }

    pub(super) fn traced_off() -> Finding {
        blocks(F::TracedOff, "the tracing daemon of the device is off")
            .why("a recording needs it")
            .fix("run `adb shell setprop persist.traced.enable 1`")
    }

    pub(super) fn busy(what: String) -> Finding {
        warns(F::Busy, what)
            .scope(Scope::Native)
            .why("a process can be in only one heap profile at a time; the second gets no samples")
            .fix("stop the other session or wait for its end; `heaptap status` lists heaptap's own")
    }

    pub(super) fn other_sessions(list: &str) -> Finding {
        let what = format!("other tracing sessions are running: {list}");
        notes(F::Busy, what)
            .scope(Scope::Native)
            .why("if one of them profiles the same process, only that session gets samples")
            .fix("`heaptap status` lists heaptap's own")
    }

    pub(super) fn session_limit(count: usize) -> Finding {
        let what = format!("the adb shell already has {count} running tracing sessions");
        blocks(F::SessionLimit, what)
            .why("the device allows five sessions per user")
            .fix(
                "stop a session that `heaptap status` lists, or run `adb shell killall -INT perfetto`",
            )
    }

    pub(super) fn space(free: u64) -> Finding {
        let what = format!("the device has only {} of free space", ByteSize(free));
        warns(F::Space, what)
            .why("the recording ends if its file cannot grow")
            .fix("delete files on the device")
    }

    pub(super) fn unknown(name: &str) -> Finding {
        let what = format!("{name} cannot be checked for eligibility");
        let why =
            "the device did not answer; an empty profile would mean that profiling is not allowed";
        warns(F::Unknown, what).why(why).fix(manifest_fix())
    }

    pub(super) fn no_dump(name: &str) -> Finding {
        let what = format!("{name} did not produce a heap dump");
        let why =
            "it was busy, frozen or ended before it began to write, or does not have a Java heap";
        warns(F::NoDump, what)
            .scope(Scope::Java)
            .why(why)
            .fix("bring the app to the foreground and dump again, or try `heaptap dump --hprof`")
    }

    pub(super) fn no_allocation(name: &str, heaps: &[String]) -> Finding {
        let why = if heaps.is_empty() {
            "the profiler attaches at the first allocation and counts from there".to_owned()
        } else {
            format!(
                "the profiler attaches at the first allocation, and the process might not have a \
                 heap called {}",
                heaps.join(", ")
            )
        };
        let what = format!("{name} had no sampled allocations");
        warns(F::NoAllocation, what)
            .scope(Scope::Native)
            .why(why)
            .fix(match could_be_app(name) {
                true => {
                    "use the app while recording, record longer, or record from its start with \
                     `--launch`"
                }
                false => "record longer, or restart it during a recording with `--no-running`",
            })
    }

    pub(super) fn refused(line: &str) -> Finding {
        blocks(F::Refused, format!("the device log reports: {line}"))
            .why("this explains the missing samples")
    }
}

/// Only apps can be launched.
fn start_it(name: &str) -> &'static str {
    match could_be_app(name) {
        true => "start it before or during the recording, or use `record --launch`",
        false => "start it before or during the recording",
    }
}

fn manifest_fix() -> String {
    format!(
        "add `{MANIFEST_SNIPPET}` inside <application> of the app's manifest, install a debug \
         build, or use a userdebug device"
    )
}
