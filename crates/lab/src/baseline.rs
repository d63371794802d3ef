//! Baselines for version control: the figures that a build had, one line each, sorted. A line has
//! the mean with its bounds for reviewers, and the values for comparisons.
//!
//! ```text
//! cache default: 12.4 MiB (11.9 to 12.8) = 13003212/412 12998000/409 13100233/415
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::results::{BudgetResult, ScenarioResult, values};
use crate::verdict::Measured;

/// First line of a file.
const HEAD: &str = "# heaptap baseline 1: budget, device class: mean (bounds) = value/samples of \
                    each run; `heaptap run --update-baseline` writes it";

/// Figures by budget and device class.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Baseline {
    lines: BTreeMap<(String, String), Line>,
}

#[derive(Debug, Clone, PartialEq)]
struct Line {
    /// Mean and bounds, as written.
    text: String,
    values: Vec<Measured>,
}

/// A line that is not of a baseline.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the baseline {why}")]
pub struct BaselineError {
    /// Line, from 1.
    pub line: usize,
    pub why: &'static str,
}

impl Baseline {
    /// Parses a file.
    ///
    /// # Errors
    /// Returns the first line that is not of a baseline.
    pub fn parse(text: &str) -> Result<Baseline, BaselineError> {
        let mut lines = BTreeMap::new();
        for (at, line) in text.lines().enumerate() {
            if line.trim().is_empty() || line.starts_with('#') {
                continue;
            }
            let fail = |why| BaselineError { line: at + 1, why };
            let (key, rest) = line.split_once(": ").ok_or(fail("has no `: `"))?;
            let (budget, class) = key.split_once(' ').ok_or(fail("has no device class"))?;
            let (text, runs) = rest.rsplit_once(" = ").ok_or(fail("has no ` = `"))?;
            let values = runs
                .split_whitespace()
                .map(measured)
                .collect::<Option<Vec<_>>>();
            let values = values.ok_or(fail("has a value that is not a number"))?;
            let line = Line {
                text: text.to_owned(),
                values,
            };
            let key = (budget.to_owned(), class.to_owned());
            if lines.insert(key, line).is_some() {
                return Err(fail("repeats a budget"));
            }
        }
        Ok(Baseline { lines })
    }

    /// Returns the runs of a budget on a device class; empty if there are none.
    pub fn runs(&self, budget: &str, class: &str) -> &[Measured] {
        let line = self.lines.get(&(budget.to_owned(), class.to_owned()));
        line.map_or(&[], |line| &line.values)
    }

    /// Replaces the figures of the budgets of these results, and keeps all others. The runs of
    /// devices of one class are together.
    pub fn update(&mut self, results: &[&ScenarioResult]) {
        let mut new: BTreeMap<(String, String), Line> = BTreeMap::new();
        for result in results {
            let measured = result.budgets.iter().filter(|b| !b.figures.is_empty());
            for budget in measured {
                let key = (budget.name.clone(), result.device_class.clone());
                let line = new.entry(key).or_insert_with(|| Line {
                    text: described(budget),
                    values: Vec::new(),
                });
                if !line.values.is_empty() {
                    line.text = "several devices".to_owned();
                }
                line.values.extend_from_slice(&budget.figures);
            }
        }
        self.lines.extend(new);
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for ((budget, class), line) in &self.lines {
            let _ = write!(text, "{budget} {class}: {} =", line.text);
            for value in &line.values {
                let _ = match value.samples {
                    Some(samples) => write!(text, " {}/{samples}", value.value),
                    None => write!(text, " {}", value.value),
                };
            }
            text.push('\n');
        }
        text
    }
}

fn described(budget: &BudgetResult) -> String {
    match &budget.judgement {
        Some(judged) => values::estimate(budget.unit, judged),
        None => "not judged".to_owned(),
    }
}

fn measured(text: &str) -> Option<Measured> {
    let (value, samples) = match text.split_once('/') {
        Some((value, samples)) => (value, Some(number(samples)?)),
        None => (text, None),
    };
    Some(Measured {
        value: number(value)?,
        samples,
    })
}

fn number(text: &str) -> Option<f64> {
    text.parse().ok().filter(|number: &f64| number.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "a default: 12.4 MiB (11.9 to 12.8) = 13003212/412 12998000.5/409\n\
                        b low-ram: 2 objects = 2 2 2\n";

    #[test]
    fn a_baseline_is_what_was_written() {
        let read = Baseline::parse(TEXT).unwrap();
        assert_eq!(read.text(), format!("{HEAD}\n{TEXT}"));
        assert_eq!(Baseline::parse(&read.text()).unwrap(), read);
        assert_eq!(read.runs("a", "default").len(), 2);
        assert_eq!(read.runs("a", "default")[1].value, 12_998_000.5);
        assert_eq!(read.runs("b", "low-ram")[0].samples, None);
        assert!(read.runs("a", "low-ram").is_empty());
    }

    #[test]
    fn devices_of_one_class_are_together_and_other_lines_stay() {
        let mut baseline = Baseline::parse(TEXT).unwrap();
        let result = crate::results::fixture::all_states();
        let name = &result.budgets[0].name;
        let class = &result.device_class;
        baseline.update(&[&result, &result]);
        let once = result.budgets[0].figures.len();
        assert_eq!(baseline.runs(name, class).len(), 2 * once);
        assert_eq!(baseline.runs("b", "low-ram").len(), 3);
        assert_eq!(Baseline::parse(&baseline.text()).unwrap(), baseline);
    }

    #[test]
    fn a_wrong_line_is_named() {
        for (text, why) in [
            ("a default 1 = 2", "has no `: `"),
            ("a: 1 = 2", "has no device class"),
            ("a default: 1", "has no ` = `"),
            ("a default: 1 = x", "has a value that is not a number"),
            ("a default: 1 = inf", "has a value that is not a number"),
            ("a default: 1 = 1\na default: 1 = 2", "repeats a budget"),
        ] {
            let error = Baseline::parse(text).unwrap_err();
            assert_eq!(error.why, why, "{text}");
        }
    }
}
