//! Conditions of the device around a run: waits until it is cool and has space, changes and restores
//! the settings of the scenario, and makes a run void whose cause of spoiling the device recorded.
//! Never judges by a figure.

use std::time::Duration;

use heaptap_lab::results::{RunConditions, RunState};
use heaptap_lab::scenario::{self, Scenario};
use heaptap_model::conditions::{Conditions, LowMemoryKill, thermal_word};
use tokio::time::Instant;

use super::events::LabEvent;
use super::failures::{error_of, interrupted};
use super::single_run::{Over, RunContext};
use super::steps::RESTORE;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::ByteSize;
use heaptap_capture::conditions::{Reading, read};
use heaptap_capture::provoke::{self, HeldSettings, HoldOptions, Target};

/// Thermal status from which a run does not count: "moderate". Android throttles noticeably then;
/// at "light", it does not.
const THROTTLED: u8 = 2;
/// Interval between two looks at a hot device.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// Free space that no recording may use, as without `max-file`.
const RESERVE_BYTES: u64 = 128 << 20;
/// Space for a recording without `max-file`.
const USUAL_BYTES: u64 = 64 << 20;

/// Performs a run under the conditions of the scenario, and returns those that it met. The run gets
/// those before it.
pub(super) async fn watched<R: Future<Output = Over>>(
    bench: &RunContext<'_>,
    scenario: &Scenario,
    run: impl FnOnce(Conditions) -> R,
) -> (Over, Option<RunConditions>) {
    let before = match ready(bench, scenario).await {
        Ok(before) => before,
        Err(failure) => return (Over::of_failure(&failure), None),
    };
    let held = match hold(bench, &scenario.conditions).await {
        Ok(held) => held,
        Err(failure) => return (Over::of_failure(&failure), None),
    };
    let mut over = run(before.conditions.clone()).await;
    let package = &bench.target.package;
    let after = read(bench.device, package).await.ok();
    if let Some(held) = held {
        release(bench, &held).await;
    }
    let kills = after.as_ref().map(|after| after.kills_since(&before));
    let met = RunConditions {
        before: before.conditions,
        after: after.map(|after| after.conditions),
        low_memory_kills: kills.unwrap_or_default(),
    };
    if let Some(failure) = spoiled(over.state, &met, &scenario.target)
        && !over.interrupted
    {
        over.state = RunState::Void;
        over.error = Some(error_of(&failure));
    }
    (over, Some(met))
}

/// Returns the conditions of a run whose steps were performed by a heaptap that was killed, and the
/// cause that makes it void. A killed app has ended its recording, too.
///
/// # Errors
/// Returns an error if the device is lost.
pub(super) async fn after_kill(
    device: &Device,
    target: &Target,
    before: Conditions,
    of: &scenario::Target,
) -> Result<(RunConditions, Option<Failure>), Failure> {
    let met = RunConditions {
        before,
        after: Some(read(device, &target.package).await?.conditions),
        low_memory_kills: Vec::new(),
    };
    let spoiled = spoiled(RunState::Done, &met, of);
    Ok((met, spoiled))
}

/// Waits until the device is cool, at most as long as the scenario allows.
///
/// # Errors
/// Returns an error if it stays hot, has too little space, or is lost.
async fn ready(bench: &RunContext<'_>, scenario: &Scenario) -> Result<Reading, Failure> {
    let until = Instant::now() + scenario.conditions.cool;
    let mut is_told = false;
    let serial = bench.device.serial();
    loop {
        let reading = read(bench.device, &bench.target.package).await?;
        let status = reading.conditions.thermal_status.unwrap_or(0);
        if status == 0 || (Instant::now() >= until && status < THROTTLED) {
            has_space(serial, &reading.conditions, scenario.record.max_file)?;
            return Ok(reading);
        }
        let hot = format!("thermal status {status}, {}", thermal_word(status));
        if Instant::now() >= until {
            let limit = scenario.conditions.cool.as_secs_f64();
            let message = format!("{serial} did not cool down within {limit:.0} s: {hot}");
            return Err(Failure::new(ErrorClass::Device, "device-hot", message)
                .with_help("cool the device, or allow more time with `conditions: {cool: 30m}`"));
        }
        if !std::mem::replace(&mut is_told, true) {
            let text = format!("waiting for the device to cool down ({hot})");
            (bench.tell)(LabEvent::Warning { text });
        }
        tokio::select! {
            () = tokio::time::sleep_until(until.min(Instant::now() + LOOK_INTERVAL)) => {}
            () = bench.cancel.wait() => return Err(interrupted()),
        }
    }
}

fn has_space(serial: &str, at: &Conditions, max_file: Option<u64>) -> Result<(), Failure> {
    let needed = max_file
        .unwrap_or(USUAL_BYTES)
        .saturating_add(RESERVE_BYTES);
    let Some(free) = at.free_bytes.filter(|free| *free < needed) else {
        return Ok(());
    };
    let (free, needed) = (ByteSize(free), ByteSize(needed));
    let message = format!("{serial} has {free} of free space; a run needs {needed}");
    Err(Failure::new(ErrorClass::Device, "device-full", message)
        .with_help("delete files on the device, or set a smaller `max-file` in `record`"))
}

/// Returns the settings of the device that a scenario wants.
pub fn hold_options(wanted: &scenario::Conditions) -> HoldOptions {
    HoldOptions {
        awake: wanted.awake,
        no_animations: wanted.no_animations,
        no_doze: wanted.no_doze,
    }
}

async fn hold(
    bench: &RunContext<'_>,
    wanted: &scenario::Conditions,
) -> Result<Option<HeldSettings>, Failure> {
    let options = hold_options(wanted);
    if options == HoldOptions::default() {
        return Ok(None);
    }
    let package = &bench.target.package;
    let held = provoke::hold(bench.device, bench.journals, package, options).await?;
    Ok(Some(held))
}

/// Restores the device. From one that vanished, [`restore`] or a later run does.
async fn release(bench: &RunContext<'_>, held: &HeldSettings) {
    let release = held.release(bench.device, bench.journals);
    match tokio::time::timeout(RESTORE, release).await {
        Ok(Err(error)) if !error.is_connection() => warn(bench, &error.to_string()),
        _ => {}
    }
}

/// Restores what the runs and actions of a scenario could not restore.
pub(super) async fn restore(bench: &RunContext<'_>) {
    let restore = provoke::restore(bench.device, bench.journals);
    match tokio::time::timeout(RESTORE, restore).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => warn(bench, &error.to_string()),
        Err(_) => warn(bench, "the device does not answer"),
    }
}

fn warn(bench: &RunContext<'_>, why: &str) {
    let text = format!("settings are not restored (`heaptap provoke --restore` does): {why}");
    (bench.tell)(LabEvent::Warning { text });
}

/// Returns the cause that makes a run void: the system killed the app for memory, which also fails
/// steps, or the device ran hot.
fn spoiled(state: RunState, met: &RunConditions, target: &scenario::Target) -> Option<Failure> {
    let is_own = |kill: &&LowMemoryKill| match target {
        scenario::Target::Name(name) => kill.process == *name,
        scenario::Target::Package(package) => {
            let rest = kill.process.strip_prefix(package.as_str());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        }
    };
    if let Some(kill) = met.low_memory_kills.iter().find(is_own) {
        let why = kill.reason.as_deref().unwrap_or("memory was low");
        let message = format!(
            "the system killed {} (PID {}) during the run: {why}",
            kill.process, kill.pid
        );
        return Some(
            Failure::new(ErrorClass::Device, "low-memory-kill", message)
                .with_help("close other apps on the device, or measure on one with more memory"),
        );
    }
    let status = met.after.as_ref().and_then(|after| after.thermal_status)?;
    (status >= THROTTLED && state == RunState::Done).then(|| {
        let word = thermal_word(status);
        let message = format!("the device ran hot: thermal status {status}, {word}");
        Failure::new(ErrorClass::Device, "device-hot", message)
            .with_help("cool the device, and do not charge it fast during the runs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn met(status: u8, killed: &[&str]) -> RunConditions {
        let kill = |process: &&str| LowMemoryKill {
            process: (*process).to_owned(),
            pid: 7,
            reason: None,
        };
        RunConditions {
            before: Conditions::default(),
            after: Some(Conditions {
                thermal_status: Some(status),
                ..Conditions::default()
            }),
            low_memory_kills: killed.iter().map(kill).collect(),
        }
    }

    #[test]
    fn a_run_is_spoiled_by_heat_and_by_kills_of_its_app() {
        use RunState::{Done, Failed};
        let kind = |state: RunState, met: &RunConditions, target: &scenario::Target| {
            spoiled(state, met, target).map(|failure| failure.kind)
        };
        let name = scenario::Target::Name("a.b".to_owned());
        let package = scenario::Target::Package("a.b".to_owned());
        assert_eq!(kind(Done, &met(1, &["a.c"]), &name), None);
        assert_eq!(kind(Done, &met(2, &[]), &name), Some("device-hot"));
        let kill = Some("low-memory-kill");
        assert_eq!(kind(Done, &met(0, &["a.b"]), &name), kill);
        assert_eq!(kind(Done, &met(0, &["a.b:s"]), &name), None);
        assert_eq!(kind(Done, &met(0, &["a.b:s"]), &package), kill);
        assert_eq!(kind(Done, &met(0, &["a.bc"]), &package), None);
        // A step that failed on a hot device is a failure; one whose app was killed is not.
        assert_eq!(kind(Failed, &met(3, &[]), &name), None);
        assert_eq!(kind(Failed, &met(0, &["a.b"]), &name), kill);
    }

    #[test]
    fn space_for_the_largest_file_is_needed() {
        let at = |free_bytes| Conditions {
            free_bytes,
            ..Conditions::default()
        };
        let kind = |free, max_file| has_space("S", &at(free), max_file).err().map(|f| f.kind);
        assert_eq!(kind(None, None), None);
        assert_eq!(kind(Some(192 << 20), None), None);
        assert_eq!(kind(Some(191 << 20), None), Some("device-full"));
        assert_eq!(kind(Some(192 << 20), Some(65 << 20)), Some("device-full"));
        assert_eq!(kind(Some(140 << 20), Some(8 << 20)), None);
    }
}
