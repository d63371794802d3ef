//! The shell calls. Each call queries many facts; tools that a device lacks leave facts
//! unknown. Only a lost or silent device is an error.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use prost::Message as _;

use super::facts::{DeviceFacts, Root};
use super::manifest_xml::read_manifest;
use super::packages::{
    AppType, AppTypeSource, PER_USER, Package, PackageRow, read_app_types, read_dumpsys, read_list,
    read_packages_list, read_packages_trace, read_run_as,
};
use super::processes::{Pid, ProcDetails, Process, read_activity, read_details, read_ps};
use crate::config::sources;
use heaptap_adb::{Command, Device, DeviceError, Output};
use heaptap_proto::perfetto::{PackagesListConfig, TraceConfig};

/// Timeout for answers of the shell and the kernel.
pub(super) const QUICK: Duration = Duration::from_secs(10);
/// Timeout for answers of system services; a busy or dying device is slow.
const SERVICE: Duration = Duration::from_secs(20);

/// Script for the facts that only need the shell and the kernel.
pub(super) const BASE: &str = include_str!("../scripts/device.sh").trim_ascii_end();

/// Script for the facts that need system services.
pub(super) const SERVICES: &str = include_str!("../scripts/services.sh").trim_ascii_end();

/// Script for the kernel's facts about the processes given as arguments.
pub(super) const DETAILS: &str = include_str!("../scripts/processes.sh").trim_ascii_end();

/// Script for the app types of the packages given as arguments (Android 12 and later).
const APP_TYPES: &str = include_str!("../scripts/app_types.sh").trim_ascii_end();

/// Maximum number of arguments per call; it keeps command lines within the limit of old
/// devices.
const ARGUMENTS: usize = 200;

/// Maximum number of packages to query one by one.
const FEW: usize = 40;

/// Queries all facts of a device that decide about profiling, in three concurrent shell calls.
/// Facts that the device does not report stay unknown.
///
/// # Errors
/// Returns an error if the device is lost or its shell does not answer.
pub async fn device_facts(device: &Device) -> Result<DeviceFacts, DeviceError> {
    let base = Command::script(BASE).called("reading device properties");
    let services = Command::script(SERVICES).called("querying system services");
    let query = Command::program("perfetto").arg("--query-raw");
    let (base, services, query) = tokio::try_join!(
        device.run(&base, QUICK),
        async { patient(device.run(&services, SERVICE).await) },
        async { patient(device.run(&query, SERVICE).await) },
    )?;
    let mut facts = DeviceFacts::read(device.serial(), &base.stdout);
    if let Some(out) = services {
        facts.read_services(&out.stdout);
    }
    if let Some(out) = query.filter(|out| out.exit == 0) {
        facts.read_query(&out.stdout);
    }
    if let Some(out) = su_uid(device, &facts).await? {
        facts.read_su(&out.stdout);
    }
    Ok(facts)
}

/// Runs `su` only if the build is made for root: `su` of user builds might open a dialog on
/// the device's screen.
async fn su_uid(device: &Device, facts: &DeviceFacts) -> Result<Option<Output>, DeviceError> {
    if facts.root.is_some() || facts.debuggable != Some(true) {
        return Ok(None);
    }
    let command = Command::program("su").args(["root", "id", "-u"]);
    patient(device.run(&command, QUICK).await)
}

/// Turns a service's timeout or refusal into `None`; a lost device is an error.
pub(super) fn patient(result: Result<Output, DeviceError>) -> Result<Option<Output>, DeviceError> {
    match result {
        Ok(out) => Ok(Some(out)),
        Err(DeviceError::Deadline { .. } | DeviceError::Refused { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Lists all processes.
pub(super) async fn processes(
    device: &Device,
    facts: &DeviceFacts,
) -> Result<Vec<Process>, DeviceError> {
    let command = Command::program("ps").args(["-A", "-o", "PID,PPID,UID,S,NAME"]);
    let out = device.run(&command, QUICK).await?;
    Ok(read_ps(&out.stdout, facts.is_64_bit()))
}

/// Reads the kernel's facts about these processes.
pub(super) async fn details(
    device: &Device,
    pids: &[Pid],
) -> Result<BTreeMap<Pid, ProcDetails>, DeviceError> {
    let mut all = BTreeMap::new();
    for pids in pids.chunks(ARGUMENTS) {
        let command = Command::script(DETAILS)
            .called("reading process details")
            .args(pids.iter().map(Pid::to_string));
        if let Some(out) = patient(device.run(&command, QUICK).await)? {
            all.extend(read_details(&out.stdout));
        }
    }
    Ok(all)
}

/// Asks the activity manager which processes of these packages are frozen: for devices
/// whose kernel does not show it to the adb shell.
pub(super) async fn frozen(
    device: &Device,
    packages: &BTreeSet<&str>,
) -> Result<BTreeMap<Pid, bool>, DeviceError> {
    let mut all = BTreeMap::new();
    for package in packages.iter().take(4) {
        let command = Command::program("dumpsys").args(["activity", "processes", package]);
        if let Some(out) = patient(device.run(&command, SERVICE).await)? {
            all.extend(read_activity(&out.stdout));
        }
    }
    Ok(all)
}

/// Selection of packages to list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PackageFilter {
    All,
    ThirdParty,
}

/// Lists the packages installed for a user, in the device's order; `None` if the package
/// manager does not answer.
pub(super) async fn packages(
    device: &Device,
    user: u32,
    filter: PackageFilter,
) -> Result<Option<Vec<Package>>, DeviceError> {
    let mut command = Command::program("pm").args(["list", "packages", "-U", "-i", "--user"]);
    command = command.arg(user.to_string());
    if filter == PackageFilter::ThirdParty {
        command = command.arg("-3");
    }
    let out = patient(device.run(&command, SERVICE).await)?;
    let list = out.map(|out| read_list(&out.stdout));
    Ok(list.filter(|list| !list.is_empty()))
}

/// Fills in the app types of `wanted` from the cheapest exact source that the device has.
pub(super) async fn app_types(
    device: &Device,
    facts: &DeviceFacts,
    wanted: &mut [Package],
) -> Result<(), DeviceError> {
    if wanted.is_empty() {
        return Ok(());
    }
    if let Some(root) = facts.root {
        let rows = packages_list(device, root).await?;
        apply_rows(wanted, &rows, AppTypeSource::PackagesList);
    }
    let has_runner = facts.api().is_none_or(|sdk| sdk >= 31);
    // The runner takes some 10 ms per package, the trace half a second for all.
    let traced_first = !has_runner || open(wanted) > FEW;
    if has_runner && !traced_first {
        app_runner(device, wanted).await?;
    }
    let has_trace = facts.api().is_none_or(|sdk| sdk >= 29) && facts.tracing_on != Some(false);
    if has_trace
        && open(wanted) > 0
        && let Some(rows) = packages_trace(device, wanted).await?
    {
        apply_rows(wanted, &rows, AppTypeSource::PackagesTrace);
    }
    if has_runner && traced_first && open(wanted) > 0 {
        app_runner(device, wanted).await?;
    }
    for package in wanted.iter_mut().filter(|p| p.app_type.is_none()).take(8) {
        weak_sources(device, package).await?;
    }
    Ok(())
}

/// Returns the number of packages without a known app type.
fn open(wanted: &[Package]) -> usize {
    wanted.iter().filter(|p| p.app_type.is_none()).count()
}

/// Applies the first row with the appid, whatever its name, as heapprofd does.
fn apply_rows(wanted: &mut [Package], rows: &[PackageRow], source: AppTypeSource) {
    for package in wanted.iter_mut().filter(|p| p.app_type.is_none()) {
        let row = rows.iter().find(|row| match package.appid() {
            Some(appid) => row.uid % PER_USER == appid,
            None => row.name == package.name,
        });
        if let Some(row) = row {
            package.set_type(row.app_type(), source);
        }
    }
}

async fn packages_list(device: &Device, root: Root) -> Result<Vec<PackageRow>, DeviceError> {
    let cat = ["cat", "/data/system/packages.list"];
    let command = match root {
        Root::Shell => Command::program("cat").arg(cat[1]),
        Root::Su => Command::program("su").arg("root").args(cat),
    };
    let out = patient(device.run(&command, QUICK).await)?;
    Ok(out.map_or_else(Vec::new, |out| read_packages_list(&out.stdout)))
}

async fn app_runner(device: &Device, wanted: &mut [Package]) -> Result<(), DeviceError> {
    for chunk in wanted.chunks_mut(ARGUMENTS) {
        let open = chunk.iter().filter(|p| p.app_type.is_none());
        let names: Vec<&str> = open.map(|p| p.name.as_str()).collect();
        if names.is_empty() {
            continue;
        }
        let command = Command::script(APP_TYPES)
            .called("reading app manifests")
            .args(&names);
        let Some(out) = patient(device.run(&command, SERVICE).await)? else {
            continue;
        };
        let types = read_app_types(&out.stdout);
        for package in chunk.iter_mut() {
            if let Some(kind) = types.get(&package.name) {
                package.set_type(*kind, AppTypeSource::AppRunner);
            }
        }
    }
    Ok(())
}

/// Records a short trace of the device's package list: the very file that heapprofd checks.
async fn packages_trace(
    device: &Device,
    wanted: &[Package],
) -> Result<Option<Vec<PackageRow>>, DeviceError> {
    let names = wanted.iter().map(|p| p.name.clone()).collect();
    let config = packages_trace_config(names);
    let command = Command::program("perfetto").args(["-c", "-", "-o", "-"]);
    let out = device
        .run_with_stdin(&command, &config.encode_to_vec(), SERVICE)
        .await;
    Ok(patient(out)?.and_then(|out| read_packages_trace(&out.stdout)))
}

fn packages_trace_config(names: Vec<String>) -> TraceConfig {
    let mut list = sources::source(sources::PACKAGES_LIST, 0);
    list.config.get_or_insert_default().packages_list_config = Some(PackagesListConfig {
        package_name_filter: names,
        ..PackagesListConfig::default()
    });
    TraceConfig {
        buffers: vec![sources::ring(2048)],
        data_sources: vec![list],
        // The list is written at the start; the service flushes at the end.
        duration_ms: Some(200),
        ..TraceConfig::default()
    }
}

/// Tries `run-as` and `dumpsys package`, which prove only what they affirm, and then the
/// manifest in the APK, which is complete but needs two more calls.
async fn weak_sources(device: &Device, package: &mut Package) -> Result<(), DeviceError> {
    let run_as = Command::program("run-as").args([package.name.as_str(), "id"]);
    let dumpsys = Command::program("dumpsys").args(["package", package.name.as_str()]);
    let (run_as, dumpsys) = tokio::join!(device.run(&run_as, QUICK), device.run(&dumpsys, SERVICE));
    let (run_as, dumpsys) = (patient(run_as)?, patient(dumpsys)?);
    if let Some(kind) = run_as.and_then(|out| read_run_as(&out.stdout)) {
        package.set_type(kind, AppTypeSource::RunAs);
    } else if let Some(kind) = dumpsys.and_then(|out| read_dumpsys(&out.stdout, &package.name)) {
        package.set_type(kind, AppTypeSource::Dumpsys);
    } else if let Some(kind) = manifest_of_apk(device, &package.name).await? {
        package.set_type(kind, AppTypeSource::Manifest);
    }
    Ok(())
}

async fn manifest_of_apk(device: &Device, name: &str) -> Result<Option<AppType>, DeviceError> {
    let path = Command::program("pm").args(["path", name]);
    let Some(out) = patient(device.run(&path, SERVICE).await)? else {
        return Ok(None);
    };
    let lines = super::sections::text_lines(&out.stdout);
    let mut paths = lines.iter().filter_map(|l| l.strip_prefix("package:"));
    let Some(base) = paths.find(|p| p.ends_with("/base.apk") || lines.len() == 1) else {
        return Ok(None);
    };
    let unzip = Command::program("unzip").args(["-p", base, "AndroidManifest.xml"]);
    let out = patient(device.run(&unzip, SERVICE).await)?;
    Ok(out.and_then(|out| read_manifest(&out.stdout)))
}

/// Returns the user whose packages count: the requested one, otherwise the one in the foreground.
pub(super) fn user_of(facts: &DeviceFacts, asked: Option<u32>) -> u32 {
    asked.or(facts.current_user).unwrap_or(0)
}

/// Returns the packages with this appid, in the order of the list.
pub(super) fn of_appid(list: &[Package], appid: u32) -> impl Iterator<Item = &Package> {
    list.iter().filter(move |p| p.appid() == Some(appid))
}
