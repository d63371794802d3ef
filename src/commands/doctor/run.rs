//! Checks whether the host and the device are ready to record. Defines the checks and their texts.
//! `eligibility` decides what can be profiled on a device.
//!
//! Every check gives one finding, good or bad, so a missing line means that the check could not be
//! made. Nothing is changed on either side, except that a local adb server can be
//! started, as in every command.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use schemars::JsonSchema;
use serde::Serialize;

use heaptap_adb::{Device, HostAdb, INSTALL_ADB, Selector, Server, find_adb};
use heaptap_base::directory::OWN_PREFIX;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::ByteSize;
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_capture::eligibility::{self, BuildType, DeviceFacts, Selinux, Severity};
use heaptap_capture::session::Store;

/// Protocol version of the adb server since the tools of Android 8.
const SERVER_VERSION: u32 = 39;
/// Free bytes below which a recording might not fit.
const LITTLE_DISK: u64 = 1 << 30;
/// Free bytes below which no recording fits.
const MIN_DISK_BYTES: u64 = 64 << 20;
/// Seconds between the clocks above which times in reports are misleading.
const CLOCK_SKEW: u64 = 120;
/// API level of Android 11, the first whose perfetto can be queried for the state of the service.
const QUERY_SDK: u32 = 30;
/// Time limit for one request to the device.
const PATIENCE: Duration = Duration::from_secs(5);

/// Result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Ok,
    /// Recording works, with a restriction.
    Warn,
    /// Recording will fail.
    Fail,
}

/// Side that a check is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// The host.
    Host,
    /// The adb server and the device.
    Device,
}

/// Finding of one check.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Check {
    /// Stable ID for scripts.
    pub id: String,
    pub side: Side,
    pub status: Status,
    /// Result in words.
    pub what: String,
    /// Next step.
    pub fix: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct Diagnosis {
    /// Whether no check failed.
    pub ready: bool,
    /// Serial number of the checked device.
    pub serial: Option<String>,
    /// Findings.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// Returns the error classes of the failed checks, of the device and of the host.
    pub fn classes(&self) -> impl Iterator<Item = ErrorClass> {
        self.checks
            .iter()
            .filter(|check| check.status == Status::Fail)
            .map(|check| match check.side {
                Side::Host => ErrorClass::HostWrite,
                Side::Device => ErrorClass::NoDevice,
            })
    }
}

/// Runs all checks. Never fails, because each failure is a finding. `server` is the result of the
/// search for an adb server, `output` the directory for recordings.
pub async fn diagnose(
    server: Result<&Server, Failure>,
    selector: &Selector,
    output: &Path,
) -> Diagnosis {
    let mut checks = Vec::new();
    let mut serial = None;
    checks.push(adb_program(find_adb(), server.is_ok()));
    match server {
        Ok(server) => {
            checks.push(adb_server(server).await);
            if let Some(device) = device(server, selector, &mut checks).await {
                serial = Some(sanitize_bytes(device.serial().as_bytes()));
                phone(&device, &mut checks).await;
            }
        }
        Err(failure) => checks.push(failed("adb-server", failure)),
    }
    checks.extend(host(&existing(output)));
    Diagnosis {
        ready: checks.iter().all(|check| check.status != Status::Fail),
        serial,
        checks,
    }
}

/// Checks this host.
fn host(output: &Path) -> [Check; 4] {
    let checks = [
        host_clock(),
        state_directory(),
        output_directory(output),
        host_disk(output),
    ];
    checks.map(|check| Check {
        side: Side::Host,
        ..check
    })
}

fn ok(id: &str, what: impl Into<String>) -> Check {
    check(id, Status::Ok, what)
}

fn warn(id: &str, what: impl Into<String>) -> Check {
    check(id, Status::Warn, what)
}

fn fail(id: &str, what: impl Into<String>) -> Check {
    check(id, Status::Fail, what)
}

fn check(id: &str, status: Status, what: impl Into<String>) -> Check {
    Check {
        id: id.to_owned(),
        side: Side::Device,
        status,
        what: what.into(),
        fix: None,
    }
}

impl Check {
    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

/// Returns a failure of the device side as a finding.
fn failed(id: &str, failure: impl Into<Failure>) -> Check {
    let failure = failure.into();
    Check {
        fix: failure.help,
        ..fail(id, failure.message)
    }
}

fn adb_program(found: HostAdb, server_runs: bool) -> Check {
    let (status, what) = match found {
        HostAdb::Found(path) => {
            let what = format!("adb is {}", path.display());
            return ok("adb-program", what);
        }
        HostAdb::Missing(_) if server_runs => (
            Status::Warn,
            "adb is not installed on the host; heaptap uses the adb server that is running",
        ),
        HostAdb::Missing(_) => (
            Status::Fail,
            "cannot find adb in PATH or in the usual locations of the Android SDK",
        ),
    };
    check("adb-program", status, what).fix(INSTALL_ADB)
}

async fn adb_server(server: &Server) -> Check {
    match server.version().await {
        Ok(version) if version < SERVER_VERSION => warn(
            "adb-server",
            format!(
                "the adb server at {} is old (protocol {version})",
                server.address()
            ),
        )
        .fix("update the Android SDK Platform-Tools, then run `adb kill-server`"),
        Ok(version) => ok(
            "adb-server",
            format!("adb server at {} (protocol {version})", server.address()),
        ),
        Err(error) => failed("adb-server", error),
    }
}

/// Returns the selected device, or `None` with a failed check.
async fn device(server: &Server, selector: &Selector, checks: &mut Vec<Check>) -> Option<Device> {
    match server.select(selector).await {
        Ok(device) => {
            let what = format!("{} is connected and authorized", device.serial());
            checks.push(ok("device", what));
            Some(device)
        }
        Err(error) => {
            checks.push(failed("device", error));
            None
        }
    }
}

async fn phone(device: &Device, checks: &mut Vec<Check>) {
    match device.features(PATIENCE).await {
        Ok(features) => {
            let missing: Vec<&str> = [
                (features.shell_v2, "shell_v2"),
                (features.stat_v2, "stat_v2"),
            ]
            .iter()
            .filter_map(|(has, name)| (!has).then_some(*name))
            .collect();
            checks.push(if missing.is_empty() {
                let what = "adb supports exit codes and 64-bit sizes (shell_v2, stat_v2)";
                ok("adb-features", what)
            } else {
                let what = format!(
                    "adb does not support {}; using the older protocol",
                    missing.join(" and ")
                );
                warn("adb-features", what)
                    .fix("update the Android SDK Platform-Tools on the host of the adb server")
            });
        }
        Err(error) => {
            checks.push(failed("adb-features", error));
            return;
        }
    }
    match eligibility::facts(device).await {
        Ok(facts) => checks.extend(judge(&facts, SystemTime::now())),
        Err(error) => checks.push(failed("shell", error)),
    }
}

fn judge_selinux(selinux: Selinux) -> Check {
    let check = |status, what| check("selinux", status, what);
    match selinux {
        Selinux::Enforcing => check(Status::Ok, "SELinux is enforcing"),
        Selinux::Disabled => check(Status::Warn, "SELinux is disabled"),
        Selinux::Permissive => check(
            Status::Warn,
            "SELinux is permissive, so it protects neither apps nor system processes",
        )
        .fix(
            "run `adb shell su root setenforce 1`, unless `heaptap record --disable-selinux` is \
             running, which restores it at its end",
        ),
    }
}

/// Returns the checks that follow from the facts of a device.
fn judge(facts: &DeviceFacts, now: SystemTime) -> Vec<Check> {
    // `eligibility` defines the texts of its findings.
    let findings: Vec<Check> = eligibility::decide_device(facts)
        .into_iter()
        .map(|finding| {
            let status = match finding.severity {
                Severity::Blocks if finding.scope == eligibility::Scope::Java => Status::Warn,
                Severity::Blocks => Status::Fail,
                _ => Status::Warn,
            };
            let what = format!("{}: {}", finding.what, finding.why);
            Check {
                fix: finding.fix,
                ..check(&finding.id.to_string().to_lowercase(), status, what)
            }
        })
        .collect();
    let mut checks = vec![match (&facts.release, facts.sdk) {
        (None, None) => warn("android", "cannot read the Android version of the device"),
        _ => ok(
            "android",
            format!(
                "{}{}",
                facts
                    .model
                    .as_ref()
                    .map_or_else(String::new, |m| format!("{m}, ")),
                facts.system()
            ),
        ),
    }];
    checks.push(match &facts.build_type {
        Some(BuildType::User) => ok(
            "build-type",
            "user build: only debuggable or profileable apps can be recorded",
        ),
        Some(_) => ok(
            "build-type",
            "not a user build: nearly every process can be recorded",
        ),
        None => warn("build-type", "cannot read the build type of the device"),
    });
    checks.extend(facts.selinux.map(judge_selinux));
    match (facts.tracing_on, &facts.sessions) {
        (Some(true), None) if facts.api().is_some_and(|sdk| sdk >= QUERY_SDK) => checks.push(
            fail(
                "tracing",
                "the tracing service is enabled but does not respond",
            )
            .fix(
                "restart the service with `adb shell setprop persist.traced.enable 0`, then the \
                 same with `1`, or restart the device",
            ),
        ),
        (Some(true), _) => checks.push(ok("tracing", "the tracing daemon is running")),
        // A finding of `eligibility` reports this.
        (Some(false), _) => {}
        (None, _) => checks.push(
            warn(
                "tracing",
                "cannot determine whether the tracing daemon is running",
            )
            .fix("if a recording does not start, run `adb shell setprop persist.traced.enable 1`"),
        ),
    }
    checks.push(match (&facts.perfetto_version, &facts.sessions) {
        (Some(version), _) => ok("perfetto", format!("perfetto {version}")),
        (None, Some(_)) => ok("perfetto", "perfetto responds"),
        (None, None) => warn("perfetto", "perfetto on the device did not respond")
            .fix("check that the device runs Android 10 or later; recording requires its perfetto"),
    });
    match facts.free_bytes {
        Some(free) => {
            if !findings.iter().any(|check| check.id == "space") {
                checks.push(ok(
                    "device-space",
                    format!("{} free for traces on the device", ByteSize(free)),
                ));
            }
        }
        None => checks.push(warn(
            "device-space",
            "cannot read the free space in /data/misc/perfetto-traces",
        )),
    }
    if let Some(clock) = facts.clock_s {
        checks.push(phone_clock(clock, now));
    }
    checks.extend(findings);
    checks
}

fn phone_clock(clock_s: i64, now: SystemTime) -> Check {
    let now = now
        .duration_since(SystemTime::UNIX_EPOCH)
        .map_or(0, |since| {
            i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
        });
    let apart = clock_s.abs_diff(now);
    if apart <= CLOCK_SKEW {
        let what = "the device clock agrees with the host clock";
        return ok("clock", what);
    }
    let behind = if clock_s < now { "behind" } else { "ahead of" };
    let apart = heaptap_base::units::HumanDuration(Duration::from_secs(apart));
    let what = format!("the device clock is {apart} {behind} the host clock");
    warn("clock", what)
        .fix("set both clocks from the network; traces use device time, and files use host time")
}

fn host_clock() -> Check {
    // Start of 2026, the year in which this was written.
    const WRITTEN: Duration = Duration::from_secs(1_767_225_600);
    if SystemTime::now() < SystemTime::UNIX_EPOCH + WRITTEN {
        return warn("host-clock", "the host clock is set before 2026")
            .fix("set the host clock, because recordings are named by its time");
    }
    ok("host-clock", "the host clock is plausible")
}

fn state_directory() -> Check {
    let writable = Store::of_user()
        .map_err(|error| error.to_string())
        .and_then(|store| {
            let directory = store.directory().to_owned();
            match can_write(&directory) {
                Ok(()) => Ok(directory),
                Err(error) => Err(format!("{}: {error}", directory.display())),
            }
        });
    match writable {
        Ok(directory) => ok(
            "state-directory",
            format!("recording journals are written to {}", directory.display()),
        ),
        Err(why) => fail(
            "state-directory",
            format!("cannot write recording journals: {why}"),
        )
        .fix(format!(
            "make the directory writable, or set {} to another directory",
            heaptap_capture::session::STATE_DIR_VAR
        )),
    }
}

fn output_directory(directory: &Path) -> Check {
    let shown = directory.display();
    match can_write(directory) {
        Ok(()) => ok(
            "output-directory",
            format!("recordings can be created in {shown}"),
        ),
        Err(error) => fail(
            "output-directory",
            format!("recordings cannot be created in {shown}: {error}"),
        )
        .fix("change to another directory, or name one with `-o`"),
    }
}

fn host_disk(directory: &Path) -> Check {
    match fs4::available_space(directory) {
        Ok(free) => {
            let what = format!("{} free on the host", ByteSize(free));
            let status = match free {
                0..MIN_DISK_BYTES => Status::Fail,
                MIN_DISK_BYTES..LITTLE_DISK => Status::Warn,
                _ => Status::Ok,
            };
            let check = check("host-disk", status, what);
            match status {
                Status::Ok => check,
                _ => check.fix("free disk space, or name a directory on another disk with `-o`"),
            }
        }
        Err(error) => warn(
            "host-disk",
            format!("cannot read the free space on the host: {error}"),
        ),
    }
}

fn can_write(directory: &Path) -> std::io::Result<()> {
    tempfile::Builder::new()
        .prefix(OWN_PREFIX)
        .tempfile_in(directory)
        .map(drop)
}

/// Returns `directory`, or the nearest ancestor that exists. A recording creates the rest.
fn existing(directory: &Path) -> PathBuf {
    let directory = std::path::absolute(directory).unwrap_or_else(|_| directory.to_owned());
    let above = directory.ancestors().find(|path| path.exists());
    above.unwrap_or(&directory).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts() -> DeviceFacts {
        DeviceFacts::read(
            "S",
            b"@@heaptap getprop\n[ro.build.version.sdk]: [34]\n[ro.build.version.release]: [14]\n\
              [ro.build.type]: [user]\n[ro.product.model]: [Pixel 8]\n\
              [persist.traced.enable]: [1]\n[init.svc.traced]: [running]\n\
              \n@@heaptap id\n2000\n\n@@heaptap date\n1800000000\n\
              \n@@heaptap df\nFilesystem 1K-blocks Used Available Use% Mounted on\n\
              /dev/block/dm-5 100000000 1000 50000000 1% /data\n",
        )
    }

    fn at(seconds: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
    }

    fn status(checks: &[Check], id: &str) -> Option<Status> {
        checks.iter().find(|c| c.id == id).map(|c| c.status)
    }

    #[test]
    fn a_good_phone_has_nothing_but_good_findings() {
        let mut facts = facts();
        facts.perfetto_version = Some("45.0".into());
        facts.sessions = Some(Vec::new());
        let checks = judge(&facts, at(1_800_000_030));
        for id in [
            "android",
            "build-type",
            "tracing",
            "perfetto",
            "device-space",
            "clock",
        ] {
            assert_eq!(status(&checks, id), Some(Status::Ok), "{id}: {checks:#?}");
        }
        assert_eq!(checks.len(), 6, "{checks:#?}");
    }

    #[test]
    fn each_trouble_of_a_phone_is_told_with_its_fix() {
        let mut old = facts();
        old.sdk = Some(28);
        let mut off = facts();
        off.tracing_on = Some(false);
        let dead = facts();
        let mut full = facts();
        full.sessions = Some(Vec::new());
        full.free_bytes = Some(1 << 20);
        for (facts, fails) in [(old, true), (off, true), (dead, true), (full, false)] {
            let checks = judge(&facts, at(1_800_000_000));
            let worst = checks.iter().map(|c| c.status).max();
            assert_eq!(worst == Some(Status::Fail), fails, "{checks:#?}");
            assert!(
                checks
                    .iter()
                    .filter(|c| c.status == Status::Fail)
                    .all(|c| c.fix.is_some()),
                "{checks:#?}"
            );
        }
    }

    #[test]
    fn permissive_selinux_is_a_warning() {
        let mut facts = facts();
        for (selinux, expected) in [
            (Selinux::Enforcing, Status::Ok),
            (Selinux::Permissive, Status::Warn),
        ] {
            facts.selinux = Some(selinux);
            let checks = judge(&facts, at(1_800_000_000));
            assert_eq!(status(&checks, "selinux"), Some(expected), "{checks:#?}");
        }
    }

    #[test]
    fn clocks_apart_are_told_in_words() {
        let check = phone_clock(1_800_000_000, at(1_800_003_600));
        assert_eq!(check.status, Status::Warn);
        assert_eq!(
            check.what,
            "the device clock is 1h 00m behind the host clock"
        );
        assert_eq!(phone_clock(-5, at(0)).status, Status::Ok);
    }

    #[test]
    fn an_unwritable_directory_is_this_hosts_failure() {
        let directory = tempfile::tempdir().unwrap();
        let [.., check, _] = host(&directory.path().join("missing"));
        assert_eq!((check.status, check.side), (Status::Fail, Side::Host));
        let diagnosis = Diagnosis {
            ready: false,
            serial: None,
            checks: vec![
                check,
                failed(
                    "device",
                    Failure::new(ErrorClass::NoDevice, "no-device", "no device"),
                ),
            ],
        };
        // The class of the device side takes precedence if both failed.
        assert_eq!(
            ErrorClass::first_of(diagnosis.classes()),
            Some(ErrorClass::NoDevice)
        );
        assert_eq!(output_directory(directory.path()).status, Status::Ok);
        assert_eq!(existing(&directory.path().join("a/b")), directory.path());
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
