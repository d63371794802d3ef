//! What is asked of an assessment, and what it says: a report on each target and each of its
//! processes, and what follows from them. Pure.

use std::collections::BTreeSet;

use serde::Serialize;

use super::decide::Answer;
use super::error::EligibilityError;
use super::finding::{Finding, FindingId, Scope, Severity};
use super::packages::Package;
use super::processes::Process;
use crate::config::{CaptureSpec, Targets};

/// What becomes of targets that do not run yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Startup {
    /// They are an error: only running processes are recorded (`--no-startup`).
    Off,
    /// They are recorded once they start, if they are installed.
    #[default]
    Allowed,
    /// They are what is asked for (`--no-running`, `--launch`).
    Asked,
}

/// How to assess.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AssessOptions {
    /// The user or profile; without it every user's processes match.
    pub user: Option<u32>,
    /// What becomes of targets that do not run.
    pub startup: Startup,
}

impl AssessOptions {
    /// What a recording asks for. (`--launch` asks for [`Startup::Asked`] too.)
    pub fn of_spec(spec: &CaptureSpec, user: Option<u32>) -> AssessOptions {
        AssessOptions {
            user,
            startup: match (spec.no_startup, spec.no_running) {
                (true, _) => Startup::Off,
                (_, true) => Startup::Asked,
                _ => Startup::Allowed,
            },
        }
    }
}

/// How a target was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A process name, perhaps with `*`.
    Name,
    /// A process id.
    Pid,
    /// A package: all its processes.
    Package,
}

/// One process of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    /// The process.
    #[serde(flatten)]
    pub process: Process,
    /// Package it belongs to, where that is certain.
    pub package: Option<String>,
    /// Native heap profile.
    pub native: Answer,
    /// Java heap dump.
    pub java: Answer,
    /// Heap file by `am dumpheap`.
    pub hprof: Answer,
    /// Reasons and warnings.
    pub findings: Vec<Finding>,
}

/// What is known of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// As given (safe to show).
    pub target: String,
    /// How it was given.
    pub kind: TargetKind,
    /// Whether a process or an installed package was found for it.
    pub found: bool,
    /// Packages involved.
    pub packages: Vec<Package>,
    /// Running processes.
    pub processes: Vec<ProcessReport>,
    /// Native heap profile: the best answer of its processes.
    pub native: Answer,
    /// Java heap dump, likewise.
    pub java: Answer,
    /// Heap file by `am dumpheap`, likewise.
    pub hprof: Answer,
    /// Findings about the target as a whole.
    pub findings: Vec<Finding>,
}

/// What is known of a phone and the targets on it, before anything is recorded.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// Findings about the phone.
    pub device: Vec<Finding>,
    /// A report per target, in the order given: names, pids, packages.
    pub targets: Vec<TargetReport>,
    /// What the config gets: names without `*`, and pids.
    #[serde(skip)]
    pub resolved: Targets,
}

impl Assessment {
    /// The answer for a target or process of this kind of profile.
    fn answer(scope: Scope, native: Answer, java: Answer) -> Answer {
        match scope {
            Scope::Native => native,
            Scope::Java => java,
            Scope::Both => native.max(java),
        }
    }

    /// Whether every process of every target is eligible: what `check` exits with.
    pub fn all_eligible(&self, scope: Scope) -> bool {
        self.targets.iter().all(|t| {
            let own = Self::answer(scope, t.native, t.java) != Answer::No;
            own && t
                .processes
                .iter()
                .all(|p| Self::answer(scope, p.native, p.java) != Answer::No)
        })
    }

    /// Why a recording makes no sense: the phone cannot, or no target may be profiled.
    /// `None` where at least one may, or might.
    pub fn refusal(&self, scope: Scope) -> Option<EligibilityError> {
        let hopeless = self
            .targets
            .iter()
            .all(|t| Self::answer(scope, t.native, t.java) == Answer::No);
        (hopeless && !self.targets.is_empty()).then(|| self.not_eligible(scope))
    }

    /// The refusal that it amounts to, with the first reason.
    fn not_eligible(&self, scope: Scope) -> EligibilityError {
        let names: Vec<&str> = self.targets.iter().map(|t| t.target.as_str()).collect();
        let findings = self.findings(scope);
        let reason: Option<&Finding> = findings.iter().map(|(_, f)| *f).find(|f| {
            let no_java = scope == Scope::Java && f.id == FindingId::NativeNoJava;
            f.severity == Severity::Blocks || no_java
        });
        EligibilityError::NotEligible {
            targets: names.join(", "),
            why: reason.map_or_else(
                || "nothing of it can be profiled".to_owned(),
                |f| format!("{} ({})", f.what, f.why),
            ),
            fix: reason.and_then(|f| f.fix.clone()),
            missing: self.targets.iter().all(|t| !t.found),
        }
    }

    /// Why a dump of what runs now makes no sense: nothing does. `None` where something may be
    /// dumped.
    pub fn nothing_runs(&self) -> Option<EligibilityError> {
        let none = self.targets.iter().all(|t| t.processes.is_empty());
        (none && !self.targets.is_empty()).then(|| EligibilityError::NotRunning {
            targets: self
                .targets
                .iter()
                .map(|t| t.target.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    /// Why `am dumpheap` would be refused for every target; `None` where it may work for one.
    pub fn heap_file_refusal(&self) -> Option<EligibilityError> {
        if let Some(error) = self.nothing_runs() {
            let missing = self.targets.iter().all(|t| !t.found);
            return Some(match missing {
                true => self.not_eligible(Scope::Java),
                false => error,
            });
        }
        let processes = || self.targets.iter().flat_map(|t| &t.processes);
        if processes().any(|p| p.hprof != Answer::No) {
            return None;
        }
        Some(EligibilityError::NotDebuggable {
            targets: self
                .targets
                .iter()
                .map(|t| t.target.as_str())
                .collect::<Vec<_>>()
                .join(", "),
            native: processes().all(|p| !p.process.has_art()),
            graph: processes().any(|p| p.java == Answer::Yes),
        })
    }

    /// Every finding that is to be shown for this kind of profile, graver ones first, with
    /// the target it belongs to; each text once.
    pub fn findings(&self, scope: Scope) -> Vec<(Option<&str>, &Finding)> {
        let mut all: Vec<(Option<&str>, &Finding)> =
            self.device.iter().map(|f| (None, f)).collect();
        for t in &self.targets {
            let own = t.findings.iter();
            let of_processes = t.processes.iter().flat_map(|p| &p.findings);
            all.extend(
                own.chain(of_processes)
                    .map(|f| (Some(t.target.as_str()), f)),
            );
        }
        all.retain(|(_, f)| scope == Scope::Both || f.scope == Scope::Both || f.scope == scope);
        let mut seen: BTreeSet<(FindingId, &str)> = BTreeSet::new();
        all.retain(|(_, f)| seen.insert((f.id, f.what.as_str())));
        all.sort_by_key(|(_, f)| std::cmp::Reverse(f.severity));
        all
    }
}
