//! The log of processes on a phone: which they are, what they may grow to, what the ring of the
//! log still holds of them.

use std::time::Duration;

use serde::Serialize;

use super::{From, GcError, GcReport};
use crate::app::findings::Finding;
use crate::config::Targets;
use crate::device::{Command, Device, DeviceError};
use crate::eligibility::{self, AppType, AssessOptions, DeviceFacts, Startup, TargetReport};
use crate::memory::gc::{GcLog, Known, Told};
use crate::observe;
use crate::untrusted::shown_bytes;

/// Time allowed for the ring of the log to come over.
const PATIENCE: Duration = Duration::from_secs(30);
/// From this level on logcat tells processes apart and prints times since 1970.
const ONE_PROCESS: u32 = 24;

/// A process on the phone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Its number.
    pub pid: u32,
    /// Its name.
    pub name: String,
    /// Its package, where that is certain and debuggable: `run-as` lets us in.
    #[serde(skip)]
    pub run_as: Option<String>,
    /// The user it runs for.
    #[serde(skip)]
    pub user: u32,
    /// It has a Java heap.
    #[serde(skip)]
    pub has_art: bool,
    /// The freezer holds it.
    #[serde(skip)]
    pub frozen: bool,
}

/// The processes that are meant: names (with `*`) or numbers.
///
/// # Errors
/// Where the phone is lost or silent, or none of them runs.
pub async fn find(
    device: &Device,
    typed: &[String],
    user: Option<u32>,
) -> Result<(DeviceFacts, Vec<Target>), GcError> {
    let mut targets = Targets::default();
    for text in typed {
        match text.parse::<u32>() {
            Ok(pid) => targets.pids.push(pid),
            Err(_) => targets.names.push(text.clone()),
        }
    }
    let facts = eligibility::facts(device).await?;
    let how = AssessOptions {
        user,
        startup: Startup::Off,
    };
    let assessment = eligibility::assess(device, &facts, &targets, &how).await?;
    let mut found: Vec<Target> = assessment.targets.iter().flat_map(processes).collect();
    found.sort_by_key(|target| target.pid);
    found.dedup_by_key(|target| target.pid);
    if found.is_empty() {
        return Err(GcError::NotRunning {
            targets: typed.join(", "),
        });
    }
    Ok((facts, found))
}

fn processes(report: &TargetReport) -> impl Iterator<Item = Target> + '_ {
    report.processes.iter().map(|found| {
        let process = &found.process;
        let debuggable = report.packages.iter().find(|package| {
            package.app_type == Some(AppType::Debuggable)
                && found
                    .package
                    .as_ref()
                    .is_some_and(|name| *name == package.name)
        });
        Target {
            pid: process.pid,
            name: process.name.clone(),
            run_as: debuggable.map(|package| package.name.clone()),
            user: process.user().unwrap_or(0),
            has_art: process.has_art(),
            frozen: process.frozen == Some(true),
        }
    })
}

/// logcat for one process. `from_s` are seconds since 1970.
pub(super) fn logcat(facts: &DeviceFacts, pid: u32, from: Option<&str>) -> Command {
    let command = Command::program("logcat").args(["-d", "-v", "threadtime"]);
    let command = match facts.api().is_none_or(|api| api >= ONE_PROCESS) {
        true => {
            let command = command.args(["-v", "epoch", "-b", "main", "-b", "crash"]);
            let command = command.arg(format!("--pid={pid}"));
            match from {
                Some(from) => command.args(["-T", from]),
                None => command,
            }
        }
        false => command,
    };
    command.called("reading the log")
}

/// The lines of a process in the ring, as far back as it goes.
pub(super) async fn lines(
    device: &Device,
    facts: &DeviceFacts,
    pid: u32,
    from: Option<&str>,
) -> Result<String, GcError> {
    let output = match device.run(&logcat(facts, pid, from), PATIENCE).await {
        Ok(output) => output,
        Err(DeviceError::Refused { text, .. }) => return Err(GcError::NoLog { why: text }),
        Err(error) => return Err(error.into()),
    };
    if output.exit != 0 && output.stdout.is_empty() {
        return Err(GcError::NoLog {
            why: shown_bytes(output.stderr.trim_ascii()),
        });
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// What the ring of the log holds of processes, of the last `since` where that is given.
///
/// # Errors
/// Where the phone is lost, or has no log.
pub async fn read_ring(
    device: &Device,
    facts: &DeviceFacts,
    targets: &[Target],
    since: Option<Duration>,
) -> Result<GcReport, GcError> {
    let mut log = GcLog::default();
    let mut findings = Vec::new();
    let one_process = facts.api().is_none_or(|api| api >= ONE_PROCESS);
    let from = match (since, facts.clock_s) {
        (Some(since), Some(now)) if one_process => {
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            Some(format!("{}.000", now.saturating_sub(seconds).max(0)))
        }
        (Some(_), _) => {
            findings.push(Finding {
                kind: "gc-since",
                class: None,
                message: "this phone's log cannot be asked for its last lines: all of it was read"
                    .to_owned(),
                help: None,
                pid: None,
            });
            None
        }
        (None, _) => None,
    };
    for target in targets {
        log.call(target.pid, &target.name);
        let text = lines(device, facts, target.pid, from.as_deref()).await?;
        log.push_all(&text);
    }
    let mut report = GcReport::of_log(From::Phone, &log, limits(device).await?);
    report.processes_of(targets);
    report.findings = findings;
    Ok(report)
}

/// Follows the logs of processes until `stop`, from what the ring holds of the last `since` on;
/// each line that tells something is told. What all of it came to.
///
/// # Errors
/// Where the phone has no log that can be followed. A connection that is lost is made again.
pub async fn follow(
    device: &Device,
    facts: &DeviceFacts,
    targets: &[Target],
    since: Option<Duration>,
    stop: impl Future<Output = ()>,
    mut tell: impl FnMut(&Told),
) -> Result<GcReport, GcError> {
    let known = limits(device).await?;
    let mut log = GcLog::default();
    for target in targets {
        log.call(target.pid, &target.name);
    }
    let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
    let from = match (since, facts.clock_s) {
        (Some(since), Some(now)) => u64::try_from(now)
            .unwrap_or(0)
            .saturating_sub(since.as_secs()),
        _ => 0,
    };
    let refused = {
        let following =
            observe::follow_lines(device, &pids, from.saturating_mul(1_000_000_000), |line| {
                if let Some(told) = log.push(line) {
                    tell(&told);
                }
            });
        tokio::select! {
            biased;
            () = stop => None,
            why = following => Some(why),
        }
    };
    match refused {
        Some(why) => Err(GcError::NoLog { why }),
        None => Ok(GcReport::of_log(From::Phone, &log, known)),
    }
}

/// What the phone lets heaps grow to.
pub(super) async fn limits(device: &Device) -> Result<Known, GcError> {
    const ASK: &str = "getprop dalvik.vm.heapgrowthlimit; getprop dalvik.vm.heapsize";
    let command = Command::script(ASK).called("reading the heap's limits");
    let output = match device.run(&command, PATIENCE).await {
        Ok(output) => output,
        Err(error) if error.is_connection() => return Err(error.into()),
        Err(_) => return Ok(Known::default()),
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let mut limits = text.split('\n').map(|line| {
        let bytes = crate::units::ByteSize::parse(line.trim()).ok()?.0;
        (bytes > 0).then_some(bytes)
    });
    let (growth, size) = (limits.next().flatten(), limits.next().flatten());
    Ok(Known {
        every: false,
        limit: growth.or(size),
        large_limit: size,
    })
}
