//! Reasons why a recording of a process is empty: from the packages recorded with
//! it, from the findings before it, and from the device log. Pure, except for the one call
//! that fetches the log.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::assessment::{Assessment, ProcessReport};
use super::decide::is_process_of;
use super::facts::DeviceFacts;
use super::finding::{Finding, FindingId, Scope, Severity};
use super::gather::{QUICK, patient};
use super::matching::app_of_sandbox;
use super::names;
use super::packages::{PER_USER, Package, PackageRow};
use super::processes::Pid;
use super::sections::text_lines;
use android_memory::gc::{Stamp, parse_line};
use heaptap_adb::{Command, Device, DeviceError};
use heaptap_base::untrusted::sanitize_bytes;

/// A line of the device log.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LogLine {
    /// Seconds since the epoch, by the device's clock.
    pub time_s: Option<f64>,
    /// Process that logged it.
    pub pid: Pid,
    pub tag: String,
    pub text: String,
}

/// Fetches the log lines of heapprofd, traced and libc since `since_s` (seconds since the
/// epoch, by the device's clock). If the device does not answer, the result is empty.
///
/// # Errors
/// [`DeviceError::Lost`].
pub async fn read_log(device: &Device, since_s: Option<i64>) -> Result<Vec<LogLine>, DeviceError> {
    let tags = ["perfetto:*", "heapprofd:*", "libc:*"];
    let command = Command::program("logcat").args(["-d", "-v", "epoch", "-s"]);
    let out = patient(device.run(&command.args(tags), QUICK).await)?;
    let mut lines = out.map_or_else(Vec::new, |out| parse_log(&out.stdout));
    lines.retain(|line| match (line.time_s, since_s) {
        (Some(time), Some(since)) => time >= since as f64,
        _ => true,
    });
    Ok(lines)
}

/// Parses the log; only `-v epoch` has times that can be compared.
pub fn parse_log(stdout: &[u8]) -> Vec<LogLine> {
    text_lines(stdout)
        .iter()
        .filter_map(|line| {
            let line = parse_line(line)?;
            Some(LogLine {
                time_s: match line.time {
                    Some(Stamp::Epoch(ns)) => Some(ns as f64 / 1e9),
                    _ => None,
                },
                pid: line.pid?,
                tag: sanitize_bytes(line.tag?.as_bytes()),
                text: sanitize_bytes(line.message.trim().as_bytes()),
            })
        })
        .collect()
}

/// Findings before a recording, in a form for the journal: another process might finish
/// the recording on another day.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PreflightFacts {
    /// Manifests count on this device; `None` if unknown.
    pub user_build: Option<bool>,
    /// Clock of the device then, seconds since the epoch: [`read_log`] starts there.
    pub clock_s: Option<i64>,
    /// Blocking findings about the device as a whole (`--no-check` ignored them).
    pub device: Vec<Finding>,
    /// The targets as given.
    pub targets: Vec<KnownTarget>,
}

/// A target as known before the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownTarget {
    /// As given.
    pub target: String,
    pub processes: Vec<KnownProcess>,
    /// Findings about the target as a whole.
    pub findings: Vec<Finding>,
}

/// A process as known before the recording.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownProcess {
    pub pid: Pid,
    pub name: String,
    pub uid: Option<u32>,
    pub findings: Vec<Finding>,
}

impl Assessment {
    /// Returns the facts to keep until the recording is finished.
    pub fn preflight_facts(&self, facts: &DeviceFacts) -> PreflightFacts {
        let device = self.device.iter();
        let blocking = device.filter(|f| f.severity == Severity::Blocks);
        let process = |report: &ProcessReport| KnownProcess {
            pid: report.process.pid,
            name: report.process.name.clone(),
            uid: report.process.uid,
            findings: report.findings.clone(),
        };
        let targets = self.targets.iter().map(|t| KnownTarget {
            target: t.target.clone(),
            processes: t.processes.iter().map(process).collect(),
            findings: t.findings.clone(),
        });
        PreflightFacts {
            user_build: facts.is_user_build(),
            clock_s: facts.clock_s,
            device: blocking.cloned().collect(),
            targets: targets.collect(),
        }
    }
}

/// A process in the trace: it has at least one dump, possibly without samples.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recorded {
    pub pid: Pid,
    /// Name; empty if the trace does not have one.
    pub name: String,
    /// A dump of it has samples.
    pub has_samples: bool,
    /// The findings about its dumps explain the missing samples.
    pub is_told: bool,
}

/// A target, or a process of one, without samples.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct EmptyTarget {
    /// The process name, or the requested name.
    pub name: String,
    /// PID, if there was a process.
    pub pid: Option<Pid>,
    /// UID, if known.
    pub uid: Option<u32>,
    /// The findings about its dumps explain the missing samples.
    pub is_told: bool,
}

/// Returns the targets without samples. A process that another one of the same name replaced
/// does not count as missing.
pub fn empty_targets(preflight: &PreflightFacts, recorded: &[Recorded]) -> Vec<EmptyTarget> {
    let sampled = |pid: Pid, name: &str| {
        let is_it = |r: &Recorded| r.pid == pid || !name.is_empty() && r.name == name;
        recorded.iter().any(|r| r.has_samples && is_it(r))
    };
    let mut empty: Vec<EmptyTarget> = Vec::new();
    for target in &preflight.targets {
        for p in &target.processes {
            if !sampled(p.pid, &p.name) {
                empty.push(EmptyTarget {
                    name: p.name.clone(),
                    pid: Some(p.pid),
                    uid: p.uid,
                    is_told: recorded.iter().any(|r| r.pid == p.pid && r.is_told),
                });
            }
        }
        // Processes that started later are only in the trace.
        let came = |r: &&Recorded| {
            names::matches_native(&target.target, &r.name) || is_process_of(&r.name, &target.target)
        };
        if target.processes.is_empty() && !recorded.iter().any(|r| came(&r)) {
            empty.push(EmptyTarget {
                name: target.target.clone(),
                ..EmptyTarget::default()
            });
        }
    }
    for r in recorded.iter().filter(|r| !r.has_samples) {
        let listed = empty.iter().any(|e| e.pid == Some(r.pid));
        if !listed && !sampled(r.pid, &r.name) {
            empty.push(EmptyTarget {
                name: r.name.clone(),
                pid: Some(r.pid),
                uid: None,
                is_told: r.is_told,
            });
        }
    }
    empty
}

/// All evidence for the reason.
#[derive(Debug, Clone, Copy, Default)]
pub struct Evidence<'a> {
    /// Findings before the recording.
    pub preflight: Option<&'a PreflightFacts>,
    /// The package list in the trace.
    pub packages: &'a [PackageRow],
    /// Selected heaps; empty for the default.
    pub heaps: &'a [String],
    /// Java heaps were dumped instead of sampling native ones.
    pub java: bool,
    /// The device log since the start.
    pub log: &'a [LogLine],
}

/// Returns reasons why this target has no samples, the most certain first. Returns none if the
/// dumps explain it: the risks known before the recording are then irrelevant.
pub fn explain(target: &EmptyTarget, evidence: &Evidence<'_>) -> Vec<Finding> {
    if target.is_told {
        return Vec::new();
    }
    let mut causes = Vec::new();
    causes.extend(logged_causes(target, evidence.log));
    causes.extend(manifest_cause(target, evidence));
    if let Some(preflight) = evidence.preflight {
        let other = match evidence.java {
            true => Scope::Native,
            false => Scope::Java,
        };
        let about = findings_before(target, preflight).filter(|f| f.scope != other);
        causes.extend(about.filter_map(|f| match (f.id, f.severity) {
            (_, Severity::Warning | Severity::Blocks) => Some(f.clone()),
            (FindingId::NotRunning, Severity::Note) if target.pid.is_none() => {
                Some(Finding::never_started(&target.name))
            }
            _ => None,
        }));
        let about = preflight.device.iter().filter(|f| f.scope != other);
        causes.extend(about.cloned());
    }
    if causes.is_empty() {
        causes.push(match target.pid {
            Some(_) if evidence.java => Finding::no_dump(&target.name),
            Some(_) => Finding::no_allocation(&target.name, evidence.heaps),
            None => Finding::never_started(&target.name),
        });
    }
    let mut seen = BTreeSet::new();
    causes.retain(|f| seen.insert((f.id, f.what.clone())));
    causes.sort_by_key(|f| std::cmp::Reverse(f.severity));
    causes
}

/// Returns the findings about the target before the recording.
fn findings_before<'a>(
    target: &'a EmptyTarget,
    preflight: &'a PreflightFacts,
) -> impl Iterator<Item = &'a Finding> {
    let is_it = |p: &KnownProcess| Some(p.pid) == target.pid || p.name == target.name;
    let of_it = move |t: &&KnownTarget| t.target == target.name || t.processes.iter().any(is_it);
    preflight.targets.iter().filter(of_it).flat_map(|t| {
        let meant = t.processes.iter();
        let meant = meant.filter(|p| target.pid.is_none_or(|pid| p.pid == pid));
        t.findings.iter().chain(meant.flat_map(|p| &p.findings))
    })
}

/// Returns the reasons in the log: heapprofd logs the PID and name of a process that it refuses;
/// libc, within the process, why it does not allow hooks.
fn logged_causes(target: &EmptyTarget, log: &[LogLine]) -> Vec<Finding> {
    let names_target = |line: &&LogLine| {
        let by_pid = target.pid.is_some_and(|pid| {
            let mut numbers = line.text.split(|c: char| !c.is_ascii_digit());
            line.pid == pid || numbers.any(|number| number == pid.to_string())
        });
        by_pid || !target.name.is_empty() && line.text.contains(&format!("({})", target.name))
    };
    let cause = |line: &LogLine| {
        let text = line.text.to_ascii_lowercase();
        let has = |part: &str| text.contains(part);
        if has("not profileable") {
            return Some(Finding::refused(&line.text));
        }
        let no_hooks = has("heapprofd") && (has("hooks") || has("not enabl"));
        no_hooks.then(|| Finding::malloc_debug(&target.name, "libc.debug.malloc.options"))
    };
    let causes = log.iter().filter(names_target).filter_map(cause);
    causes.take(3).collect()
}

/// Returns the reason in the package list recorded with the trace, on a build where manifests
/// count.
fn manifest_cause(target: &EmptyTarget, evidence: &Evidence<'_>) -> Option<Finding> {
    if evidence.preflight.and_then(|k| k.user_build) == Some(false) {
        return None;
    }
    let appid = target.uid.map(|uid| app_of_sandbox(uid % PER_USER));
    let rows = || evidence.packages.iter();
    let row = rows().find(|r| Some(r.uid % PER_USER) == appid);
    let row = row.or_else(|| rows().find(|r| is_process_of(&target.name, &r.name)))?;
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
        let preflight = PreflightFacts {
            user_build: Some(false),
            ..PreflightFacts::default()
        };
        let evidence = Evidence {
            preflight: Some(&preflight),
            ..evidence
        };
        assert_eq!(ids(&target("com.closed", 7), &evidence), [F::NoAllocation]);
    }

    fn recorded(pid: Pid, name: &str, has_samples: bool) -> Recorded {
        Recorded {
            pid,
            name: name.to_owned(),
            has_samples,
            is_told: false,
        }
    }

    fn preflight() -> PreflightFacts {
        let process = |pid, name: &str, findings| KnownProcess {
            pid,
            name: name.to_owned(),
            uid: Some(10_234),
            findings,
        };
        PreflightFacts {
            user_build: Some(true),
            targets: vec![
                KnownTarget {
                    target: "com.a*".to_owned(),
                    processes: vec![
                        process(1, "com.a", vec![]),
                        process(2, "com.a:x", vec![Finding::frozen("com.a:x")]),
                    ],
                    findings: vec![],
                },
                KnownTarget {
                    target: "com.late".to_owned(),
                    processes: vec![],
                    findings: vec![Finding::not_running("com.late", Severity::Note)],
                },
            ],
            ..PreflightFacts::default()
        }
    }

    #[test]
    fn only_what_has_no_samples_at_all_is_missed() {
        let preflight = preflight();
        let of = |recorded: &[Recorded]| -> Vec<(String, Option<Pid>)> {
            let empty = empty_targets(&preflight, recorded);
            empty.into_iter().map(|e| (e.name, e.pid)).collect()
        };
        let late = ("com.late".to_owned(), None);
        let service = ("com.a:x".to_owned(), Some(2));
        assert_eq!(of(&[]).len(), 3);
        assert_eq!(
            of(&[recorded(1, "com.a", true)]),
            [service.clone(), late.clone()]
        );
        // Restarted under another pid, and started late.
        let all = [
            recorded(7, "com.a", true),
            recorded(1, "com.a", false),
            recorded(2, "", true),
            recorded(9, "com.late", true),
        ];
        assert_eq!(of(&all), []);
        // Started late, and empty.
        let hollow = [
            recorded(1, "", true),
            recorded(2, "", true),
            recorded(9, "com.late", false),
        ];
        assert_eq!(of(&hollow), [("com.late".to_owned(), Some(9))]);
    }

    #[test]
    fn what_was_known_before_is_kept_and_said() {
        let json = serde_json::to_string(&preflight()).expect("plain data");
        let preflight: PreflightFacts = serde_json::from_str(&json).expect("what was written");
        assert_eq!(preflight, super::tests::preflight());
        let evidence = Evidence {
            preflight: Some(&preflight),
            ..Evidence::default()
        };
        assert_eq!(ids(&target("com.a:x", 2), &evidence), [F::Frozen]);
        assert_eq!(ids(&target("com.a", 1), &evidence), [F::NoAllocation]);
        let late = EmptyTarget {
            name: "com.late".to_owned(),
            ..EmptyTarget::default()
        };
        assert_eq!(ids(&late, &evidence), [F::NotRunning]);
        // The recording no longer waits for it.
        let why = explain(&late, &evidence).remove(0).why;
        assert_eq!(why, "it did not start while the recording ran");
    }

    #[test]
    fn a_cause_is_always_named() {
        let none = Evidence::default();
        let told = EmptyTarget {
            is_told: true,
            ..target("com.a:x", 2)
        };
        let feared = preflight();
        let feared = Evidence {
            preflight: Some(&feared),
            ..none
        };
        assert_eq!(ids(&told, &feared), [], "its dump says why");
        assert_eq!(ids(&target("com.x", 7), &none), [F::NoAllocation]);
        // Obstacles to a Java dump alone explain nothing here.
        let ten = PreflightFacts {
            device: vec![Finding::sdk_low(Scope::Java, "Android 10")],
            ..PreflightFacts::default()
        };
        let known = Evidence {
            preflight: Some(&ten),
            ..Evidence::default()
        };
        assert_eq!(ids(&target("com.x", 7), &known), [F::NoAllocation]);
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
