//! Workflow commands of GitHub Actions: annotations at the lines of the scenario's file. Over
//! budgets and failed runs are errors, undecided budgets warnings. GitHub keeps 10 of each kind
//! per step and 4,096 characters of each.

use super::names::identities;
use super::{ScenarioResult, ci_escape, values};
use crate::verdict::Verdict;

const MAX_OF_A_KIND: usize = 10;
const MAX_COMMAND_BYTES: usize = 4_096;
/// Maximum number of parts of an excess in an annotation.
const MAX_EXCESS: usize = 5;

/// Returns the commands, one per line, for stdout of the step. If there are more than GitHub
/// keeps, the last one states their number. `in_repository` returns a scenario's path as GitHub
/// knows it.
pub fn annotations(results: &[ScenarioResult], in_repository: &dyn Fn(&str) -> String) -> String {
    let mut errors = Vec::new();
    let mut warnings = Vec::new();
    for (result, identity) in std::iter::zip(results, identities(results)) {
        let title = |text: &str| format!("{} on {}: {text}", identity.scenario, identity.class);
        let failures = values::failures(result);
        let file = in_repository(&result.file);
        for failure in &failures {
            errors.push(Annotation {
                file: file.clone(),
                line: failure.line,
                title: title(&failure.title),
                message: failure.message.clone(),
            });
        }
        for budget in &result.budgets {
            let list = match values::verdict_of(budget) {
                Some(Verdict::Within) => continue,
                Some(Verdict::Over) => &mut errors,
                None if failures.is_empty() => &mut errors,
                Some(Verdict::Undecided) | None => &mut warnings,
            };
            let mut message = values::sentence(budget);
            if budget.excess.iter().any(|part| part.growth.is_some()) {
                message += &format!("; {}:", values::excess_heading(budget));
            }
            for part in budget.excess.iter().take(MAX_EXCESS) {
                message += &format!("\n  {}", values::excess(budget.unit, part));
            }
            list.push(Annotation {
                file: file.clone(),
                line: Some(budget.line),
                title: title(&ci_escape::name(&budget.name)),
                message,
            });
        }
    }
    commands("error", &errors) + &commands("warning", &warnings)
}

struct Annotation {
    file: String,
    line: Option<usize>,
    title: String,
    message: String,
}

fn commands(kind: &str, list: &[Annotation]) -> String {
    let kept = match list.len() > MAX_OF_A_KIND {
        true => &list[..MAX_OF_A_KIND - 1],
        false => list,
    };
    let mut text: String = kept
        .iter()
        .map(|annotation| annotation.command(kind))
        .collect();
    if kept.len() < list.len() {
        let more = list.len() - kept.len();
        text += &format!("::{kind} title=heaptap::{more} more are in the step summary\n");
    }
    text
}

impl Annotation {
    fn command(&self, kind: &str) -> String {
        let mut text = format!("::{kind} ");
        let file = ci_escape::name(&self.file);
        if !file.is_empty() {
            text += &format!("file={},", property(&file));
        }
        if let Some(line) = self.line {
            text += &format!("line={line},");
        }
        text += &format!("title={}::", property(&self.title));
        for c in self.message.chars() {
            let escaped = escape(c, false);
            if text.len() + escaped.len() >= MAX_COMMAND_BYTES {
                break;
            }
            text += &escaped;
        }
        text + "\n"
    }
}

fn property(text: &str) -> String {
    text.chars().map(|c| escape(c, true)).collect()
}

fn escape(c: char, is_property: bool) -> String {
    match c {
        '%' => "%25".to_owned(),
        '\r' => "%0D".to_owned(),
        '\n' => "%0A".to_owned(),
        ':' if is_property => "%3A".to_owned(),
        ',' if is_property => "%2C".to_owned(),
        c => c.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, HOSTILE, all_states, hostile};
    use super::*;

    #[test]
    fn annotations_all_states_are_stable() {
        assert_eq!(
            annotations(&[all_states()], &str::to_owned),
            "::error file=perf/login.yaml,line=14,title=login on low-ram%3A run 3 failed at \
             steps[3]::no activity .MainActivity in 30 s (help: check the cable)\n\
             ::error file=perf/login.yaml,line=24,title=login on low-ram%3A libapp::12.9 MiB \
             (12.4 to 13.4) exceeds the limit of 12.0 MiB by 921.6 KiB\
             %0A  3.0 MiB  Cache::insert <- Cache::load\n\
             ::warning file=perf/login.yaml,line=24,title=login on low-ram%3A gfx::undecided: \
             12.1 MiB (11.0 to 13.2) with a limit of 12.0 MiB, because the bounds contain the \
             limit\n\
             ::warning file=perf/login.yaml,line=24,title=login on low-ram%3A graphics::not \
             measured: meminfo has no row Graphics\n"
        );
    }

    #[test]
    fn annotations_hostile_text_is_harmless() {
        let text = annotations(&[hostile()], &str::to_owned);
        fixture::assert_harmless(&text);
        for line in text.lines() {
            let rest = line
                .strip_prefix("::error file=")
                .or(line.strip_prefix("::warning file="));
            let (properties, _) = rest
                .and_then(|rest| rest.split_once("::"))
                .expect("a command");
            assert_eq!(properties.matches(',').count(), 2, "{properties}");
            assert!(!properties.contains(':'), "{properties}");
            assert!(line.contains("%250A") && !line.contains("[[ATTACHMENT|"));
        }
    }

    #[test]
    fn annotations_beyond_ten_are_counted() {
        let mut result = all_states();
        result.budgets = (0..30)
            .map(|n| fixture::budget(&format!("b{n}"), Some((Verdict::Over, 13.0, 12.5, 13.5))))
            .collect();
        let text = annotations(&[result], &str::to_owned);
        assert_eq!(text.lines().count(), 10);
        assert!(text.ends_with("::error title=heaptap::22 more are in the step summary\n"));
    }

    #[test]
    fn annotation_is_at_most_4096_bytes() {
        let mut result = all_states();
        result.file = "%".repeat(5_000);
        for budget in &mut result.budgets {
            for _ in 0..20 {
                let mut part = budget
                    .excess
                    .first()
                    .cloned()
                    .unwrap_or_else(|| super::super::Excess::new("", 1.0));
                part.what = format!("{HOSTILE}{}", "%ä".repeat(2_000));
                budget.excess.push(part);
            }
        }
        let text = annotations(&[result], &str::to_owned);
        let longest = text.lines().map(str::len).max();
        assert!(longest.is_some_and(|longest| (4_000..=4_096).contains(&longest)));
    }
}
