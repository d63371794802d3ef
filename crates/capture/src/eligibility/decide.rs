//! Decides which processes a session of the adb shell can profile. Pure functions over facts.
//!
//! On builds other than `user`, heapprofd does not check permissions, and only SELinux's list of
//! never-profiled processes applies. On `user` builds the UID decides: below 10000 never; apps
//! (10000..=19999) and, from Android 13, their SDK sandboxes (20000..=29999) depending on the
//! manifest; isolated processes and all others never.

use serde::Serialize;

use super::facts::{DeviceFacts, Selinux, TracingSession};
use super::finding::{Finding, Scope, Severity};
use super::packages::{AppType, PER_USER, Package};
use super::processes::{CACHED_ADJ, Process, ProcessKind, is_zygote_name};
use crate::config::HEAPS_SDK;

/// Eligibility of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answer {
    /// Eligible now.
    Yes,
    /// Not running; can be recorded from its start.
    OnlyFromStartup,
    /// Not running; its Java heap can be dumped once it runs.
    OnceRunning,
    /// The facts could not be read.
    Unknown,
    /// The profile would be empty.
    No,
}

display_as_serialized!(Answer);

/// Decision about one process, existing or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Verdict {
    /// Native heap profile.
    pub native: Answer,
    /// Java heap dump.
    pub java: Answer,
    /// Heap file by `am dumpheap`.
    pub hprof: Answer,
    /// Reasons and warnings.
    pub findings: Vec<Finding>,
}

/// First SDK level with native heap profiles: Android 10.
pub const NATIVE_SDK: u32 = 29;
/// First SDK level with Java heap dumps: Android 11.
pub const JAVA_SDK: u32 = 30;

/// Free space below which a recording might end early, in bytes.
const LITTLE_SPACE: u64 = 128 << 20;
/// Sessions that the tracing service allows per UID.
const SESSIONS_PER_UID: usize = 5;

/// Returns the findings about the device as a whole. Blocking ones apply to every process.
pub fn decide_device(d: &DeviceFacts) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (scope, least) in [(Scope::Native, NATIVE_SDK), (Scope::Java, JAVA_SDK)] {
        if d.api().is_some_and(|sdk| sdk < least) {
            findings.push(Finding::sdk_low(scope, &d.system()));
        }
    }
    if d.api() == Some(29) && d.abis.first().is_some_and(|abi| abi.starts_with("x86")) {
        findings.push(Finding::arch_x86());
    }
    if d.tracing_on == Some(false) {
        findings.push(Finding::traced_off());
    }
    findings.extend(sessions(d));
    if let Some(free) = d.free_bytes.filter(|&free| free < LITTLE_SPACE) {
        findings.push(Finding::space(free));
    }
    if let Some(bridge) = &d.native_bridge {
        findings.push(Finding::native_bridge(bridge));
    }
    if d.screen_on == Some(false) {
        findings.push(Finding::screen_off());
    }
    findings
}

/// Returns why a heap by name cannot be recorded on the device; `None` if it can.
pub fn no_choice_of_heaps(d: &DeviceFacts) -> Option<Finding> {
    let is_old = d.api().is_some_and(|sdk| sdk < HEAPS_SDK);
    is_old.then(|| Finding::no_choice_of_heaps(&d.system()))
}

fn sessions(d: &DeviceFacts) -> Option<Finding> {
    let all = d.sessions.as_deref().unwrap_or(&[]);
    let is_ours = |s: &&TracingSession| s.uid.is_some() && s.uid == d.shell_uid;
    let ours = all.iter().filter(is_ours).count();
    if ours >= SESSIONS_PER_UID {
        return Some(Finding::session_limit(ours));
    }
    let described = |s: &TracingSession| {
        let name = if s.name.is_empty() {
            "unnamed"
        } else {
            &s.name
        };
        let uid = s.uid.map(|uid| format!(" with UID {uid}"));
        let age = match (s.start_realtime_ns, d.clock_s) {
            (Some(start), Some(now)) if now > start / 1_000_000_000 => {
                format!(", running for {} s", now - start / 1_000_000_000)
            }
            _ => String::new(),
        };
        format!("{name}{}{age}", uid.unwrap_or_default())
    };
    let list: Vec<String> = all.iter().take(5).map(described).collect();
    let list = list.join("; ");
    let busy = |whose: &str| {
        let what = "another session is already recording a heap profile";
        Finding::busy(format!("{what}{whose}"))
    };
    match (d.heap_session, list.is_empty()) {
        (true, true) => Some(busy("")),
        (true, false) => Some(busy(&format!(" (sessions: {list})"))),
        (false, true) => None,
        (false, false) => Some(Finding::other_sessions(&list)),
    }
}

/// Returns whether one of `findings` blocks profiles of this kind.
pub fn blocked(findings: &[Finding], scope: Scope) -> bool {
    findings
        .iter()
        .any(|f| f.severity == Severity::Blocks && (f.scope == scope || f.scope == Scope::Both))
}

/// Decides about a running process. `packages` are those with its appid (for an SDK sandbox,
/// the appid of its app), in the device's order.
pub fn decide_process(d: &DeviceFacts, p: &Process, packages: &[&Package]) -> Verdict {
    let mut findings = Vec::new();
    if d.api().is_some_and(|sdk| sdk < HEAPS_SDK)
        && d.is_64_bit() == Some(true)
        && p.bits == Some(32)
    {
        findings.push(Finding::arch_32(&p.name));
    }
    findings.extend(malloc_hooks(d, &p.name));
    let gate = domain_gate(d, p).or_else(|| uid_gate(d, &p.name, p.uid, packages));
    let unknown = leaves_open(gate.as_ref());
    findings.extend(gate);
    if !p.has_art() && !blocked(&findings, Scope::Both) {
        findings.push(Finding::native_no_java(&p.name));
    }
    if p.frozen == Some(true) {
        findings.push(Finding::frozen(&p.name));
    } else if p.oom_score_adj.is_some_and(|adj| adj >= CACHED_ADJ) {
        let can_freeze = d.api().is_none_or(|sdk| sdk >= 30);
        findings.push(Finding::cached(&p.name, can_freeze));
    }
    if matches!(p.state, Some('T' | 't')) {
        findings.push(Finding::stopped(p));
    }
    let (java, hprof) = match p.has_art() {
        false => (Answer::No, Answer::No),
        true if p.kind == ProcessKind::Zygote => (Answer::Yes, Answer::No),
        true => (Answer::Yes, may_dumpheap(d, packages, Answer::Yes)),
    };
    verdict(d, findings, unknown, [Answer::Yes, java, hprof])
}

/// Decides about an app that is not running, as if `name` were a process of `packages`.
pub fn decide_app(d: &DeviceFacts, name: &str, packages: &[&Package], uid: Option<u32>) -> Verdict {
    let gate = uid_gate(d, name, uid, packages);
    let unknown = leaves_open(gate.as_ref());
    let findings = malloc_hooks(d, name).into_iter().chain(gate).collect();
    let hprof = may_dumpheap(d, packages, Answer::OnceRunning);
    let yes = [Answer::OnlyFromStartup, Answer::OnceRunning, hprof];
    verdict(d, findings, unknown, yes)
}

/// Returns whether the finding of a gate does not decide: profiling might be allowed.
fn leaves_open(gate: Option<&Finding>) -> bool {
    gate.is_some_and(|finding| finding.severity != Severity::Blocks)
}

/// Reduces the answers for native heaps, Java heap graphs and HPROFs to what the findings allow.
fn verdict(
    d: &DeviceFacts,
    findings: Vec<Finding>,
    unknown: bool,
    [native, java, hprof]: [Answer; 3],
) -> Verdict {
    let device = decide_device(d);
    let answer = |scope, yes| match unknown {
        _ if yes == Answer::No || blocked(&findings, scope) || blocked(&device, scope) => {
            Answer::No
        }
        true => Answer::Unknown,
        false => yes,
    };
    Verdict {
        native: answer(Scope::Native, native),
        java: answer(Scope::Java, java),
        hprof,
        findings,
    }
}

/// Applies the activity manager's own rule for `am dumpheap`, on every release: the device or the
/// app must be debuggable. Profileable is not enough.
fn may_dumpheap(d: &DeviceFacts, packages: &[&Package], yes: Answer) -> Answer {
    if d.debuggable == Some(true) {
        return yes;
    }
    let types: Vec<Option<AppType>> = packages.iter().map(|p| p.app_type).collect();
    let debuggable = Some(AppType::Debuggable);
    if !types.is_empty() && types.iter().all(|t| *t == debuggable) {
        yes
    } else if types.contains(&None) || types.contains(&debuggable) || d.debuggable.is_none() {
        Answer::Unknown
    } else {
        Answer::No
    }
}

/// Checks processes that SELinux or the process itself excludes from profiling on every build.
fn domain_gate(d: &DeviceFacts, p: &Process) -> Option<Finding> {
    let permissive = matches!(d.selinux, Some(Selinux::Permissive | Selinux::Disabled));
    let user = d.is_user_build() != Some(false);
    match p.kind {
        ProcessKind::KernelThread => Some(Finding::kernel_thread(&p.name)),
        ProcessKind::Zygote => Some(Finding::zygote(&p.name, permissive && !user)),
        _ => {
            let never = is_never_profiled(p, d.api().unwrap_or(HEAPS_SDK));
            (never && (user || !permissive)).then(|| Finding::critical(&p.name))
        }
    }
}

/// Returns whether the process is in one of SELinux's never-profile domains, of which there are
/// fewer before Android 12. If the domain could not be read, the program's name decides.
fn is_never_profiled(p: &Process, sdk: u32) -> bool {
    const ALWAYS: [&str; 9] = [
        "bpfloader",
        "init",
        "kernel",
        "keystore",
        "llkd",
        "logd",
        "ueventd",
        "vendor_init",
        "vold",
    ];
    const SINCE_12: [&str; 7] = [
        "apexd",
        "app_zygote",
        "crash_dump",
        "crosvm",
        "logpersist",
        "webview_zygote",
        "zygote",
    ];
    const SINCE_12_PREFIX: [&str; 2] = ["hal_configstore", "recovery"];
    let domain = match &p.domain {
        Some(domain) => domain.as_str(),
        None if p.has_art() => return false,
        None => match super::names::normalized(&p.name) {
            "keystore2" => "keystore",
            "crash_dump32" | "crash_dump64" => "crash_dump",
            name if name.starts_with("android.hardware.configstore") => "hal_configstore",
            name => name,
        },
    };
    let has_prefix = || SINCE_12_PREFIX.iter().any(|it| domain.starts_with(it));
    ALWAYS.contains(&domain) || sdk >= 31 && (SINCE_12.contains(&domain) || has_prefix())
}

/// Applies heapprofd's own check, `CanProfile`: the build type, then the UID, then the manifest.
fn uid_gate(
    d: &DeviceFacts,
    name: &str,
    uid: Option<u32>,
    packages: &[&Package],
) -> Option<Finding> {
    match d.is_user_build() {
        Some(false) => return None,
        None => return Some(Finding::unknown(name)),
        Some(true) => {}
    }
    let Some(uid) = uid else {
        return Some(Finding::unknown(name));
    };
    match uid % PER_USER {
        0..=9_999 => Some(Finding::system_uid(name, uid)),
        10_000..=19_999 => manifest_gate(name, packages),
        20_000..=29_999 if d.api().is_none_or(|sdk| sdk >= 33) => manifest_gate(name, packages),
        90_000..=99_999 => Some(Finding::isolated(name)),
        _ => Some(Finding::uid_range(name, uid)),
    }
}

/// Checks the manifests of the packages with one appid. The first in `packages.list` decides
/// for all, and its order is not known here; therefore they must agree.
fn manifest_gate(name: &str, packages: &[&Package]) -> Option<Finding> {
    let mut all = packages.iter();
    let named = all.find(|p| is_process_of(name, &p.name));
    let Some(own) = named.or(packages.first()) else {
        return Some(Finding::unknown(name));
    };
    let has = |verdict: Option<bool>| {
        let mut verdicts = packages
            .iter()
            .map(|p| p.app_type.map(AppType::allows_shell));
        verdicts.any(|v| v == verdict)
    };
    match (has(Some(true)), has(Some(false)), has(None)) {
        (true, false, false) => None,
        (false, true, false) => Some(Finding::user_release(own)),
        (true, true, _) => {
            let others = packages.iter().map(|p| p.name.as_str());
            let others: Vec<&str> = others.filter(|other| *other != own.name).collect();
            Some(Finding::shared_uid(&own.name, &others))
        }
        _ => Some(Finding::unknown(name)),
    }
}

/// Returns whether a process with this name certainly belongs to `package`: its name, alone or with
/// a `:suffix`. (Manifests can name processes freely: `false` proves nothing.)
pub fn is_process_of(name: &str, package: &str) -> bool {
    name.strip_prefix(package).is_some_and(|rest| {
        rest.is_empty() || rest.starts_with(':') || is_zygote_name(name) && rest == "_zygote"
    })
}

/// Checks for malloc debugging, which occupies the hooks that heapprofd needs.
fn malloc_hooks(d: &DeviceFacts, name: &str) -> Option<Finding> {
    let program = d.malloc_debug_program.as_deref();
    if d.malloc_debug.is_some() && program.is_none_or(|program| name.contains(program)) {
        return Some(Finding::malloc_debug(name, "libc.debug.malloc.options"));
    }
    let (_, wrap) = d.wraps.iter().find(|(of, _)| of == name)?;
    let variables = ["LIBC_DEBUG_MALLOC_OPTIONS", "LIBC_HOOKS_ENABLE"];
    Some(
        match variables.iter().any(|variable| wrap.contains(variable)) {
            true => Finding::malloc_debug(name, &format!("wrap.{name}")),
            false => Finding::wrapped(name),
        },
    )
}
