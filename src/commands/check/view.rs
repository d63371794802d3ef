//! `heaptap check`: shows the eligibility of processes, with reasons and remedies.

use super::args::Args;
use crate::commands::shared::eligibility::show_finding;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::{Console, Style};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::units::counted;
use heaptap_capture::eligibility::{
    self, Answer, AssessOptions, DeviceFacts, Finding, Process, ProcessReport, Scope, Startup,
    TargetKind, TargetReport,
};
use heaptap_model::profile::MALLOC_HEAP;
use serde::Serialize;

/// Document of `--json`.
#[derive(Serialize)]
struct CheckReport {
    /// Whether every process of every target is eligible, for the selected kinds of heaps.
    eligible: bool,
    device: DeviceFacts,
    /// Findings about the device.
    findings: Vec<Finding>,
    targets: Vec<TargetReport>,
}

/// Runs the command. Nothing is changed on the device.
///
/// # Errors
/// Returns an error if the device cannot be reached or is lost.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let targets = args.target.target().required()?.targets();
    let (native, java) = (args.heap.of_native(), args.heap.of_java());
    let scope = match (native.is_some(), java.is_some()) {
        (_, false) => Scope::Native,
        (false, true) => Scope::Java,
        (true, true) => Scope::Both,
    };
    let heaps = args.heap.native_names();
    let names_heap = heaps.iter().any(|name| name != MALLOC_HEAP);
    let device = ctx.device().await?;
    let facts = eligibility::facts(device).await?;
    let options = AssessOptions {
        user: ctx.globals.user,
        startup: Startup::Allowed,
    };
    let mut assessment = eligibility::assess(device, &facts, &targets, &options).await?;
    if names_heap && let Some(finding) = eligibility::no_choice_of_heaps(&facts) {
        assessment.refuse_native(finding);
    }
    let mut report = CheckReport {
        eligible: assessment.all_eligible(scope),
        device: facts,
        findings: assessment.device,
        targets: assessment.targets,
    };
    let console = &ctx.console;
    let doubts = args.heap.doubts();
    for doubt in &doubts {
        console.warn(doubt);
    }
    if doubts.is_empty() && names_heap {
        console.say("only a recording shows whether the app has a heap of that name");
    }
    for finding in findings_of(&mut report) {
        finding.fix = finding.fix.take().map(|fix| ctx.globals.with_device(&fix));
    }
    if console.is_json() {
        console.json(&report);
    } else {
        show(console, &report);
    }
    Ok(if report.eligible {
        Outcome::Done
    } else {
        Outcome::Ended(ErrorClass::NotEligible)
    })
}

fn findings_of(report: &mut CheckReport) -> impl Iterator<Item = &mut Finding> {
    let of_targets = report.targets.iter_mut().flat_map(|target| {
        let of_processes = target.processes.iter_mut();
        let of_processes = of_processes.flat_map(|process| &mut process.findings);
        target.findings.iter_mut().chain(of_processes)
    });
    report.findings.iter_mut().chain(of_targets)
}

fn show(console: &Console, report: &CheckReport) {
    let d = &report.device;
    let model = d.model.as_deref().unwrap_or("unknown model");
    console.data(format_args!("{} ({model}), {}", d.serial, d.system()));
    for finding in &report.findings {
        show_finding(console, finding, "  ");
    }
    for target in &report.targets {
        console.data("");
        show_target(console, target);
    }
}

fn show_target(console: &Console, t: &TargetReport) {
    let kind = match t.kind {
        TargetKind::Package => "package ",
        TargetKind::Pid => "pid ",
        TargetKind::Name => "",
    };
    let name = console.styled(Style::Strong, &t.target);
    if t.processes.is_empty() {
        let state = if t.found { "not running" } else { "not found" };
        console.data(format_args!(
            "{kind}{name}: {state}{}",
            answers(console, [t.native, t.java, t.hprof])
        ));
    } else if let ([only], TargetKind::Name) = (t.processes.as_slice(), t.kind) {
        let head = format!("{name} ({})", only.process.pid);
        show_process(console, only, &head, "");
    } else {
        let count = counted(t.processes.len() as u64, "process", "processes");
        console.data(format_args!("{kind}{name}: {count}"));
        for p in &t.processes {
            let head = format!("{} ({})", p.process.name, p.process.pid);
            show_process(console, p, &head, "  ");
        }
    }
    for finding in &t.findings {
        show_finding(console, finding, "  ");
    }
}

fn show_process(console: &Console, p: &ProcessReport, head: &str, indent: &str) {
    let about = about(&p.process);
    console.data(format_args!(
        "{indent}{head}{}{about}",
        answers(console, [p.native, p.java, p.hprof])
    ));
    for finding in &p.findings {
        show_finding(console, finding, &format!("{indent}  "));
    }
}

fn about(p: &Process) -> String {
    let mut words = Vec::new();
    if let Some(uid) = p.uid {
        words.push(format!("uid {uid}"));
    }
    if let Some(bits) = p.bits {
        words.push(format!("{bits}-bit"));
    }
    if words.is_empty() {
        String::new()
    } else {
        format!("  {}", words.join(", "))
    }
}

/// Formats the answers for a native profile, a Java heap dump, and a heap file of `am dumpheap`.
fn answers(console: &Console, [native, java, hprof]: [Answer; 3]) -> String {
    format!(
        "  native: {}  java: {}  hprof: {}",
        answer(console, native),
        answer(console, java),
        answer(console, hprof)
    )
}

/// Formats an answer as a colored word.
fn answer(console: &Console, answer: Answer) -> String {
    let (style, word) = match answer {
        Answer::Yes => (Style::Good, "yes"),
        Answer::OnlyFromStartup => (Style::Good, "only from startup"),
        Answer::OnceRunning => (Style::Good, "once it runs"),
        Answer::Unknown => (Style::Warn, "unknown"),
        Answer::No => (Style::Error, "no"),
    };
    console.styled(style, word).to_string()
}
