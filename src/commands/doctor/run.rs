//! Are this computer and the phone ready to record? Owns the checks and their words; what
//! may be profiled on a phone is `eligibility`'s to say.
//!
//! Every check gives one finding, good or bad, so that a list without a line says that the
//! check could not be made. Nothing is changed on either side but this: a local adb server is
//! started where none runs, as every command does.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;

use crate::device::{Device, HostAdb, Selector, Server, find_adb};
use crate::eligibility::{self, BuildType, DeviceFacts, Severity};
use crate::error::{ErrorClass, Failure};
use crate::folder::OWN_PREFIX;
use crate::session::Store;
use crate::units::ByteSize;
use crate::untrusted::sanitize_bytes;

/// The server's protocol since Android 8's tools.
const SERVER_VERSION: u32 = 39;
/// Below this a recording may not fit.
const LITTLE_DISK: u64 = 1 << 30;
/// Below this nothing fits.
const MIN_DISK_BYTES: u64 = 64 << 20;
/// Clocks further apart than this make times in reports misleading.
const CLOCK_SKEW: u64 = 120;
/// Android 11: the first whose perfetto can be asked for the service's state.
const QUERY_SDK: u32 = 30;
/// One question to the phone.
const PATIENCE: Duration = Duration::from_secs(5);

/// How a check went.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    /// As it should be.
    Ok,
    /// Works, but something is to be known.
    Warn,
    /// Recording will fail.
    Fail,
}

/// Whose affair a check is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Side {
    /// This computer.
    Host,
    /// The adb server and the phone.
    Phone,
}

/// What one check found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Check {
    /// Stable id for scripts.
    pub id: String,
    /// Whose affair it is.
    pub side: Side,
    /// How it went.
    pub status: Status,
    /// What was found.
    pub what: String,
    /// What to do about it.
    pub fix: Option<String>,
}

/// All findings, in the order of the checks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Diagnosis {
    /// Whether nothing failed.
    pub ready: bool,
    /// The phone that was looked at.
    pub serial: Option<String>,
    /// The findings.
    pub checks: Vec<Check>,
}

impl Diagnosis {
    /// The classes of what failed: the phone's side and this host's.
    pub fn classes(&self) -> impl Iterator<Item = ErrorClass> {
        self.checks
            .iter()
            .filter(|check| check.status == Status::Fail)
            .map(|check| match check.side {
                Side::Host => ErrorClass::HostWrite,
                Side::Phone => ErrorClass::NoDevice,
            })
    }
}

/// Looks at everything; fails at nothing, since each failure is a finding. `server` is what
/// came of looking for one, `output` the folder in which recordings would be made.
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
    checks.push(host_clock());
    checks.push(state_folder());
    let output = existing(output);
    checks.push(output_folder(&output));
    checks.push(host_disk(&output));
    Diagnosis {
        ready: checks.iter().all(|check| check.status != Status::Fail),
        serial,
        checks,
    }
}

fn check(id: &str, side: Side, status: Status, what: impl Into<String>) -> Check {
    Check {
        id: id.to_owned(),
        side,
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

/// A failure on the phone's side as a finding.
fn failed(id: &str, failure: impl Into<Failure>) -> Check {
    let failure = failure.into();
    Check {
        fix: failure.help,
        ..check(id, Side::Phone, Status::Fail, failure.message)
    }
}

fn adb_program(found: HostAdb, server_runs: bool) -> Check {
    let (status, what) = match found {
        HostAdb::Found(path) => {
            let what = format!("adb is {}", path.display());
            return check("adb-program", Side::Phone, Status::Ok, what);
        }
        HostAdb::Missing(_) if server_runs => (
            Status::Warn,
            "no adb on this computer; the server that runs is enough as long as it runs",
        ),
        HostAdb::Missing(_) => (
            Status::Fail,
            "no adb in PATH or in the Android SDK's usual places",
        ),
    };
    check("adb-program", Side::Phone, status, what).fix(
        "install the Android SDK Platform-Tools and put adb into PATH, or set ANDROID_HOME to the \
         SDK",
    )
}

async fn adb_server(server: &Server) -> Check {
    match server.version().await {
        Ok(version) if version < SERVER_VERSION => check(
            "adb-server",
            Side::Phone,
            Status::Warn,
            format!(
                "the adb server at {} is old (protocol {version})",
                server.address()
            ),
        )
        .fix("update the Android SDK Platform-Tools, then `adb kill-server`"),
        Ok(version) => check(
            "adb-server",
            Side::Phone,
            Status::Ok,
            format!("adb server at {} (protocol {version})", server.address()),
        ),
        Err(error) => failed("adb-server", error),
    }
}

/// The phone that is meant, ready or not.
async fn device(server: &Server, selector: &Selector, checks: &mut Vec<Check>) -> Option<Device> {
    match server.select(selector).await {
        Ok(device) => {
            let what = format!("{} is connected and authorized", device.serial());
            checks.push(check("device", Side::Phone, Status::Ok, what));
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
                let what = "adb gives exit codes and 64-bit sizes (shell_v2, stat_v2)";
                check("adb-features", Side::Phone, Status::Ok, what)
            } else {
                let what = format!("adb lacks {}: older ways are used", missing.join(" and "));
                check("adb-features", Side::Phone, Status::Warn, what)
                    .fix("update the Android SDK Platform-Tools on the server's computer")
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

/// What the facts of a phone mean for recording on it.
fn judge(facts: &DeviceFacts, now: SystemTime) -> Vec<Check> {
    let ok = |id, what: String| check(id, Side::Phone, Status::Ok, what);
    let warn = |id, what: String| check(id, Side::Phone, Status::Warn, what);
    // Of what stands in the way, eligibility has the words.
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
                ..check(
                    &finding.id.as_str().to_lowercase(),
                    Side::Phone,
                    status,
                    what,
                )
            }
        })
        .collect();
    let mut checks = vec![match (&facts.release, facts.sdk) {
        (None, None) => warn(
            "android",
            "the phone does not tell its Android version".to_owned(),
        ),
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
            "user build: apps that are debuggable or profileable can be recorded".to_owned(),
        ),
        Some(_) => ok(
            "build-type",
            "not a user build: nearly every process can be recorded".to_owned(),
        ),
        None => warn(
            "build-type",
            "the phone does not tell its build type".to_owned(),
        ),
    });
    match (facts.tracing_on, &facts.sessions) {
        (Some(true), None) if facts.api().is_some_and(|sdk| sdk >= QUERY_SDK) => checks.push(
            check(
                "tracing",
                Side::Phone,
                Status::Fail,
                "the tracing service does not answer, although it is switched on",
            )
            .fix(
                "switch it off and on: `adb shell setprop persist.traced.enable 0`, then 1; else \
                 restart the phone",
            ),
        ),
        (Some(true), _) => checks.push(ok("tracing", "the tracing daemon runs".to_owned())),
        // Said among the findings.
        (Some(false), _) => {}
        (None, _) => checks.push(
            warn(
                "tracing",
                "whether the tracing daemon runs is unknown".to_owned(),
            )
            .fix("if a recording does not start: `adb shell setprop persist.traced.enable 1`"),
        ),
    }
    checks.push(match (&facts.perfetto_version, &facts.sessions) {
        (Some(version), _) => ok("perfetto", format!("perfetto {version}")),
        (None, Some(_)) => ok("perfetto", "perfetto answers".to_owned()),
        (None, None) => warn(
            "perfetto",
            "perfetto on the phone did not answer".to_owned(),
        )
        .fix("it is part of Android since 9; without it nothing can be recorded"),
    });
    match facts.free_bytes {
        Some(free) => {
            if !findings.iter().any(|check| check.id == "space") {
                checks.push(ok(
                    "phone-space",
                    format!("{} free for traces on the phone", ByteSize(free)),
                ));
            }
        }
        None => checks.push(warn(
            "phone-space",
            "the phone does not tell the free space in /data/misc/perfetto-traces".to_owned(),
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
        let what = "the phone's clock agrees with this computer's";
        return check("clock", Side::Phone, Status::Ok, what);
    }
    let behind = if clock_s < now { "behind" } else { "ahead of" };
    let apart = crate::units::HumanDuration(Duration::from_secs(apart));
    let what = format!("the phone's clock is {apart} {behind} this computer's");
    check("clock", Side::Phone, Status::Warn, what)
        .fix("set both by network: times in traces are the phone's, those of files this computer's")
}

fn host_clock() -> Check {
    // The year in which this was written began then.
    const WRITTEN: Duration = Duration::from_secs(1_767_225_600);
    if SystemTime::now() < SystemTime::UNIX_EPOCH + WRITTEN {
        return check(
            "host-clock",
            Side::Host,
            Status::Warn,
            "this computer's clock stands before 2026",
        )
        .fix("set it: recordings are named by its time");
    }
    check(
        "host-clock",
        Side::Host,
        Status::Ok,
        "this computer's clock is plausible",
    )
}

fn state_folder() -> Check {
    let writable = Store::of_user()
        .map_err(|error| error.to_string())
        .and_then(|store| {
            let folder = store.folder().to_owned();
            match can_write(&folder) {
                Ok(()) => Ok(folder),
                Err(error) => Err(format!("{}: {error}", folder.display())),
            }
        });
    match writable {
        Ok(folder) => check(
            "state-folder",
            Side::Host,
            Status::Ok,
            format!("journals of recordings go to {}", folder.display()),
        ),
        Err(why) => check(
            "state-folder",
            Side::Host,
            Status::Fail,
            format!("journals of recordings can't be written: {why}"),
        )
        .fix(format!(
            "make it writable, or set {} to another folder",
            crate::session::STATE_DIR_VAR
        )),
    }
}

fn output_folder(folder: &Path) -> Check {
    let shown = folder.display();
    match can_write(folder) {
        Ok(()) => check(
            "output-folder",
            Side::Host,
            Status::Ok,
            format!("recordings can be written to {shown}"),
        ),
        Err(error) => check(
            "output-folder",
            Side::Host,
            Status::Fail,
            format!("recordings can't be written to {shown}: {error}"),
        )
        .fix("go to another folder, or name one with -o"),
    }
}

fn host_disk(folder: &Path) -> Check {
    match fs4::available_space(folder) {
        Ok(free) => {
            let what = format!("{} free on this computer", ByteSize(free));
            let status = match free {
                0..MIN_DISK_BYTES => Status::Fail,
                MIN_DISK_BYTES..LITTLE_DISK => Status::Warn,
                _ => Status::Ok,
            };
            let check = check("host-disk", Side::Host, status, what);
            match status {
                Status::Ok => check,
                _ => check.fix("free some, or name a folder on another disk with -o"),
            }
        }
        Err(error) => check(
            "host-disk",
            Side::Host,
            Status::Warn,
            format!("the free space on this computer is unknown: {error}"),
        ),
    }
}

fn can_write(folder: &Path) -> std::io::Result<()> {
    tempfile::Builder::new()
        .prefix(OWN_PREFIX)
        .tempfile_in(folder)
        .map(drop)
}

/// `folder`, or the nearest one above it that exists: a recording makes the rest.
fn existing(folder: &Path) -> PathBuf {
    let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
    let above = folder.ancestors().find(|path| path.exists());
    above.unwrap_or(&folder).to_owned()
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
            "phone-space",
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
    fn clocks_apart_are_told_in_words() {
        let check = phone_clock(1_800_000_000, at(1_800_003_600));
        assert_eq!(check.status, Status::Warn);
        assert_eq!(
            check.what,
            "the phone's clock is 1h 00m behind this computer's"
        );
        assert_eq!(phone_clock(-5, at(0)).status, Status::Ok);
    }

    #[test]
    fn an_unwritable_folder_is_this_hosts_failure() {
        let folder = tempfile::tempdir().unwrap();
        let check = output_folder(&folder.path().join("missing"));
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
        // The device's side decides where both failed.
        assert_eq!(
            ErrorClass::first_of(diagnosis.classes()),
            Some(ErrorClass::NoDevice)
        );
        assert_eq!(output_folder(folder.path()).status, Status::Ok);
        assert_eq!(existing(&folder.path().join("a/b")), folder.path());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
