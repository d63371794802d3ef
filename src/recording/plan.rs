//! What a recording's journal keeps for whoever finishes it: facts for the manifest that
//! cannot be asked again, and how the results are to be written.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;

use super::companion_options::CompanionOptions;
use crate::device::Device;
use crate::eligibility::{Answer, Assessment, BuildType, DeviceFacts, PreflightFacts, Root, Scope};
use crate::export::pprof::{PprofOptions, SampleNames};
use crate::naming::names::NameOptions;
use crate::results::manifest;
use crate::session::{self, BootId, SessionError};

/// Kept in the journal as JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Plan {
    /// The phone.
    pub device: manifest::Device,
    /// What was to be recorded, and what the check said of it.
    pub targets: Vec<manifest::Target>,
    /// What happened before the recording.
    pub steps: Vec<manifest::Step>,
    /// SHA-256 of the config that was sent, hex.
    pub config_sha256: String,
    /// The recording ends by itself after this, ms.
    pub duration_ms: Option<u64>,
    /// The recording ends by itself at this size, bytes.
    pub size_limit: Option<u64>,
    /// SELinux was relaxed for it.
    pub selinux_relaxed: bool,
    /// The shell was root by itself (`adb root`).
    pub shell_is_root: bool,
    /// What was known of the targets, for those that turn out empty.
    pub known: PreflightFacts,
    /// Heaps that were chosen.
    pub heaps: Vec<String>,
    /// Perfetto's own names for the sample types.
    pub perfetto_names: bool,
    /// ` [jit]` and the like behind names.
    pub annotations: bool,
    /// Where names come from.
    #[serde(default)]
    pub names: NameOptions,
    /// What is to be known of a dump of Java heaps; `None` where a native heap is recorded.
    #[serde(default)]
    pub java: Option<JavaPlan>,
    /// What is recorded beside the native heap.
    #[serde(default, rename = "with")]
    pub companions: CompanionOptions,
}

/// What finishing has to know of a dump of Java heaps.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JavaPlan {
    /// The session ends by itself once its dumps are complete.
    pub ends_when_done: bool,
    /// The file is watched for the end of its dumps: the phone does not see it.
    pub watch: bool,
    /// It waits for an OutOfMemoryError, for so many seconds.
    pub oom_wait_s: Option<u64>,
    /// Size of the buffer between the app and the file, bytes.
    pub buffer_bytes: u64,
    /// Profiles along dominators are wanted, too.
    pub dominators: bool,
}

impl Plan {
    /// The plan of a recording on a device of which nothing more is known.
    pub fn on(facts: &DeviceFacts) -> Plan {
        Plan {
            device: manifest_device(facts),
            targets: Vec::new(),
            steps: Vec::new(),
            config_sha256: String::new(),
            duration_ms: None,
            size_limit: None,
            selinux_relaxed: false,
            shell_is_root: facts.root == Some(Root::Shell),
            known: PreflightFacts::default(),
            heaps: Vec::new(),
            perfetto_names: false,
            annotations: true,
            names: NameOptions::default(),
            java: None,
            companions: CompanionOptions::default(),
        }
    }

    /// The plan in a journal.
    ///
    /// # Errors
    /// Where it is of another version of heaptap.
    pub fn read(value: &serde_json::Value) -> Result<Plan, SessionError> {
        serde_json::from_value(value.clone()).map_err(|source| SessionError::State {
            path: "the plan of the session".into(),
            source: std::io::Error::new(std::io::ErrorKind::InvalidData, source),
        })
    }

    /// Forgets which processes ran that `--launch` ends: who comes in their place has the
    /// name, and another pid.
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

    /// How profiles are written.
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

    /// As the journal keeps it.
    pub fn to_value(&self) -> serde_json::Value {
        serde_json::to_value(self).expect("plain values become JSON")
    }
}

/// The boot that a recording falls into: asked for where the facts do not have it.
///
/// # Errors
/// Where the device does not answer.
pub async fn boot_id(device: &Device, facts: &DeviceFacts) -> Result<BootId, SessionError> {
    Ok(match &facts.boot_id {
        Some(boot_id) => BootId(boot_id.clone()),
        None => session::moment(device).await?.boot_id,
    })
}

/// The phone, as the manifest describes it.
pub fn manifest_device(facts: &DeviceFacts) -> manifest::Device {
    manifest::Device {
        serial: facts.serial.clone(),
        model: facts.model.clone(),
        build_fingerprint: facts.fingerprint.clone(),
        android: facts.release.clone(),
        sdk: facts.sdk,
        build_type: facts.build_type.as_ref().map(|t| match t {
            BuildType::User => "user".to_owned(),
            BuildType::Userdebug => "userdebug".to_owned(),
            BuildType::Eng => "eng".to_owned(),
            BuildType::Other(other) => other.clone(),
        }),
        abi: facts.abis.first().cloned(),
    }
}

/// The targets, as the manifest describes them: one entry a process, or one for a target
/// that does not run.
pub fn manifest_targets(assessment: &Assessment, scope: Scope) -> Vec<manifest::Target> {
    let reasons = |findings: &[crate::eligibility::Finding]| {
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

/// A step at a time that somebody noted.
pub fn step_at((name, at): (&str, OffsetDateTime)) -> manifest::Step {
    manifest::Step {
        step: name.to_owned(),
        at,
    }
}

/// A step that happens now.
pub fn step(name: &str) -> manifest::Step {
    manifest::Step {
        step: name.to_owned(),
        at: OffsetDateTime::now_utc(),
    }
}
