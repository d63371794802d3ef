//! Assessment of targets: a report on each of their processes, and the names and PIDs for the
//! config. Owns the order of the queries; `decide` makes the decisions.

use std::collections::{BTreeMap, BTreeSet};

use super::absent::AbsentTarget;
use super::assessment::{AssessOptions, Assessment, Startup};
use super::decide::decide_device;
use super::facts::DeviceFacts;
use super::gather::{self, PackageFilter, user_of};
use super::matching::{
    Snapshot, TargetSpec, list_targets, matching, package_of_name, resolve, wanted_packages,
};
use super::names;
use super::processes::{CACHED_ADJ, Pid, ProcDetails, Process, ProcessKind};
use super::report::report;
use crate::config::Targets;
use crate::error::CaptureError;
use heaptap_adb::Device;

/// Assesses `targets` in two to four shell calls, about half a second on a device.
///
/// # Errors
/// Returns an error if the device is lost or does not answer.
pub async fn assess(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    options: &AssessOptions,
) -> Result<Assessment, CaptureError> {
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

    let specs = list_targets(targets);
    other_users(device, &specs, &mut snapshot, options.user, user).await?;
    let matched = specs
        .iter()
        .flat_map(|spec| matching(spec, &snapshot, options.user));
    let pids: BTreeSet<Pid> = matched.map(|p| p.pid).collect();
    let pids: Vec<Pid> = pids.into_iter().collect();
    let mut wanted = wanted_packages(&specs, &snapshot, options.user);
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
    Ok(build_assessment(facts, &specs, &snapshot, options))
}

/// Adds packages that only other users have: a name matches in every user, but packages were
/// listed for one.
async fn other_users(
    device: &Device,
    specs: &[TargetSpec],
    snapshot: &mut Snapshot,
    only: Option<u32>,
    listed: u32,
) -> Result<(), CaptureError> {
    let matched = specs.iter().flat_map(|spec| matching(spec, snapshot, only));
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

/// Reads the whole argv0, which `ps` does not show, for patterns with a root.
async fn whole_names(
    device: &Device,
    targets: &Targets,
    snapshot: &mut Snapshot,
) -> Result<(), CaptureError> {
    let rooted = |name: &String| name.starts_with('/') && names::is_pattern(name);
    if !targets.names.iter().any(rooted) {
        return Ok(());
    }
    let processes = snapshot.processes.iter();
    let native = processes.filter(|p| p.kind == ProcessKind::Native);
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

/// Asks the activity manager whether cached apps are frozen, if the kernel does not show it.
async fn ask_about_cached(
    device: &Device,
    matched: &[Pid],
    snapshot: &mut Snapshot,
) -> Result<(), CaptureError> {
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

/// Returns the current PIDs of `targets`; a recording calls this again just before it starts.
///
/// # Errors
/// Returns an error if the device is lost or does not answer.
pub async fn resolve_pids(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Vec<(Pid, String)>, CaptureError> {
    Ok(resolve_each(device, facts, targets, user).await?.found)
}

/// Returns [`Assessment::absent_target`] of targets without a process, without details if the device
/// does not answer.
pub async fn absent_target(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    user: Option<u32>,
) -> AbsentTarget {
    let options = AssessOptions {
        user,
        startup: Startup::Off,
    };
    match assess(device, facts, targets, &options).await {
        Ok(assessment) => assessment.absent_target(),
        Err(_) => AbsentTarget::not_running(targets, None),
    }
}

/// Returns why the device does not have a package. Returns `None` if it has it, or if it does not
/// answer.
pub async fn missing_package(
    device: &Device,
    package: &str,
    user: Option<u32>,
) -> Option<AbsentTarget> {
    let facts = super::facts(device).await.ok()?;
    let targets = Targets {
        packages: vec![package.to_owned()],
        ..Targets::default()
    };
    let absent = absent_target(device, &facts, &targets, user).await;
    (!absent.can_start).then_some(absent)
}

/// Running processes of targets.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolved {
    /// PIDs and names, sorted.
    pub found: Vec<(Pid, String)>,
    /// Targets without a running process, as typed.
    pub missing: Vec<String>,
}

/// Returns the running processes of `targets`, and the targets without any.
///
/// # Errors
/// Returns an error if the device is lost or does not answer.
pub async fn resolve_each(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    user: Option<u32>,
) -> Result<Resolved, CaptureError> {
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
    // The same text can be a target both as a process and as a package.
    let mut met: BTreeMap<String, bool> = BTreeMap::new();
    for spec in list_targets(targets) {
        let of_it = matching(&spec, &snapshot, user);
        let is_met = met.entry(spec.typed()).or_default();
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
    specs: &[TargetSpec],
    s: &Snapshot,
    options: &AssessOptions,
) -> Assessment {
    let mut resolved = Targets::default();
    let reports = specs.iter().map(|spec| {
        let report = report(facts, spec, s, options);
        resolve(spec, &report, s, options, &mut resolved);
        report
    });
    Assessment {
        targets: reports.collect(),
        device: decide_device(facts),
        resolved,
    }
}
