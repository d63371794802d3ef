//! From targets as given to a report on each process they mean, and to the names and pids
//! that the config gets. Owns the order of the questions; the answers are decided in
//! `decide`.

use std::collections::BTreeSet;

use serde::Serialize;

use super::decide::{Answer, Verdict, decide_app, decide_device, decide_process, is_process_of};
use super::error::EligibilityError;
use super::facts::DeviceFacts;
use super::finding::{Finding, FindingId, Scope, Severity};
use super::gather::{self, Which, of_appid, user_of};
use super::names;
use super::packages::Package;
use super::processes::{Pid, Process, ProcessKind};
use super::untrusted::shown;
use crate::config::{CaptureSpec, Targets};
use crate::device::Device;

/// What becomes of targets that do not run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Startup {
    /// They are an error: only running processes are recorded (`--no-startup`).
    Off,
    /// They are recorded once they start, if they are installed.
    #[default]
    Allowed,
    /// They are what is asked for (`--no-running`, `--launch`).
    Asked,
}

/// How to assess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AssessOptions {
    /// The user or profile; without it every user's processes match.
    pub user: Option<u32>,
    /// What becomes of targets that do not run.
    pub startup: Startup,
}

impl AssessOptions {
    /// What a recording asks for. (`--launch` asks for [`Startup::Asked`] too.)
    pub fn of_spec(spec: &CaptureSpec, user: Option<u32>) -> AssessOptions {
        AssessOptions {
            user,
            startup: match (spec.no_startup, spec.no_running) {
                (true, _) => Startup::Off,
                (_, true) => Startup::Asked,
                _ => Startup::Allowed,
            },
        }
    }
}

/// How a target was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A process name, perhaps with `*`.
    Name,
    /// A process id.
    Pid,
    /// A package: all its processes.
    Package,
}

/// One process of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// Package it belongs to, where that is certain.
    pub package: Option<String>,
    /// Native heap profile.
    pub native: Answer,
    /// Java heap dump.
    pub java: Answer,
    /// Reasons and warnings.
    pub findings: Vec<Finding>,
}

/// What is known of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// As given (safe to show).
    pub target: String,
    /// How it was given.
    pub kind: TargetKind,
    /// Whether a process or an installed package was found for it.
    pub found: bool,
    /// Packages involved.
    pub packages: Vec<Package>,
    /// Running processes.
    pub processes: Vec<ProcessReport>,
    /// Native heap profile: the best answer of its processes.
    pub native: Answer,
    /// Java heap dump, likewise.
    pub java: Answer,
    /// Findings about the target as a whole.
    pub findings: Vec<Finding>,
}

/// What is known of a phone and the targets on it, before anything is recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// Findings about the phone.
    pub device: Vec<Finding>,
    /// A report per target, in the order given: names, pids, packages.
    pub targets: Vec<TargetReport>,
    /// What the config gets: names without `*`, and pids.
    #[serde(skip)]
    pub resolved: Targets,
}

/// The state of the phone that targets are matched against.
pub(super) struct Snapshot {
    pub(super) processes: Vec<Process>,
    pub(super) packages: Option<Vec<Package>>,
}

/// Assesses `targets`: two to four shell calls, about half a second on a phone.
///
/// # Errors
/// Where the phone is lost or silent.
pub async fn assess(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    options: &AssessOptions,
) -> Result<Assessment, EligibilityError> {
    let user = user_of(facts, options.user);
    let (processes, packages) = tokio::join!(
        gather::processes(device, facts),
        gather::packages(device, user, Which::All),
    );
    let mut snapshot = Snapshot {
        processes: processes?,
        packages: packages?,
    };
    whole_names(device, targets, &mut snapshot).await?;

    let asked = list_targets(targets);
    other_users(device, &asked, &mut snapshot, options.user, user).await?;
    let pids: BTreeSet<Pid> = asked
        .iter()
        .flat_map(|a| matching(a, &snapshot, options.user))
        .map(|p| p.pid)
        .collect();
    let pids: Vec<Pid> = pids.into_iter().collect();
    let mut wanted = wanted_packages(&asked, &snapshot, options.user);
    let (details, typed) = tokio::join!(
        gather::details(device, &pids),
        gather::app_types(device, facts, &mut wanted),
    );
    typed?;
    add_details(&mut snapshot, &details?);
    for package in snapshot.packages.iter_mut().flatten() {
        if let Some(known) = wanted.iter().find(|w| w.name == package.name) {
            *package = known.clone();
        }
    }
    Ok(build_assessment(facts, &asked, &snapshot, options))
}

/// A name matches in every user, but packages were listed for one: adds those that only
/// other users have.
async fn other_users(
    device: &Device,
    asked: &[Asked],
    snapshot: &mut Snapshot,
    only: Option<u32>,
    listed: u32,
) -> Result<(), EligibilityError> {
    let matched = asked.iter().flat_map(|a| matching(a, snapshot, only));
    let users: BTreeSet<u32> = matched
        .filter_map(Process::user)
        .filter(|u| *u != listed)
        .collect();
    for user in users {
        let more = gather::packages(device, user, Which::All).await?;
        let Some(list) = &mut snapshot.packages else {
            snapshot.packages = more;
            continue;
        };
        for package in more.into_iter().flatten() {
            if !list.iter().any(|p| p.name == package.name) {
                list.push(package);
            }
        }
    }
    Ok(())
}

/// Patterns with a root are compared with the whole argv0, which `ps` does not show.
async fn whole_names(
    device: &Device,
    targets: &Targets,
    snapshot: &mut Snapshot,
) -> Result<(), EligibilityError> {
    let rooted = |name: &String| name.starts_with('/') && names::is_pattern(name);
    if !targets.names.iter().any(rooted) {
        return Ok(());
    }
    let native = snapshot
        .processes
        .iter()
        .filter(|p| p.kind == ProcessKind::Native);
    let pids: Vec<Pid> = native.map(|p| p.pid).collect();
    let details = gather::details(device, &pids).await?;
    add_details(snapshot, &details);
    Ok(())
}

fn add_details(
    snapshot: &mut Snapshot,
    details: &std::collections::BTreeMap<Pid, super::processes::ProcDetails>,
) {
    for process in &mut snapshot.processes {
        if let Some(d) = details.get(&process.pid) {
            if let Some(argv0) = &d.argv0 {
                process.name.clone_from(argv0);
            }
            process.oom_score_adj = d.oom_score_adj.or(process.oom_score_adj);
            process.frozen = d.frozen.or(process.frozen);
            process.domain = d.domain.clone().or(process.domain.take());
        }
    }
}

/// The pids that `targets` mean right now: what a recording asks again just before it starts.
///
/// # Errors
/// Where the phone is lost or silent.
pub async fn resolve_pids(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Vec<(Pid, String)>, EligibilityError> {
    let mut snapshot = Snapshot {
        processes: gather::processes(device, facts).await?,
        packages: None,
    };
    whole_names(device, targets, &mut snapshot).await?;
    let mut found: Vec<(Pid, String)> = list_targets(targets)
        .iter()
        .flat_map(|asked| matching(asked, &snapshot, user))
        .map(|p| (p.pid, p.name.clone()))
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}

/// A target as given.
pub(super) enum Asked {
    Name(String),
    Pid(Pid),
    Package(String),
}

pub(super) fn list_targets(targets: &Targets) -> Vec<Asked> {
    let names = targets.names.iter().cloned().map(Asked::Name);
    let pids = targets.pids.iter().copied().map(Asked::Pid);
    let packages = targets.packages.iter().cloned().map(Asked::Package);
    names.chain(pids).chain(packages).collect()
}

/// The running processes that a target means. Zombies have no heap any more.
fn matching<'a>(asked: &Asked, s: &'a Snapshot, user: Option<u32>) -> Vec<&'a Process> {
    s.processes
        .iter()
        .filter(|p| !matches!(p.state, Some('Z' | 'X')))
        .filter(|p| user.is_none() || p.user() == user || matches!(asked, Asked::Pid(_)))
        .filter(|p| match asked {
            Asked::Name(name) => {
                p.kind != ProcessKind::KernelThread && names::matches_native(name, &p.name)
            }
            Asked::Pid(pid) => p.pid == *pid,
            Asked::Package(package) => belongs_to(p, package, s.packages.as_deref()),
        })
        .collect()
}

/// Whether a process is one of a package: by uid, since manifests name processes freely; an
/// SDK sandbox by the app's uid; an isolated process by its name. Of several packages with
/// one uid, another one's own processes are not this one's.
fn belongs_to(p: &Process, package: &str, list: Option<&[Package]>) -> bool {
    if is_process_of(&p.name, package) {
        return true;
    }
    let list = list.unwrap_or(&[]);
    let Some(appid) = list
        .iter()
        .find(|l| l.name == package)
        .and_then(Package::appid)
    else {
        return false;
    };
    let of_another = || {
        of_appid(list, appid)
            .any(|other| other.name != package && is_process_of(&p.name, &other.name))
    };
    owner_appid(p) == Some(appid) && appid >= 10_000 && !of_another()
}

/// The appid of the app behind a process: an SDK sandbox's is 10000 higher.
fn owner_appid(p: &Process) -> Option<u32> {
    match p.appid()? {
        sandbox @ 20_000..=29_999 => Some(sandbox - 10_000),
        appid => Some(appid),
    }
}

/// The package that a process name starts with: `com.x` of `com.x:remote`.
fn package_of_name(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// Every package whose manifest matters to the decision.
fn wanted_packages(asked: &[Asked], s: &Snapshot, user: Option<u32>) -> Vec<Package> {
    let list = s.packages.as_deref().unwrap_or(&[]);
    let mut appids = BTreeSet::new();
    for a in asked {
        let of_processes = matching(a, s, user).into_iter().filter_map(owner_appid);
        appids.extend(of_processes);
        let named = match a {
            Asked::Name(name) => package_of_name(name),
            Asked::Package(name) => name,
            Asked::Pid(_) => continue,
        };
        appids.extend(
            list.iter()
                .filter(|l| l.name == named)
                .filter_map(Package::appid),
        );
    }
    list.iter()
        .filter(|p| {
            p.appid()
                .is_some_and(|a| a >= 10_000 && appids.contains(&a))
        })
        .cloned()
        .collect()
}

/// The pure part of [`assess`].
pub(super) fn build_assessment(
    facts: &DeviceFacts,
    asked: &[Asked],
    s: &Snapshot,
    options: &AssessOptions,
) -> Assessment {
    let mut resolved = Targets::default();
    let targets = asked
        .iter()
        .map(|a| {
            let report = report(facts, a, s, options);
            resolve(a, &report, s, options, &mut resolved);
            report
        })
        .collect();
    Assessment {
        device: decide_device(facts),
        targets,
        resolved,
    }
}

fn report(
    facts: &DeviceFacts,
    asked: &Asked,
    s: &Snapshot,
    options: &AssessOptions,
) -> TargetReport {
    let list = s.packages.as_deref().unwrap_or(&[]);
    let matched = matching(asked, s, options.user);
    let processes: Vec<ProcessReport> = matched
        .iter()
        .map(|p| process_report(facts, p, list))
        .collect();
    let (target, kind) = match asked {
        Asked::Name(name) => (shown(name.as_bytes()), TargetKind::Name),
        Asked::Pid(pid) => (pid.to_string(), TargetKind::Pid),
        Asked::Package(name) => (shown(name.as_bytes()), TargetKind::Package),
    };
    let mut report = TargetReport {
        target,
        kind,
        found: !processes.is_empty(),
        packages: Vec::new(),
        native: Answer::No,
        java: Answer::No,
        processes,
        findings: Vec::new(),
    };
    if report.processes.is_empty() {
        absent(facts, asked, s, options, &mut report);
    } else {
        report.native = best(&report.processes, |p| p.native);
        report.java = best(&report.processes, |p| p.java);
        about_names(asked, &matched, s, options, &mut report);
        if facts
            .armed_names
            .iter()
            .any(|n| n == names::normalized(&report.target))
        {
            report.findings.push(Finding::busy(format!(
                "Another recording waits for {} to start",
                report.target
            )));
        }
    }
    let appids: BTreeSet<u32> = matched.iter().filter_map(|p| owner_appid(p)).collect();
    let of_processes = list.iter().filter(|p| {
        p.appid()
            .is_some_and(|a| a >= 10_000 && appids.contains(&a))
    });
    report.packages.extend(of_processes.cloned());
    report
}

fn best(processes: &[ProcessReport], of: impl Fn(&ProcessReport) -> Answer) -> Answer {
    processes.iter().map(of).min().unwrap_or(Answer::No)
}

fn process_report(facts: &DeviceFacts, p: &Process, list: &[Package]) -> ProcessReport {
    let owners: Vec<&Package> = owner_appid(p)
        .map(|appid| of_appid(list, appid).collect())
        .unwrap_or_default();
    let Verdict {
        native,
        java,
        findings,
    } = decide_process(facts, p, &owners);
    let package = match owners.as_slice() {
        [only] => Some(only.name.clone()),
        several => several
            .iter()
            .find(|o| is_process_of(&p.name, &o.name))
            .map(|o| o.name.clone()),
    };
    ProcessReport {
        process: p.clone(),
        package,
        native,
        java,
        findings,
    }
}

/// What is to be said of a target without a process.
fn absent(
    facts: &DeviceFacts,
    asked: &Asked,
    s: &Snapshot,
    options: &AssessOptions,
    report: &mut TargetReport,
) {
    let user = user_of(facts, options.user);
    let severity = match options.startup {
        Startup::Off => Severity::Blocks,
        Startup::Allowed | Startup::Asked => Severity::Note,
    };
    let (Asked::Name(name) | Asked::Package(name)) = asked else {
        if let Asked::Pid(pid) = asked {
            report.findings.push(Finding::pid_gone(*pid));
        }
        return;
    };
    let package_name = package_of_name(name);
    let list = s.packages.as_deref();
    let package = list.and_then(|l| l.iter().find(|p| p.name == package_name));
    if let (Some(package), Some(list)) = (package, list) {
        report.found = true;
        let sharing: Vec<&Package> = package
            .appid()
            .map(|appid| of_appid(list, appid).collect())
            .unwrap_or_else(|| vec![package]);
        let verdict = decide_app(facts, name, &sharing, package.uid);
        report.packages = sharing.into_iter().cloned().collect();
        report.findings = verdict.findings;
        report
            .findings
            .push(Finding::not_running(&report.target, severity));
        let off = severity == Severity::Blocks;
        report.native = if off { Answer::No } else { verdict.native };
        report.java = verdict.java;
        return;
    }
    let could_be_app = name.contains('.') && !name.starts_with('/') && !names::is_pattern(name);
    let answer = match (options.startup, facts.is_user_build()) {
        // Nothing that adb's shell starts may be profiled on a production build; an app may
        // name its processes freely.
        (Startup::Asked, Some(true)) if could_be_app => Answer::Unknown,
        (Startup::Asked, Some(false)) => Answer::OnlyFromStartup,
        (Startup::Asked, None) => Answer::Unknown,
        (Startup::Allowed, Some(false)) if !could_be_app && !names::is_pattern(name) => {
            Answer::OnlyFromStartup
        }
        _ => Answer::No,
    };
    let blocked = super::decide::blocked(&decide_device(facts), Scope::Native);
    report.native = if blocked { Answer::No } else { answer };
    if answer != Answer::No {
        report
            .findings
            .push(Finding::not_running(&report.target, severity));
    } else if could_be_app && list.is_some() {
        let similar = similar_names(package_name, list.unwrap_or(&[]));
        report
            .findings
            .push(Finding::not_installed(&report.target, user, &similar));
    } else {
        report
            .findings
            .push(Finding::not_running(&report.target, Severity::Blocks));
    }
}

/// Installed packages that a mistyped name may mean: those that share its last part, that
/// hold it, or that differ in few letters. At most three.
fn similar_names<'a>(name: &str, list: &'a [Package]) -> Vec<&'a str> {
    let wanted = name.to_ascii_lowercase();
    let last = wanted.rsplit('.').next().unwrap_or(&wanted).to_owned();
    let mut scored: Vec<(usize, &str)> = list
        .iter()
        .filter_map(|p| {
            let have = p.name.to_ascii_lowercase();
            let distance = edit_distance(&wanted, &have, 3);
            let score = match distance {
                Some(d) => d,
                None if have.contains(&wanted) || wanted.contains(&have) => 4,
                None if last.len() > 3 && have.rsplit('.').next() == Some(last.as_str()) => 5,
                None => return None,
            };
            Some((score, p.name.as_str()))
        })
        .collect();
    scored.sort_unstable();
    scored.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Levenshtein's distance, if it is at most `limit`.
fn edit_distance(a: &str, b: &str, limit: usize) -> Option<usize> {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    if a.len().abs_diff(b.len()) > limit || a.len() > 256 {
        return None;
    }
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(x != y);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(row[j + 1] + 1);
        }
    }
    row.last().copied().filter(|d| *d <= limit)
}

/// What a name covers besides what was meant, and what it does not cover.
fn about_names(
    asked: &Asked,
    matched: &[&Process],
    s: &Snapshot,
    options: &AssessOptions,
    report: &mut TargetReport,
) {
    let Asked::Name(name) = asked else { return };
    let users: BTreeSet<u32> = matched.iter().filter_map(|p| p.user()).collect();
    if users.len() > 1 && options.user.is_none() {
        let users: Vec<u32> = users.into_iter().collect();
        let pids: Vec<u32> = matched.iter().map(|p| p.pid).collect();
        report
            .findings
            .push(Finding::other_users(&report.target, &users, &pids));
    }
    let package = package_of_name(name);
    let installed = |p: &Package| p.name == package;
    if names::is_pattern(name) || !s.packages.iter().flatten().any(installed) {
        return;
    }
    let others: BTreeSet<&str> = s
        .processes
        .iter()
        .filter(|p| p.kind == ProcessKind::App && belongs_to(p, package, s.packages.as_deref()))
        .filter(|p| !names::matches_native(name, &p.name))
        .map(|p| p.name.as_str())
        .collect();
    if !others.is_empty() {
        let others: Vec<&str> = others.into_iter().collect();
        report
            .findings
            .push(Finding::subprocesses(&report.target, &others, package));
    }
}

/// What the config gets for a target. An exact name stays as it is, so that it also matches
/// after a restart; patterns and packages become the names of their processes, or pids where
/// such a name would match other processes too.
fn resolve(
    asked: &Asked,
    report: &TargetReport,
    s: &Snapshot,
    o: &AssessOptions,
    to: &mut Targets,
) {
    let mut add_name = |name: &str| {
        if !to.names.iter().any(|n| n == name) {
            to.names.push(name.to_owned());
        }
    };
    let whole = match asked {
        Asked::Pid(pid) => {
            to.pids.push(*pid);
            return;
        }
        Asked::Name(name) if !names::is_pattern(name) && o.user.is_none() => {
            add_name(name);
            return;
        }
        // Nothing runs yet: a user cannot be told apart beforehand.
        Asked::Name(name) if !names::is_pattern(name) && report.processes.is_empty() => {
            add_name(name);
            return;
        }
        Asked::Name(_) => false,
        Asked::Package(package) => {
            if o.startup != Startup::Off {
                add_name(package);
            }
            true
        }
    };
    let meant: BTreeSet<Pid> = report.processes.iter().map(|p| p.process.pid).collect();
    for p in &report.processes {
        if whole && p.native == Answer::No {
            continue;
        }
        let name = &p.process.name;
        let covers_others = s
            .processes
            .iter()
            .any(|q| names::matches_native(name, &q.name) && !meant.contains(&q.pid));
        let damaged = name.contains('\u{fffd}') || names::is_pattern(name);
        if covers_others || damaged {
            if !to.pids.contains(&p.process.pid) {
                to.pids.push(p.process.pid);
            }
        } else {
            add_name(name);
        }
    }
}

impl Assessment {
    /// The answer for a target or process of this kind of profile.
    fn answer(scope: Scope, native: Answer, java: Answer) -> Answer {
        match scope {
            Scope::Native => native,
            Scope::Java => java,
            Scope::Both => native.max(java),
        }
    }

    /// Whether every process of every target is eligible: what `check` exits with.
    pub fn all_eligible(&self, scope: Scope) -> bool {
        self.targets.iter().all(|t| {
            let own = Self::answer(scope, t.native, t.java) != Answer::No;
            own && t
                .processes
                .iter()
                .all(|p| Self::answer(scope, p.native, p.java) != Answer::No)
        })
    }

    /// Why a recording makes no sense: the phone cannot, or no target may be profiled.
    /// `None` where at least one may, or might.
    pub fn refusal(&self, scope: Scope) -> Option<EligibilityError> {
        let hopeless = self
            .targets
            .iter()
            .all(|t| Self::answer(scope, t.native, t.java) == Answer::No);
        (hopeless && !self.targets.is_empty()).then(|| EligibilityError::of(self, scope))
    }

    /// Every finding that is to be shown for this kind of profile, graver ones first, with
    /// the target it belongs to; each text once.
    pub fn findings(&self, scope: Scope) -> Vec<(Option<&str>, &Finding)> {
        let mut all: Vec<(Option<&str>, &Finding)> =
            self.device.iter().map(|f| (None, f)).collect();
        for t in &self.targets {
            let own = t.findings.iter();
            let of_processes = t.processes.iter().flat_map(|p| &p.findings);
            all.extend(
                own.chain(of_processes)
                    .map(|f| (Some(t.target.as_str()), f)),
            );
        }
        all.retain(|(_, f)| scope == Scope::Both || f.scope == Scope::Both || f.scope == scope);
        let mut seen: BTreeSet<(FindingId, &str)> = BTreeSet::new();
        all.retain(|(_, f)| seen.insert((f.id, f.what.as_str())));
        all.sort_by_key(|(_, f)| std::cmp::Reverse(f.severity));
        all
    }
}
