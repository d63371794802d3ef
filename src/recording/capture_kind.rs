//! Kinds of sessions, native heap or Java heaps, and their differences before perfetto starts:
//! eligibility, adaptation to the Android version, config, and triggers of further dumps.

use std::time::Duration;

use super::companion_options::CompanionOptions;
use super::plan::JavaPlan;
use heaptap_base::error::Failure;
use heaptap_capture::config::{
    CaptureSpec, DeviceLimits, EncodedConfig, JavaSpec, Snapshots, Targets,
};
use heaptap_capture::eligibility::{AssessOptions, Assessment, DeviceFacts, Root, Scope, Startup};
use heaptap_capture::session::{Background, SnapshotMethod};

/// The kind of data to record, with targets as given by the user.
#[derive(Debug, Clone)]
pub enum CaptureKind {
    /// Allocations of a native heap.
    Native(Box<CaptureSpec>),
    /// Objects of Java heaps, with options for the results that only `dump` has.
    Java(JavaSpec, JavaResults),
}

/// Options for writing Java heap dumps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JavaResults {
    /// Along dominators, too.
    pub dominators: bool,
}

/// The same adapted to one device, ready to start.
#[derive(Debug)]
pub(super) struct Fitted {
    pub(super) encoded: EncodedConfig,
    pub(super) notices: Vec<String>,
    pub(super) snapshots: SnapshotMethod,
    /// Names and pids in the config.
    pub(super) targets: Targets,
    /// Duration after which it ends by itself.
    pub(super) duration: Option<Duration>,
    /// Heaps that were chosen.
    pub(super) heaps: Vec<String>,
    /// Processes that already run are not recorded.
    pub(super) no_running: bool,
    pub(super) background: Background,
    /// Facts about a Java dump for finishing it.
    pub(super) java: Option<JavaPlan>,
}

impl CaptureKind {
    /// Returns the targets as given by the user.
    pub fn targets(&self) -> &Targets {
        match self {
            CaptureKind::Native(spec) => &spec.targets,
            CaptureKind::Java(spec, _) => &spec.targets,
        }
    }

    /// Returns the required kind of eligibility.
    pub fn scope(&self) -> Scope {
        match self {
            CaptureKind::Native(_) => Scope::Native,
            CaptureKind::Java(..) => Scope::Java,
        }
    }

    /// Returns whether the device's runtimes themselves track Java allocations.
    pub(super) fn tracks(&self, facts: &DeviceFacts) -> bool {
        match self {
            CaptureKind::Native(spec) => spec.tracks(facts.api()),
            CaptureKind::Java(..) => false,
        }
    }

    /// Adds the companion data that Perfetto itself records to the trace.
    pub(super) fn record_beside(&mut self, companions: CompanionOptions) {
        if let CaptureKind::Native(spec) = self
            && spec.companions.is_empty()
        {
            spec.companions = companions.in_trace();
        }
    }

    /// Returns the options for assessing the targets.
    pub(super) fn assess(&self, user: Option<u32>, launch: bool) -> AssessOptions {
        let mut assess = match self {
            CaptureKind::Native(spec) => AssessOptions::of_spec(spec, user),
            CaptureKind::Java(..) => AssessOptions {
                user,
                startup: Startup::Allowed,
            },
        };
        if launch {
            assess.startup = Startup::Asked;
        }
        assess
    }

    /// Returns why the recording would be empty; `None` if it might not be.
    pub(super) fn refusal(&self, assessment: &Assessment) -> Option<Failure> {
        let refused = assessment.refusal(self.scope());
        refused.or_else(|| match self {
            // Only running processes can be dumped.
            CaptureKind::Java(spec, _) if spec.wait_for_oom.is_none() => assessment.nothing_runs(),
            _ => None,
        })
    }

    /// Adapts the capture to the device of `facts`. `labels`: continuous dumps as a replacement for
    /// snapshots on devices that do not support them.
    pub(super) fn fit(
        &self,
        facts: &DeviceFacts,
        assessment: &Assessment,
        labels: Labels,
    ) -> Result<Fitted, Failure> {
        let surroundings = DeviceLimits {
            free_bytes: facts.free_bytes,
            memory_bytes: facts.memory_bytes,
        };
        match self {
            CaptureKind::Native(spec) => fit_native(spec, facts, assessment, labels, &surroundings),
            CaptureKind::Java(spec, results) => {
                fit_java(spec, *results, facts, assessment, &surroundings)
            }
        }
    }
}

fn fit_native(
    spec: &CaptureSpec,
    facts: &DeviceFacts,
    assessment: &Assessment,
    labels: Labels,
    surroundings: &DeviceLimits,
) -> Result<Fitted, Failure> {
    let (mut spec, notices) = match facts.api() {
        Some(api) => spec.for_sdk(api)?,
        None => (spec.clone(), Vec::new()),
    };
    spec.targets = resolved(assessment);
    let snapshots = match spec.tracks(facts.api()) {
        true => SnapshotMethod::Impossible,
        false => snapshot_way(facts, &mut spec, labels),
    };
    Ok(Fitted {
        encoded: spec.encode(surroundings)?,
        notices,
        snapshots,
        duration: spec.duration,
        // Earlier perfettos cannot wait for their data sources.
        background: if facts.api().is_some_and(|api| api >= 33) {
            Background::Wait
        } else {
            Background::Now
        },
        targets: spec.targets,
        heaps: spec.heaps,
        no_running: spec.no_running,
        java: None,
    })
}

fn fit_java(
    spec: &JavaSpec,
    results: JavaResults,
    facts: &DeviceFacts,
    assessment: &Assessment,
    surroundings: &DeviceLimits,
) -> Result<Fitted, Failure> {
    let (mut spec, notices) = match facts.api() {
        Some(api) => spec.for_sdk(api)?,
        None => (spec.clone(), Vec::new()),
    };
    spec.targets = match spec.wait_for_oom {
        None => resolved(assessment),
        // The app compares its own name with these, regardless of its start time.
        Some(_) => whole_packages(&spec.targets),
    };
    let period_ms = |period: Duration| u64::try_from(period.as_millis()).unwrap_or(u64::MAX);
    Ok(Fitted {
        encoded: spec.encode(surroundings)?,
        notices,
        snapshots: match spec.continuous {
            Some(period) => SnapshotMethod::Continuous {
                period_ms: period_ms(period),
                armed: false,
            },
            None => SnapshotMethod::Impossible,
        },
        duration: spec.duration(),
        heaps: Vec::new(),
        no_running: false,
        // The session might end before all of its sources have started.
        background: Background::Now,
        java: Some(JavaPlan {
            ends_when_done: spec.ends_when_done(),
            watch: !spec.ends_when_done() && spec.continuous.is_none(),
            oom_wait_s: spec.wait_for_oom.map(|wait| wait.as_secs()),
            buffer_bytes: spec.buffer_on(surroundings),
            dominators: results.dominators,
        }),
        targets: spec.targets,
    })
}

fn resolved(assessment: &Assessment) -> Targets {
    Targets {
        packages: Vec::new(),
        ..assessment.resolved.clone()
    }
}

/// Packages as patterns for the names of their processes.
fn whole_packages(targets: &Targets) -> Targets {
    let mut names = targets.names.clone();
    for package in &targets.packages {
        for name in [package.clone(), format!("{package}:*")] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    Targets {
        names,
        ..Targets::default()
    }
}

/// Dumps that are armed for labels.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Labels {
    pub(super) snapshots: Snapshots,
    pub(super) detached: bool,
}

/// Returns the snapshot method. Enables continuous dumps if heapprofd cannot be signalled, unless
/// the user chose a period or disabled them.
fn snapshot_way(facts: &DeviceFacts, spec: &mut CaptureSpec, labels: Labels) -> SnapshotMethod {
    let central = facts.api().is_none_or(|api| api >= 31) || facts.is_user_build() == Some(false);
    match facts.root {
        Some(root) if central => {
            return SnapshotMethod::Signal {
                su: root == Root::Su,
            };
        }
        _ => {}
    }
    let asked = spec.continuous.is_some() || matches!(labels.snapshots, Snapshots::Every(_));
    if spec.continuous.is_none() {
        spec.continuous = labels.snapshots.period(spec, labels.detached);
    }
    match spec.continuous {
        Some(period) => SnapshotMethod::Continuous {
            period_ms: period.as_millis() as u64,
            armed: !asked,
        },
        None => SnapshotMethod::Impossible,
    }
}
