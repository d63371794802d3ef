//! The log of processes on a device: the selected processes, the limits of their heaps, and the
//! lines in the ring buffer of the log.

use std::time::Duration;

use serde::Serialize;
use tokio::time::Instant;

use super::error::no_log;
use super::report::{GcReport, GcSource, OfPhone, package_of};
use crate::heaps::selector::ProcessFilter;
use android_memory::gc::{GcContext, GcLog, GcLogEvent, Observed, ObservedBy};
use android_memory::status::seconds_ns;
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_base::untrusted::sanitize_bytes;
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility::{
    self, AppType, AssessOptions, DeviceFacts, Startup, TargetReport,
};
use heaptap_capture::error::CaptureError;
use heaptap_capture::observe::{self, LogEvent};
use heaptap_results::findings::Finding;

/// Time limit for the transfer of the ring buffer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Time limit for reading the device clock at the end.
const QUICK: Duration = Duration::from_secs(5);

/// Process on the device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Target {
    /// Process ID.
    pub pid: u32,
    pub name: String,
    /// Package for `run-as`, if it is known and debuggable.
    #[serde(skip)]
    pub run_as: Option<String>,
    /// User that the process runs for.
    #[serde(skip)]
    pub user: u32,
    /// Whether it has a Java heap.
    #[serde(skip)]
    pub has_art: bool,
    /// Whether the freezer has frozen it.
    #[serde(skip)]
    pub frozen: bool,
}

/// Returns the processes that match names (with `*`) or PIDs.
///
/// # Errors
/// Returns an error if the device is lost or silent, or no such process is running.
pub async fn find(
    device: &Device,
    targets: &Targets,
    user: Option<u32>,
) -> Result<(DeviceFacts, Vec<Target>), CaptureError> {
    let facts = eligibility::facts(device).await?;
    let how = AssessOptions {
        user,
        startup: Startup::Off,
    };
    let assessment = eligibility::assess(device, &facts, targets, &how).await?;
    let mut found: Vec<Target> = assessment.targets.iter().flat_map(processes).collect();
    found.sort_by_key(|target| target.pid);
    found.dedup_by_key(|target| target.pid);
    if found.is_empty() {
        let absent = assessment.absent_target();
        let mut failure = absent.failure("gc-not-running");
        if absent.can_start {
            let help = absent.help;
            failure = failure.with_help(format!(
                "{help}, or read an earlier log with `adb logcat -d | heaptap gc - -n NAME`"
            ));
        }
        return Err(failure.into());
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

/// Returns the logcat command for one process. `from` is in seconds since 1970.
fn logcat(pid: u32, from: Option<&str>) -> Command {
    let command = Command::program("logcat").args(["-d", "-v", "threadtime", "-v", "epoch"]);
    let command = command.args(["-b", "main", "-b", "crash"]);
    let command = command.arg(format!("--pid={pid}"));
    let command = match from {
        Some(from) => command.args(["-T", from]),
        None => command,
    };
    command.called("reading the log")
}

/// Returns all lines of a process in the ring buffer, or those since `from`.
pub(super) async fn lines(
    device: &Device,
    pid: u32,
    from: Option<&str>,
) -> Result<String, CaptureError> {
    let output = match device.run(&logcat(pid, from), PATIENCE).await {
        Ok(output) => output,
        Err(DeviceError::Refused { text, .. }) => return Err(no_log(&text).into()),
        Err(error) => return Err(error.into()),
    };
    if output.exit != 0 && output.stdout.is_empty() {
        return Err(no_log(&sanitize_bytes(output.stderr.trim_ascii())).into());
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Reads the collections of processes in the ring buffer, optionally only those of the last
/// `since`.
///
/// # Errors
/// Returns an error if the device is lost or does not have a log.
pub async fn read_ring(
    device: &Device,
    facts: &DeviceFacts,
    targets: &[Target],
    since: Option<Duration>,
) -> Result<GcReport, CaptureError> {
    let mut log = GcLog::default();
    let mut findings = Vec::new();
    let from = match (since, facts.clock_s) {
        (Some(since), Some(now)) => {
            let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
            Some(format!("{}.000", now.saturating_sub(seconds).max(0)))
        }
        (Some(_), None) => {
            findings.push(Finding::new(
                "gc-since",
                None,
                "cannot limit the log of this device by time; the whole log was read",
            ));
            None
        }
        (None, _) => None,
    };
    for target in targets {
        log.call(target.pid, &target.name);
        let text = lines(device, target.pid, from.as_deref()).await?;
        log.push_all(&text);
    }
    let phone = of_phone(device, targets).await?;
    let mut report = GcReport::of_log(GcSource::Device, &log, &phone);
    // The log of an old device contains the collections of all processes.
    report.only(&ProcessFilter {
        pids: targets.iter().map(|target| target.pid.into()).collect(),
        ..ProcessFilter::default()
    });
    report.findings = findings;
    Ok(report)
}

/// Event of a followed log.
#[derive(Debug)]
pub enum Followed<'a> {
    /// Following begins at this time on the log's axis, in ns.
    Begins(i64),
    /// A line that was already in the ring buffer.
    Earlier(&'a GcLogEvent),
    /// A line that was logged while following.
    Now(&'a GcLogEvent),
    /// logcat of a process keeps exiting and is restarted at growing intervals.
    Restless(u32),
}

/// Script that prints the device clocks: since boot, and since 1970.
const CLOCKS: &str = r#"{ read -r up idle < /proc/uptime; } 2>/dev/null
echo "$up"; echo "${EPOCHREALTIME:-$(date +%s)}""#;

/// Point in time by the device clocks.
#[derive(Debug, Clone, Copy, Default)]
struct Moment {
    /// Since boot, in ns.
    up_ns: Option<u64>,
    /// Since 1970, in ns.
    epoch_ns: Option<u64>,
}

impl Moment {
    async fn now(device: &Device) -> Result<Moment, DeviceError> {
        let command = Command::script(CLOCKS).called("reading the clocks");
        let text = device.text(&command, PATIENCE).await?;
        let mut lines = text.lines().map(str::trim);
        Ok(Moment {
            up_ns: lines.next().and_then(seconds_ns),
            epoch_ns: lines.next().and_then(seconds_ns),
        })
    }
}

/// Follows the logs of processes until `stop`, from now on or from the last `since` in the ring
/// buffer. Passes each line with an event to `tell`. Returns the report.
///
/// # Errors
/// Returns an error if the device does not have a log that can be followed. A lost connection is
/// restored.
pub async fn follow(
    device: &Device,
    targets: &[Target],
    since: Option<Duration>,
    stop: impl Future<Output = ()>,
    mut tell: impl FnMut(Followed<'_>),
) -> Result<GcReport, CaptureError> {
    let mut phone = of_phone(device, targets).await?;
    let begun = Moment::now(device).await?;
    let host = Instant::now();
    let mut log = GcLog::default();
    for target in targets {
        log.call(target.pid, &target.name);
    }
    let pids: Vec<u32> = targets.iter().map(|target| target.pid).collect();
    // The log has this clock, too.
    let epoch_ns = begun.epoch_ns.unwrap_or(0);
    let now = i64::try_from(epoch_ns).unwrap_or(i64::MAX);
    let since_ns = since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    });
    let from = now.saturating_sub(since_ns);
    tell(Followed::Begins(from));
    let from_epoch = epoch_ns.saturating_sub(since_ns.unsigned_abs());
    let refused = {
        let following = observe::follow_lines(device, &pids, from_epoch, |event| {
            let line = match event {
                LogEvent::Line(line) => line,
                LogEvent::Restless { pid } => return tell(Followed::Restless(pid)),
            };
            if let Some(told) = log.push(line) {
                tell(match told.at.is_some_and(|at| at < now) {
                    true => Followed::Earlier(&told),
                    false => Followed::Now(&told),
                });
            }
        });
        tokio::select! {
            biased;
            () = stop => None,
            why = following => Some(why),
        }
    };
    if let Some(why) = refused {
        return Err(no_log(&why).into());
    }
    // Measured by the device clock, like the log. A disconnected device does not report it.
    let ended = tokio::time::timeout(QUICK, Moment::now(device)).await;
    let up_ns = ended
        .ok()
        .and_then(Result::ok)
        .and_then(|moment| moment.up_ns);
    let by_phone = up_ns.zip(begun.up_ns);
    let followed = by_phone
        .and_then(|(end, begin)| end.checked_sub(begin))
        .unwrap_or_else(|| u64::try_from(host.elapsed().as_nanos()).unwrap_or(u64::MAX));
    // Add the time before, back to the first line of the ring buffer.
    let earlier = log
        .span
        .map_or(0, |(first, _)| now.saturating_sub(first).max(0));
    phone.followed = Some(Observed {
        ns: followed.saturating_add(earlier.unsigned_abs()),
        by: ObservedBy::Followed,
    });
    Ok(GcReport::of_log(GcSource::Device, &log, &phone))
}

/// Returns the heap limits of the processes.
async fn of_phone(device: &Device, targets: &[Target]) -> Result<OfPhone, CaptureError> {
    let mut phone = OfPhone {
        known: limits(device).await?,
        ..OfPhone::default()
    };
    for target in targets {
        let package = package_of(&target.name);
        if phone.large.contains_key(package) || !package.contains('.') {
            continue;
        }
        let command = Command::program("dumpsys").args(["package", package]);
        match device.run(&command, PATIENCE).await {
            Ok(output) => {
                let large = eligibility::read_large_heap(&output.stdout, package);
                phone
                    .large
                    .extend(large.map(|large| (package.to_owned(), large)));
            }
            Err(error) if error.is_connection() => return Err(error.into()),
            // Then the size of the heap shows its limit.
            Err(_) => {}
        }
    }
    Ok(phone)
}

/// Returns the limits of heaps on the device.
async fn limits(device: &Device) -> Result<GcContext, CaptureError> {
    const ASK: &str = "getprop dalvik.vm.heapgrowthlimit; getprop dalvik.vm.heapsize";
    let command = Command::script(ASK).called("reading the heap's limits");
    let text = match device.text(&command, PATIENCE).await {
        Ok(text) => text,
        Err(error) if error.is_connection() => return Err(error.into()),
        Err(_) => return Ok(GcContext::default()),
    };
    let mut limits = text.split('\n').map(|line| {
        let bytes = heaptap_base::units::ByteSize::parse(line.trim()).ok()?.0;
        (bytes > 0).then_some(bytes)
    });
    let (growth, size) = (limits.next().flatten(), limits.next().flatten());
    Ok(GcContext {
        limit: growth.or(size),
        large_limit: size,
        ..GcContext::default()
    })
}
