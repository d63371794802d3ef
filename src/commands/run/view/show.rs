//! Results of scenarios in the terminal, and what GitHub Actions reads.

use std::path::Path;

use heaptap_lab::results::{RunState, ScenarioResult, github, markdown, values};
use heaptap_lab::verdict::Verdict;
use serde_json::{Value, json};

use crate::console::table::Table;
use crate::console::{Console, Style};
use crate::lab::{device_pool, files};
use heaptap_base::error::ErrorClass;
use heaptap_base::untrusted::shell::quoted_path;

/// Maximum number of results with details.
const DETAILED: usize = 3;

/// Prints the verdicts, the worst first, and the files.
pub(super) fn show(console: &Console, directory: &Path, results: &[ScenarioResult]) {
    annotate(console, results);
    if console.is_json() {
        let mut document = json!({
            "event": "finished",
            "output": directory.to_string_lossy(),
            "results": results,
        });
        if let Some(error) = error(results) {
            document["error"] = error;
        }
        console.json(&document);
        return;
    }
    for result in results {
        // Of a night, the page has the details.
        match results.len() <= DETAILED {
            true => show_one(console, result),
            false => console.data(headline(result)),
        }
    }
    let interrupted = ErrorClass::Interrupted.exit_code();
    if results.iter().any(|result| result.exit_code == interrupted) {
        let directory = quoted_path(directory);
        console.note(format_args!(
            "to go on, run the same command with `-o {directory} --resume`"
        ));
    }
    console.next(&[
        ("see all runs", quoted_path(directory.join(files::INDEX))),
        (
            "feed a CI system",
            quoted_path(directory.join(files::JUNIT)),
        ),
    ]);
}

/// Returns the error that decides the exit code, as other commands print theirs; `None` if the budgets
/// decide it.
fn error(results: &[ScenarioResult]) -> Option<Value> {
    let class = device_pool::class_of(results).filter(|class| *class != ErrorClass::Budget)?;
    let runs = results.iter().flat_map(|result| &result.runs);
    let mut errors = runs.filter_map(|run| run.error.as_ref());
    let error = errors.find(|error| error.code == class.exit_code())?;
    Some(json!({
        "code": error.code,
        "kind": error.kind,
        "message": error.message,
        "help": error.help,
        "step": error.step,
    }))
}

fn show_one(console: &Console, result: &ScenarioResult) {
    console.in_style(Style::Strong, headline(result));
    if let Some(builds) = values::builds(result) {
        console.data(builds);
    }
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
        let change = values::change(budget).map(|change| format!(": {change}"));
        table.remark(format!("{}{}", budget.what, change.unwrap_or_default()));
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
        let heading = values::excess_heading(budget);
        console.data(format_args!("{}: {heading}:", budget.name));
        let mut parts = Table::new(&["", ""]).of_code();
        for part in &budget.excess {
            parts.row(vec![values::excess_size(budget.unit, part)], &part.what);
        }
        for line in parts.lines(console, console.stdout_width()).iter().skip(1) {
            console.data(line);
        }
    }
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
        (0, _) if failed && done == 0 => "no run was completed".to_owned(),
        (0, _) if failed => "a run failed".to_owned(),
        (0, 0) if all == 0 => "no budgets".to_owned(),
        (0, 0) if all == 1 => "the budget is within its limit".to_owned(),
        (0, _) if all == 1 => "the budget is undecided".to_owned(),
        (_, _) if all == 1 => "the budget is over its limit".to_owned(),
        (0, 0) => format!("all {all} budgets are within their limits"),
        (0, open) => format!("{open} of {all} budgets are undecided"),
        (over, _) => format!("{over} of {all} budgets are over their limits"),
    };
    let runs = heaptap_base::units::counted(done as u64, "run", "runs");
    format!(
        "{}: {verdict} ({runs}, {})",
        result.scenario, result.device.serial
    )
}

/// Returns the path of a file in GitHub's checkout; a step can run in a directory below it.
fn in_repository(file: &str) -> String {
    let place = || {
        let root = std::fs::canonicalize(std::env::var_os("GITHUB_WORKSPACE")?).ok()?;
        let path = std::fs::canonicalize(file).ok()?;
        let below = path.strip_prefix(root).ok()?;
        let names: Option<Vec<&str>> = below.iter().map(|name| name.to_str()).collect();
        Some(names?.join("/"))
    };
    place().unwrap_or_else(|| file.to_owned())
}

/// Writes what GitHub Actions reads, if it is what runs this.
fn annotate(console: &Console, all: &[ScenarioResult]) {
    let is_github = std::env::var("GITHUB_ACTIONS").is_ok_and(|value| value == "true");
    if !is_github {
        return;
    }
    if !console.is_json() {
        console.raw(github::annotations(all, &in_repository).as_bytes());
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
