//! Baselines for version control: the figures of the last nights, a line each, sorted. A line has
//! the mean with its bounds for reviewers, and the values of the runs for comparisons. The largest
//! parts of the last night's figure follow.
//!
//! ```text
//! cache default 2026-11-19T01:02:03Z: 12.4 MiB (11.9 to 12.8) = 13003212/412 12998000/409; 2.0 (200)
//! cache default part: 3.0 MiB = 3145728 Cache::insert
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use crate::excess::mean_parts;
use crate::results::{BudgetResult, Excess, PastFigure, ScenarioResult, defang, values};
use crate::verdict::{Looks, Measured, judge_growth};

/// First line of a file, up to the version.
const MARK: &str = "# heaptap baseline ";
/// Version of the format, and what its lines are.
const VERSION: &str = "2: budget, device class, start: mean (bounds) = value/samples of each run; \
                       version of the app. `heaptap run --update-baseline` writes it";
/// Word for a time in the line of a part.
const PART: &str = "part";
/// Maximum number of nights of a device.
const MAX_NIGHTS: usize = 10;

/// Figures by budget and device class.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Baseline {
    figures: BTreeMap<(String, String), Figure>,
}

/// A figure on a device class.
#[derive(Debug, Clone, PartialEq, Default)]
struct Figure {
    /// By time; those of devices of one class are together.
    nights: Vec<Night>,
    /// Parts of the last figure by name, each with its value as written.
    parts: Vec<(String, Excess)>,
}

/// The runs of a scenario in one night on one device.
#[derive(Debug, Clone, PartialEq)]
struct Night {
    /// RFC 3339 in UTC.
    started: String,
    version: Option<String>,
    /// Mean and bounds, as written.
    text: String,
    runs: Vec<Measured>,
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
        let mut baseline = Baseline::default();
        for (at, line) in text.lines().enumerate() {
            let fail = |why| BaselineError { line: at + 1, why };
            if let Some(version) = line.strip_prefix(MARK)
                && !version.starts_with("2:")
            {
                return Err(fail(
                    "has another version; remove the file to write a new one",
                ));
            }
            if !line.trim().is_empty() && !line.starts_with('#') {
                baseline.parse_line(line).map_err(fail)?;
            }
        }
        Ok(baseline)
    }

    fn parse_line(&mut self, line: &str) -> Result<(), &'static str> {
        let (key, rest) = line.split_once(": ").ok_or("has no `: `")?;
        let mut words = key.split(' ');
        let (Some(budget), Some(class), Some(time), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err("does not begin with a budget, a device class and a time");
        };
        let (text, rest) = rest.split_once(" = ").ok_or("has no ` = `")?;
        let key = (budget.to_owned(), class.to_owned());
        let figure = self.figures.entry(key).or_default();
        if time == PART {
            let (value, what) = rest.split_once(' ').ok_or("has a part without a name")?;
            let value = number(value).ok_or("has a value that is not a number")?;
            figure
                .parts
                .push((text.to_owned(), Excess::new(what, value)));
            return Ok(());
        }
        let (runs, version) = match rest.split_once("; ") {
            Some((runs, version)) => (runs, Some(version.to_owned())),
            None => (rest, None),
        };
        let runs = runs.split_whitespace().map(measured).collect::<Option<_>>();
        figure.nights.push(Night {
            started: time.to_owned(),
            version,
            text: text.to_owned(),
            runs: runs.ok_or("has a value that is not a number")?,
        });
        figure.nights.sort_by(|a, b| a.started.cmp(&b.started));
        Ok(())
    }

    /// Returns the runs of each night of a budget on a device class, the latest last. Those that
    /// began at `now` are not earlier ones.
    pub fn nights(&self, budget: &str, class: &str, now: &str) -> Vec<&[Measured]> {
        let nights = self.earlier(budget, class, now);
        nights.iter().map(|night| night.runs.as_slice()).collect()
    }

    fn earlier(&self, budget: &str, class: &str, now: &str) -> Vec<&Night> {
        let figure = self.figures.get(&(budget.to_owned(), class.to_owned()));
        let nights = figure.into_iter().flat_map(|figure| &figure.nights);
        nights.filter(|night| night.started != now).collect()
    }

    /// Returns the figure of each night with its bounds, as [`Self::nights`].
    pub fn history(&self, budget: &str, class: &str, now: &str) -> Vec<PastFigure> {
        let nights = self.earlier(budget, class, now);
        let all = nights.iter().enumerate();
        let past = all.map(|(at, night)| {
            let is_other = |(other, _): &(usize, _)| *other != at;
            let others = nights.iter().enumerate().filter(is_other);
            let others: Vec<&[Measured]> = others.map(|(_, night)| night.runs.as_slice()).collect();
            let runs = night.runs.len();
            // The limit does not matter for the bounds.
            let judged = judge_growth(&night.runs, &others, 0.0, 1.0, Looks::new(runs, runs));
            PastFigure {
                started: night.started.clone(),
                app_version: night.version.clone(),
                mean: judged.mean,
                lower: judged.lower,
                upper: judged.upper,
            }
        });
        past.collect()
    }

    /// Returns the parts of the last figure of a budget on a device class; empty if it has none.
    pub fn parts(&self, budget: &str, class: &str) -> Vec<Excess> {
        let figure = self.figures.get(&(budget.to_owned(), class.to_owned()));
        let parts = figure.into_iter().flat_map(|figure| &figure.parts);
        parts.map(|(_, part)| part.clone()).collect()
    }

    /// Adds a night of the budgets of these results, and drops the oldest. A night that is there
    /// already is replaced.
    pub fn update(&mut self, results: &[&ScenarioResult]) {
        let mut new: BTreeMap<(String, String), Vec<(&ScenarioResult, &BudgetResult)>> =
            BTreeMap::new();
        for result in results {
            let measured = result.budgets.iter().filter(|b| !b.figures.is_empty());
            for budget in measured {
                let key = (budget.name.clone(), result.device_class.clone());
                new.entry(key).or_default().push((result, budget));
            }
        }
        for (key, devices) in new {
            let figure = self.figures.entry(key).or_default();
            let is_new = |night: &Night| devices.iter().any(|(r, _)| r.started == night.started);
            figure.nights.retain(|night| !is_new(night));
            let nights = devices
                .iter()
                .map(|(result, budget)| Night::new(result, budget));
            figure.nights.extend(nights);
            figure.nights.sort_by(|a, b| a.started.cmp(&b.started));
            let old = figure
                .nights
                .len()
                .saturating_sub(MAX_NIGHTS * devices.len());
            figure.nights.drain(..old);
            let parts: Vec<&[Excess]> = devices.iter().map(|(_, b)| b.parts.as_slice()).collect();
            let unit = devices[0].1.unit;
            figure.parts = (mean_parts(&parts).into_iter())
                .map(|part| {
                    let what = defang::name(&part.what);
                    let value = (part.value * 1000.0).round() / 1000.0;
                    (values::value(unit, value), Excess::new(&what, value))
                })
                .filter(|(_, part)| !part.what.is_empty())
                .collect();
            figure.parts.sort_by(|a, b| a.1.what.cmp(&b.1.what));
        }
    }

    /// Returns the text of the file.
    pub fn text(&self) -> String {
        let mut text = format!("{MARK}{VERSION}\n");
        for ((budget, class), figure) in &self.figures {
            for night in &figure.nights {
                let _ = write!(text, "{budget} {class} {}: {} =", night.started, night.text);
                for run in &night.runs {
                    let _ = match run.samples {
                        Some(samples) => write!(text, " {}/{samples}", run.value),
                        None => write!(text, " {}", run.value),
                    };
                }
                if let Some(version) = &night.version {
                    let _ = write!(text, "; {version}");
                }
                text.push('\n');
            }
            for (
                value,
                Excess {
                    what, value: exact, ..
                },
            ) in &figure.parts
            {
                let _ = writeln!(text, "{budget} {class} {PART}: {value} = {exact} {what}");
            }
        }
        text
    }
}

impl Night {
    fn new(result: &ScenarioResult, budget: &BudgetResult) -> Night {
        let version = result.app_version.as_deref().map(defang::name);
        Night {
            started: result.started.clone(),
            version: version.filter(|version| !version.is_empty()),
            text: match &budget.judgement {
                Some(judged) => values::estimate(budget.unit, judged),
                None => "not judged".to_owned(),
            },
            runs: budget.figures.clone(),
        }
    }
}

fn measured(text: &str) -> Option<Measured> {
    let (value, samples) = match text.split_once('/') {
        Some((value, samples)) => (value, Some(number(samples).filter(|&n| n >= 0.0)?)),
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

    const TEXT: &str = "\
        a default 2026-11-19T01:02:03Z: 12.4 MiB (11.9 to 12.8) = 13003212/412 12998000.5/409; 2.0 (200)\n\
        a default 2026-11-20T01:02:03Z: 12.4 MiB = 13003212/412\n\
        a default part: 3.0 MiB = 3145728 Cache::insert(int) : x = y; z\n\
        b low-ram 2026-11-20T01:02:03Z: 2 objects = 2 2 2; 2; 1\n";

    #[test]
    fn a_baseline_is_what_was_written() {
        let read = Baseline::parse(TEXT).unwrap();
        assert_eq!(read.text(), format!("{MARK}{VERSION}\n{TEXT}"));
        assert_eq!(Baseline::parse(&read.text()).unwrap(), read);
        let nights = read.nights("a", "default", "now");
        assert_eq!(nights.len(), 2);
        assert_eq!(nights[0][1].value, 12_998_000.5);
        assert_eq!(nights[1][0].samples, Some(412.0));
        assert_eq!(read.nights("a", "default", "2026-11-19T01:02:03Z").len(), 1);
        assert!(read.nights("a", "low-ram", "now").is_empty());
        assert_eq!(
            read.parts("a", "default")[0].what,
            "Cache::insert(int) : x = y; z"
        );
        let history = read.history("b", "low-ram", "now");
        assert_eq!(history[0].app_version.as_deref(), Some("2; 1"));
        assert_eq!((history[0].mean, history[0].upper), (2.0, 2.0));
    }

    #[test]
    fn a_night_of_one_run_has_the_spread_of_the_others() {
        let history = Baseline::parse(TEXT)
            .unwrap()
            .history("a", "default", "now");
        let [first, second] = &history[..] else {
            panic!("{history:?}")
        };
        assert!(
            first.lower < first.mean && second.lower < second.mean,
            "{history:?}"
        );
    }

    #[test]
    fn a_night_is_added_once_and_the_oldest_is_dropped() {
        let mut baseline = Baseline::parse(TEXT).unwrap();
        let mut result = crate::results::fixture::all_states();
        let (name, class) = (result.budgets[0].name.clone(), result.device_class.clone());
        result.budgets[0].parts = vec![Excess::new("x\ny", 2.4 * 1_048_576.0)];
        for night in 10..25 {
            result.started = format!("2026-11-{night}T01:02:03Z");
            // Two devices of a class.
            baseline.update(&[&result, &result]);
            baseline.update(&[&result, &result]);
        }
        let nights = baseline.history(&name, &class, "now");
        assert_eq!(nights.len(), 2 * MAX_NIGHTS);
        assert_eq!(nights[0].started, "2026-11-15T01:02:03Z");
        assert_eq!(nights[19].started, "2026-11-24T01:02:03Z");
        let text = baseline.text();
        assert!(
            text.contains(&format!("{name} {class} part: 2.4 MiB = 2516582.4 x y\n")),
            "{text}"
        );
        assert!(text.contains("; 2.1 (210)\n"), "{text}");
        assert_eq!(baseline.nights("b", "low-ram", "now").len(), 1);
        assert_eq!(Baseline::parse(&text).unwrap(), baseline);
    }

    #[test]
    fn hostile_text_stays_on_its_line() {
        let mut result = crate::results::fixture::hostile();
        for budget in &mut result.budgets {
            // A scenario cannot have other names.
            budget.name = "name".to_owned();
            budget.parts = vec![Excess::new(crate::results::fixture::HOSTILE, 1.0)];
        }
        result.device_class = "class".to_owned();
        result.started = "2026-11-15T01:02:03Z".to_owned();
        let mut baseline = Baseline::default();
        baseline.update(&[&result]);
        let text = baseline.text();
        crate::results::fixture::assert_harmless(&text);
        assert_eq!(Baseline::parse(&text).unwrap(), baseline, "{text}");
    }

    #[test]
    fn a_wrong_line_is_named() {
        let key = "does not begin with a budget, a device class and a time";
        for (text, why) in [
            ("a default 1 = 2", "has no `: `"),
            ("a: 1 = 2", key),
            ("a default: 1 = 2", key),
            ("a default 1 2: 1 = 2", key),
            ("a default 1: 1", "has no ` = `"),
            ("a default 1: 1 = x", "has a value that is not a number"),
            ("a default 1: 1 = inf", "has a value that is not a number"),
            ("a default 1: 1 = 1/-1", "has a value that is not a number"),
            ("a default part: 1 = 1", "has a part without a name"),
            (
                "a default part: 1 = x y",
                "has a value that is not a number",
            ),
            (
                "# heaptap baseline 1: x",
                "has another version; remove the file to write a new one",
            ),
        ] {
            let error = Baseline::parse(text).unwrap_err();
            assert_eq!((error.line, error.why), (1, why), "{text}");
        }
    }
}
