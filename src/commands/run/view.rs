//! `heaptap run`: progress of a scenario, its verdicts, and where its results are.

use std::collections::{BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heaptap_lab::baseline::Baseline;
use heaptap_lab::results::{Run, RunState, ScenarioResult, device_id};
use heaptap_lab::scenario::{Limit, Scenario, first_scenario};
use heaptap_lab::verdict::{self, MAX_PLANNED_RUNS, Past, Plan};
use serde_json::json;
use tokio::sync::mpsc;

mod progress;
mod show;

use self::progress::Shown;
use self::show::show;
use super::args::{Args, SchemaOf};
use super::prepare;
use crate::console::Console;
use crate::console::exit::Outcome;
use crate::console::flags::conflicts::conflict;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use crate::lab::device_pool::{self, Night};
use crate::lab::scenario_run::LabRequest;
use crate::lab::{baseline_file, files, recover};
use crate::names::r8_mappings::R8Mappings;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::provoke::{Cancel, Journals, Target};
use heaptap_capture::session::Store;

/// Runs the command.
///
/// # Errors
/// Returns an error if the scenario is refused, or if no run could begin.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    if let Some(document) = args.schema {
        let schema = match document {
            SchemaOf::Scenarios => prepare::schema(),
            SchemaOf::Results => heaptap_lab::results::schema(),
        };
        match console.is_json() {
            true => console.json(&schema),
            false => console.text(&format!("{schema:#}\n")),
        }
        return Ok(Outcome::Done);
    }
    if let Some(package) = &args.init {
        // A name that is refused later is refused now.
        Target::parse(package, None)?;
        let scenario = first_scenario(package);
        match console.is_json() {
            true => console.json(&json!({ "scenario": scenario })),
            false => console.text(&scenario),
        }
        return Ok(Outcome::Done);
    }
    let mut scenarios = Vec::new();
    for path in prepare::shard(&args.scenario, args.shard) {
        let cells = prepare::read(path)?.into_iter();
        scenarios.extend(cells.map(|scenario| (path.clone(), scenario)));
    }
    if scenarios.is_empty() {
        console.note("this part has no scenarios");
        return Ok(Outcome::Done);
    }
    prepare::check_names(&scenarios)?;
    if let Some(directory) = &args.plan {
        return plan(
            console,
            &prepare::of_result(scenarios, directory)?,
            directory,
        );
    }
    if args.dry_run {
        return dry_run(ctx, args.all_devices, &scenarios).await;
    }
    if args.baseline.is_some() && scenarios.len() > 1 {
        return Err(conflict(
            "--baseline is the file of one scenario",
            "leave it out; each scenario then has its own, next to it",
        ));
    }
    if !args.against.is_empty() && scenarios.len() > 1 {
        let message = "--against is the old build of one scenario";
        return Err(conflict(
            message,
            "name one scenario; run the others afterwards",
        ));
    }
    let names = args.names.options(console)?;
    R8Mappings::check(&names)?;
    let update = args.update_baseline;
    let mut shared = prepare::Shared {
        baseline: args.baseline.as_deref(),
        update,
        against: &args.against,
        names,
        user: ctx.globals.user,
        hashes: HashMap::new(),
    };
    let mut requests = Vec::new();
    for (path, scenario) in scenarios {
        requests.push(prepare::request(scenario, &path, &mut shared)?);
    }
    let output = args.output.clone();
    let directory = output.unwrap_or_else(|| prepare::default_directory(&requests));
    // The scenarios of a matrix have the same repeats.
    let undecided: BTreeSet<(&str, String)> = requests.iter().filter_map(never_decides).collect();
    for (file, why) in undecided {
        console.warn(format_args!("{file}: {why}"));
    }
    let results = perform(ctx, &args, &directory, &requests).await?;
    let mut unwritten = None;
    for request in requests.iter().filter(|_| update) {
        let (scenario, file) = (&request.scenario, Path::new(&request.file));
        let path = prepare::baseline_path(scenario, file, args.baseline.as_deref());
        // The verdicts of the night are shown also if a baseline cannot be written.
        if let Err(failure) = update_baseline(console, &path, scenario, &results) {
            console.warn_with_help(&failure.message, failure.help.as_deref());
            unwritten = Some(failure.class);
        }
    }
    show(console, &directory, &results);
    Ok(match device_pool::class_of(&results) {
        Some(ErrorClass::Budget) => Outcome::Ended(ErrorClass::Budget),
        class => Outcome::from_classes(class.into_iter().chain(unwritten)),
    })
}

/// Adds the results of a scenario to its baseline.
fn update_baseline(
    console: &Console,
    path: &Path,
    scenario: &Scenario,
    results: &[ScenarioResult],
) -> Result<(), Failure> {
    // The figures of a scenario that failed are not those of a build.
    let is_own = |r: &&ScenarioResult| r.scenario == scenario.name && is_judged(r);
    let own: Vec<_> = results.iter().filter(is_own).cloned().collect();
    if own.is_empty() {
        return Ok(());
    }
    let grown = baseline_file::update(&Store::of_user()?, path, scenario, own)?;
    console.say(format_args!("wrote {}", path.display()));
    if !grown.is_empty() {
        console.warn(format_args!(
            "{} grew beyond the allowed change, so this night is not in the baseline; to accept \
             it, delete the lines of the budget there and run again",
            grown.join(", ")
        ));
    }
    Ok(())
}

/// Returns the file of a scenario without earlier nights whose runs cannot decide a budget, and why.
fn never_decides(request: &LabRequest) -> Option<(&str, String)> {
    let is_new = request.baseline == Baseline::default();
    let why = super::dry_run::never_decides(&request.scenario).filter(|_| is_new)?;
    Some((&request.file, why))
}

/// Runs the scenarios, and forwards the first signal; a second one leaves the recordings on the
/// devices.
async fn perform(
    ctx: &Context,
    args: &Args,
    directory: &Path,
    requests: &[LabRequest],
) -> Result<Vec<ScenarioResult>, Failure> {
    let mut signals = watch_signals()?;
    let store = Store::of_user()?;
    let journals = Journals::beside(&store)?;
    let _claimed = files::claim(&store, directory, args.resume)?;
    let phones = tokio::select! {
        phones = prepare::phones(ctx, args, directory, requests) => phones?,
        _ = signals.recv() => return Err(heaptap_capture::session::CaptureError::interrupted().into()),
    };
    // One scenario on one device has the directory for itself.
    let mut directories = phones.iter().flat_map(|phone| &phone.requests);
    let is_one = directories.all(|request| request.directory == directory);
    let (canceller, cancel) = Cancel::new();
    let (happened, mut events) = mpsc::unbounded_channel();
    let devices = phones
        .iter()
        .map(|phone| (phone.name.as_str(), phone.requests.len()));
    let mut shown = Shown::new(&ctx.console, &devices.collect::<Vec<_>>());
    let night = Night {
        store: store.clone(),
        journals,
        cancel,
        jobs: args.jobs.get(),
        patience: patience(requests),
        // The receiver lives as long as the work.
        tell: Arc::new(move |event| drop(happened.send(event))),
    };
    let mut work = std::pin::pin!(device_pool::run(&night, phones));
    let mut asked = false;
    let done = loop {
        tokio::select! {
            biased;
            Some(event) = events.recv() => shown.event(&event),
            done = &mut work => break Ok(done),
            _ = signals.recv() => {
                if std::mem::replace(&mut asked, true) {
                    break Err(left(&store, directory));
                }
                canceller.cancel();
                ctx.console.say("stopping: recordings are fetched, and devices restored …");
            }
        }
    };
    while let Ok(event) = events.try_recv() {
        shown.event(&event);
    }
    shown.end();
    let mut done = done?;
    let only = done.last_mut().filter(|_| is_one);
    if let Some(failure) = only.and_then(|one| one.failure.take()) {
        return Err(failure);
    }
    let mut told = BTreeSet::new();
    for one in done.iter().filter(|one| !one.interrupted) {
        let Some(failure) = &one.failure else {
            continue;
        };
        let text = format!("{}: {}", one.result.device.serial, failure.message);
        // It keeps all scenarios from the device.
        if told.insert(text.clone()) {
            ctx.console.warn_with_help(text, failure.help.as_deref());
        }
    }
    let results: Vec<ScenarioResult> = done.into_iter().map(|one| one.result).collect();
    if !is_one {
        files::remove_unfinished(directory);
        files::write_together(directory, &results)?;
    }
    Ok(results)
}

/// Returns the time to wait for a device that another heaptap uses, which can have the same
/// scenarios to run.
fn patience(requests: &[LabRequest]) -> Duration {
    let each = requests.iter().map(|one| {
        let builds = if one.against.is_some() { 2 } else { 1 };
        let runs = one.scenario.repeats.max.saturating_mul(builds);
        let runs = u32::try_from(runs).unwrap_or(u32::MAX);
        one.scenario.timeout.saturating_mul(runs)
    });
    each.fold(Duration::ZERO, Duration::saturating_add)
}

/// Returns the failure after a second signal. Recordings stay on their devices.
fn left(store: &Store, directory: &Path) -> Failure {
    let go_on = format!(
        "run the same command with `-o {} --resume` to fetch all and go on",
        quoted_path(directory)
    );
    let sessions = recover::sessions_of(store, directory).unwrap_or_default();
    let places: Vec<String> = (sessions.iter())
        .map(|state| format!("session {} is on {}", state.header.id, state.header.serial))
        .collect();
    if places.is_empty() {
        let message = "interrupted before the devices were restored";
        return Failure::new(ErrorClass::Interrupted, "interrupted", message).with_help(go_on);
    }
    let message = format!("interrupted; {}", places.join(", "));
    let mut failure = Failure::new(ErrorClass::NotFetched, "not-fetched", message);
    failure.help = Some(go_on);
    failure.hints = (sessions.iter())
        .map(|state| format!("run `heaptap stop {}`", state.header.id))
        .collect();
    failure
}

/// Returns whether all runs ended well, so that only the budgets decide the exit code. A budget can
/// be over although a later run failed.
fn is_judged(result: &ScenarioResult) -> bool {
    let class = ErrorClass::of_exit_code(result.exit_code);
    let is_over = matches!(
        class,
        None | Some(ErrorClass::Budget | ErrorClass::Inconclusive)
    );
    let is_failed = |run: &Run| run.state == RunState::Failed;
    let last = result.runs.last();
    is_over
        && !result.runs.iter().any(is_failed)
        && last.is_some_and(|run| run.state == RunState::Done)
}

/// Prints how many runs each budget needs.
fn plan(console: &Console, scenario: &Scenario, directory: &Path) -> Result<Outcome, Failure> {
    let result = files::read(directory)?;
    let units = match result.runs.iter().any(|run| run.build.is_some()) {
        true => ["pair of runs", "pairs of runs"],
        false => ["run", "runs"],
    };
    let mut rows = Vec::new();
    for budget in &scenario.budgets {
        let found = result
            .budgets
            .iter()
            .find(|known| known.name == budget.name);
        let judged = found.and_then(|found| found.judgement.as_ref());
        let planned = match (found, judged) {
            (Some(found), Some(judged)) => Ok(match budget.limit {
                Limit::Value(_) => verdict::plan(&found.figures, judged.limit),
                Limit::Change(change) if !found.pairs.is_empty() => {
                    let pairs = verdict::plan_pairs(&found.pairs, change);
                    pairs.unwrap_or_else(|| verdict::plan(&found.figures, judged.limit))
                }
                Limit::Change(change) => {
                    let nights = found.history.iter();
                    let nights = nights.map(|night| (night.device.as_deref(), night.mean));
                    let past = Past::new(&device_id(&result.device.serial), nights);
                    verdict::plan_change(&found.figures, judged.limit, &past, change)
                }
            }),
            (Some(found), None) => Err(match &found.missing {
                Some(why) => why.clone(),
                None => "it has no verdict".to_owned(),
            }),
            (None, _) => Err(format!(
                "the runs in {} have no figure of it",
                directory.display()
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
            Ok(plan) => console.data(format_args!("{name}: {}", planned_words(&plan, units))),
            Err(why) => console.data(format_args!("{name}: {why}")),
        }
    }
    Ok(Outcome::Done)
}

fn planned_words(plan: &Plan, [one, many]: [&str; 2]) -> String {
    let most = || format!("more than {MAX_PLANNED_RUNS}");
    let Some(needed) = plan.needed else {
        return plan.why.clone().unwrap_or_else(most);
    };
    let end = |end: Option<usize>| end.map_or_else(most, |runs| runs.to_string());
    let runs = heaptap_base::units::counted(needed as u64, one, many);
    format!("{runs} ({} to {})", end(plan.low), end(plan.high))
}

/// Kinds of errors if no device is attached.
const WITHOUT_DEVICE: [&str; 3] = ["no-device", "no-adb-server", "adb-not-found"];

async fn dry_run(
    ctx: &Context,
    all_devices: bool,
    scenarios: &[(PathBuf, Scenario)],
) -> Result<Outcome, Failure> {
    let is_selected = super::devices::typed(ctx, all_devices).is_some();
    let chosen = match super::devices::choose(ctx, all_devices).await {
        Ok(chosen) => chosen,
        // Scenarios are also written without a device.
        Err(none) if !is_selected && WITHOUT_DEVICE.contains(&none.kind) => {
            let message = format!("{}, so the commands of actions are left out", none.message);
            ctx.console.warn_with_help(message, none.help.as_deref());
            Vec::new()
        }
        Err(other) => return Err(other),
    };
    for obstacle in chosen.iter().filter_map(|one| one.obstacle.as_ref()) {
        ctx.console.warn(&obstacle.message);
    }
    let mut lines = Vec::new();
    for (_, scenario) in scenarios {
        if scenarios.len() > 1 {
            lines.push(format!("# {}", scenario.name));
        }
        lines.extend(super::dry_run::judged(scenario));
        let user = ctx.globals.user;
        if chosen.is_empty() {
            lines.extend(super::dry_run::commands(None, scenario, user).await?);
        }
        // Devices of one release have the same commands.
        for one in chosen.iter().filter(|one| one.obstacle.is_none()) {
            if chosen.len() > 1 {
                lines.push(format!("# on {}", one.name));
            }
            lines.extend(super::dry_run::commands(Some(&one.device), scenario, user).await?);
        }
    }
    if ctx.console.is_json() {
        ctx.console.json(&json!({ "commands": lines }));
        return Ok(Outcome::Done);
    }
    for line in lines {
        ctx.console.laid_out(line);
    }
    Ok(Outcome::Done)
}
