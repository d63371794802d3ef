//! Matching of targets to processes, and the config entries for each target. Pure.

use std::collections::BTreeSet;

use super::assessment::{AssessOptions, Startup, TargetReport};
use super::decide::{Answer, is_process_of};
use super::gather::of_appid;
use super::names;
use super::packages::Package;
use super::processes::{Pid, Process, ProcessKind};
use crate::config::Targets;

/// State of the device that targets are matched against.
pub(super) struct Snapshot {
    pub(super) processes: Vec<Process>,
    pub(super) packages: Option<Vec<Package>>,
}

/// A target as given.
pub(super) enum TargetSpec {
    Name(String),
    Pid(Pid),
    Package(String),
}

impl TargetSpec {
    /// Returns the target as it was typed.
    pub(super) fn typed(&self) -> String {
        match self {
            TargetSpec::Name(text) | TargetSpec::Package(text) => text.clone(),
            TargetSpec::Pid(pid) => pid.to_string(),
        }
    }
}

pub(super) fn list_targets(targets: &Targets) -> Vec<TargetSpec> {
    let names = targets.names.iter().cloned().map(TargetSpec::Name);
    let pids = targets.pids.iter().copied().map(TargetSpec::Pid);
    let packages = targets.packages.iter().cloned().map(TargetSpec::Package);
    names.chain(pids).chain(packages).collect()
}

/// Returns the running processes of a target. Zombies do not have a heap any more.
pub(super) fn matching<'a>(
    spec: &TargetSpec,
    s: &'a Snapshot,
    user: Option<u32>,
) -> Vec<&'a Process> {
    s.processes
        .iter()
        .filter(|p| !matches!(p.state, Some('Z' | 'X')))
        .filter(|p| user.is_none() || p.user() == user || matches!(spec, TargetSpec::Pid(_)))
        .filter(|p| match spec {
            TargetSpec::Name(name) => {
                p.kind != ProcessKind::KernelThread
                    && names::matches_native(name, &p.name)
                    && !(names::is_pattern(name) && is_query(p))
            }
            TargetSpec::Pid(pid) => p.pid == *pid,
            TargetSpec::Package(package) => belongs_to(p, package, s.packages.as_deref()),
        })
        .collect()
}

/// Returns whether a process is a command of an adb shell, as heaptap itself runs them to list
/// processes and packages.
fn is_query(p: &Process) -> bool {
    let name = p.name.rsplit('/').next().unwrap_or_default();
    match p.uid {
        Some(2000) => matches!(name, "sh" | "ps" | "pm" | "cmd"),
        // After `adb root`; daemons can be scripts.
        Some(0) => matches!(name, "ps" | "pm" | "cmd"),
        _ => false,
    }
}

/// Returns whether a process belongs to a package: by UID, because manifests name processes
/// freely; an SDK sandbox by the app's UID; an isolated process by its name. If several packages
/// share a UID, processes named after another package do not belong to this one.
pub(super) fn belongs_to(p: &Process, package: &str, list: Option<&[Package]>) -> bool {
    if is_process_of(&p.name, package) {
        return true;
    }
    let list = list.unwrap_or(&[]);
    let listed = list.iter().find(|l| l.name == package);
    let Some(appid) = listed.and_then(Package::appid) else {
        return false;
    };
    let of_another = || {
        of_appid(list, appid)
            .any(|other| other.name != package && is_process_of(&p.name, &other.name))
    };
    owner_appid(p) == Some(appid) && appid >= 10_000 && !of_another()
}

/// Returns the appid of the app behind a process: that of an SDK sandbox is 10000 higher.
pub(super) fn owner_appid(p: &Process) -> Option<u32> {
    p.appid().map(app_of_sandbox)
}

pub(super) fn app_of_sandbox(appid: u32) -> u32 {
    match appid {
        20_000..=29_999 => appid - 10_000,
        appid => appid,
    }
}

/// Returns the package that a process name starts with: `com.x` of `com.x:remote`.
pub(super) fn package_of_name(name: &str) -> &str {
    name.split(':').next().unwrap_or(name)
}

/// Returns every package whose manifest affects the decision.
pub(super) fn wanted_packages(
    specs: &[TargetSpec],
    s: &Snapshot,
    user: Option<u32>,
) -> Vec<Package> {
    let list = s.packages.as_deref().unwrap_or(&[]);
    let mut appids = BTreeSet::new();
    for spec in specs {
        let of_processes = matching(spec, s, user).into_iter().filter_map(owner_appid);
        appids.extend(of_processes);
        let named = match spec {
            TargetSpec::Name(name) => package_of_name(name),
            TargetSpec::Package(name) => name,
            TargetSpec::Pid(_) => continue,
        };
        let listed = list.iter().filter(|l| l.name == named);
        appids.extend(listed.filter_map(Package::appid));
    }
    apps_of(list, &appids).collect()
}

/// Returns the apps of a list with one of these appids.
pub(super) fn apps_of(list: &[Package], appids: &BTreeSet<u32>) -> impl Iterator<Item = Package> {
    let is_one = |appid| appid >= 10_000 && appids.contains(&appid);
    let apps = list.iter().filter(move |p| p.appid().is_some_and(is_one));
    apps.cloned()
}

/// Adds the config entries for a target. An exact name stays as it is, so that it also matches
/// after a restart. Patterns and packages become the names of their processes, or PIDs if
/// such a name would match other processes too.
pub(super) fn resolve(
    spec: &TargetSpec,
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
    let whole = match spec {
        TargetSpec::Pid(pid) => {
            to.pids.push(*pid);
            return;
        }
        // While nothing runs yet, the process cannot be selected by user.
        TargetSpec::Name(name)
            if !names::is_pattern(name) && (o.user.is_none() || report.processes.is_empty()) =>
        {
            add_name(name);
            return;
        }
        TargetSpec::Name(_) => false,
        TargetSpec::Package(package) => {
            if o.startup != Startup::Off {
                add_name(package);
            }
            true
        }
    };
    let meant: BTreeSet<Pid> = report.processes.iter().map(|p| p.process.pid).collect();
    for p in &report.processes {
        // If no process is eligible, `--no-check` selects all of them.
        if whole && p.native == Answer::No && report.native != Answer::No {
            continue;
        }
        let name = &p.process.name;
        let is_other =
            |q: &Process| names::matches_native(name, &q.name) && !meant.contains(&q.pid);
        let covers_others = s.processes.iter().any(is_other);
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
