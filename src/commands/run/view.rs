//! `heaptap run`: progress of a scenario, its verdicts, and where its results are.

use std::path::Path;
use std::sync::Arc;

use heaptap_lab::results::{RunState, ScenarioResult, github, markdown, values};
use heaptap_lab::scenario::{Scenario, first_scenario};
use heaptap_lab::verdict::{self, MAX_PLANNED_RUNS, Plan, Verdict};
use serde_json::json;
use tokio::sync::mpsc;

use super::args::Args;
use super::prepare;
use crate::console::signals::watch_signals;
use crate::console::table::Table;
use crate::console::{Console, Style};
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::lab::events::{LabEvent, LabEvents};
use crate::lab::files;
use crate::lab::scenario_run::{self, LabRequest, Tools};
use crate::naming::r8_mappings::R8Mappings;
use crate::provoke::{Cancel, Journals, Target};
use crate::recording::events::RecordEvent;
use crate::session::{SessionEvent, Store};
use crate::untrusted::shell::quoted_path;

/// Runs the command.
///
/// # Errors
/// Returns an error if the scenario is refused, or if no run could begin.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if args.schema {
        console.raw(format!("{:#}\n", prepare::schema()).as_bytes());
        return Ok(Outcome::Done);
    }
    if let Some(package) = &args.init {
        // A name that is refused later is refused now.
        Target::parse(package, None)?;
        console.raw(first_scenario(package).as_bytes());
        return Ok(Outcome::Done);
    }
    let Some(path) = args.scenario.as_deref() else {
        return Err(Failure::new(
            ErrorClass::Usage,
            "usage",
            "SCENARIO is missing",
        ));
    };
    let scenario = prepare::read(path)?;
    if let Some(folder) = &args.plan {
        return plan(console, &scenario, folder);
    }
    if args.dry_run {
        return dry_run(ctx, &scenario).await;
    }
    let names = args.names.options(console)?;
    R8Mappings::check(&names)?;
    let resume = args.resume;
    let baseline = args.baseline;
    let kept = prepare::baseline_path(path, baseline.clone());
    let user = ctx.globals.user;
    let named = baseline.filter(|path| !args.update_baseline || path.exists());
    let request = prepare::request(scenario, path, args.output, named, resume, names, user)?;
    let result = perform(ctx, &request).await?;
    // The figures of a scenario that failed are not those of a build.
    if args.update_baseline && is_judged(&result) {
        let mut baseline = request.baseline.clone();
        baseline.update(&result);
        files::write_text(&kept, &baseline.text())?;
        console.say(format_args!("wrote {}", kept.display()));
    }
    show(console, &request, &result);
    Ok(outcome(&result))
}

/// Runs the scenario, and forwards the first signal; a second one leaves the recording on the
/// device.
async fn perform(ctx: &Context, request: &LabRequest) -> Result<ScenarioResult, Failure> {
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let journals = Journals::beside(&store)?;
    files::claim(&request.folder, request.resume)?;
    let device = tokio::select! {
        device = ctx.device() => device?,
        _ = signals.recv() => return Err(crate::session::SessionError::Interrupted.into()),
    };
    let (canceller, cancel) = Cancel::new();
    let (happened, mut events) = mpsc::unbounded_channel();
    let tell: LabEvents = Arc::new(move |event| {
        // The receiver lives as long as the work.
        let _ = happened.send(event);
    });
    let mut shown = Shown::new(&ctx.console);
    let tools = Tools {
        device,
        store: &store,
        journals: &journals,
        cancel: &cancel,
        tell: &tell,
    };
    let mut work = std::pin::pin!(scenario_run::run(&tools, request));
    let mut asked = false;
    let result = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => shown.event(&event),
            result = &mut work => break result,
            _ = signals.recv() => {
                if std::mem::replace(&mut asked, true) {
                    break Err(left(&request.folder));
                }
                canceller.cancel();
                ctx.console.say("stopping: the recording is fetched, and the device restored …");
            }
        }
    };
    while let Ok(event) = events.try_recv() {
        shown.event(&event);
    }
    shown.end();
    result
}

/// Returns the failure after a second signal; the recording stays on the device.
fn left(folder: &Path) -> Failure {
    let message = "interrupted before the recording was fetched";
    Failure::new(ErrorClass::Interrupted, "interrupted", message).with_help(format!(
        "run the same command with `-o {} --resume` to fetch it and go on",
        quoted_path(folder)
    ))
}

/// Returns whether the runs ended, so that only the budgets decide the exit code.
fn is_judged(result: &ScenarioResult) -> bool {
    let verdicts = [ErrorClass::Budget, ErrorClass::Inconclusive];
    let mut codes = verdicts.map(ErrorClass::exit_code).into_iter();
    result.exit_code == 0 || codes.any(|code| code == result.exit_code)
}

fn outcome(result: &ScenarioResult) -> Outcome {
    let classes = ErrorClass::BY_PRECEDENCE.into_iter();
    let class = classes
        .into_iter()
        .find(|class| class.exit_code() == result.exit_code);
    class.map_or(Outcome::Done, Outcome::Ended)
}

/// Shows the events of a scenario: a line for each run, the step in the status line.
struct Shown<'a> {
    console: &'a Console,
    status: indicatif::ProgressBar,
    at: String,
}

impl<'a> Shown<'a> {
    fn new(console: &'a Console) -> Shown<'a> {
        Shown {
            status: console.status(),
            console,
            at: String::new(),
        }
    }

    fn event(&mut self, event: &LabEvent) {
        self.console.event(event);
        match event {
            LabEvent::Run { run, at_most } => {
                let text = format!("run {run} of at most {at_most}");
                self.console.set_status(&self.status, &text);
                self.at = text;
            }
            LabEvent::Step { step, what, .. } => {
                let at = &self.at;
                self.console
                    .set_status(&self.status, format_args!("{at}: {step}: {what}"));
            }
            LabEvent::StepRetry { step, why, .. } => {
                self.console.warn(format_args!("{step} is repeated: {why}"));
            }
            LabEvent::Warning { text }
            | LabEvent::Recording(RecordEvent::Session(SessionEvent::Warning { text })) => {
                self.console.warn(text);
            }
            LabEvent::Recording(_) => {}
            LabEvent::RunEnded {
                run,
                state,
                seconds,
                error,
            } => {
                let word = match state {
                    RunState::Done => "done",
                    RunState::Void => "void",
                    RunState::Failed => "failed",
                };
                self.console
                    .say(format_args!("run {run}: {word} after {seconds:.0} s"));
                if let Some(error) = error {
                    let step = error.step.as_deref();
                    let at = step.map(|step| format!("{step}: ")).unwrap_or_default();
                    let text = format!("{at}{}", error.message);
                    self.console.warn_with_help(text, error.help.as_deref());
                }
            }
            LabEvent::Budgets {
                within,
                over,
                undecided,
                ..
            } => self.console.say(format_args!(
                "  budgets: {within} within, {over} over, {undecided} undecided"
            )),
        }
    }

    fn end(&self) {
        self.status.finish_and_clear();
    }
}

/// Prints the verdicts, the worst first, and the files.
fn show(console: &Console, request: &LabRequest, result: &ScenarioResult) {
    annotate(console, result);
    if console.is_json() {
        console.json(&json!({ "output": request.folder, "result": result }));
        return;
    }
    console.data(console.styled(Style::Strong, headline(result)));
    let mut table = Table::new(&["VERDICT", "VALUE", "LIMIT", "BUDGET"]);
    for budget in &result.budgets {
        let (value, limit) = match &budget.judgement {
            Some(judged) => (
                values::estimate(budget.unit, judged),
                values::value(budget.unit, judged.limit),
            ),
            None => (String::new(), String::new()),
        };
        table.row(
            vec![values::verdict(budget).to_owned(), value, limit],
            &budget.name,
        );
        table.remark(&budget.what);
    }
    if !result.budgets.is_empty() {
        table.show(console);
    }
    for budget in &result.budgets {
        let why = budget
            .judgement
            .as_ref()
            .and_then(|judged| judged.why.as_ref());
        if let Some(why) = budget.missing.as_ref().or(why) {
            console.data(format_args!("{}: {why}", budget.name));
        }
        if budget.excess.is_empty() {
            continue;
        }
        console.data(format_args!("largest parts of {}:", budget.name));
        let mut parts = Table::new(&["", ""]).of_code();
        for part in &budget.excess {
            parts.row(vec![values::value(budget.unit, part.value)], &part.what);
        }
        for line in parts.lines(console, console.stdout_width()).iter().skip(1) {
            console.data(line);
        }
    }
    let folder = &request.folder;
    console.next(&[
        ("see all runs", quoted_path(folder.join(files::INDEX))),
        ("feed a CI system", quoted_path(folder.join(files::JUNIT))),
    ]);
}

fn headline(result: &ScenarioResult) -> String {
    let count = |wanted: Option<Verdict>| {
        let verdicts = result
            .budgets
            .iter()
            .map(|b| b.judgement.as_ref().map(|j| j.verdict));
        verdicts.filter(|verdict| *verdict == wanted).count()
    };
    let over = count(Some(Verdict::Over));
    let open = count(Some(Verdict::Undecided)) + count(None);
    let all = result.budgets.len();
    let done = result
        .runs
        .iter()
        .filter(|run| run.state == RunState::Done)
        .count();
    let failed = result.runs.iter().any(|run| run.state == RunState::Failed);
    let verdict = match (over, open) {
        (0, _) if failed => "a run failed".to_owned(),
        (0, 0) if all == 0 => "no budgets".to_owned(),
        (0, 0) => format!("all {all} budgets are within their limits"),
        (0, open) => format!("{open} of {all} budgets are undecided"),
        (over, _) => format!("{over} of {all} budgets are over their limits"),
    };
    let runs = crate::units::counted(done as u64, "run", "runs");
    format!(
        "{}: {verdict} ({runs}, {})",
        result.scenario, result.device.serial
    )
}

/// Writes what GitHub Actions reads, if it is what runs this.
fn annotate(console: &Console, result: &ScenarioResult) {
    let is_github = std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true");
    if !is_github {
        return;
    }
    let all = std::slice::from_ref(result);
    if !console.is_json() {
        console.raw(github::annotations(all).as_bytes());
    }
    if let Some(summary) = std::env::var_os("GITHUB_STEP_SUMMARY") {
        use std::io::Write as _;
        let file = std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(&summary);
        let written = file.and_then(|mut file| file.write_all(markdown::summary(all).as_bytes()));
        if let Err(error) = written {
            console.warn(format_args!("cannot write the step summary: {error}"));
        }
    }
}

/// Prints how many runs each budget needs.
fn plan(console: &Console, scenario: &Scenario, folder: &Path) -> Result<Outcome, Failure> {
    let result = files::read(folder)?;
    let mut rows = Vec::new();
    for budget in &scenario.budgets {
        let found = result
            .budgets
            .iter()
            .find(|known| known.name == budget.name);
        let judged = found.and_then(|found| found.judgement.as_ref());
        let planned = match (found, judged) {
            (Some(found), Some(judged)) => Ok(verdict::plan(&found.figures, judged.limit)),
            _ => Err(format!(
                "the runs in {} have no figure of it",
                folder.display()
            )),
        };
        rows.push((budget.name.clone(), planned));
    }
    if console.is_json() {
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, planned)| match planned {
                Ok(plan) => json!({ "budget": name, "plan": plan }),
                Err(why) => json!({ "budget": name, "missing": why }),
            })
            .collect();
        console.json(&json!({ "plans": rows }));
        return Ok(Outcome::Done);
    }
    for (name, planned) in rows {
        match planned {
            Ok(plan) => console.data(format_args!("{name}: {}", planned_words(&plan))),
            Err(why) => console.data(format_args!("{name}: {why}")),
        }
    }
    Ok(Outcome::Done)
}

fn planned_words(plan: &Plan) -> String {
    let most = || format!("more than {MAX_PLANNED_RUNS}");
    let Some(needed) = plan.needed else {
        return plan.why.clone().unwrap_or_else(most);
    };
    let end = |end: Option<usize>| end.map_or_else(most, |runs| runs.to_string());
    let runs = crate::units::counted(needed as u64, "run", "runs");
    format!("{runs} ({} to {})", end(plan.low), end(plan.high))
}

async fn dry_run(ctx: &Context, scenario: &Scenario) -> Result<Outcome, Failure> {
    let lines = prepare::commands(ctx.device().await?, scenario).await?;
    if ctx.console.is_json() {
        ctx.console.json(&json!({ "commands": lines }));
        return Ok(Outcome::Done);
    }
    for line in lines {
        ctx.console.laid_out(line);
    }
    Ok(Outcome::Done)
}
