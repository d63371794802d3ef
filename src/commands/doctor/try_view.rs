//! `heaptap doctor --try`: shows the steps and their verdicts, and writes `try.json` and `try.txt`.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::mpsc;

use super::args::Args;
use super::run::{Check, Status, diagnose};
use crate::console::Style;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::names::NamesArgs;
use crate::console::signals::watch_signals;
use crate::console::wrap::wrapped;
use crate::recording::advice::names_collect;
use crate::recording::events::RecordEvent;
use crate::recording::self_test::{
    StepEvent, StepId, TriedAdb, TriedStep, TryEvent, TryHandler, TryOptions, TryReport, Verdict,
    try_out,
};
use heaptap_base::directory;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::config::Targets;
use heaptap_capture::provoke::Cancel;
use heaptap_capture::session::{CaptureError, SessionEvent, Store};
use heaptap_results::whole_file::write_named;

/// Names of the files of the report.
const DOCUMENT: &str = "try.json";
const TEXT: &str = "try.txt";
/// Width of the closing lines, also in the file.
const TEXT_COLUMNS: usize = 80;

/// The complete `try.json`.
#[derive(Debug, Serialize, JsonSchema)]
pub struct TryDocument {
    #[serde(flatten)]
    pub report: TryReport,
    /// Findings of `doctor` before the steps.
    pub checks: Vec<Check>,
}

/// Runs `doctor --try`.
///
/// # Errors
/// Returns an error if there is no device, or the results cannot be written.
pub(super) async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let names = NamesArgs::default().options(&ctx.console)?;
    // From here on, a signal ends the current step and puts everything back.
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let device = ctx.device_or_interrupt(&mut signals).await?;
    let output = args.output.as_deref().map_or(Path::new("."), directory::of);
    let selector = ctx.selector();
    let diagnosis = tokio::select! {
        diagnosis = diagnose(ctx.server().await, &selector, output) => diagnosis,
        _ = signals.recv() => return Err(CaptureError::interrupted().into()),
    };
    let options = TryOptions {
        targets: Targets {
            names: args.names,
            ..Targets::default()
        },
        user: ctx.globals.user,
        output: args.output,
        names,
        adb: TriedAdb {
            server: device.server().address(),
            protocol: device.server().version().await.ok(),
        },
    };
    let (happened, mut events) = mpsc::unbounded_channel();
    let on_event: TryHandler = Arc::new(move |event| {
        // The receiver lives as long as the work.
        let _ = happened.send(event);
    });
    let (canceller, cancel) = Cancel::new();
    let bar = ctx.console.status();
    let report = {
        let mut work = Box::pin(try_out(device, &store, &options, &cancel, &on_event));
        let mut current = StepId::App;
        loop {
            tokio::select! {
                biased;
                Some(event) = events.recv() => {
                    ctx.console.event(&event);
                    if let Some(text) = status(&event, &mut current) {
                        ctx.console.set_status(&bar, text);
                    }
                }
                Some(_) = signals.recv() => {
                    canceller.cancel();
                    ctx.console.say("stopping: ending the step, and putting back what was changed …");
                }
                report = &mut work => break report,
            }
        }
    };
    while let Ok(event) = events.try_recv() {
        ctx.console.event(&event);
    }
    bar.finish_and_clear();
    let mut report = report?;
    if let Some(advice) = ctx.gone_phone() {
        without_phone(&mut report, &advice);
    }
    let document = TryDocument {
        report,
        checks: diagnosis.checks,
    };
    finish(ctx, &document)
}

/// Replaces advice to fetch recordings from a phone that ends with this command.
fn without_phone(report: &mut TryReport, advice: &str) {
    for step in &mut report.steps {
        step.sessions.clear();
        if let Some(error) = &mut step.error {
            let count = error.hints.len() + usize::from(error.help.is_some());
            error.hints.retain(|hint| !names_collect(hint));
            error.help.take_if(|help| names_collect(help));
            if count > error.hints.len() + usize::from(error.help.is_some()) {
                error.hints.push(advice.to_owned());
            }
        }
    }
}

/// Returns the status line after an event.
fn status(event: &TryEvent, current: &mut StepId) -> Option<String> {
    match event {
        TryEvent::Step(StepEvent::TryBegins { step }) => {
            *current = *step;
            Some(format!("trying {} …", step.word()))
        }
        TryEvent::Recording(RecordEvent::Session(SessionEvent::Progress(progress))) => {
            let seconds = progress.elapsed.as_secs_f64();
            Some(format!(
                "trying {}: recording for {seconds:.0} s …",
                current.word()
            ))
        }
        _ => None,
    }
}

/// Writes the files and shows the verdicts.
fn finish(ctx: &Context, document: &TryDocument) -> Result<Outcome, Failure> {
    let directory = PathBuf::from(&document.report.output);
    let lines = lines(document);
    let text: String = lines
        .iter()
        .map(|line| format!("{}{}\n", line.lead, line.text))
        .collect();
    let json = serde_json::to_vec_pretty(document).expect("plain data");
    for (name, bytes) in [(DOCUMENT, json.as_slice()), (TEXT, text.as_bytes())] {
        let path = directory.join(name);
        write_named(&path, bytes).map_err(|error| {
            let message = format!("cannot write {}: {error}", path.display());
            Failure::new(ErrorClass::HostWrite, "output-unwritable", message)
                .with_help("free disk space, or use another directory with `-o DIR`")
        })?;
    }
    if ctx.console.is_json() {
        ctx.console.json(document);
    } else {
        for line in &lines {
            let lead = match line.style {
                Some(style) => ctx.console.styled(style, &line.lead).to_string(),
                None => line.lead.clone(),
            };
            ctx.console.hanging(lead, &line.text);
        }
    }
    Ok(Outcome::from(document.report.class()))
}

/// A line of the output.
struct Line {
    style: Option<Style>,
    lead: String,
    text: String,
}

impl Line {
    fn new(style: Option<Style>, lead: impl Into<String>, text: impl Into<String>) -> Line {
        Line {
            style,
            lead: lead.into(),
            text: text.into(),
        }
    }
}

fn lines(document: &TryDocument) -> Vec<Line> {
    let report = &document.report;
    let mut lines = vec![
        Line::new(
            None,
            "heaptap  ",
            format!(
                "{} on {} ({}), adb protocol {}",
                report.heaptap,
                report.host.os,
                report.host.arch,
                report
                    .adb
                    .protocol
                    .map_or_else(|| "unknown".to_owned(), |version| version.to_string()),
            ),
        ),
        Line::new(
            None,
            "device   ",
            format!("{}, {}", report.device.serial, report.device.description),
        ),
    ];
    for check in document
        .checks
        .iter()
        .filter(|check| check.status != Status::Ok)
    {
        let style = match check.status {
            Status::Fail => Style::Error,
            _ => Style::Warn,
        };
        lines.push(Line::new(Some(style), "warning  ", check.what.clone()));
    }
    lines.push(Line::new(
        Some(Style::Dim),
        format!("{:<12}  {:>6}  {:<13}", "verdict", "time", "step"),
        "result",
    ));
    let mut shown = BTreeMap::new();
    for step in &report.steps {
        add_step(&mut lines, step, &mut shown);
    }
    lines.push(Line::new(
        None,
        "results  ",
        quoted_path(Path::new(&report.output)),
    ));
    for (lead, text) in contents(report) {
        let mut lead = lead;
        for part in wrapped(&text, TEXT_COLUMNS - lead.len()) {
            lines.push(Line::new(None, lead, part));
            lead = "         ";
        }
    }
    lines
}

/// Adds a step. `shown` has the reasons and the advice of the steps before it, which are not
/// repeated, with the first step of each.
fn add_step(lines: &mut Vec<Line>, step: &TriedStep, shown: &mut BTreeMap<String, StepId>) {
    let style = match step.verdict {
        Verdict::Works => Style::Good,
        Verdict::Fails => Style::Error,
        Verdict::NotPossible => Style::Dim,
        Verdict::NotTried => Style::Warn,
    };
    let reason = step.error.as_ref().map(|error| {
        let first = *shown.entry(error.message.clone()).or_insert(step.step);
        match first == step.step {
            true => error.message.clone(),
            false => format!("same reason as {}", first.word()),
        }
    });
    let text = step.result.clone().or(reason).unwrap_or_default();
    let time = format!("{:.1} s", step.seconds);
    let lead = format!(
        "{:<12}  {time:>6}  {:<13}",
        step.verdict.words(),
        step.step.word()
    );
    lines.push(Line::new(Some(style), lead, text));
    let error = step.error.iter();
    let helps = error.flat_map(|error| error.help.iter().chain(&error.hints));
    // What is not possible needs no step, and the step of an interrupt is known.
    for help in helps.filter(|_| step.verdict == Verdict::Fails || step.step == StepId::App) {
        if shown.insert(help.clone(), step.step).is_some() {
            continue;
        }
        lines.push(Line::new(
            Some(Style::Help),
            "              help: ",
            help.clone(),
        ));
    }
    let is_named = |session: &&String| {
        let help = step.error.as_ref().and_then(|error| error.help.as_ref());
        help.is_some_and(|help| help.contains(session.as_str()))
    };
    for session in step.sessions.iter().filter(|session| !is_named(session)) {
        let text = format!("its data are on the device; run `heaptap stop {session}`");
        lines.push(Line::new(Some(Style::Help), "              help: ", text));
    }
}

/// Returns what the directory contains, and what to think of before it is published.
fn contents(report: &TryReport) -> Vec<(&'static str, String)> {
    let recordings = report
        .steps
        .iter()
        .filter(|step| !step.files.is_empty())
        .map(|step| match step.step {
            StepId::Hprof => "hprof (a copy without the contents of strings and arrays)",
            other => other.word(),
        });
    let names: Vec<&str> = [DOCUMENT, TEXT].into_iter().chain(recordings).collect();
    let privacy = "Attach the directory to a bug report. Look at it first: serial numbers, paths \
                   of this host, and names of apps, files, classes and functions can be private.";
    vec![
        ("files    ", names.join(", ")),
        ("privacy  ", privacy.to_owned()),
    ]
}
