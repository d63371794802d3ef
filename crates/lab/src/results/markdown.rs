//! A summary in Markdown, for GitHub's step summary or a comment on a merge request: a table of all
//! budgets, and details of those that are over and of failed runs. GitHub drops a summary above
//! 1,024 KiB.

use super::values::{self, run_count};
use super::{BudgetResult, RunState, ScenarioResult, ci_escape};
use crate::verdict::Verdict;

const MAX_SUMMARY_BYTES: usize = 1_000 << 10;
/// Maximum number of parts of an excess in the details.
const MAX_EXCESS: usize = 20;

const TABLE_HEAD: &str = "| scenario | device | budget | verdict | value | limit |\n\
                          |---|---|---|---|---:|---:|\n";

pub fn summary(results: &[ScenarioResult]) -> String {
    let all: Vec<&ScenarioResult> = results.iter().collect();
    let mut text = format!("## Memory budgets: {}\n\n{TABLE_HEAD}", totals(&all));
    let mut left_out = 0;
    let mut add = |text: &mut String, part: String| {
        // The sentence about omissions needs the last 100 bytes.
        if left_out > 0 || text.len() + part.len() > MAX_SUMMARY_BYTES - 100 {
            left_out += part.lines().filter(|line| !line.is_empty()).count();
        } else {
            *text += &part;
        }
    };
    for result in results {
        for budget in &result.budgets {
            add(&mut text, row(result, budget));
        }
    }
    for result in results {
        if let Some(builds) = values::builds(result) {
            let scenario = code(&ci_escape::name(&result.scenario));
            let line = format!("\n{scenario} on {}: {}\n", device(result), code(&builds));
            add(&mut text, line);
        }
        for budget in &result.budgets {
            if values::verdict_of(budget) == Some(Verdict::Over) {
                add(&mut text, over(result, budget));
            }
        }
        if let Some(part) = troubles(result) {
            add(&mut text, part);
        }
    }
    if left_out > 0 {
        text += &format!("\n{left_out} lines are left out; the results have them.\n");
    }
    text
}

/// Returns the numbers of budgets by verdict, and of errors of runs: `1 over, 2 within, 1 error`.
pub(super) fn totals(results: &[&ScenarioResult]) -> String {
    let budgets = || results.iter().flat_map(|result| &result.budgets);
    let verdicts = ["over", "undecided", "not measured", "within"].map(|word| {
        let of_word = budgets().filter(|budget| values::verdict(budget) == word);
        (of_word.count(), word)
    });
    let failures = results.iter().map(|result| values::failures(result).len());
    let errors = match failures.sum() {
        1 => (1, "error"),
        count => (count, "errors"),
    };
    let counts: Vec<String> = verdicts
        .into_iter()
        .chain([errors])
        .filter(|(count, _)| *count > 0)
        .map(|(count, word)| format!("{count} {word}"))
        .collect();
    match counts.is_empty() {
        true => "none".to_owned(),
        false => counts.join(", "),
    }
}

fn row(result: &ScenarioResult, budget: &BudgetResult) -> String {
    let word = values::verdict(budget);
    let word = match values::verdict_of(budget) {
        Some(Verdict::Within) => word.to_owned(),
        _ => format!("**{word}**"),
    };
    let (value, limit) = match &budget.judgement {
        Some(judgement) => {
            let remarks = values::change(budget)
                .into_iter()
                .chain(values::why(judgement));
            let remarks: String = remarks.map(|text| format!("<br>{}", code(&text))).collect();
            (
                values::estimate(budget.unit, judgement) + &remarks,
                values::value(budget.unit, judgement.limit),
            )
        }
        None => (code(&values::sentence(budget)), "-".to_owned()),
    };
    format!(
        "| {} | {} | {} | {word} | {value} | {limit} |\n",
        code(&ci_escape::name(&result.scenario)),
        device(result),
        code(&ci_escape::name(&budget.name)),
    )
}

fn over(result: &ScenarioResult, budget: &BudgetResult) -> String {
    let mut text = format!(
        "\n### Over: {} of {} on {}\n\n{}: {}",
        code(&ci_escape::name(&budget.name)),
        code(&ci_escape::name(&result.scenario)),
        device(result),
        code(&ci_escape::line(&budget.what, ci_escape::MAX_LINE_CHARS)),
        values::sentence(budget),
    );
    if let Some(judgement) = &budget.judgement {
        text += &format!(" in {}", run_count(budget, judgement));
    }
    text += ".\n";
    if budget.excess.is_empty() {
        return text;
    }
    text += &format!(
        "\n| size | {} |\n|---:|---|\n",
        values::excess_heading(budget)
    );
    for part in budget.excess.iter().take(MAX_EXCESS) {
        text += &format!(
            "| {} | {} |\n",
            values::excess_size(budget.unit, part),
            code(&ci_escape::line(&part.what, ci_escape::MAX_LINE_CHARS))
        );
    }
    if let Some(more @ 1..) = budget.excess.len().checked_sub(MAX_EXCESS) {
        text += &format!("\nand {more} more\n");
    }
    text
}

/// Returns the failed and the void runs of a result, and what was unusual, as a list.
fn troubles(result: &ScenarioResult) -> Option<String> {
    let failures = values::failures(result).into_iter();
    let mut lines: Vec<String> = failures
        .map(|failure| format!("- {}: {}\n", code(&failure.title), code(&failure.message)))
        .collect();
    let void = result.runs.iter().filter(|run| run.state == RunState::Void);
    lines.extend(void.map(|run| {
        let reason = values::reason(run).map_or(String::new(), |reason| code(&reason));
        format!(
            "- run {} was void and is not counted: {reason}\n",
            run.number
        )
    }));
    lines.extend(result.runs.iter().flat_map(|run| {
        let remarks = values::remarks(run).into_iter();
        remarks.map(|text| format!("- run {}: {}\n", run.number, code(&text)))
    }));
    (!lines.is_empty()).then(|| {
        let scenario = code(&ci_escape::name(&result.scenario));
        format!(
            "\n### Runs of {scenario} on {}\n\n{}",
            device(result),
            lines.concat()
        )
    })
}

fn device(result: &ScenarioResult) -> String {
    format!(
        "{}, {}",
        code(&values::device_name(&result.device)),
        code(&ci_escape::name(&result.device_class))
    )
}

/// Returns text as code. Every character that Markdown or HTML could interpret is an entity, which
/// works within table cells; GitHub does not look for mentions within code.
fn code(text: &str) -> String {
    let mut out = "<code>".to_owned();
    for c in text.chars() {
        match c {
            // GitHub turns `www.` into a link.
            '.' if !out.ends_with("www") => out.push(c),
            ',' | '-' | '/' => out.push(c),
            c if c.is_ascii_punctuation() => out += &format!("&#{};", u32::from(c)),
            c => out.push(c),
        }
    }
    out + "</code>"
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, all_states, hostile};
    use super::*;

    #[test]
    fn summary_all_states_is_stable() {
        assert_eq!(
            summary(&[all_states()]),
            include_str!("fixtures/summary.md")
        );
    }

    #[test]
    fn summary_hostile_text_is_harmless() {
        let text = summary(&[hostile()]);
        fixture::assert_harmless(&text);
        let plain = text
            .replace("<code>", "")
            .replace("</code>", "")
            .replace("<br>", "");
        assert!(
            !plain.contains(['<', '>', '`', '@', '\\', '_', '"']),
            "{plain}"
        );
        let rows = text.lines().filter(|line| line.starts_with("| <code>"));
        for row in rows {
            assert_eq!(row.matches('|').count(), 7, "{row}");
        }
    }

    #[test]
    fn summary_of_two_builds_has_their_runs_and_the_change() {
        let text = summary(&[fixture::two_builds()]);
        let plain = text.replace("&#40;", "(").replace("&#41;", ")");
        let plain = plain.replace("&#58;", ":").replace("&#59;", ";");
        for part in [
            "old build 2.0 (200): runs 1, 4, 5; new build 2.1 (210): runs 2, 3, 6",
            "30.0&#37; (28.0&#37; to 32.1&#37;) from the old build",
            "in 3 pairs of runs.",
        ] {
            assert!(plain.contains(part), "{part} in {plain}");
        }
    }

    #[test]
    fn summary_too_long_is_cut() {
        let mut result = all_states();
        result.budgets = (0..40_000)
            .map(|n| fixture::budget(&format!("b{n}"), Some((Verdict::Over, 13.0, 12.5, 13.5))))
            .collect();
        let text = summary(&[result]);
        assert!(text.len() <= MAX_SUMMARY_BYTES && text.len() > MAX_SUMMARY_BYTES - 400);
        assert!(text.ends_with(" lines are left out; the results have them.\n"));
    }

    #[test]
    fn summary_without_results_has_totals() {
        assert!(summary(&[]).starts_with("## Memory budgets: none\n"));
    }
}
