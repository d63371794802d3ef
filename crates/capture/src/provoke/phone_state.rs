//! Queries to a device: foreground activity, process, CPU time, reason of a death. Each
//! query is one command, and its answer includes the device's own time.

use std::time::Duration;

use super::commands::{self, Phone, SEE_THE_LIST};
use super::event::Death;
use super::plan::{Plan, Target};
use super::read::{self, Pulse, Shown};
use crate::eligibility::missing_package;
use crate::error::{CaptureError, kind};
use crate::session::resolve_launcher;
use android_memory::status::uptime_ns;
use heaptap_adb::{Command, Device, Output};
use heaptap_base::error::ErrorClass;
use heaptap_base::untrusted::sanitize;

/// Timeout for files of /proc and properties.
pub(super) const QUICK: Duration = Duration::from_secs(15);
/// Timeout for programs of Android's runtime, on a busy device.
pub(super) const SLOW: Duration = Duration::from_secs(60);

/// `$1` is the name of a process.
const LOOK: &str = include_str!("../scripts/app_process.sh").trim_ascii_end();

/// State of a process at one time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Look {
    pub(super) boot_ns: u64,
    pub(super) pulse: Option<Pulse>,
}

pub(super) async fn look(device: &Device, target: &Target) -> Result<Look, CaptureError> {
    let script = Command::script(LOOK).called("reading the process state");
    let text = device.text(&script.arg(&target.process), QUICK).await?;
    let (boot_ns, all) = read::pulses(&text)
        .ok_or_else(|| CaptureError::unexpected_answer(device, "the clock and processes", &text))?;
    let user = target.user.unwrap_or(0);
    let of_user = |p: &&Pulse| p.uid.is_some_and(|uid| uid / 100_000 == user);
    let any = all.first().filter(|_| target.user.is_none());
    let pulse = all.iter().find(of_user).or(any).cloned();
    Ok(Look { boot_ns, pulse })
}

/// Reads `ro.serialno`: the device's own serial number.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn hardware_serial(device: &Device) -> Result<String, CaptureError> {
    let command = Command::program("getprop").arg("ro.serialno");
    Ok(device.text(&command, QUICK).await?.trim().to_owned())
}

/// Runs a script whose output begins with the time.
async fn with_clock(device: &Device, script: &Command) -> Result<(u64, String), CaptureError> {
    let text = device.text(script, SLOW).await?;
    match uptime_ns(&text) {
        Some(boot_ns) => Ok((boot_ns, text)),
        None => {
            let what = "the foreground activity";
            Err(CaptureError::unexpected_answer(device, what, &text))
        }
    }
}

const FRONT: &str = include_str!("../scripts/foreground.sh").trim_ascii_end();

/// Foreground activity, and the time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Front {
    pub(super) boot_ns: u64,
    /// `package/.Activity`.
    pub(super) component: Option<String>,
}

impl Front {
    pub(super) fn is_of(&self, package: &str) -> bool {
        let component = self.component.as_deref().unwrap_or_default();
        component.split('/').next() == Some(package)
    }
}

pub(super) async fn front(device: &Device) -> Result<Front, CaptureError> {
    let script = Command::script(FRONT).called("reading the foreground activity");
    let (boot_ns, text) = with_clock(device, &script).await?;
    Ok(Front {
        boot_ns,
        component: read::front(&text).or_else(|| read::focus(&text)),
    })
}

/// Returns the foreground activity as `package/.Activity`; `None` if there is none.
///
/// # Errors
/// Returns an error if the device cannot be reached, or answers something else.
pub async fn foreground(device: &Device) -> Result<Option<String>, CaptureError> {
    Ok(front(device).await?.component)
}

const TOP: &str = include_str!("../scripts/activity.sh").trim_ascii_end();

/// Reads the visible activity as described by its app, and the time.
pub(super) async fn shown(
    device: &Device,
    package: &str,
) -> Result<(u64, Option<Shown>), CaptureError> {
    let script = Command::script(TOP).called("reading the activity's object");
    let (boot_ns, text) = with_clock(device, &script).await?;
    let all = read::shown(&text);
    let own = |s: &&Shown| s.component.split('/').next() == Some(package);
    let resumed = all.iter().filter(own).find(|s| s.resumed);
    Ok((boot_ns, resumed.or_else(|| all.iter().find(own)).cloned()))
}

const SCREEN: &str = include_str!("../scripts/screen.sh").trim_ascii_end();

/// Returns whether the screen is off and whether a lock screen shows; `None` if unknown.
pub(super) async fn screen(device: &Device) -> Result<(Option<bool>, Option<bool>), CaptureError> {
    let script = Command::script(SCREEN).called("reading the screen state");
    Ok(read::screen(&device.text(&script, SLOW).await?))
}

/// Returns the rotation of the screen; `None` if unknown.
pub(super) async fn rotation(device: &Device) -> Result<Option<u32>, CaptureError> {
    let script = Command::script(
        r#"dumpsys window | grep -E "Display: mDisplayId=|mRotation=|mCurrentRotation=""#,
    );
    let script = script.called("reading the screen rotation");
    Ok(read::rotation(&device.text(&script, SLOW).await?))
}

const BOOT: &str = "cat /proc/sys/kernel/random/boot_id 2>/dev/null";

/// Reads the ID of the device's boot; empty if the device does not report it.
///
/// # Errors
/// Returns an error if the device cannot be reached.
pub async fn boot(device: &Device) -> Result<String, CaptureError> {
    let script = Command::script(BOOT).called("reading the boot ID");
    Ok(device.text(&script, QUICK).await?.trim().to_owned())
}

/// Facts about a device and its settings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Facts {
    pub(super) phone: Phone,
    /// `accelerometer_rotation`, `user_rotation`, `stay_on_while_plugged_in`.
    pub(super) accelerometer: Reading,
    pub(super) user_rotation: Reading,
    pub(super) stay_on: Reading,
    /// The target, with the named user, otherwise with the foreground user.
    pub(super) target: Target,
    /// ID of its boot.
    pub(super) boot: String,
}

impl Facts {
    /// Returns the plan with this target.
    pub(super) fn plan(&self, plan: &Plan) -> Plan {
        Plan {
            target: self.target.clone(),
            ..plan.clone()
        }
    }
}

/// A setting, `None` if it does not have a value. If the device did not report it, the error
/// contains its output: neither output nor silence is a value that could be restored.
pub(super) type Reading = Result<Option<String>, String>;

const FACTS: &str = include_str!("../scripts/settings.sh").trim_ascii_end();

pub(super) async fn facts(device: &Device, target: &Target) -> Result<Facts, CaptureError> {
    let script = Command::script(FACTS).called("reading the settings");
    let output = device.run(&script, SLOW).await?;
    let text = String::from_utf8_lossy(&output.stdout);
    let value = |key: &str| {
        let mut lines = text.lines();
        let found = lines.find_map(|l| l.strip_prefix(key)?.strip_prefix(' '));
        found.map(|v| v.trim().to_owned())
    };
    let sdk = value("sdk").and_then(|v| v.parse().ok());
    let settings = ["accelerometer", "rotation", "stay-on"].map(value);
    let (Some(sdk), [Some(accelerometer), Some(rotation), Some(stay_on)]) = (sdk, settings) else {
        let what = "the release and settings";
        return Err(CaptureError::unexpected_answer(device, what, &text));
    };
    let in_front: Option<u32> = value("user").and_then(|v| v.parse().ok());
    let mut target = target.clone();
    // The first user need not be named: commands use it by default.
    target.user = target.user.or(in_front.filter(|user| *user != 0));
    let (_, said) = texts(&output);
    let setting = |text: String| match text.as_str() {
        "null" => Ok(None),
        number if number.parse::<i64>().is_ok() => Ok(Some(text)),
        "" => Err(said.trim().to_owned()),
        _ => Err(text),
    };
    let launcher = resolve_launcher(device, &target.package, target.user, SLOW).await?;
    if launcher.is_none()
        && let Some(absent) = missing_package(device, &target.package, target.user).await
    {
        return Err(absent.failure("target-not-found").into());
    }
    let told = |reading: &Reading| reading.as_ref().ok().cloned().flatten();
    let user_rotation = setting(rotation);
    let turned = told(&user_rotation).and_then(|r| r.parse::<u32>().ok());
    let accelerometer = setting(accelerometer);
    let upright = told(&accelerometer).as_deref() != Some("0") || turned.unwrap_or(0) % 2 == 0;
    Ok(Facts {
        phone: Phone {
            serial: device.serial().to_owned(),
            sdk,
            launcher,
            upright,
        },
        accelerometer,
        user_rotation,
        stay_on: setting(stay_on),
        target,
        boot: boot(device).await?,
    })
}

/// Determines why a process ended, from the system's reason and the log.
pub(super) async fn death(
    device: &Device,
    phone: &Phone,
    target: &Target,
    pid: u32,
    next_pid: Option<u32>,
) -> Result<Death, CaptureError> {
    let mut reason = None;
    // Since Android 11.
    if phone.sdk >= 30 {
        let ask = Command::program("dumpsys").args(["activity", "exit-info"]);
        reason = read::exit_reason(&device.text(&ask.arg(&target.package), SLOW).await?, pid);
    }
    let tags = ["AndroidRuntime:E", "ActivityManager:I", "libc:F", "DEBUG:F"];
    let log = Command::program("logcat").args(["-d", "-v", "threadtime", "-t", "500", "-s"]);
    let text = device.text(&log.args(tags), SLOW).await?;
    Ok(Death {
        pid,
        process: target.process.clone(),
        next_pid,
        reason,
        log: read::death_lines(&text, pid, &target.process),
    })
}

/// Waits on the device.
pub(super) async fn pause(device: &Device, long: Duration) -> Result<(), CaptureError> {
    // A device whose clock is slower than the host's is a virtual phone.
    let limit = long.saturating_mul(100) + SLOW;
    device.run(&commands::sleep(long), limit).await?;
    Ok(())
}

/// Runs a command that is expected to succeed.
pub(super) async fn run_quick(
    device: &Device,
    command: &Command,
    limit: Duration,
) -> Result<(String, String), CaptureError> {
    let output = device.run(command, limit).await?;
    match complaint(&output) {
        None => Ok(texts(&output)),
        Some(why) => Err(refused(device, command, &why)),
    }
}

/// Returns the error in the output of a command.
pub(super) fn complaint(output: &Output) -> Option<String> {
    let (out, err) = texts(output);
    read::complaint(output.exit, &out, &err)
}

pub(super) fn texts(output: &Output) -> (String, String) {
    (
        String::from_utf8_lossy(&output.stdout).into_owned(),
        String::from_utf8_lossy(&output.stderr).into_owned(),
    )
}

pub(super) fn refused(device: &Device, command: &Command, why: &str) -> CaptureError {
    let (serial, command, why) = (device.serial(), sanitize(command.text()), sanitize(why));
    let message = format!("{serial} refused `{command}`: {why}");
    CaptureError::new(ErrorClass::Device, kind::REFUSED, message).with_help(SEE_THE_LIST)
}
