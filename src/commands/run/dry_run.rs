//! `run --dry-run`: what a scenario would do, as lines to print.

use heaptap_lab::results::values;
use heaptap_lab::scenario::{DEFAULT_CLASS, Limit, Repeats, Scenario, Step, What};
use heaptap_lab::verdict::InterimAnalyses;

use heaptap_adb::Device;
use heaptap_base::error::Failure;
use heaptap_base::units::{HumanDuration, counted};
use heaptap_base::untrusted::shell::quoted;
use heaptap_capture::provoke::{self, Plan, dry_run};

/// Returns what each step would do, as lines to print; without a device, actions without their
/// commands.
///
/// # Errors
/// Returns an error if the device cannot be reached, or lacks an action.
pub async fn commands(
    device: Option<&Device>,
    scenario: &Scenario,
    user: Option<u32>,
) -> Result<Vec<String>, Failure> {
    let name = crate::lab::scenario_run::name_of(scenario);
    let target = || provoke::Target::parse(name, user);
    let mut lines = crate::lab::hold_options(&scenario.conditions).commands();
    if !lines.is_empty() {
        lines.insert(0, "# conditions".to_owned());
    }
    let all = scenario.setup.iter().chain(&scenario.steps);
    let all: Vec<&Step> = all.collect();
    commands_of(device, &target, &all, 0, &mut lines).await?;
    for trigger in &scenario.triggers {
        let condition = crate::lab::describe_condition(&trigger.condition);
        lines.push(format!("# {}: {condition}", trigger.path));
        let steps: Vec<&Step> = trigger.steps.iter().collect();
        commands_of(device, &target, &steps, 1, &mut lines).await?;
    }
    Ok(lines)
}

/// Returns the number of runs and the budgets, as lines to print.
pub fn judged(scenario: &Scenario) -> Vec<String> {
    let Repeats { min, max } = scenario.repeats;
    let runs = match min == max {
        true => counted(max as u64, "run", "runs"),
        false => format!("{min} to {max} runs"),
    };
    let mut lines = vec![format!(
        "# {runs} of at most {}",
        HumanDuration(scenario.timeout)
    )];
    lines.extend(never_decides(scenario).map(|why| format!("# {why}")));
    lines.extend(scenario.budgets.iter().map(|budget| {
        let limit = match &budget.limit {
            Limit::Change(share) => {
                let percent = (share * 1e8).round() / 1e6;
                format!("{percent}% over the baseline")
            }
            Limit::Value(limits) => {
                let of_class = |(class, limit): &(String, f64)| {
                    let limit = values::value(budget.figure.unit(), *limit);
                    match class.as_str() {
                        DEFAULT_CLASS => limit,
                        class => format!("{limit} for {class}"),
                    }
                };
                let limits: Vec<String> = limits.iter().map(of_class).collect();
                limits.join(", ")
            }
        };
        let settled = match budget.per {
            Some(_) => ", in the second half of the iterations",
            None => "",
        };
        format!(
            "# budget {}: {}{settled}, limit {limit}",
            budget.name,
            budget.describe()
        )
    }));
    lines
}

/// Returns why the runs of a scenario without earlier nights cannot decide its budgets.
pub fn never_decides(scenario: &Scenario) -> Option<String> {
    let Repeats { min, max } = scenario.repeats;
    let never = InterimAnalyses::new(min, max).never_decides();
    never.filter(|_| !scenario.budgets.is_empty())
}

async fn commands_of(
    device: Option<&Device>,
    target: &dyn Fn() -> Result<provoke::Target, Failure>,
    steps: &[&Step],
    depth: usize,
    lines: &mut Vec<String>,
) -> Result<(), Failure> {
    let mut pending: Vec<(&Step, usize)> = Vec::new();
    pending.extend(steps.iter().rev().map(|step| (*step, depth)));
    while let Some((step, depth)) = pending.pop() {
        let indent = "  ".repeat(depth);
        match &step.what {
            What::Repeat { times, steps } => {
                lines.push(format!("{indent}# {}: {times} times", step.path));
                pending.extend(steps.iter().rev().map(|step| (step, depth + 1)));
            }
            What::Act(text) => {
                lines.push(format!("{indent}# {}: {text}", step.path));
                let plan = Plan::new(target()?, vec![crate::lab::action(text)?]);
                if let Some(device) = device {
                    let planned = dry_run(device, &plan).await?;
                    lines.extend(planned.iter().map(|one| format!("{indent}{}", one.command)));
                }
            }
            What::Shell(words) => {
                lines.push(format!("{indent}# {}", step.path));
                let words: Vec<String> =
                    words.iter().map(|word| quoted(word).to_string()).collect();
                lines.push(format!("{indent}{}", words.join(" ")));
            }
            what => lines.push(format!(
                "{indent}# {}: {}",
                step.path,
                crate::lab::describe_step(what)
            )),
        }
    }
    Ok(())
}
