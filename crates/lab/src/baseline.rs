//! Baselines for version control: the figures of the last nights, a line each, sorted. A line has
//! the mean with its bounds for reviewers, and the values of the runs for comparisons. The largest
//! parts of the last night's figure follow.
//!
//! ```text
//! cache default 2026-11-19T01:02:03Z 3fa2b1: 12.4 MiB (11.9 to 12.8) = 13003212/412 12998000/409; 2.0
//! cache default part: 3.0 MiB = 3145728 Cache::insert
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::excess::mean_parts;
use crate::results::{
    BudgetResult, Excess, PastFigure, ScenarioResult, ci_escape, device_id, values,
};
use crate::verdict::{InterimAnalyses, Measured, Past, judge, judge_growth};

/// First line of a file, up to the version.
const MARK: &str = "# heaptap baseline ";
/// Version of the format, and what its lines are.
const VERSION: &str = "3: budget, device class, start, device: mean (bounds) = value/samples of \
                       each run; version of the app. `heaptap run --update-baseline` writes it";
/// Versions that are read; lines of version 2 do not have a device.
const READ: [&str; 2] = ["2:", "3:"];
/// Word for a time in the line of a part.
const PART: &str = "part";
/// Maximum number of nights of a device class.
const MAX_NIGHTS: usize = 10;
/// Maximum number of lines of a budget on a device class: one for each device in each night.
const MAX_LINES: usize = 100;

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
    /// The device as [`device_id`]; absent if it is unknown.
    device: Option<String>,
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
                && !READ.iter().any(|read| version.starts_with(read))
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
        let (Some(budget), Some(class), Some(time)) = (words.next(), words.next(), words.next())
        else {
            return Err("does not begin with a budget, a device class and a time");
        };
        let device = words.next();
        if words.next().is_some() || device.is_some_and(|device| !is_device_id(device)) {
            return Err("has a device that is not 6 hexadecimal digits");
        }
        let (text, rest) = rest.split_once(" = ").ok_or("has no ` = `")?;
        let key = (budget.to_owned(), class.to_owned());
        let figure = self.figures.entry(key).or_default();
        if time == PART {
            let (value, what) = rest.split_once(' ').ok_or("has a part without a name")?;
            let value = number(value).ok_or("has a value that is not a number")?;
            // The writer cleans the name in the same way.
            let what = ci_escape::name(what);
            if what.is_empty() {
                return Err("has a part without a name");
            }
            let part = (text.to_owned(), Excess::new(&what, value));
            figure.parts.push(part);
            return Ok(());
        }
        let (runs, version) = match rest.split_once("; ") {
            // As it is written.
            Some((runs, version)) => (runs, Some(ci_escape::name(version))),
            None => (rest, None),
        };
        let version = version.filter(|version| !version.is_empty());
        let runs = runs.split_whitespace().map(measured);
        let runs: Option<Vec<_>> = runs.collect();
        // The text would not be read again.
        if runs.as_ref().is_some_and(Vec::is_empty) {
            return Err("has no values");
        }
        figure.nights.push(Night {
            started: time.to_owned(),
            device: device.map(str::to_owned),
            version,
            text: text.to_owned(),
            runs: runs.ok_or("has a value that is not a number")?,
        });
        figure.sort();
        Ok(())
    }

    /// Returns the runs of each night of a budget on a device class, the latest last. Those that
    /// began at `now` are not earlier ones.
    pub fn nights(&self, budget: &str, class: &str, now: &str) -> Vec<&[Measured]> {
        let nights = self.earlier(budget, class, now);
        nights.iter().map(|night| night.runs.as_slice()).collect()
    }

    /// Returns [`Self::nights`] by device, for the device with this serial number.
    pub fn past(&self, budget: &str, class: &str, now: &str, serial: &str) -> Past<&[Measured]> {
        let nights = self.earlier(budget, class, now).into_iter();
        let nights = nights.map(|night| (night.device.as_deref(), night.runs.as_slice()));
        Past::new(&device_id(serial), nights)
    }

    fn earlier(&self, budget: &str, class: &str, now: &str) -> Vec<&Night> {
        let figure = self.figures.get(&(budget.to_owned(), class.to_owned()));
        let nights = figure.into_iter().flat_map(|figure| &figure.nights);
        nights.filter(|night| night.started != now).collect()
    }

    /// Returns the figure of each night with its bounds, as [`Self::nights`]. `floor` is that of the
    /// budget's [`judge`], or of [`judge_growth`] if `is_growth`.
    pub fn history(
        &self,
        budget: &str,
        class: &str,
        now: &str,
        (floor, is_growth): (f64, bool),
    ) -> Vec<PastFigure> {
        let nights = self.earlier(budget, class, now);
        let all = nights.iter().enumerate();
        let past = all.map(|(at, night)| {
            let is_other = |(other, _): &(usize, _)| *other != at;
            let others = nights.iter().enumerate().filter(is_other);
            let others: Vec<&[Measured]> = others.map(|(_, night)| night.runs.as_slice()).collect();
            let runs = night.runs.len();
            let judge = if is_growth { judge_growth } else { judge };
            // The limit does not matter for the bounds, except a limit of 0.
            let judged = judge(
                &night.runs,
                &others,
                1.0,
                floor,
                InterimAnalyses::new(runs, runs),
            );
            PastFigure {
                started: night.started.clone(),
                device: night.device.clone(),
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

    /// Adds a night of the budgets of these results, and drops the oldest. A night of a device that
    /// is there already is replaced. A device that also stands in for another one adds one night:
    /// a second one would hide how its nights spread.
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
        for (key, mut devices) in new {
            devices.sort_by_key(|(result, _)| result.device.instead_of.is_some());
            let mut added = BTreeSet::new();
            devices.retain(|(result, _)| added.insert(&result.device.serial));
            let figure = self.figures.entry(key).or_default();
            for (result, budget) in &devices {
                let new = Night::new(result, budget);
                figure.nights.retain(|night| !night.is_replaced_by(&new));
                figure.nights.push(new);
            }
            figure.sort();
            figure.drop_old();
            let parts: Vec<&[Excess]> = devices.iter().map(|(_, b)| b.parts.as_slice()).collect();
            let unit = devices[0].1.unit;
            figure.parts = (mean_parts(&parts).into_iter())
                .map(|part| {
                    let what = ci_escape::name(&part.what);
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
                let _ = write!(text, "{budget} {class} {}", night.started);
                if let Some(device) = &night.device {
                    let _ = write!(text, " {device}");
                }
                let _ = write!(text, ": {} =", night.text);
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

impl Figure {
    fn sort(&mut self) {
        let key = |night: &Night| (night.started.clone(), night.device.clone());
        self.nights.sort_by_key(key);
    }

    /// Drops what is older than the last nights. The devices of a night begin at different times: an
    /// earlier night ends where one of its devices occurs again.
    fn drop_old(&mut self) {
        let (mut devices, mut nights, mut kept) = (BTreeSet::new(), 1, 0);
        for night in self.nights.iter().rev() {
            if !devices.insert(&night.device) {
                devices = BTreeSet::from([&night.device]);
                nights += 1;
            }
            if nights > MAX_NIGHTS || kept == MAX_LINES {
                break;
            }
            kept += 1;
        }
        let old = self.nights.len() - kept;
        self.nights.drain(..old);
    }
}

fn is_device_id(text: &str) -> bool {
    text.len() == 6 && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

impl Night {
    fn is_replaced_by(&self, new: &Night) -> bool {
        let is_same_device = self.device.is_none() || self.device == new.device;
        self.started == new.started && is_same_device
    }

    fn new(result: &ScenarioResult, budget: &BudgetResult) -> Night {
        let version = result.app_version.as_deref().map(ci_escape::name);
        Night {
            started: result.started.clone(),
            device: Some(device_id(&result.device.serial)),
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
        a default 2026-11-19T01:02:03Z: 12.4 MiB (11.9 to 12.8) = 13003212/412 12998000.5/409; 2.0\n\
        a default 2026-11-20T01:02:03Z: 12.4 MiB = 13003212/412\n\
        a default part: 3.0 MiB = 3145728 Cache::insert(int) : x = y; z\n\
        b low-ram 2026-11-20T01:02:03Z 3fa2b1: 2 objects = 2 2 2; 2; 1\n";

    /// Found by fuzzing: the second reading lost one of them.
    #[test]
    fn a_version_with_control_characters_reads_back_as_written() {
        reads_back("a default 2026-11-20T01:02:03Z: 1 MiB = 1/1; 2\r\r\n");
    }

    /// Found by fuzzing.
    #[test]
    fn a_part_with_control_characters_reads_back_as_written() {
        reads_back("a default part: 3 B = 3 insert(int)\r\r\n");
        let error = Baseline::parse("a default part: 3 B = 3 \r\r\n").unwrap_err();
        assert_eq!(error.why, "has a part without a name");
    }

    fn reads_back(text: &str) {
        let written = Baseline::parse(text).unwrap().text();
        assert!(!written.contains('\r'), "{written:?}");
        assert_eq!(Baseline::parse(&written).unwrap().text(), written);
    }

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
        let history = read.history("b", "low-ram", "now", (1.0, false));
        assert_eq!(history[0].app_version.as_deref(), Some("2; 1"));
        assert_eq!(history[0].device.as_deref(), Some("3fa2b1"));
        assert_eq!((history[0].mean, history[0].upper), (2.0, 2.0));
    }

    #[test]
    fn baseline_night_without_values_is_refused() {
        let error = Baseline::parse("a default 1: x = 1\na default 0: x = ").unwrap_err();
        assert_eq!((error.line, error.why), (2, "has no values"));
        let error = Baseline::parse("a default 0: x = ; 2.0").unwrap_err();
        assert_eq!(error.why, "has no values");
    }

    #[test]
    fn bounds_of_a_night_have_the_floor_of_the_budget() {
        let read = Baseline::parse("a default 1: x = 0/0\nb default 1: x = 0 1 0 2\n").unwrap();
        let bounds = |budget, floor, is_growth| {
            let night = read
                .history(budget, "default", "now", (floor, is_growth))
                .remove(0);
            (night.lower, night.upper)
        };
        // Nothing sampled is less than three samples.
        let (lower, upper) = bounds("a", 4096.0, false);
        assert!(
            lower == 0.0 && (upper / 4096.0 - 3.0).abs() < 0.05,
            "{upper}"
        );
        assert_eq!(bounds("b", 1.0, false).0, 0.0);
        assert!(bounds("b", 1.0, true).0 < 0.0);
    }

    #[test]
    fn nights_of_a_device_are_its_own() {
        let id = device_id("R58M123");
        assert!(is_device_id(&id), "{id}");
        let text =
            format!("a default 1 {id}: x = 1\na default 2 3fa2b1: x = 2\na default 3: x = 3\n");
        let read = Baseline::parse(&text).unwrap();
        let past = read.past("a", "default", "now", "R58M123");
        let values = |nights: &[&[Measured]]| -> Vec<f64> {
            nights
                .iter()
                .flat_map(|night| night.iter())
                .map(|run| run.value)
                .collect()
        };
        // The night of an unknown device counts.
        assert_eq!(values(&past.own), [1.0, 3.0]);
        assert_eq!(
            past.others.iter().map(|n| values(n)).collect::<Vec<_>>(),
            [[2.0]]
        );
        let old = Baseline::parse(&format!("{MARK}2: as before\na default 1: x = 1\n")).unwrap();
        assert!(old.text().starts_with(&format!("{MARK}3: ")));
    }

    #[test]
    fn a_night_with_fewer_devices_drops_no_more_than_the_oldest() {
        let mut baseline = Baseline::default();
        let result = |serial: &str, night: usize, minute: usize| {
            let mut result = crate::results::fixture::all_states();
            result.device.serial = serial.to_owned();
            result.started = format!("2026-11-{night:02}T01:{minute:02}:00Z");
            result
        };
        for night in 1..=12 {
            // The devices begin in any order.
            let (a, b) = (result("a", night, night % 3), result("b", night, 1));
            baseline.update(&[&a, &b]);
        }
        let (name, class) = (
            result("a", 1, 1).budgets[0].name.clone(),
            result("a", 1, 1).device_class,
        );
        let count = |baseline: &Baseline| baseline.nights(&name, &class, "now").len();
        assert_eq!(count(&baseline), 2 * MAX_NIGHTS);
        baseline.update(&[&result("a", 13, 1)]);
        assert_eq!(count(&baseline), 2 * MAX_NIGHTS - 1);
        // A class whose devices are always others is bounded, too.
        for night in 0..2 * MAX_LINES {
            baseline.update(&[&result(&night.to_string(), 14, 1)]);
        }
        assert_eq!(count(&baseline), MAX_LINES);
    }

    #[test]
    fn a_night_of_one_run_has_the_spread_of_the_others() {
        let history = Baseline::parse(TEXT)
            .unwrap()
            .history("a", "default", "now", (1.0, false));
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
            let mut other = result.clone();
            other.device.serial = "other".to_owned();
            baseline.update(&[&result, &other]);
            baseline.update(&[&result, &other]);
        }
        let nights = baseline.history(&name, &class, "now", (1.0, false));
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
    fn a_device_that_stands_in_for_another_adds_one_night() {
        let own = crate::results::fixture::all_states();
        let (name, class) = (own.budgets[0].name.clone(), own.device_class.clone());
        let instead_of = |away: &str| {
            let mut result = own.clone();
            result.started = "2026-11-20T02:00:00Z".to_owned();
            result.device.instead_of = Some(away.to_owned());
            result
        };
        let [first, second] = ["away", "gone"].map(instead_of);
        let started = |results: &[&ScenarioResult]| {
            let mut baseline = Baseline::default();
            baseline.update(results);
            let history = baseline.history(&name, &class, "now", (1.0, false));
            let started = history.into_iter().map(|night| night.started);
            started.collect::<Vec<_>>()
        };
        assert_eq!(started(&[&first, &own, &second]), [own.started.as_str()]);
        // Its own figures failed.
        assert_eq!(started(&[&first, &second]), [first.started.as_str()]);
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
            (
                "a default 1 2: 1 = 2",
                "has a device that is not 6 hexadecimal digits",
            ),
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
