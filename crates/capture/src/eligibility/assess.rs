//! From targets as given to a report on each process they mean, and to the names and pids
//! that the config gets. Owns the order of the questions; the answers are decided in
//! `decide`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::decide::{Answer, decide_device};
use super::error::EligibilityError;
use super::facts::DeviceFacts;
use super::finding::{Finding, FindingId, Scope};
use super::gather::{self, PackageFilter, user_of};
use super::matching::{
    Snapshot, TargetSpec, list_targets, matching, package_of_name, resolve, wanted_packages,
};
use super::names;
use super::packages::Package;
use super::processes::{CACHED_ADJ, Pid, ProcDetails, Process, ProcessKind};
use super::report::report;
use crate::config::{CaptureSpec, Targets};
use heaptap_adb::Device;

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
    /// Heap file by `am dumpheap`.
    pub hprof: Answer,
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
    /// Heap file by `am dumpheap`, likewise.
    pub hprof: Answer,
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
        gather::packages(device, user, PackageFilter::All),
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
    ask_about_cached(device, &pids, &mut snapshot).await?;
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
    asked: &[TargetSpec],
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
        let more = gather::packages(device, user, PackageFilter::All).await?;
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

fn add_details(snapshot: &mut Snapshot, details: &BTreeMap<Pid, ProcDetails>) {
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

/// A cached app may be frozen; where the kernel did not tell, the activity manager is asked.
async fn ask_about_cached(
    device: &Device,
    matched: &[Pid],
    snapshot: &mut Snapshot,
) -> Result<(), EligibilityError> {
    let is_open = |p: &&Process| {
        matched.contains(&p.pid)
            && p.frozen.is_none()
            && p.oom_score_adj.is_some_and(|adj| adj >= CACHED_ADJ)
    };
    let cached = snapshot.processes.iter().filter(is_open);
    let packages: BTreeSet<&str> = cached.map(|p| package_of_name(&p.name)).collect();
    let frozen = gather::frozen(device, &packages).await?;
    for process in &mut snapshot.processes {
        process.frozen = process.frozen.or(frozen.get(&process.pid).copied());
    }
    Ok(())
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
    Ok(resolve_each(device, facts, targets, user).await?.found)
}

/// The processes that targets mean right now.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// Their pids and names, in order.
    pub found: Vec<(Pid, String)>,
    /// Targets of which nothing runs, as they were typed.
    pub missing: Vec<String>,
}

/// The processes that `targets` mean right now, and which of them mean none.
///
/// # Errors
/// Where the phone is lost or silent.
pub async fn resolve_each(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Resolved, EligibilityError> {
    let mut snapshot = Snapshot {
        processes: gather::processes(device, facts).await?,
        packages: None,
    };
    if !targets.packages.is_empty() {
        let user = user_of(facts, user);
        snapshot.packages = gather::packages(device, user, PackageFilter::All).await?;
    }
    whole_names(device, targets, &mut snapshot).await?;
    let mut resolved = Resolved::default();
    // A word may stand for a process and for a package.
    let mut met: BTreeMap<String, bool> = BTreeMap::new();
    for asked in list_targets(targets) {
        let of_it = matching(&asked, &snapshot, user);
        let is_met = met.entry(asked.typed()).or_default();
        *is_met |= !of_it.is_empty();
        let of_it = of_it.into_iter().map(|p| (p.pid, p.name.clone()));
        resolved.found.extend(of_it);
    }
    resolved.found.sort();
    resolved.found.dedup();
    let missing = met.into_iter().filter(|(_, is_met)| !is_met);
    resolved.missing = missing.map(|(typed, _)| typed).collect();
    Ok(resolved)
}

/// The pure part of [`assess`].
pub(super) fn build_assessment(
    facts: &DeviceFacts,
    asked: &[TargetSpec],
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

    /// Why a dump of what runs now makes no sense: nothing does. `None` where something may be
    /// dumped.
    pub fn nothing_runs(&self) -> Option<EligibilityError> {
        let none = self.targets.iter().all(|t| t.processes.is_empty());
        (none && !self.targets.is_empty()).then(|| EligibilityError::NotRunning {
            targets: self
                .targets
                .iter()
                .map(|t| t.target.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// Why `am dumpheap` would be refused for every target; `None` where it may work for one.
    pub fn heap_file_refusal(&self) -> Option<EligibilityError> {
        if let Some(error) = self.nothing_runs() {
            let missing = self.targets.iter().all(|t| !t.found);
            return Some(match missing {
                true => EligibilityError::of(self, Scope::Java),
                false => error,
            });
        }
        let processes = || self.targets.iter().flat_map(|t| &t.processes);
        if processes().any(|p| p.hprof != Answer::No) {
            return None;
        }
        Some(EligibilityError::NotDebuggable {
            targets: self
                .targets
                .iter()
                .map(|t| t.target.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            native: processes().all(|p| !p.process.has_art()),
            graph: processes().any(|p| p.java == Answer::Yes),
        })
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
