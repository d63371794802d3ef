//! Why a recording of a process came back empty: from the packages that were recorded with
//! it, from what was found out before, and from the phone's log. Pure, but for the one call
//! that fetches the log.

use std::time::Duration;

use serde::Serialize;

use super::assess::{Assessment, TargetReport};
use super::decide::is_process_of;
use super::facts::DeviceFacts;
use super::finding::{Finding, FindingId, Severity};
use super::packages::{PER_USER, Package, PackageRow};
use super::processes::Pid;
use super::sections::text_lines;
use super::untrusted::shown;
use crate::device::{Command, Device, DeviceError};

/// A line of the phone's log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogLine {
    /// Seconds since the epoch, by the phone's clock.
    pub time_s: Option<f64>,
    /// Process that logged it.
    pub pid: Pid,
    /// Its tag.
    pub tag: String,
    /// The text.
    pub text: String,
}

/// Fetches what heapprofd, traced and libc logged since `since_s` (seconds since the epoch,
/// by the phone's clock). A phone that does not answer has logged nothing.
///
/// # Errors
/// [`DeviceError::Lost`].
pub async fn read_log(device: &Device, since_s: Option<i64>) -> Result<Vec<LogLine>, DeviceError> {
    let command = Command::program("logcat").args([
        "-d",
        "-v",
        "epoch",
        "-s",
        "perfetto:*",
        "heapprofd:*",
        "libc:*",
    ]);
    match device.run(&command, Duration::from_secs(10)).await {
        Ok(out) => Ok(parse_log(&out.stdout)
            .into_iter()
            .filter(|l| match (l.time_s, since_s) {
                (Some(time), Some(since)) => time >= since as f64,
                _ => true,
            })
            .collect()),
        Err(DeviceError::Deadline { .. } | DeviceError::Refused { .. }) => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// Reads `logcat -v epoch`, `  1707120000.123  1234  1240 I perfetto: text`, and the form
/// that phones without it give, `11-20 09:00:00.000  1234  1240 I perfetto: text`.
pub fn parse_log(stdout: &[u8]) -> Vec<LogLine> {
    text_lines(stdout)
        .iter()
        .filter_map(|line| {
            let mut rest = line.as_str();
            let mut word = || {
                rest = rest.trim_start();
                let end = rest.find(char::is_whitespace)?;
                let (word, tail) = rest.split_at(end);
                rest = tail;
                Some(word)
            };
            let time: Option<f64> = word()?.parse().ok();
            if time.is_none() {
                word()?;
            }
            let pid: Pid = word()?.parse().ok()?;
            let _thread = word()?;
            let _level = word()?;
            let (tag, text) = rest.split_once(": ")?;
            Some(LogLine {
                time_s: time,
                pid,
                tag: shown(tag.trim().as_bytes()),
                text: shown(text.trim().as_bytes()),
            })
        })
        .collect()
}

/// A target without samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmptyTarget {
    /// The process name, or the name that was asked for.
    pub name: String,
    /// Its pid, where a process was there.
    pub pid: Option<Pid>,
    /// Its uid, where known.
    pub uid: Option<u32>,
    /// The trace says that another session held it.
    pub rejected: bool,
}

/// Everything that may tell why.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// The phone, where it is known.
    pub facts: Option<&'a DeviceFacts>,
    /// What was found out before the recording.
    pub assessment: Option<&'a Assessment>,
    /// The packages list in the trace.
    pub packages: &'a [PackageRow],
    /// Heaps that were chosen; empty for the default.
    pub heaps: &'a [String],
    /// The log since the start.
    pub log: &'a [LogLine],
}

/// Why this target has no samples, the surest cause first; never empty.
pub fn explain(target: &EmptyTarget, evidence: &Evidence<'_>) -> Vec<Finding> {
    let report = evidence
        .assessment
        .and_then(|a| a.targets.iter().find(|t| is_about(t, target)));
    let mut causes = Vec::new();
    if target.rejected {
        causes.push(Finding::busy(format!(
            "Another recording held {} all the time",
            target.name
        )));
        return causes;
    }
    causes.extend(logged_causes(target, evidence.log));
    causes.extend(manifest_cause(target, evidence));
    if let Some(report) = report {
        let of_process = report
            .processes
            .iter()
            .filter(|p| target.pid.is_none_or(|pid| p.process.pid == pid))
            .flat_map(|p| &p.findings);
        let known = report.findings.iter().chain(of_process);
        causes.extend(
            known
                .filter(|f| {
                    f.severity >= Severity::Warning
                        || f.id == FindingId::NotRunning && target.pid.is_none()
                })
                .cloned(),
        );
    }
    if let Some(assessment) = evidence.assessment {
        let blocking = assessment
            .device
            .iter()
            .filter(|f| f.severity == Severity::Blocks);
        causes.extend(blocking.cloned());
    }
    if causes.is_empty() && report.is_none() && target.pid.is_none() {
        causes.push(Finding::not_running(&target.name, Severity::Blocks));
    }
    if causes.is_empty() {
        causes.push(Finding::no_allocation(&target.name, evidence.heaps));
    }
    let mut seen = Vec::new();
    causes.retain(|f| {
        let fresh = !seen.contains(&(f.id, f.what.clone()));
        seen.push((f.id, f.what.clone()));
        fresh
    });
    causes.sort_by_key(|f| std::cmp::Reverse(f.severity));
    causes
}

fn is_about(report: &TargetReport, target: &EmptyTarget) -> bool {
    report.target == target.name
        || target.pid.is_some_and(|pid| {
            report.target == pid.to_string()
                || report.processes.iter().any(|p| p.process.pid == pid)
        })
        || report
            .processes
            .iter()
            .any(|p| p.process.name == target.name)
}

/// heapprofd names the pid and the process that it refuses; libc, within the process, why it
/// does not let itself be hooked.
fn logged_causes(target: &EmptyTarget, log: &[LogLine]) -> Vec<Finding> {
    let names_target = |line: &&LogLine| {
        let by_pid = target.pid.is_some_and(|pid| {
            line.pid == pid
                || line
                    .text
                    .split(|c: char| !c.is_ascii_digit())
                    .any(|word| word == pid.to_string())
        });
        by_pid || !target.name.is_empty() && line.text.contains(&format!("({})", target.name))
    };
    log.iter()
        .filter(names_target)
        .filter_map(|line| {
            let text = line.text.to_ascii_lowercase();
            if text.contains("not profileable") {
                Some(Finding::refused(&line.text))
            } else if text.contains("heapprofd")
                && (text.contains("hooks") || text.contains("not enabl"))
            {
                Some(Finding::malloc_debug(
                    &target.name,
                    "libc.debug.malloc.options",
                ))
            } else {
                None
            }
        })
        .take(3)
        .collect()
}

/// What the packages list recorded with the trace says of the target, on a build where it
/// counts.
fn manifest_cause(target: &EmptyTarget, evidence: &Evidence<'_>) -> Option<Finding> {
    if evidence.facts.and_then(DeviceFacts::is_user_build) == Some(false) {
        return None;
    }
    let appid = target.uid.map(|uid| match uid % PER_USER {
        sandbox @ 20_000..=29_999 => sandbox - 10_000,
        appid => appid,
    });
    let row = evidence
        .packages
        .iter()
        .find(|r| Some(r.uid % PER_USER) == appid)
        .or_else(|| {
            let mut rows = evidence.packages.iter();
            rows.find(|r| is_process_of(&target.name, &r.name))
        })?;
    if row.uid % PER_USER < 10_000 {
        return Some(Finding::system_uid(&target.name, row.uid));
    }
    let kind = row.app_type();
    if kind.allows_shell() {
        return None;
    }
    Some(Finding::user_release(&Package {
        uid: Some(row.uid),
        app_type: Some(kind),
        ..Package::named(&row.name)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::eligibility::FindingId as F;
    use crate::eligibility::facts::BuildType;

    const LOG: &[u8] = b"--------- beginning of main\n\
        \x20  1707120000.123  4711  4720 I perfetto: heapprofd_producer.cc:330 4712 (com.example.closed) is not profileable.\n\
        \x20  1707120001.000  4800  4800 E libc    : heapprofd not enabled, hooks are.\n\
        \x20  1707120002.000   640   640 I perfetto: 47123 (com.other) is not profileable.\n\
        junk\n";

    fn target(name: &str, pid: u32) -> EmptyTarget {
        EmptyTarget {
            name: name.to_owned(),
            pid: Some(pid),
            ..EmptyTarget::default()
        }
    }

    fn ids(target: &EmptyTarget, evidence: &Evidence<'_>) -> Vec<F> {
        explain(target, evidence).iter().map(|f| f.id).collect()
    }

    #[test]
    fn the_log_names_who_was_refused() {
        let log = parse_log(LOG);
        assert_eq!(log.len(), 3);
        let threadtime = parse_log(b"11-20 09:00:00.000    10    11 E perfetto: a.cc:1 x: y\n");
        assert_eq!((threadtime[0].time_s, threadtime[0].pid), (None, 10));
        assert_eq!(threadtime[0].text, "a.cc:1 x: y");
        assert_eq!((log[0].pid, log[0].tag.as_str()), (4711, "perfetto"));
        assert_eq!(log[1].tag, "libc");
        let evidence = Evidence {
            log: &log,
            ..Evidence::default()
        };
        assert_eq!(
            ids(&target("com.example.closed", 4712), &evidence),
            [F::Refused]
        );
        assert_eq!(
            ids(&target("com.example.closed", 1), &evidence),
            [F::Refused]
        );
        assert_eq!(ids(&target("com.x", 4800), &evidence), [F::MallocDebug]);
        // 4712 is not 47123.
        let other = ids(&target("com.y", 7123), &evidence);
        assert_eq!(other, [F::NoAllocation]);
    }

    #[test]
    fn the_recorded_packages_tell_what_the_manifest_allows() {
        let row = |name: &str, uid, profileable| PackageRow {
            name: name.to_owned(),
            uid,
            debuggable: false,
            profileable_from_shell: profileable,
            profileable_by_platform: None,
        };
        let rows = [
            row("com.closed", 10_237, false),
            row("com.open", 10_238, true),
            row("com.settings", 1000, true),
        ];
        let evidence = Evidence {
            packages: &rows,
            ..Evidence::default()
        };
        assert_eq!(
            ids(&target("com.closed:remote", 7), &evidence),
            [F::UserRelease]
        );
        assert_eq!(ids(&target("com.settings", 7), &evidence), [F::SystemUid]);
        assert_eq!(ids(&target("com.open", 7), &evidence), [F::NoAllocation]);
        let by_uid = EmptyTarget {
            uid: Some(1_010_237),
            ..target("odd.name", 7)
        };
        assert_eq!(ids(&by_uid, &evidence), [F::UserRelease]);
        // On a userdebug build manifests do not count.
        let mut facts = DeviceFacts::read("S", b"");
        facts.build_type = Some(BuildType::Userdebug);
        let evidence = Evidence {
            facts: Some(&facts),
            ..evidence
        };
        assert_eq!(ids(&target("com.closed", 7), &evidence), [F::NoAllocation]);
    }

    #[test]
    fn a_cause_is_always_named() {
        let none = Evidence::default();
        let rejected = EmptyTarget {
            rejected: true,
            ..target("com.x", 7)
        };
        assert_eq!(ids(&rejected, &none), [F::Busy]);
        assert_eq!(ids(&target("com.x", 7), &none), [F::NoAllocation]);
        let absent = EmptyTarget {
            name: "com.x".to_owned(),
            ..EmptyTarget::default()
        };
        assert_eq!(ids(&absent, &none), [F::NotRunning]);
        let heaps = ["my.heap".to_owned()];
        let chosen = Evidence {
            heaps: &heaps,
            ..none
        };
        assert!(
            explain(&target("com.x", 7), &chosen)[0]
                .why
                .contains("my.heap")
        );
    }
}
