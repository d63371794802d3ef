//! JUnit XML: `testsuites/testsuite/testcase`, the shape that Jenkins, GitLab, GitHub actions and
//! Azure Pipelines all read; valid for `junit-10.xsd` of Jenkins' xUnit plugin.
//!
//! A result is a suite. Its first case, `run`, is about the runs: a failed one is an `error`. Each
//! budget is a case: over is a `failure`, undecided is `skipped`. A budget without a figure is
//! `skipped` if a run failed, otherwise an `error`. Names have no values and no serials, because
//! readers compare builds by name; these are properties of the suite. The message is also in the
//! text of the element: GitLab reads only the text.

use super::ci_escape::{self, markup};
use super::names::{Identity, RUN_CASE, cases, identities};
use super::{BudgetResult, Run, RunPage, ScenarioResult, values, values::Failure};
use crate::verdict::Verdict;

/// Maximum number of parts of an excess in a case.
const MAX_EXCESS: usize = 20;

/// Returns the results as JUnit XML. The pages of runs become attachments of the cases that are
/// not within their limits, and of `run`; Jenkins needs different file names for them.
pub fn junit(results: &[ScenarioResult], page: RunPage<'_>) -> String {
    let suites: Vec<Suite> = std::iter::zip(results, identities(results))
        .map(|(result, identity)| Suite::new(result, &identity, page))
        .collect();
    let sum = |count: fn(&Suite) -> usize| suites.iter().map(count).sum::<usize>();
    let mut xml = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n".to_owned();
    xml += &format!(
        "<testsuites name=\"heaptap\" tests=\"{}\" failures=\"{}\" errors=\"{}\" time=\"{}\">\n",
        sum(|suite| suite.cases.len()),
        sum(|suite| suite.count("failure")),
        sum(|suite| suite.count("error")),
        seconds(results.iter().map(|result| result.seconds).sum()),
    );
    for suite in &suites {
        suite.write(&mut xml);
    }
    xml + "</testsuites>\n"
}

struct Suite<'a> {
    result: &'a ScenarioResult,
    name: String,
    cases: Vec<Case>,
}

struct Case {
    name: String,
    seconds: f64,
    outcome: Option<Outcome>,
    /// Lines for `system-out`.
    output: Vec<String>,
}

/// A case that did not pass.
struct Outcome {
    /// `failure`, `error` or `skipped`.
    element: &'static str,
    kind: String,
    message: String,
    /// More lines of text after the message.
    details: Vec<String>,
}

impl<'a> Suite<'a> {
    fn new(result: &'a ScenarioResult, identity: &Identity, page: RunPage<'_>) -> Suite<'a> {
        let failures = values::failures(result);
        let pages = result.runs.iter().filter_map(|run| page(result, run));
        let attachments: Vec<String> = pages
            .filter_map(|path| ci_escape::relative_path(&path))
            .map(|path| format!("[[ATTACHMENT|{path}]]"))
            .collect();
        let mut list = vec![Case {
            name: RUN_CASE.to_owned(),
            seconds: result.runs.iter().map(|run| run.seconds).sum(),
            output: result.runs.iter().map(run_line).collect(),
            outcome: Outcome::from_failures(&failures),
        }];
        list[0].output.extend(attachments.iter().cloned());
        list.extend(
            std::iter::zip(&result.budgets, cases(result)).map(|(budget, name)| {
                let outcome = Outcome::from_budget(budget, result, !failures.is_empty());
                let mut output = vec![format!("{}: {}", what(budget), values::sentence(budget))];
                if outcome.is_some() {
                    output.extend(attachments.iter().cloned());
                }
                Case {
                    name,
                    seconds: 0.0,
                    outcome,
                    output,
                }
            }),
        );
        Suite {
            result,
            name: format!("{}.{}", identity.scenario, identity.class),
            cases: list,
        }
    }

    fn count(&self, element: &str) -> usize {
        let outcomes = self.cases.iter().filter_map(|case| case.outcome.as_ref());
        outcomes
            .filter(|outcome| outcome.element == element)
            .count()
    }

    fn write(&self, xml: &mut String) {
        let name = markup(&self.name);
        *xml += &format!(
            "  <testsuite name=\"{name}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" \
             skipped=\"{}\" time=\"{}\" timestamp=\"{}\">\n    <properties>\n",
            self.cases.len(),
            self.count("failure"),
            self.count("error"),
            self.count("skipped"),
            seconds(self.result.seconds),
            markup(&ci_escape::name(&self.result.started)),
        );
        for (name, value) in properties(self.result) {
            *xml += &format!(
                "      <property name=\"{}\" value=\"{}\"/>\n",
                markup(&name),
                markup(&ci_escape::name(&value))
            );
        }
        *xml += "    </properties>\n";
        for case in &self.cases {
            case.write(&name, xml);
        }
        *xml += "  </testsuite>\n";
    }
}

impl Case {
    fn write(&self, class: &str, xml: &mut String) {
        *xml += &format!(
            "    <testcase classname=\"{class}\" name=\"{}\" time=\"{}\">\n",
            markup(&self.name),
            seconds(self.seconds)
        );
        if let Some(outcome) = &self.outcome {
            let Outcome {
                element,
                kind,
                message,
                details,
            } = outcome;
            let message = markup(message);
            let kind = markup(kind);
            *xml += &format!("      <{element} type=\"{kind}\" message=\"{message}\">{message}");
            for line in details {
                *xml += &format!("\n{}", markup(line));
            }
            *xml += &format!("</{element}>\n");
        }
        *xml += &format!(
            "      <system-out>{}\n</system-out>\n    </testcase>\n",
            markup(&self.output.join("\n"))
        );
    }
}

impl Outcome {
    fn from_failures(failures: &[Failure]) -> Option<Outcome> {
        let first = failures.first()?;
        let text = |failure: &Failure| format!("{}: {}", failure.title, failure.message);
        Some(Outcome {
            element: "error",
            kind: first.kind.clone(),
            message: text(first),
            details: failures[1..].iter().map(text).collect(),
        })
    }

    fn from_budget(
        budget: &BudgetResult,
        result: &ScenarioResult,
        is_failed: bool,
    ) -> Option<Outcome> {
        let (element, kind) = match values::verdict_of(budget) {
            Some(Verdict::Within) => return None,
            Some(Verdict::Over) => ("failure", "over"),
            Some(Verdict::Undecided) => ("skipped", "undecided"),
            None if is_failed => ("skipped", "not-measured"),
            None => ("error", "not-measured"),
        };
        Some(Outcome {
            element,
            kind: kind.to_owned(),
            message: values::sentence(budget),
            details: details(budget, result),
        })
    }
}

fn details(budget: &BudgetResult, result: &ScenarioResult) -> Vec<String> {
    let mut lines = vec![format!("figure: {}", what(budget))];
    if let Some(judgement) = &budget.judgement {
        let value = |value: f64| values::value(budget.unit, value);
        let figures: Vec<String> = match budget.pairs.as_slice() {
            [] => budget
                .figures
                .iter()
                .map(|figure| value(figure.value))
                .collect(),
            pairs => (pairs.iter())
                .map(|(old, new)| format!("{} and {}", value(*old), value(*new)))
                .collect(),
        };
        lines.push(format!(
            "{}: {}",
            values::run_count(budget, judgement),
            figures.join(", ")
        ));
    }
    lines.push(format!("device: {}", values::device_name(&result.device)));
    if !budget.excess.is_empty() {
        lines.push(format!("{}:", values::excess_heading(budget)));
    }
    let parts = budget.excess.iter().take(MAX_EXCESS);
    lines.extend(parts.map(|part| format!("  {}", values::excess(budget.unit, part))));
    if let Some(more @ 1..) = budget.excess.len().checked_sub(MAX_EXCESS) {
        lines.push(format!("  and {more} more"));
    }
    lines
}

fn run_line(run: &Run) -> String {
    let reason = values::reason(run).map_or(String::new(), |reason| format!(": {reason}"));
    let build = run.build.map(|build| format!(" of the {build} build"));
    let remarks = values::remarks(run).into_iter();
    let remarks: String = remarks.map(|text| format!("; {text}")).collect();
    format!(
        "run {}{}: {} in {} s{reason}{remarks}",
        run.number,
        build.unwrap_or_default(),
        run.state,
        seconds(run.seconds)
    )
}

fn what(budget: &BudgetResult) -> String {
    ci_escape::line(&budget.what, ci_escape::MAX_LINE_CHARS)
}

/// Returns names and values of the suite's properties: the device, the app, and the figures as
/// plain numbers.
fn properties(result: &ScenarioResult) -> Vec<(String, String)> {
    let device = &result.device;
    let facts = [
        ("device.serial", Some(&device.serial)),
        ("device.model", device.model.as_ref()),
        ("device.system", device.system.as_ref()),
        ("device.fingerprint", device.fingerprint.as_ref()),
        ("app.version", result.app_version.as_ref()),
        ("app.old_version", result.old_app_version.as_ref()),
        ("scenario.file", Some(&result.file)),
    ];
    let facts = facts
        .into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?.clone())));
    let figures = std::iter::zip(&result.budgets, cases(result)).flat_map(|(budget, name)| {
        let judgement = budget.judgement.iter();
        judgement.flat_map(move |judgement| {
            [
                (format!("{name}.mean"), number(judgement.mean)),
                (format!("{name}.lower"), number(judgement.lower)),
                (format!("{name}.upper"), number(judgement.upper)),
                (format!("{name}.limit"), number(judgement.limit)),
            ]
        })
    });
    facts.chain(figures).collect()
}

/// Returns a number without exponent, with at most three decimals.
pub(super) fn number(value: f64) -> String {
    let text = format!("{value:.3}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    }
}

fn seconds(seconds: f64) -> String {
    match seconds.is_finite() {
        true => format!("{:.3}", seconds.max(0.0)),
        false => "0.000".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{self, all_states, hostile};
    use super::*;

    #[test]
    fn junit_all_states_is_stable() {
        let xml = junit(&[all_states()], &fixture::page);
        fixture::assert_well_formed(&xml, &[]);
        assert_eq!(xml, include_str!("fixtures/junit.xml"));
    }

    #[test]
    fn junit_of_two_builds_names_the_build_of_each_run() {
        let xml = junit(&[fixture::two_builds()], &|_, _| None);
        fixture::assert_well_formed(&xml, &[]);
        for part in [
            "name=\"app.old_version\" value=\"2.0 (200)\"",
            "run 1 of the old build: done",
            "run 2 of the new build: done",
            "3 pairs of runs: 10.0 MiB and 13.0 MiB, ",
            "+30.0% (28.0% to 32.1%) from the old build, exceeds the limit",
        ] {
            assert!(xml.contains(part), "{part} in {xml}");
        }
    }

    #[test]
    fn junit_hostile_text_is_harmless() {
        let xml = junit(&[hostile(), hostile()], &fixture::page);
        fixture::assert_well_formed(&xml, &[]);
        fixture::assert_harmless(&xml);
        assert!(!xml.contains("]]>") && !xml.contains("<script"));
        // The hostile outputs are no relative paths, so nothing is attached.
        assert!(!xml.contains("[[ATTACHMENT|"));
    }

    #[test]
    fn junit_cases_of_equal_devices_have_different_names() {
        let mut other = all_states();
        other.device.serial = "other".to_owned();
        let xml = junit(&[all_states(), other.clone()], &|_, _| None);
        for serial in [&all_states().device.serial, &other.device.serial] {
            let class = format!("login.low-ram-{}", crate::results::device_id(serial));
            assert!(
                xml.contains(&format!("classname=\"{class}\" name=\"run\"")),
                "{xml}"
            );
        }
    }

    #[test]
    fn junit_missing_figure_without_failed_run_is_error() {
        let mut result = all_states();
        result.runs.pop();
        let xml = junit(&[result], &|_, _| None);
        assert!(xml.contains("<error type=\"not-measured\""), "{xml}");
    }

    #[test]
    fn junit_without_runs_is_error() {
        let mut result = all_states();
        result.runs.clear();
        result.exit_code = 3;
        let xml = junit(&[result], &|_, _| None);
        assert!(xml.contains("no run is complete; exit code 3"), "{xml}");
    }

    #[test]
    fn number_has_no_exponent() {
        assert_eq!(number(1e-7), "0");
        assert_eq!(number(13_002_342.5), "13002342.5");
        assert_eq!(number(1e20), "100000000000000000000");
        assert_eq!(number(100.0), "100");
    }
}
