//! Report on one target: on each of its processes, or on a target without any. Pure.

use std::collections::BTreeSet;

use super::assessment::{AssessOptions, ProcessReport, Startup, TargetKind, TargetReport};
use super::decide::{Answer, blocked, decide_app, decide_device, decide_process, is_process_of};
use super::facts::DeviceFacts;
use super::finding::{Finding, Scope, Severity};
use super::gather::{of_appid, user_of};
use super::matching::{
    Snapshot, TargetSpec, apps_of, belongs_to, matching, owner_appid, package_of_name,
};
use super::names;
use super::packages::Package;
use super::processes::{Process, ProcessKind};
use heaptap_base::suggest::{distance, is_slip};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_model::names::could_be_app;

pub(super) fn report(
    facts: &DeviceFacts,
    spec: &TargetSpec,
    s: &Snapshot,
    options: &AssessOptions,
) -> TargetReport {
    let list = s.packages.as_deref().unwrap_or(&[]);
    let matched = matching(spec, s, options.user);
    let processes: Vec<ProcessReport> = matched
        .iter()
        .map(|p| process_report(facts, p, list))
        .collect();
    let (target, kind) = match spec {
        TargetSpec::Name(name) => (sanitize_bytes(name.as_bytes()), TargetKind::Name),
        TargetSpec::Pid(pid) => (pid.to_string(), TargetKind::Pid),
        TargetSpec::Package(name) => (sanitize_bytes(name.as_bytes()), TargetKind::Package),
    };
    let mut report = TargetReport {
        target,
        kind,
        found: !processes.is_empty(),
        packages: Vec::new(),
        native: Answer::No,
        java: Answer::No,
        hprof: Answer::No,
        processes,
        findings: Vec::new(),
    };
    if report.processes.is_empty() {
        absent(facts, spec, s, options, &mut report);
    } else {
        report.native = best(&report.processes, |p| p.native);
        report.java = best(&report.processes, |p| p.java);
        report.hprof = best(&report.processes, |p| p.hprof);
        about_names(spec, &matched, s, options, &mut report);
        let name = names::normalized(&report.target);
        if facts.armed_names.iter().any(|armed| armed == name) {
            let what = format!(
                "another recording is waiting for {} to start",
                report.target
            );
            report.findings.push(Finding::busy(what));
        }
    }
    let appids: BTreeSet<u32> = matched.iter().filter_map(|p| owner_appid(p)).collect();
    report.packages.extend(apps_of(list, &appids));
    report
}

fn best(processes: &[ProcessReport], of: impl Fn(&ProcessReport) -> Answer) -> Answer {
    processes.iter().map(of).min().unwrap_or(Answer::No)
}

fn process_report(facts: &DeviceFacts, p: &Process, list: &[Package]) -> ProcessReport {
    let owners = owner_appid(p).map(|appid| of_appid(list, appid).collect());
    let owners: Vec<&Package> = owners.unwrap_or_default();
    let verdict = decide_process(facts, p, &owners);
    let package = match owners.as_slice() {
        [only] => Some(only),
        several => several.iter().find(|o| is_process_of(&p.name, &o.name)),
    };
    ProcessReport {
        process: p.clone(),
        package: package.map(|package| package.name.clone()),
        native: verdict.native,
        java: verdict.java,
        hprof: verdict.hprof,
        findings: verdict.findings,
    }
}

/// Fills in the report on a target without a process.
fn absent(
    facts: &DeviceFacts,
    spec: &TargetSpec,
    s: &Snapshot,
    options: &AssessOptions,
    report: &mut TargetReport,
) {
    let user = user_of(facts, options.user);
    let severity = match options.startup {
        Startup::Off => Severity::Blocks,
        Startup::Allowed | Startup::Asked => Severity::Note,
    };
    let (TargetSpec::Name(name) | TargetSpec::Package(name)) = spec else {
        if let TargetSpec::Pid(pid) = spec {
            report.findings.push(Finding::pid_gone(*pid));
        }
        return;
    };
    let users: Vec<u32> = facts.users.iter().map(|u| u.id).collect();
    if let Some(user) = options.user.filter(|u| !users.contains(u))
        && !users.is_empty()
    {
        report.findings.push(Finding::no_user(user, &users));
        return;
    }
    let package_name = package_of_name(name);
    let list = s.packages.as_deref();
    let package = list.and_then(|l| l.iter().find(|p| p.name == package_name));
    if let (Some(package), Some(list)) = (package, list) {
        report.found = true;
        let sharing: Vec<&Package> = match package.appid() {
            Some(appid) => of_appid(list, appid).collect(),
            None => vec![package],
        };
        let verdict = decide_app(facts, name, &sharing, package.uid);
        report.packages = sharing.into_iter().cloned().collect();
        report.findings = verdict.findings;
        let not_running = Finding::not_running(&report.target, severity);
        report.findings.push(not_running);
        let off = severity == Severity::Blocks;
        report.native = if off { Answer::No } else { verdict.native };
        report.java = verdict.java;
        report.hprof = verdict.hprof;
        return;
    }
    let could_be_app = could_be_app(name) && !names::is_pattern(name);
    let answer = match (options.startup, facts.is_user_build()) {
        // User builds do not profile anything that the adb shell starts; but an app can
        // name its processes freely.
        (Startup::Asked, Some(true)) if could_be_app => Answer::Unknown,
        (Startup::Asked, Some(false)) => Answer::OnlyFromStartup,
        (Startup::Asked, None) => Answer::Unknown,
        (Startup::Allowed, Some(false)) if !could_be_app && !names::is_pattern(name) => {
            Answer::OnlyFromStartup
        }
        _ => Answer::No,
    };
    let blocked = blocked(&decide_device(facts), Scope::Native);
    report.native = if blocked { Answer::No } else { answer };
    let similar = || {
        let running = s.processes.iter();
        let running = running.filter(|p| p.kind != ProcessKind::KernelThread);
        similar_names(name, running.map(|p| p.name.as_str()))
    };
    let target = &report.target;
    report.findings.push(match list {
        _ if answer != Answer::No => {
            // It can start later, so only a typing error is worth a question.
            let mut similar = similar();
            similar.retain(|running| is_slip(name, running));
            Finding::not_running(target, severity).or_meant(name, &similar)
        }
        _ if names::is_pattern(name) => Finding::no_match(target),
        Some(list) if could_be_app => {
            let similar = similar_names(package_name, list.iter().map(|p| p.name.as_str()));
            Finding::not_installed(target, user, &similar)
        }
        _ => Finding::no_process(target, &similar()),
    });
}

/// Length of the longest names that are compared letter by letter, in bytes.
const MAX_COMPARED_BYTES: usize = 256;

/// Returns up to three package or process names that a mistyped name might mean: names with
/// the same last part, that contain the name or are contained in it, or that differ in few
/// letters.
fn similar_names<'a>(name: &str, list: impl Iterator<Item = &'a str>) -> Vec<&'a str> {
    let wanted = name.to_ascii_lowercase();
    let last = wanted.rsplit('.').next().unwrap_or(&wanted).to_owned();
    // A short name such as `ps` is near to any other short one, and a part of many.
    let most = (wanted.len() / 3).min(2);
    let has_length = |part: &str| part.len() > 3;
    let mut scored: Vec<(usize, &str)> = list
        .filter_map(|name| {
            let have = name.to_ascii_lowercase();
            // A longer one is no package name, and each comparison would take long.
            let is_short = wanted.len().max(have.len()) <= MAX_COMPARED_BYTES;
            let is_near = is_short && wanted.len().abs_diff(have.len()) <= most;
            let distance = is_near.then(|| distance(&wanted, &have));
            let score = match distance.filter(|d| *d <= most) {
                Some(d) => d,
                None if has_length(&wanted) && have.contains(&wanted) => 4,
                None if has_length(&have) && wanted.contains(&have) => 4,
                None if has_length(&last) && have.rsplit('.').next() == Some(last.as_str()) => 5,
                None => return None,
            };
            Some((score, name))
        })
        .collect();
    scored.sort_unstable();
    scored.dedup();
    scored.into_iter().map(|(_, name)| name).take(3).collect()
}

/// Reports users that a name also covers, and processes of its package that it does not cover.
fn about_names(
    spec: &TargetSpec,
    matched: &[&Process],
    s: &Snapshot,
    options: &AssessOptions,
    report: &mut TargetReport,
) {
    let TargetSpec::Name(name) = spec else {
        return;
    };
    let users: BTreeSet<u32> = matched.iter().filter_map(|p| p.user()).collect();
    if users.len() > 1 && options.user.is_none() {
        let users: Vec<u32> = users.into_iter().collect();
        let pids: Vec<u32> = matched.iter().map(|p| p.pid).collect();
        let other_users = Finding::other_users(&report.target, &users, &pids);
        report.findings.push(other_users);
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
        let subprocesses = Finding::subprocesses(&report.target, &others, package);
        report.findings.push(subprocesses);
    }
}

#[cfg(test)]
mod tests {
    use super::similar_names;

    #[test]
    fn a_short_name_is_not_similar_to_every_other() {
        let running = ["ps", "adbd", "com.example.app", "com.example.maps"];
        let similar = |name| similar_names(name, running.into_iter());
        assert!(similar("gc").is_empty());
        assert_eq!(similar("com.exmaple.maps"), ["com.example.maps"]);
        assert_eq!(similar("adb"), ["adbd"]);
    }
}
