//! Options and result of an assessment: a report on each target and each of its processes,
//! and the conclusions from them. Pure.

use std::collections::BTreeSet;

use serde::Serialize;

use super::absent::AbsentTarget;
use super::decide::Answer;
use super::finding::{Finding, FindingId, Scope, Severity};
use super::packages::Package;
use super::processes::Process;
use crate::config::{CaptureSpec, Targets};
use heaptap_base::error::{ErrorClass, Failure};

/// Treatment of targets that are not running yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Startup {
    /// They are an error: only running processes are recorded (`--no-startup`).
    Off,
    /// They are recorded when they start, if they are installed.
    #[default]
    Allowed,
    /// They are requested explicitly (`--no-running`, `--launch`).
    Asked,
}

/// Options of an assessment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AssessOptions {
    /// The user or profile; without it, processes of every user match.
    pub user: Option<u32>,
    /// Treatment of targets that are not running.
    pub startup: Startup,
}

impl AssessOptions {
    /// Returns the options for a recording. (`--launch` needs [`Startup::Asked`] too.)
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

/// Form in which a target was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum TargetKind {
    /// A process name, which can contain `*`.
    Name,
    /// A process ID.
    Pid,
    /// A package: all its processes.
    Package,
}

/// One process of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProcessReport {
    #[serde(flatten)]
    pub process: Process,
    /// Package it belongs to, if that is certain.
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

/// Assessment of one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TargetReport {
    /// As given, sanitized.
    pub target: String,
    /// Form in which it was given.
    pub kind: TargetKind,
    /// A process or an installed package was found for it.
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

impl TargetReport {
    /// Returns whether the device lists its packages, and the one of this target is not among them.
    pub fn is_not_installed(&self) -> bool {
        let is_reason = |finding: &Finding| finding.id == FindingId::NotInstalled;
        self.findings.iter().any(is_reason)
    }
}

/// Assessment of a device and the targets on it before a recording.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Assessment {
    /// Findings about the device.
    pub device: Vec<Finding>,
    /// One report per target, in the order given: names, PIDs, packages.
    pub targets: Vec<TargetReport>,
    /// Targets for the config: names without `*`, and PIDs.
    #[serde(skip)]
    pub resolved: Targets,
}

impl Assessment {
    /// Returns a question that names what a target without a process might mean; `None` if nothing
    /// has a similar name.
    fn did_you_mean(&self) -> Option<&str> {
        let findings = self.targets.iter().flat_map(|target| &target.findings);
        let mut questions = findings.filter(|finding| finding.asks);
        questions.find_map(|finding| finding.fix.as_deref())
    }

    /// Returns the error for commands that need a running process, if no target has one.
    pub fn absent_target(&self) -> AbsentTarget {
        let is_reason = |finding: &&Finding| {
            finding.severity == Severity::Blocks
                && matches!(finding.id, FindingId::NotInstalled | FindingId::OtherUser)
        };
        let targets = self.targets.iter();
        let mut reasons = targets.map(|t| t.findings.iter().find(is_reason));
        let first = reasons.next().flatten();
        let known =
            first.filter(|first| reasons.all(|it| it.is_some_and(|it| it.what == first.what)));
        known.map_or_else(
            || AbsentTarget::not_running(self.names(), self.did_you_mean()),
            AbsentTarget::of_finding,
        )
    }

    /// Returns the targets as typed. A name can be that of a process and of a package.
    fn names(&self) -> String {
        let mut names: Vec<&str> = self.targets.iter().map(|t| t.target.as_str()).collect();
        names.dedup();
        names.join(", ")
    }

    /// Returns whether the answer for this kind of profile is not a no.
    fn can(scope: Scope, native: Answer, java: Answer) -> bool {
        let answer = match scope {
            Scope::Native => native,
            Scope::Java => java,
            Scope::Both => native.max(java),
        };
        answer != Answer::No
    }

    /// Adds a finding that blocks the native heap of every process.
    pub fn refuse_native(&mut self, finding: Finding) {
        self.device.push(finding);
        for target in &mut self.targets {
            target.native = Answer::No;
            for process in &mut target.processes {
                process.native = Answer::No;
            }
        }
    }

    /// Returns whether every process of every target is eligible: this decides the exit code
    /// of `check`.
    pub fn all_eligible(&self, scope: Scope) -> bool {
        let mut processes = self.targets.iter().flat_map(|t| &t.processes);
        self.targets
            .iter()
            .all(|t| Self::can(scope, t.native, t.java))
            && processes.all(|p| Self::can(scope, p.native, p.java))
    }

    /// Returns the reason to refuse a recording: the device or every target is not eligible.
    /// Returns `None` if at least one target is eligible or might be.
    pub fn refusal(&self, scope: Scope) -> Option<Failure> {
        let mut targets = self.targets.iter();
        let has_hope = targets.any(|t| Self::can(scope, t.native, t.java));
        (!has_hope && !self.targets.is_empty()).then(|| self.not_eligible(scope))
    }

    /// Builds the refusal, with the first reason.
    fn not_eligible(&self, scope: Scope) -> Failure {
        let findings = self.findings(scope);
        let reason: Option<&Finding> = findings.iter().map(|(_, f)| *f).find(|f| {
            let no_java = scope == Scope::Java && f.id == FindingId::NativeNoJava;
            f.severity == Severity::Blocks || no_java || f.id == FindingId::NotRunning
        });
        let why = reason.map_or_else(
            || "no process can be profiled".to_owned(),
            |f| format!("{} ({})", f.what, f.why),
        );
        let message = format!("cannot profile {}: {why}", self.names());
        let fix = reason.and_then(|f| f.fix.clone());
        if self.targets.iter().all(|t| !t.found) {
            return Failure {
                help: fix,
                ..Failure::new(ErrorClass::NotEligible, "target-not-found", message)
            };
        }
        let is_native = reason.is_some_and(|f| f.id == FindingId::NativeNoJava);
        Failure::new(ErrorClass::NotEligible, "not-eligible", message).with_help(match fix {
            _ if is_native => "record the native heap with `heaptap record`".to_owned(),
            Some(question) if question.ends_with('?') => {
                format!("{question} Use `--no-check` to record anyway.")
            }
            Some(fix) => format!("{fix}; use `--no-check` to record anyway"),
            None => "use `--no-check` to record anyway".to_owned(),
        })
    }

    /// Returns the reason to refuse a dump of running processes: none is running. Returns `None`
    /// if a target has processes.
    pub fn nothing_runs(&self) -> Option<Failure> {
        let none = self.targets.iter().all(|t| t.processes.is_empty());
        (none && !self.targets.is_empty()).then(|| {
            let mut failure = self.absent_target().failure("not-running");
            failure.message.insert_str(0, "cannot dump the heap: ");
            failure
        })
    }

    /// Returns the refusal of a launch: no target is an app on the device. Needs [`Startup::Off`],
    /// because apps name their processes freely. Returns `None` if the device does not list its
    /// packages.
    pub fn not_installed(&self) -> Option<Failure> {
        let none = self.targets.iter().all(TargetReport::is_not_installed);
        (none && !self.targets.is_empty()).then(|| self.not_eligible(Scope::Both))
    }

    /// Returns the refusal if `am dumpheap` would fail for every target, or `None` if it might
    /// work for one.
    pub fn heap_file_refusal(&self) -> Option<Failure> {
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
        let is_native = processes().all(|p| !p.process.has_art());
        let why = match is_native {
            true => "no Java runtime",
            false => "not debuggable",
        };
        let message = format!("am dumpheap refuses {}: {why}", self.names());
        let failure = Failure::new(ErrorClass::NotEligible, "not-debuggable", message);
        let graph = match processes().any(|p| p.java == Answer::Yes) {
            true => ", or run `heaptap dump` without `--hprof`, for which profileable is enough",
            false => "",
        };
        Some(match is_native {
            true => failure,
            false => failure.with_help(format!(
                "use a debug build of the app (android:debuggable) or a userdebug device{graph}"
            )),
        })
    }

    /// Returns every finding for this kind of profile, the most severe first, with its target;
    /// each text once.
    pub fn findings(&self, scope: Scope) -> Vec<(Option<&str>, &Finding)> {
        let mut all: Vec<(Option<&str>, &Finding)> =
            self.device.iter().map(|f| (None, f)).collect();
        for t in &self.targets {
            let of_processes = t.processes.iter().flat_map(|p| &p.findings);
            let findings = t.findings.iter().chain(of_processes);
            all.extend(findings.map(|f| (Some(t.target.as_str()), f)));
        }
        all.retain(|(_, f)| scope == Scope::Both || f.scope == Scope::Both || f.scope == scope);
        let mut seen: BTreeSet<(FindingId, &str)> = BTreeSet::new();
        all.retain(|(_, f)| seen.insert((f.id, f.what.as_str())));
        all.sort_by_key(|(_, f)| std::cmp::Reverse(f.severity));
        all
    }
}
