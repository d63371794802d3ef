//! Causes for the end of a recording and for empty targets: each cause once, and no guesses next to
//! a known cause. Contains the rule by which a truncated trace is incomplete here and damaged
//! elsewhere (docs/reference/errors.md).

use std::time::Duration;

use super::outcome::EndedBy;
use super::plan::Plan;
use crate::heaps::trace_findings::{CONSEQUENCES, GUESSES, NOT_ASKED_FOR, NOT_PROFILEABLE};
use crate::recording::conversion::convert::Converted;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::conditions;
use heaptap_capture::eligibility::{
    self, EmptyTarget, Evidence, Finding, FindingId, LogLine, PackageRow, Recorded,
};
use heaptap_capture::session::{self, DurationBounds, Session, SessionState};
use heaptap_model::names::could_be_app;
use heaptap_model::profile::Health;
use heaptap_results::findings;
use heaptap_results::manifest;
use std::collections::BTreeMap;

/// Cause of the end of a recording, as far as it is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Cause {
    Duration,
    Done,
    Trigger,
    NotTriggered,
    Interrupted,
    Stopped,
    SizeLimit,
    DiskFull,
    Lost,
    Rebooted,
    Unknown,
}

impl Cause {
    pub(super) fn new(
        ended_by: EndedBy,
        session_state: &SessionState,
        plan: &Plan,
        size: u64,
        lasted: DurationBounds,
        whole: bool,
    ) -> Cause {
        let had = |whole| move |ms| in_full(Duration::from_millis(ms), lasted, whole);
        let in_full = plan.duration_ms.is_some_and(had(whole));
        // Android 10 does not write the end of a session to its trace.
        let has_end = plan.device.sdk != Some(29);
        let is_certain = plan.duration_ms.is_some_and(had(whole && has_end));
        // Without its trigger, a session ends without a byte: its empty file is whole, if its end
        // was seen.
        let ended = lasted.at_most.is_some();
        let not_triggered = size == 0 && plan.trigger_timeout_ms.is_some_and(had(ended));
        let by_done = plan.java.as_ref().is_some_and(|java| java.ends_when_done);
        // The service ends a file slightly below its limit, because the next packet would not fit.
        let full = plan
            .size_limit
            .is_some_and(|limit| size >= limit - limit / 32);
        match ended_by {
            EndedBy::Interrupted => Cause::Interrupted,
            EndedBy::Complete => Cause::Done,
            EndedBy::Stopped => Cause::Stopped,
            EndedBy::Reboot => Cause::Rebooted,
            EndedBy::Itself | EndedBy::Unknown if session_state.stopping() => Cause::Stopped,
            _ if full => Cause::SizeLimit,
            EndedBy::Itself if by_done => Cause::Done,
            EndedBy::Itself if is_certain => Cause::Duration,
            EndedBy::Itself if in_full => Cause::Unknown,
            EndedBy::Itself if not_triggered => Cause::NotTriggered,
            EndedBy::Itself if whole && plan.trigger_timeout_ms.is_some() => Cause::Trigger,
            EndedBy::Itself => Cause::Lost,
            EndedBy::Unknown => Cause::Unknown,
        }
    }

    /// Refines the cause with the device log.
    pub(super) fn with_log(self, log: &[LogLine]) -> Cause {
        let full = |line: &LogLine| {
            line.tag == "perfetto" && line.text.contains("No space left on device")
        };
        match self {
            Cause::Lost | Cause::Unknown | Cause::Duration | Cause::Done | Cause::Trigger
                if log.iter().any(full) =>
            {
                Cause::DiskFull
            }
            other => other,
        }
    }

    pub(super) fn word(self) -> Option<&'static str> {
        match self {
            Cause::Duration => Some("duration"),
            Cause::Done => Some("done"),
            Cause::Trigger => Some("trigger"),
            Cause::NotTriggered => Some("trigger-timeout"),
            Cause::Interrupted => Some("interrupted"),
            Cause::Stopped => Some("stopped"),
            Cause::SizeLimit => Some("size-limit"),
            Cause::DiskFull | Cause::Lost | Cause::Rebooted => Some("lost"),
            Cause::Unknown => None,
        }
    }

    /// Returns whether the device ended the recording early.
    pub(super) fn is_the_phone(self) -> bool {
        match self {
            Cause::NotTriggered
            | Cause::SizeLimit
            | Cause::DiskFull
            | Cause::Lost
            | Cause::Rebooted => true,
            Cause::Duration
            | Cause::Done
            | Cause::Trigger
            | Cause::Interrupted
            | Cause::Stopped
            | Cause::Unknown => false,
        }
    }

    pub(super) fn class(self) -> Option<ErrorClass> {
        self.is_the_phone().then_some(ErrorClass::Incomplete)
    }

    /// Returns the warning about an early end. `java`: Java heaps are dumped, which have no samples.
    pub(super) fn warning(self, sampled: bool, java: bool) -> Option<manifest::Warning> {
        let (kind, message, help) = match self {
            Cause::NotTriggered => (
                "not-triggered",
                "no trigger of the config came in time",
                "run `adb shell trigger_perfetto NAME` during the recording, or raise \
                 trigger_timeout_ms",
            ),
            Cause::SizeLimit => (
                "size-limit",
                "the trace reached its size limit, so the recording ended early",
                match java {
                    true => "free space on the device, or dump fewer processes",
                    false => {
                        "free space on the device, use a longer interval (-i), or dump less often"
                    }
                },
            ),
            Cause::DiskFull => (
                "disk-full",
                "the device storage is full, so the recording ended early",
                match java {
                    true => "delete files on the device, or dump fewer processes",
                    false => {
                        "delete files on the device, use a longer interval (-i), or dump less often"
                    }
                },
            ),
            Cause::Lost => (
                "recording-lost",
                "perfetto ended unexpectedly on the device",
                "check `adb logcat -s perfetto traced` for the reason; another host can have ended it",
            ),
            Cause::Rebooted => (
                "device-rebooted",
                "the device restarted during the recording",
                "record again",
            ),
            Cause::Duration
            | Cause::Done
            | Cause::Trigger
            | Cause::Interrupted
            | Cause::Stopped
            | Cause::Unknown => return None,
        };
        let missing = if self == Cause::NotTriggered {
            "there are no samples"
        } else if sampled {
            "data after perfetto's last write are missing"
        } else if java {
            "no heap dump was complete by then"
        } else {
            "it happened before the first dump, so there are no samples"
        };
        Some(manifest::Warning::new(kind, format!("{message}; {missing}")).with_help(help))
    }
}

/// Returns whether the traces are complete and undamaged.
pub(super) fn is_whole(health: &[Health]) -> bool {
    health.iter().all(|h| h.damage_count == 0 && !h.ends_early)
}

/// Returns whether a recording of this `duration` ran to its end. `whole`: its trace has an end.
pub(super) fn in_full(duration: Duration, lasted: DurationBounds, whole: bool) -> bool {
    // The last report can be a second old, and starting takes time.
    let seen = |at_least: Duration| at_least + Duration::from_secs(3) >= duration;
    // Not observed for a while: it had enough time, and its trace is complete.
    let had_time = || lasted.at_most.is_none_or(|at_most| at_most >= duration);
    // Not observed at all.
    let is_unseen = lasted.at_least.is_none() && lasted.at_most.is_none();
    is_unseen || lasted.at_least.is_some_and(seen) || whole && had_time()
}

/// Reconciles the state of the trace with the facts of the recording. The file is exactly as the
/// device wrote it, so the rest of a truncated file does not exist elsewhere. `told`: the causes of
/// empty targets are reported for each of them.
pub(super) fn settle(converted: &mut Converted, cause: Cause, told: bool) {
    let by_phone = cause.is_the_phone();
    // A service that ended normally wrote its last packet completely.
    let inside = converted.health.iter().any(|health| health.cut_bytes > 0)
        && !(by_phone || cause == Cause::Unknown);
    converted.findings.retain_mut(|finding| {
        let cut = match finding.kind {
            findings::TRACE_CUT => true,
            kind if GUESSES.contains(&kind) => return !(by_phone || told),
            // An empty file is the effect of it.
            "trace-empty" if cause == Cause::NotTriggered => return false,
            // The same cause, without its target.
            NOT_ASKED_FOR | NOT_PROFILEABLE if told => return false,
            _ => false,
        };
        if cut {
            finding.class = Some(match inside {
                true => ErrorClass::BadInput,
                false => ErrorClass::Incomplete,
            });
        }
        if cut || finding.class == Some(ErrorClass::BadInput) {
            finding.help = Some(
                "the file is exactly as the device wrote it; record again, and check `adb logcat \
                 -s perfetto traced`"
                    .to_owned(),
            );
        }
        // Consequences of a known cause have no remedy of their own.
        if by_phone && CONSEQUENCES.contains(&finding.kind) {
            finding.help = None;
        }
        !(cut && by_phone)
    });
}

/// Returns the exit code class of a recording.
pub(super) fn class(converted: &Converted, cause: Cause, some_empty: bool) -> Option<ErrorClass> {
    let incomplete = some_empty || converted.is_cut();
    let incomplete = incomplete.then_some(ErrorClass::Incomplete);
    let all = [converted.class(), cause.class(), incomplete];
    ErrorClass::first_of(all.into_iter().flatten())
}

/// Returns the targets without samples, as far as the targets are known.
pub(super) fn empty_targets(plan: &Plan, converted: &Converted) -> Vec<EmptyTarget> {
    let mut recorded: BTreeMap<u64, Recorded> = BTreeMap::new();
    let native = converted.dumps.iter();
    let native = native.map(|d| (d.pid, &d.process, d.file.is_some(), d.flags.has_ended()));
    let java = converted.java.iter();
    let java = java.map(|d| (d.pid, &d.process, d.file.is_some(), false));
    for (pid, process, has_samples, is_told) in native.chain(java) {
        let of_process = recorded.entry(pid).or_default();
        of_process.pid = u32::try_from(pid).unwrap_or(u32::MAX);
        of_process.name.clone_from(process);
        of_process.has_samples |= has_samples;
        of_process.is_told |= is_told;
    }
    let recorded: Vec<Recorded> = recorded.into_values().collect();
    eligibility::empty_targets(&plan.known, &recorded)
}

/// Returns warnings about empty targets: one cause for each.
pub(super) fn why_empty(
    plan: &Plan,
    converted: &Converted,
    cause: Cause,
    log: &[LogLine],
    empty: &[EmptyTarget],
) -> Vec<manifest::Warning> {
    let packages: Vec<PackageRow> = converted.packages.iter().map(PackageRow::from).collect();
    let evidence = Evidence {
        preflight: Some(&plan.known),
        packages: &packages,
        heaps: &plan.heaps,
        java: plan.java.is_some(),
        log,
    };
    // A trace without packets has no information about heapprofd.
    let has_trace = !converted.health.is_empty();
    let whole = has_trace && !cause.is_the_phone() && is_whole(&converted.health);
    // heapprofd might have been delayed by writing data of other processes.
    let timed_out = plan.java.is_none()
        && converted
            .health
            .iter()
            .any(|h| h.stop_timed_out_ns.is_some());
    let silent = plan.heaps.is_empty() && converted.health.iter().all(|h| h.profile_packets == 0);
    empty
        .iter()
        .filter_map(|target| {
            if plan.no_running && !cause.is_the_phone() && was_running(plan, target) {
                return Some(running_skipped(target));
            }
            let mut causes = eligibility::explain(target, &evidence);
            // A rejected manifest entry explains more than the log line it caused.
            causes.sort_by_key(|cause| cause.id == FindingId::Refused);
            let cause = causes.into_iter().next()?;
            if !matches!(cause.id, FindingId::NoAllocation | FindingId::NoDump) {
                Some(warning(plan, target, cause))
            } else if timed_out {
                Some(stop_timed_out(target))
            } else if !whole {
                None
            } else if silent && plan.java.is_none() {
                Some(heapprofd_silent(target, log))
            } else {
                Some(warning(plan, target, cause))
            }
        })
        .collect()
}

fn warning(plan: &Plan, target: &EmptyTarget, finding: Finding) -> manifest::Warning {
    let nothing = match plan.java {
        Some(_) => "no heap dump",
        None => "no samples",
    };
    // `com.example.app is frozen` becomes `it is frozen` after the name.
    let what = match finding.what.strip_prefix(&target.name) {
        Some(rest) if rest.starts_with(' ') => format!("it{rest}"),
        _ => finding.what,
    };
    manifest::Warning {
        help: finding.fix,
        ..manifest::Warning::new(
            finding
                .id
                .to_string()
                .to_ascii_lowercase()
                .replace('_', "-"),
            match finding.id {
                FindingId::NoDump => format!("{}: {what}: {}", target.name, finding.why),
                _ => format!("{}: {nothing}: {what} ({})", target.name, finding.why),
            },
        )
        .with_pid(target.pid.map(u64::from))
    }
}

fn was_running(plan: &Plan, target: &EmptyTarget) -> bool {
    let mut processes = plan.known.targets.iter().flat_map(|t| &t.processes);
    target
        .pid
        .is_some_and(|pid| processes.any(|process| process.pid == pid))
}

/// The process was running, and running processes were not to be recorded.
fn running_skipped(target: &EmptyTarget) -> manifest::Warning {
    let message = format!(
        "{}: no samples: it was already running, and `--no-running` skips running processes",
        target.name
    );
    let help = match could_be_app(&target.name) {
        true => "start it again during the recording, or add `--launch`",
        false => "start it again during the recording",
    };
    manifest::Warning::new("running-skipped", message)
        .with_help(help)
        .with_pid(target.pid.map(u64::from))
}

/// The process was running, and the tracing service timed out waiting for a data source.
fn stop_timed_out(target: &EmptyTarget) -> manifest::Warning {
    let message = format!(
        "{}: no samples: the tracing service stopped waiting before all data sources of the \
         device were done, so the dump might have come too late",
        target.name
    );
    manifest::Warning::new("stop-timed-out", message)
        .with_help(findings::BUSY)
        .with_pid(target.pid.map(u64::from))
}

/// Returns the error for files that are missing after a restart. Files survive one, so the serial can be
/// another device's by now, and the session stays in the journal.
pub(super) async fn lost_to_restart(session: &Session, ended_by: EndedBy) -> Option<Failure> {
    let now = session::moment(session.device()).await;
    let is_other_boot = now.is_ok_and(|now| now.boot_id != session.header().boot_id);
    (ended_by == EndedBy::Reboot || is_other_boot).then(|| {
        let (serial, id) = (session.device().serial(), session.id());
        let message =
            format!("{serial} restarted during session {id}, and nothing of it is left there");
        Failure::new(ErrorClass::Device, "device-rebooted", message).with_help(format!(
            "if this is another device, connect the one that recorded and run `heaptap stop {id}`; \
             otherwise forget the session with `heaptap stop --forget {id}` and record again"
        ))
    })
}

/// Names the processes that the system killed for memory, among those that ended: the trace does not
/// have the reason. One that the device does not tell stays as it is.
pub(super) async fn name_kills(device: &Device, converted: &mut Converted) {
    let Converted {
        findings, dumps, ..
    } = converted;
    let dump_of = |finding: &findings::Finding| {
        let ended = finding.kind == findings::DISCONNECTED;
        dumps
            .iter()
            .find(|dump| ended && Some(dump.pid) == finding.pid)
    };
    let Some(first) = findings.iter().find_map(dump_of) else {
        return;
    };
    // lmkd logs all kills; exit-info has those of one package.
    let package = first.process.split(':').next().unwrap_or_default();
    let Ok(reading) = conditions::read(device, package).await else {
        return;
    };
    for finding in findings.iter_mut() {
        let Some(dump) = dump_of(finding) else {
            continue;
        };
        let Some(kill) = reading.kill_of(dump.pid, &dump.process) else {
            continue;
        };
        let why = kill.reason.as_deref().map(|reason| format!(" ({reason})"));
        let message = format!(
            "{}: the system killed it because memory was low{}; the profile ends there",
            dump.process,
            why.unwrap_or_default()
        );
        let help = "the last dump has what it had not released; to record longer, close other \
                    apps or use a device with more memory";
        let named = findings::Finding::new("low-memory-kill", None, message).with_help(help);
        *finding = named.with_pid(dump.pid);
    }
}

/// The process was running and the trace is complete, but heapprofd wrote nothing at all.
fn heapprofd_silent(target: &EmptyTarget, log: &[LogLine]) -> manifest::Warning {
    let died = log.iter().find(|line| {
        line.text.contains("heapprofd") && line.text.to_ascii_lowercase().contains("fatal signal")
    });
    let log = died.map_or_else(String::new, |line| {
        format!("; the device log says: {}", line.text)
    });
    let message = format!(
        "{}: no samples: heapprofd on the device wrote nothing; it was not running, crashed, \
         or never attached{log}",
        target.name
    );
    manifest::Warning::new("heapprofd-silent", message)
        .with_help(
            "Check `adb logcat -s heapprofd init`, and restart the device to restart heapprofd. A \
             process that never allocates has the same symptom.",
        )
        .with_pid(target.pid.map(u64::from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_unseen_is_judged_by_its_trace() {
        let lasted = |at_least: u64, at_most: u64| DurationBounds {
            at_least: Some(Duration::from_secs(at_least)),
            at_most: Some(Duration::from_secs(at_most)),
        };
        let in_full = |lasted, whole| in_full(Duration::from_secs(10), lasted, whole);
        // Observed until its end, or until long before it.
        assert!(in_full(lasted(9, 10), true) && in_full(lasted(9, 10), false));
        assert!(!in_full(lasted(4, 5), true) && !in_full(lasted(4, 5), false));
        // The cable was disconnected.
        assert!(in_full(lasted(4, 60), true) && !in_full(lasted(4, 60), false));
        // Ended before the first check.
        let at_most = |seconds| DurationBounds {
            at_least: None,
            at_most: Some(Duration::from_secs(seconds)),
        };
        assert!(!in_full(at_most(1), true) && !in_full(at_most(1), false));
        assert!(in_full(at_most(10), true) && !in_full(at_most(10), false));
        // Not followed.
        assert!(
            in_full(DurationBounds::default(), true) && in_full(DurationBounds::default(), false)
        );
    }
}
