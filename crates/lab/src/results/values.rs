//! Values, bounds and verdicts for people.

use heaptap_base::units::{SignedSize, thousands};
use heaptap_model::conditions::thermal_word;

use super::ci_escape::{self, MAX_LINE_CHARS};
use super::{
    BudgetResult, Build, Device, Excess, PastFigure, Run, RunConditions, RunState, ScenarioResult,
    TriggerRecord, Unit,
};
use crate::verdict::{Judgement, Verdict};

/// Maximum number of killed processes to name.
const MAX_KILLS: usize = 5;
/// Maximum number of triggers of a run to describe.
const MAX_TRIGGERS: usize = 5;
/// Exit codes of a scenario that measured: done, incomplete, over, undecided.
const EXITS_WITH_RESULT: [u8; 4] = [0, 6, 9, 12];

/// Returns a value with its unit: `12.4 MiB`, `1,024 objects`, `1 leak`.
pub fn value(unit: Unit, value: f64) -> String {
    let (number, unit) = parts(unit, value);
    joined(&number, &unit)
}

/// Returns bounds with their unit: `11.9 to 12.8 MiB`, `980.0 KiB to 1.1 MiB`.
pub fn bounds(unit: Unit, lower: f64, upper: f64) -> String {
    let (low, low_unit) = parts(unit, lower);
    let (high, high_unit) = parts(unit, upper);
    if low_unit == high_unit || unit != Unit::Bytes {
        return joined(&format!("{low} to {high}"), &high_unit);
    }
    format!(
        "{} to {}",
        joined(&low, &low_unit),
        joined(&high, &high_unit)
    )
}

/// Returns a mean with its bounds: `12.4 MiB (11.9 to 12.8)`. An exact mean has no bounds.
pub fn estimate(unit: Unit, judgement: &Judgement) -> String {
    mean_with_bounds(unit, judgement.mean, judgement.lower, judgement.upper)
}

/// Returns [`estimate`] of an earlier night.
pub(super) fn past(unit: Unit, past: &PastFigure) -> String {
    mean_with_bounds(unit, past.mean, past.lower, past.upper)
}

fn mean_with_bounds(unit: Unit, mean: f64, lower: f64, upper: f64) -> String {
    let text = value(unit, mean);
    if lower == mean && upper == mean {
        return text;
    }
    let [(_, of_mean), (low, of_low), (high, of_high)] =
        [mean, lower, upper].map(|value| parts(unit, value));
    if unit != Unit::Bytes || (of_mean == of_low && of_mean == of_high) {
        return format!("{text} ({low} to {high})");
    }
    format!("{text} ({})", bounds(unit, lower, upper))
}

fn joined(number: &str, unit: &str) -> String {
    format!("{number} {unit}").trim_end().to_owned()
}

/// Splits a value into its number and its unit.
fn parts(unit: Unit, value: f64) -> (String, String) {
    if !value.is_finite() {
        return ("unknown".to_owned(), String::new());
    }
    let one = match unit {
        Unit::Bytes => {
            let text = SignedSize(value.round() as i64).to_string();
            let (number, unit) = text.split_once(' ').unwrap_or((&text, ""));
            return (number.to_owned(), unit.to_owned());
        }
        Unit::Objects => "object",
        Unit::Leaks => "leak",
    };
    let number = match value.fract() == 0.0 {
        true => thousands(value as i64),
        false => format!("{value:.1}"),
    };
    let plural = if value == 1.0 { "" } else { "s" };
    (number, format!("{one}{plural}"))
}

/// Returns the verdict of a budget in one or two words.
pub fn verdict(budget: &BudgetResult) -> &'static str {
    match verdict_of(budget) {
        Some(Verdict::Within) => "within",
        Some(Verdict::Over) => "over",
        Some(Verdict::Undecided) => "undecided",
        None => "not measured",
    }
}

pub(super) fn verdict_of(budget: &BudgetResult) -> Option<Verdict> {
    budget.judgement.as_ref().map(|judgement| judgement.verdict)
}

/// Returns a sentence on a budget, without period:
/// `12.4 MiB (11.9 to 12.8) exceeds the limit of 12.0 MiB by 410.0 KiB`.
pub fn sentence(budget: &BudgetResult) -> String {
    let Some(judgement) = &budget.judgement else {
        return match &budget.missing {
            Some(reason) => format!("not measured: {}", ci_escape::line(reason, MAX_LINE_CHARS)),
            None => "not measured in any run".to_owned(),
        };
    };
    let text = estimate(budget.unit, judgement);
    let limit = value(budget.unit, judgement.limit);
    let text = match change(budget) {
        Some(change) => format!("{text}, {change},"),
        None => text,
    };
    match judgement.verdict {
        Verdict::Within => format!("{text} is within the limit of {limit}"),
        Verdict::Over => format!(
            "{text} exceeds the limit of {limit} by {}",
            value(budget.unit, judgement.mean - judgement.limit)
        ),
        Verdict::Undecided => {
            let why = why(judgement).map_or(String::new(), |why| format!(", because {why}"));
            format!("undecided: {text} with a limit of {limit}{why}")
        }
    }
}

/// Returns the change between two builds: `+30.0% (28.0% to 32.1%) from the old build`.
pub fn change(budget: &BudgetResult) -> Option<String> {
    let change = budget.change?;
    let percent = |share: f64| format!("{:.1}%", share * 100.0);
    Some(format!(
        "{}{} ({} to {}) from the old build",
        if change.change > 0.0 { "+" } else { "" },
        percent(change.change),
        percent(change.lower),
        percent(change.upper)
    ))
}

/// Returns the runs of each of two builds:
/// `old build 2.0 (200): runs 1, 4, 5; new build 2.1 (210): runs 2, 3, 6`.
pub fn builds(result: &ScenarioResult) -> Option<String> {
    let of = |build: Build, version: &Option<String>| {
        let runs = result.runs.iter().filter(|run| run.build == Some(build));
        let runs: Vec<String> = runs.map(|run| run.number.to_string()).collect();
        let version = version
            .as_deref()
            .map(|text| format!(" {}", ci_escape::name(text)));
        let version = version.unwrap_or_default();
        (!runs.is_empty()).then(|| format!("{build} build{version}: runs {}", runs.join(", ")))
    };
    let old = of(Build::Old, &result.old_app_version);
    let both: Vec<String> = old
        .into_iter()
        .chain(of(Build::New, &result.app_version))
        .collect();
    (!both.is_empty()).then(|| both.join("; "))
}

/// Returns the reason of a verdict, if there is one to name.
pub(super) fn why(judgement: &Judgement) -> Option<String> {
    let why = judgement.why.as_deref()?;
    Some(ci_escape::line(why, MAX_LINE_CHARS))
}

/// Returns the number of runs behind a judgement: `3 runs and 10 earlier ones`, `3 pairs of runs`.
pub(super) fn run_count(budget: &BudgetResult, judgement: &Judgement) -> String {
    let plural = if judgement.runs == 1 { "" } else { "s" };
    match judgement.earlier_runs {
        _ if !budget.pairs.is_empty() => format!("{} pair{plural} of runs", judgement.runs),
        0 => format!("{} run{plural}", judgement.runs),
        earlier => format!("{} run{plural} and {earlier} earlier", judgement.runs),
    }
}

/// Returns the heading of the parts of an excess.
pub fn excess_heading(budget: &BudgetResult) -> &'static str {
    if budget.excess.iter().all(|part| part.growth.is_none()) {
        "largest parts"
    } else if budget.pairs.is_empty() {
        "grew since the baseline"
    } else {
        "grew since the old build"
    }
}

/// Returns a part of an excess: `3.0 MiB  decode`, `+1.0 MiB to 3.0 MiB  decode`.
pub(super) fn excess(unit: Unit, part: &Excess) -> String {
    let what = ci_escape::line(&part.what, MAX_LINE_CHARS);
    format!("{}  {what}", excess_size(unit, part))
}

/// Returns the size of a part of an excess: `3.0 MiB`, `+1.0 MiB to 3.0 MiB`, `+3.0 MiB (new)`.
pub fn excess_size(unit: Unit, part: &Excess) -> String {
    let now = value(unit, part.value);
    match part.growth {
        None => now,
        Some(growth) if part.is_new && growth == part.value => format!("+{now} (new)"),
        Some(growth) => {
            let least = if part.is_new { " or more" } else { "" };
            format!("+{}{least} to {now}", value(unit, growth))
        }
    }
}

/// Returns the device as `Pixel 6 (R58M123)`, or its serial if the model is unknown.
pub(super) fn device_name(device: &Device) -> String {
    let serial = ci_escape::name(&device.name());
    match &device.model {
        Some(model) => format!("{} ({serial})", ci_escape::name(model)),
        None => serial,
    }
}

/// What failed in a result apart from its budgets.
pub(super) struct Failure {
    /// `run 2 failed at steps[3]`.
    pub title: String,
    pub kind: String,
    pub message: String,
    /// Line in the scenario's file.
    pub line: Option<usize>,
}

/// Returns the failures of the runs. A result without figures has at least one.
pub(super) fn failures(result: &ScenarioResult) -> Vec<Failure> {
    let failed = |run: &&Run| run.state == RunState::Failed;
    let failures: Vec<Failure> = result.runs.iter().filter(failed).map(failure).collect();
    let is_done = result.runs.iter().any(|run| run.state == RunState::Done);
    let is_cause = |run: &&Run| {
        let code = run.error.as_ref().map(|error| error.code);
        run.state == RunState::Void && code == Some(result.exit_code)
    };
    if failures.is_empty()
        && let Some(last) = result.runs.last().filter(is_cause)
    {
        return vec![failure(last)];
    }
    if !failures.is_empty() || (is_done && EXITS_WITH_RESULT.contains(&result.exit_code)) {
        return failures;
    }
    let message = match is_done {
        true => format!("the scenario ended with exit code {}", result.exit_code),
        false => format!("no run is complete; exit code {}", result.exit_code),
    };
    vec![Failure {
        title: "scenario failed".to_owned(),
        kind: "incomplete".to_owned(),
        message,
        line: None,
    }]
}

fn failure(run: &Run) -> Failure {
    let error = run.error.as_ref();
    let step = error.and_then(|error| error.step.as_deref());
    let at = step.map_or(String::new(), |step| {
        format!(" at {}", ci_escape::name(step))
    });
    Failure {
        title: format!("run {} failed{at}", run.number),
        kind: error.map_or("failed".to_owned(), |error| ci_escape::name(&error.kind)),
        message: reason(run).unwrap_or_else(|| "no error is recorded".to_owned()),
        line: error.and_then(|error| error.line),
    }
}

/// Returns the error of a run with its help.
pub(super) fn reason(run: &Run) -> Option<String> {
    let error = run.error.as_ref()?;
    let message = ci_escape::line(&error.message, MAX_LINE_CHARS);
    Some(match &error.help {
        Some(help) => format!(
            "{message} (help: {})",
            ci_escape::line(help, MAX_LINE_CHARS)
        ),
        None => message,
    })
}

/// Returns what was unusual in a run, a line each: conditions of the device, triggers that acted.
pub fn remarks(run: &Run) -> Vec<String> {
    let mut lines: Vec<String> = conditions(run).into_iter().collect();
    lines.extend(run.triggers.iter().take(MAX_TRIGGERS).map(trigger));
    if let Some(more @ 1..) = run.triggers.len().checked_sub(MAX_TRIGGERS) {
        lines.push(format!("and {more} more triggers"));
    }
    lines
}

/// Describes a trigger that acted: `triggers[0] at 12.4 s: TOTAL of meminfo: 412.0 MiB; label oom`.
fn trigger(acted: &TriggerRecord) -> String {
    let trigger = ci_escape::name(&acted.trigger);
    let cause = ci_escape::line(&acted.cause, ci_escape::MAX_LINE_CHARS);
    let mut text = format!("{trigger} at {:.1} s: {cause}", acted.seconds);
    if !acted.labels.is_empty() {
        let labels: Vec<String> = acted
            .labels
            .iter()
            .map(|one| ci_escape::name(one))
            .collect();
        let word = if labels.len() == 1 { "label" } else { "labels" };
        text += &format!("; {word} {}", labels.join(", "));
    }
    if let Some(error) = &acted.error {
        let error = ci_escape::line(error, ci_escape::MAX_LINE_CHARS);
        text += &format!("; its steps failed: {error}");
    }
    text
}

/// Returns what was unusual about the device: `thermal status 1 (light)`. `None` if nothing was.
fn conditions(run: &Run) -> Option<String> {
    let RunConditions {
        before,
        after,
        low_memory_kills: kills,
    } = run.conditions.as_ref()?;
    let both = || std::iter::once(before).chain(after);
    let hottest = both().filter_map(|one| one.thermal_status).max();
    let hot = hottest.filter(|status| *status > 0);
    let hot = hot.map(|status| format!("thermal status {status} ({})", thermal_word(status)));
    let is_saving = both().any(|one| one.is_power_saving == Some(true));
    let saving = is_saving.then(|| "battery saver on".to_owned());
    let killed = (!kills.is_empty()).then(|| {
        let names = kills.iter().take(MAX_KILLS);
        let names: Vec<String> = names.map(|kill| ci_escape::name(&kill.process)).collect();
        let more = match kills.len().saturating_sub(MAX_KILLS) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("killed for low memory: {}{more}", names.join(", "))
    });
    let all: Vec<String> = [hot, saving, killed].into_iter().flatten().collect();
    (!all.is_empty()).then(|| all.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judgement(mean: f64, lower: f64, upper: f64) -> Judgement {
        Judgement {
            verdict: Verdict::Within,
            mean,
            lower,
            upper,
            limit: 0.0,
            runs: 1,
            earlier_runs: 0,
            confidence: 0.98,
            p_over: 0.5,
            why: None,
        }
    }

    #[test]
    fn heading_of_an_excess_names_what_it_is_compared_with() {
        let mut result = crate::results::fixture::two_builds();
        let budget = &mut result.budgets[0];
        budget.excess = vec![Excess::new("x", 3.0)];
        assert_eq!(excess_heading(budget), "largest parts");
        budget.excess[0].growth = Some(1.0);
        assert_eq!(excess_heading(budget), "grew since the old build");
        budget.pairs.clear();
        assert_eq!(excess_heading(budget), "grew since the baseline");
    }

    #[test]
    fn excess_has_its_growth() {
        let mib = f64::from(1 << 20);
        let size = |growth, is_new| {
            let part = Excess {
                growth,
                is_new,
                ..Excess::new("x", 3.0 * mib)
            };
            excess_size(Unit::Bytes, &part)
        };
        assert_eq!(size(None, false), "3.0 MiB");
        assert_eq!(size(Some(mib), false), "+1.0 MiB to 3.0 MiB");
        assert_eq!(size(Some(mib), true), "+1.0 MiB or more to 3.0 MiB");
        assert_eq!(size(Some(3.0 * mib), true), "+3.0 MiB (new)");
    }

    #[test]
    fn value_has_its_unit() {
        assert_eq!(value(Unit::Bytes, 13_002_342.0), "12.4 MiB");
        assert_eq!(value(Unit::Bytes, -1024.4), "-1.0 KiB");
        assert_eq!(value(Unit::Bytes, 7.6), "8 B");
        assert_eq!(value(Unit::Objects, 1024.0), "1,024 objects");
        assert_eq!(value(Unit::Objects, 2.5), "2.5 objects");
        assert_eq!(value(Unit::Leaks, 1.0), "1 leak");
        assert_eq!(value(Unit::Leaks, f64::NAN), "unknown");
    }

    #[test]
    fn bounds_share_a_unit_if_they_can() {
        let mib = f64::from(1 << 20);
        assert_eq!(
            bounds(Unit::Bytes, 11.9 * mib, 12.8 * mib),
            "11.9 to 12.8 MiB"
        );
        assert_eq!(
            bounds(Unit::Bytes, 0.9 * mib, 1.1 * mib),
            "921.6 KiB to 1.1 MiB"
        );
        assert_eq!(bounds(Unit::Objects, 1.0, 3.0), "1 to 3 objects");
        let text = |mean, lower, upper| estimate(Unit::Bytes, &judgement(mean, lower, upper));
        assert_eq!(
            text(12.4 * mib, 11.9 * mib, 12.8 * mib),
            "12.4 MiB (11.9 to 12.8)"
        );
        assert_eq!(
            text(mib, 0.9 * mib, 1.1 * mib),
            "1.0 MiB (921.6 KiB to 1.1 MiB)"
        );
        assert_eq!(text(mib, mib, mib), "1.0 MiB");
        assert_eq!(
            text(mib, f64::NEG_INFINITY, mib),
            "1.0 MiB (unknown to 1.0 MiB)"
        );
    }
}
