//! Data in a recording's journal for finishing it: facts for the manifest that cannot be read
//! again, and the format of the results.

use std::collections::BTreeSet;
use std::path::Path;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::companion_options::CompanionOptions;
use crate::names::options::NameOptions;
use heaptap_adb::Device;
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::eligibility::{Answer, Assessment, DeviceFacts, PreflightFacts, Root, Scope};
use heaptap_capture::session::{
    self, BootId, CaptureError, RawTrace, SessionHeader, SnapshotMethod,
};
use heaptap_export::pprof::{PprofOptions, SampleNames};
use heaptap_results::manifest::{self, Manifest};

/// Stored in the journal as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    pub device: manifest::Device,
    /// Targets, with the results of the check.
    pub targets: Vec<manifest::Target>,
    /// Steps before the recording.
    pub steps: Vec<manifest::Step>,
    /// SHA-256 of the config that was sent, hex.
    pub config_sha256: String,
    /// Duration after which the recording ends by itself, in ms.
    pub duration_ms: Option<u64>,
    /// Time within which a trigger of the config ends the recording, in ms.
    #[serde(default)]
    pub trigger_timeout_ms: Option<u64>,
    /// Size at which the recording ends by itself, in bytes.
    pub size_limit: Option<u64>,
    /// SELinux was relaxed for it.
    pub selinux_relaxed: bool,
    /// True if the shell was root (`adb root`).
    pub shell_is_root: bool,
    /// Facts about the targets, to explain empty ones.
    pub known: PreflightFacts,
    /// Heaps that were chosen.
    pub heaps: Vec<String>,
    /// Processes that already ran were not to be recorded.
    #[serde(default)]
    pub no_running: bool,
    /// Perfetto's own names for the sample types.
    pub perfetto_names: bool,
    /// ` [jit]` and the like behind names.
    pub annotations: bool,
    /// Sources of symbols.
    #[serde(default)]
    pub names: NameOptions,
    /// The recording gets no page.
    #[serde(default)]
    pub no_report: bool,
    /// Facts about a Java heap dump; `None` for a native heap.
    #[serde(default)]
    pub java: Option<JavaPlan>,
    /// Companion data to record.
    #[serde(default, rename = "with")]
    pub companions: CompanionOptions,
}

/// Facts about a Java heap dump for finishing it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaPlan {
    /// True if the session ends by itself once its dumps are complete.
    pub ends_when_done: bool,
    /// True if the file is checked for the end of its dumps, because the device does not detect it.
    pub watch: bool,
    /// Time limit of waiting for an OutOfMemoryError, in seconds.
    pub oom_wait_s: Option<u64>,
    /// Size of the buffer between the app and the file, bytes.
    pub buffer_bytes: u64,
    /// True if dominator profiles are also written.
    pub dominators: bool,
}

impl Plan {
    /// Returns the plan of a recording on a device without further facts.
    pub fn on(facts: &DeviceFacts) -> Plan {
        Plan {
            device: manifest_device(facts),
            targets: Vec::new(),
            steps: Vec::new(),
            config_sha256: String::new(),
            duration_ms: None,
            trigger_timeout_ms: None,
            size_limit: None,
            selinux_relaxed: false,
            shell_is_root: facts.root == Some(Root::Shell),
            known: PreflightFacts::default(),
            heaps: Vec::new(),
            no_running: false,
            perfetto_names: false,
            annotations: true,
            names: NameOptions::default(),
            no_report: false,
            java: None,
            companions: CompanionOptions::default(),
        }
    }

    /// Reads the plan from a journal.
    ///
    /// # Errors
    /// Returns an error if it is of another version of heaptap.
    pub fn read(value: &serde_json::Value) -> Result<Plan, CaptureError> {
        serde_json::from_value(value.clone()).map_err(|source| {
            let source = std::io::Error::new(std::io::ErrorKind::InvalidData, source);
            CaptureError::state(Path::new("the plan of the session"), source)
        })
    }

    /// Removes the pids of processes that `--launch` stops: their replacements have the same name,
    /// but another pid.
    pub fn without_pids(&mut self, stopped: &BTreeSet<u32>) {
        for target in &mut self.targets {
            target.pid = target.pid.filter(|pid| !stopped.contains(pid));
        }
        for target in &mut self.known.targets {
            let ended = target
                .processes
                .extract_if(.., |p| stopped.contains(&p.pid));
            target.findings.extend(ended.flat_map(|p| p.findings));
        }
    }

    /// Returns the profile options.
    pub fn pprof(&self) -> PprofOptions {
        PprofOptions {
            sample_names: if self.perfetto_names {
                SampleNames::Perfetto
            } else {
                SampleNames::default()
            },
            annotations: self.annotations,
        }
    }

    /// Returns the command that restores SELinux before the guard on the device does.
    pub fn selinux_command(&self) -> String {
        let su = if self.shell_is_root { "" } else { "su root " };
        let serial = quoted(&self.device.serial);
        format!("adb -s {serial} shell {su}setenforce 1")
    }

    /// Returns the JSON form for the journal.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain values become JSON")
    }
}

/// Returns the boot ID of a recording, reading it from the device if the facts do not have it.
///
/// # Errors
/// Returns an error if the device does not answer.
pub async fn boot_id(device: &Device, facts: &DeviceFacts) -> Result<BootId, CaptureError> {
    Ok(match &facts.boot_id {
        Some(boot_id) => BootId(boot_id.clone()),
        None => session::moment(device).await?.boot_id,
    })
}

pub fn manifest_device(facts: &DeviceFacts) -> manifest::Device {
    manifest::Device {
        serial: facts.serial.clone(),
        model: facts.model.clone(),
        build_fingerprint: facts.fingerprint.clone(),
        android: facts.release.clone(),
        sdk: facts.sdk,
        build_type: facts.build_type.as_ref().map(ToString::to_string),
        abi: facts.abis.first().cloned(),
    }
}

/// Returns the targets for the manifest: one entry per process, or one for a target that is not
/// running.
pub fn manifest_targets(assessment: &Assessment, scope: Scope) -> Vec<manifest::Target> {
    let reasons = |findings: &[heaptap_capture::eligibility::Finding]| {
        findings
            .iter()
            .filter(|f| f.scope == scope || f.scope == Scope::Both)
            .map(|f| f.what.clone())
            .collect()
    };
    let answer = |native, java| match scope {
        Scope::Java => java,
        _ => native,
    };
    let mut targets = Vec::new();
    for target in &assessment.targets {
        for report in &target.processes {
            targets.push(manifest::Target {
                name: report.process.name.clone(),
                pid: Some(report.process.pid),
                eligibility: Some(manifest::Eligibility {
                    verdict: verdict(answer(report.native, report.java)).to_owned(),
                    reasons: reasons(&report.findings),
                }),
                from_startup: None,
            });
        }
        if target.processes.is_empty() {
            targets.push(manifest::Target {
                name: target.target.clone(),
                pid: None,
                eligibility: Some(manifest::Eligibility {
                    verdict: verdict(answer(target.native, target.java)).to_owned(),
                    reasons: reasons(&target.findings),
                }),
                from_startup: None,
            });
        }
    }
    targets
}

fn verdict(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::OnlyFromStartup | Answer::OnceRunning => "only-from-startup",
        Answer::Unknown => "unknown",
        Answer::No => "no",
    }
}

/// Returns a step at a given time.
pub fn step_at((name, at): (&str, OffsetDateTime)) -> manifest::Step {
    manifest::Step {
        step: name.to_owned(),
        at,
    }
}

/// Returns a step at the current time.
pub fn step(name: &str) -> manifest::Step {
    step_at((name, OffsetDateTime::now_utc()))
}

/// Returns the manifest of a session, without its results.
pub(super) fn describe(header: &SessionHeader, plan: &Plan, trace: Option<&RawTrace>) -> Manifest {
    Manifest {
        session: Some(manifest::Session {
            id: header.id.to_string(),
            remote_path: header.remote_path.clone(),
            boot_id: Some(header.boot_id.0.clone()),
            snapshots_by: match header.snapshots {
                SnapshotMethod::Signal { .. } => Some("signal".to_owned()),
                SnapshotMethod::Continuous { .. } => Some("continuous".to_owned()),
                SnapshotMethod::Impossible => None,
            },
        }),
        device: Some(plan.device.clone()),
        targets: plan.targets.clone(),
        // A session of another host is known without its config; the trace contains it.
        config: (!header.config.is_empty()).then(|| manifest::Config {
            text: header.config.clone(),
            sha256: plan.config_sha256.clone(),
        }),
        trace: trace.map(|trace| {
            manifest::TraceFile::raw(trace.contents.size, trace.contents.sha256.clone())
        }),
        ..Manifest::default()
    }
}
