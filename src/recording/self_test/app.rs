//! Choice of the app to try: the named one, the one in front, or another running one that can be
//! profiled. Never starts or restarts an app.

use std::collections::BTreeSet;

use super::context::{Bench, Ended, TryOptions};
use super::document::TriedApp;
use heaptap_adb::Device;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::config::Targets;
use heaptap_capture::eligibility::{
    self, Answer, AppType, AssessOptions, Assessment, CACHED_ADJ, DeviceFacts, Finding, FindingId,
    ListOptions, ProcessReport, Scope, Severity, Startup,
};
use heaptap_capture::error::CaptureError;
use heaptap_capture::provoke;

/// Candidates that are assessed; a device has few apps that can be profiled.
const MAX_CANDIDATES: usize = 24;

/// The app to try.
pub(super) struct App {
    pub(super) pid: u32,
    process: String,
    package: Option<String>,
    chosen: Chosen,
    answers: [Answer; 3],
    has_art: bool,
    kind: Option<AppType>,
    /// Running processes with the typed name.
    matching: usize,
    /// Of its name.
    assessment: Assessment,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Chosen {
    Named,
    InFront,
    Running,
}

impl App {
    /// Returns the targets of the steps: this process, and no other.
    pub(super) fn targets(&self) -> Targets {
        Targets {
            pids: vec![self.pid],
            ..Targets::default()
        }
    }

    pub(super) fn name(&self) -> &str {
        &self.process
    }

    /// Returns whether it has a Java heap.
    pub(super) fn has_art(&self) -> bool {
        self.has_art
    }

    /// Returns an error if its native heap cannot be profiled.
    pub(super) fn check_native(&self) -> Result<(), Ended> {
        self.check_traced(0, Scope::Native)
    }

    /// Returns an error if its heap graph cannot be dumped.
    pub(super) fn check_java(&self) -> Result<(), Ended> {
        self.check_traced(1, Scope::Java)
    }

    /// Returns an error if `am dumpheap` refuses it.
    pub(super) fn check_hprof(&self) -> Result<(), Ended> {
        match self.refused(2, self.assessment.heap_file_refusal()) {
            Some(failure) => Err(Ended::Impossible(failure.into())),
            None => Ok(()),
        }
    }

    fn check_traced(&self, answer: usize, scope: Scope) -> Result<(), Ended> {
        match self.refused(answer, self.assessment.refusal(scope)) {
            Some(failure) if can_be_fixed(&self.assessment.device) => Err(failure.into()),
            Some(failure) => Err(Ended::Impossible(failure.into())),
            None => Ok(()),
        }
    }

    fn refused(&self, answer: usize, refusal: Option<Failure>) -> Option<Failure> {
        match (self.answers[answer], refusal) {
            (Answer::No, Some(refusal)) => Some(refusal),
            (Answer::No, None) => Some(Failure::new(
                ErrorClass::NotEligible,
                "not-eligible",
                format!("{} cannot be profiled", self.process),
            )),
            _ => None,
        }
    }

    /// Returns why it is of no use: neither heap can be recorded.
    pub(super) fn refusal(&self) -> Option<Failure> {
        match self.answers {
            [Answer::No, Answer::No, Answer::No] => {
                self.refused(0, self.assessment.refusal(Scope::Native))
            }
            _ => None,
        }
    }

    pub(super) fn words(&self) -> String {
        let kind = match self.kind {
            Some(AppType::Debuggable) => ", debuggable",
            Some(AppType::Profileable) => ", profileable",
            _ => "",
        };
        let why = match self.chosen {
            Chosen::Named if self.matching > 1 => {
                &format!(", one of {} matching processes", self.matching)
            }
            Chosen::Named => "",
            Chosen::InFront => ", in front",
            Chosen::Running => ", running (no app in front can be profiled)",
        };
        format!("{} ({}){kind}{why}", self.process, self.pid)
    }

    pub(super) fn tried(&self) -> TriedApp {
        let [native, java, hprof] = TriedApp::answers(self.answers);
        let chosen = match self.chosen {
            Chosen::Named => "named",
            Chosen::InFront => "in-front",
            Chosen::Running => "running",
        };
        TriedApp {
            pid: self.pid,
            process: self.process.clone(),
            package: self.package.clone(),
            chosen: chosen.to_owned(),
            native,
            java,
            hprof,
        }
    }
}

impl Bench<'_> {
    /// Returns the app, or the end of a step that needs one.
    pub(super) fn needs<'b>(&self, app: Option<&'b App>) -> Result<&'b App, Ended> {
        app.ok_or_else(|| {
            let failure = Failure::new(
                ErrorClass::NotEligible,
                "no-app",
                "it needs an app, and there is none to try",
            );
            Ended::NotTried(failure.into())
        })
    }
}

/// Chooses the app.
///
/// # Errors
/// Returns an error if the named app is not running, no running app can be profiled, or the device
/// does not answer.
pub(super) async fn choose(
    device: &Device,
    facts: &DeviceFacts,
    options: &TryOptions,
) -> Result<App, Failure> {
    if !options.targets.is_empty() {
        let assessment = assess(device, facts, &options.targets, options).await?;
        let best = best(&assessment, None);
        return match best {
            Some(report) => {
                let report = report.clone();
                let all = assessment.targets.iter().flat_map(|t| &t.processes);
                let pids: BTreeSet<u32> = all.map(|report| report.process.pid).collect();
                let mut app = one(device, facts, options, report, Chosen::Named).await?;
                app.matching = pids.len();
                Ok(app)
            }
            None => Err(not_running(&assessment)),
        };
    }
    // Without it, there is no app in front; the choice is among the others.
    let front = provoke::foreground(device).await.ok().flatten();
    let front = front.and_then(|name| Some(name.split('/').next()?.to_owned()));
    let list = ListOptions {
        user: options.user,
        ..ListOptions::default()
    };
    let apps = eligibility::list_apps(device, facts, &list).await?;
    // A tracing service that is off refuses all of them, and the other steps need an app, too.
    let is_off = can_be_fixed(&eligibility::decide_device(facts));
    let can = |app: &&eligibility::InstalledApp| app.native == Answer::Yes || is_off;
    let running = apps.iter().filter(can).flat_map(|app| &app.processes);
    let mut names: Vec<String> = front.iter().cloned().collect();
    names.extend(running.map(|process| process.name.clone()));
    let mut seen = BTreeSet::new();
    names.retain(|name| seen.insert(name.clone()));
    names.truncate(MAX_CANDIDATES);
    if names.is_empty() {
        return Err(nothing_runs());
    }
    let targets = Targets {
        names,
        ..Targets::default()
    };
    let assessment = assess(device, facts, &targets, options).await?;
    let found = best(&assessment, front.as_deref());
    let is_of_use = |r: &&ProcessReport| r.native != Answer::No || r.hprof != Answer::No;
    let found = found.filter(is_of_use);
    let report = found.ok_or_else(nothing_runs)?.clone();
    let chosen = match is_of(&report, front.as_deref()) {
        true => Chosen::InFront,
        false => Chosen::Running,
    };
    one(device, facts, options, report, chosen).await
}

async fn assess(
    device: &Device,
    facts: &DeviceFacts,
    targets: &Targets,
    options: &TryOptions,
) -> Result<Assessment, CaptureError> {
    let how = AssessOptions {
        user: options.user,
        startup: Startup::Off,
    };
    eligibility::assess(device, facts, targets, &how).await
}

/// Returns the app of one process, with an assessment of its name alone.
async fn one(
    device: &Device,
    facts: &DeviceFacts,
    options: &TryOptions,
    report: ProcessReport,
    chosen: Chosen,
) -> Result<App, Failure> {
    let name = Targets {
        names: vec![report.process.name.clone()],
        ..Targets::default()
    };
    let assessment = assess(device, facts, &name, options).await?;
    let packages = assessment
        .targets
        .iter()
        .flat_map(|target| &target.packages);
    let kind = packages
        .clone()
        .find(|package| Some(&package.name) == report.package.as_ref())
        .and_then(|package| package.app_type);
    Ok(App {
        has_art: report.process.has_art(),
        pid: report.process.pid,
        process: report.process.name,
        package: report.package,
        chosen,
        answers: [report.native, report.java, report.hprof],
        kind,
        matching: 1,
        assessment,
    })
}

/// Returns whether the device refuses every recording for a reason that does not last: neither its
/// release nor its processor.
fn can_be_fixed(findings: &[Finding]) -> bool {
    findings.iter().any(|finding| {
        let lasts = matches!(finding.id, FindingId::SdkLow | FindingId::Arch);
        finding.severity == Severity::Blocks && finding.scope == Scope::Both && !lasts
    })
}

fn is_of(report: &ProcessReport, front: Option<&str>) -> bool {
    front.is_some_and(|front| report.process.name == front)
}

/// Returns the process with the most capabilities: one that is not frozen, in front, with a native
/// profile, with an HPROF; the main process of its app before its others.
fn best<'a>(assessment: &'a Assessment, front: Option<&str>) -> Option<&'a ProcessReport> {
    let processes = assessment.targets.iter().flat_map(|t| &t.processes);
    processes.min_by_key(|report| {
        let process = &report.process;
        (
            report.native == Answer::No,
            process.frozen == Some(true),
            !is_of(report, front),
            report.native,
            // They do little.
            process.oom_score_adj.is_some_and(|adj| adj >= CACHED_ADJ),
            report.hprof,
            report.package.as_deref() != Some(&process.name),
            process.oom_score_adj.unwrap_or(i32::MAX),
            process.pid,
        )
    })
}

fn not_running(assessment: &Assessment) -> Failure {
    let is_known = assessment.targets.iter().any(|target| target.found);
    match assessment.heap_file_refusal() {
        Some(refusal) if !is_known => refusal,
        _ => {
            let absent = assessment.absent_target();
            Failure::new(ErrorClass::NotEligible, "not-running", absent.to_string())
                .with_help(absent.help)
        }
    }
}

fn nothing_runs() -> Failure {
    Failure::new(
        ErrorClass::NotEligible,
        "no-app",
        "no running app can be profiled",
    )
    .with_help(
        "start a debuggable or profileable app, then run the command again; `heaptap apps` lists \
         installed apps, and `heaptap check -n NAME` explains why one cannot be profiled",
    )
}
