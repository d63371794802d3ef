//! Installed packages with their eligibility, for `apps`.

use serde::Serialize;

use super::decide::{Answer, decide_app, decide_process, is_process_of};
use super::facts::DeviceFacts;
use super::finding::{Finding, Severity};
use super::gather::{self, PackageFilter, of_appid, user_of};
use super::packages::{PER_USER, Package};
use super::processes::{Pid, Process};
use crate::error::CaptureError;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};

/// Selection of packages to list.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListOptions {
    /// Part of the package name, in any case; this includes system packages.
    pub filter: Option<String>,
    /// Include system packages without a filter.
    pub all: bool,
    /// The user or profile; by default the one in the foreground.
    pub user: Option<u32>,
}

/// One package with its eligibility.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct InstalledApp {
    #[serde(flatten)]
    pub package: Package,
    /// It came with the system; `None` if the device did not report it.
    pub system: Option<bool>,
    /// Running processes with its UID, and its SDK sandboxes.
    pub processes: Vec<RunningProcess>,
    /// Native heap profile.
    pub native: Answer,
    /// Java heap dump.
    pub java: Answer,
    /// Reasons if an answer is no or unknown.
    pub findings: Vec<Finding>,
}

/// A process of an app.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RunningProcess {
    pub pid: Pid,
    pub name: String,
}

/// Lists packages, sorted by name: three shell calls, and one more for all their manifests.
///
/// # Errors
/// Returns an error if the device is lost or does not answer, or its package manager does not.
pub async fn list_apps(
    device: &Device,
    facts: &DeviceFacts,
    options: &ListOptions,
) -> Result<Vec<InstalledApp>, CaptureError> {
    let user = user_of(facts, options.user);
    let (all, third_party, processes) = tokio::join!(
        gather::packages(device, user, PackageFilter::All),
        gather::packages(device, user, PackageFilter::ThirdParty),
        gather::processes(device, facts),
    );
    let all = all?.ok_or_else(|| {
        let message = format!("the device does not list any packages for user {user}");
        Failure::new(ErrorClass::Device, "no-packages", message).with_help(
            "check the user with `adb shell pm list users`, or wait until the device has finished \
             booting",
        )
    })?;
    let third_party = third_party?;
    let processes = processes?;
    let is_system = |name: &str| {
        let list = third_party.as_ref()?;
        Some(!list.iter().any(|p| p.name == name))
    };
    let filter = options.filter.as_deref().map(str::to_lowercase);
    let (mut wanted, mut rest): (Vec<Package>, Vec<Package>) =
        all.into_iter().partition(|p| match &filter {
            Some(filter) => p.name.to_lowercase().contains(filter),
            None => options.all || is_system(&p.name) != Some(true),
        });
    // Packages that share a UID share a verdict, so their manifests are queried too.
    let listed = wanted.len();
    let is_shared = |appid| appid >= 10_000 && of_appid(&wanted, appid).next().is_some();
    rest.retain(|p| p.appid().is_some_and(is_shared));
    wanted.extend(rest);
    gather::app_types(device, facts, &mut wanted).await?;
    let mut apps: Vec<InstalledApp> = wanted[..listed]
        .iter()
        .map(|p| build_app(facts, p, &wanted, &processes, is_system(&p.name)))
        .collect();
    apps.sort_by(|a, b| a.package.name.cmp(&b.package.name));
    Ok(apps)
}

fn build_app(
    facts: &DeviceFacts,
    package: &Package,
    known: &[Package],
    processes: &[Process],
    system: Option<bool>,
) -> InstalledApp {
    let owners: Vec<&Package> = match package.appid() {
        Some(appid) => of_appid(known, appid).collect(),
        None => vec![package],
    };
    let is_own = |p: &&Process| {
        let of_uid = p.uid.is_some() && p.uid == package.uid;
        let of_sandbox = p.user() == package.uid.map(|uid| uid / PER_USER)
            && package.appid().map(|a| a + 10_000) == p.appid();
        match owners.len() > 1 || package.appid().is_none_or(|a| a < 10_000) {
            true => is_process_of(&p.name, &package.name),
            false => of_uid || of_sandbox,
        }
    };
    let own: Vec<&Process> = processes.iter().filter(is_own).collect();
    let main = own.iter().find(|p| p.name == package.name).or(own.first());
    let verdict = match main {
        Some(process) => decide_process(facts, process, &owners),
        None => decide_app(facts, &package.name, &owners, package.uid),
    };
    let processes = own.iter().map(|p| RunningProcess {
        pid: p.pid,
        name: p.name.clone(),
    });
    let findings = verdict.findings.into_iter();
    InstalledApp {
        package: package.clone(),
        system,
        processes: processes.collect(),
        native: verdict.native,
        java: verdict.java,
        findings: findings.filter(|f| f.severity != Severity::Note).collect(),
    }
}
