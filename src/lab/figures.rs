//! Figures of the budgets in the directory of a finished run. Each source is read once, at the
//! labels that the budgets name.

mod java;
mod native;
pub(super) mod others;

use std::path::Path;

use heaptap_lab::results::Excess;
use heaptap_lab::scenario::{Budget, Figure, Scenario, Trigger};
use heaptap_lab::verdict::{MIN_ROUNDS, rounds_before_half, slope_of_second_half};

use super::state;
use heaptap_model::timeline::Timeline;
use heaptap_results::timeline;

/// Maximum number of parts of a run that are kept: more than are named, because the largest differ
/// from run to run.
const KEPT: usize = 20;

/// Reads the figures of all budgets, without the number of the run. `labels` are its snapshots in
/// order.
pub fn of_run(directory: &Path, scenario: &Scenario, labels: &[String]) -> Vec<state::Figure> {
    let mut sources = Sources {
        directory,
        labels,
        triggers: &scenario.triggers,
        native: None,
        timeline: None,
        java: java::Heaps::new(directory),
    };
    let budgets = scenario.budgets.iter();
    let figures = budgets.map(|budget| sources.figure(budget));
    figures
        .map(|mut figure| {
            figure.parts.truncate(KEPT);
            figure
        })
        .collect()
}

struct Sources<'a> {
    directory: &'a Path,
    labels: &'a [String],
    triggers: &'a [Trigger],
    /// The native heaps, once they are opened.
    native: Option<Result<native::Opened, String>>,
    /// The log of collections, once it is read.
    timeline: Option<Timeline>,
    java: java::Heaps<'a>,
}

impl Sources<'_> {
    fn figure(&mut self, budget: &Budget) -> state::Figure {
        if let Some(why) = self.not_triggered(budget) {
            return state::Figure::missing(why);
        }
        let Some(per) = &budget.per else {
            // Of a snapshot in a `repeat`, the last iteration.
            let last = match self.labels.contains(&budget.at) {
                true => None,
                false => rounds(self.labels, &budget.at).pop(),
            };
            return self.at(&budget.figure, last.as_deref().unwrap_or(&budget.at));
        };
        let rounds = rounds(self.labels, per);
        let mut values = Vec::new();
        let (mut parts, mut step) = (Vec::new(), None);
        for label in &rounds {
            let figure = self.at(&budget.figure, label);
            step = largest(step, figure.step);
            match figure.measured {
                Some(measured) => values.push(measured.value),
                None => {
                    let why = figure.missing.unwrap_or_default();
                    return state::Figure::missing(format!("at {label}: {why}"));
                }
            }
            parts.push(figure.parts);
        }
        match slope_of_second_half(&values) {
            // A growth can be negative; its error is the spread of the runs.
            Some(value) => state::Figure {
                step,
                ..state::Figure::new(value, None, grown(&parts))
            },
            None => state::Figure::missing(format!(
                "growth needs at least {MIN_ROUNDS} snapshots {per}-N, and the run has {}",
                values.len()
            )),
        }
    }

    /// Returns why the run does not have the label of a budget, if it is that of a trigger.
    fn not_triggered(&self, budget: &Budget) -> Option<String> {
        let label = budget.per.as_ref().unwrap_or(&budget.at);
        let has = |trigger: &&Trigger| {
            (1..=trigger.times).any(|time| {
                let suffix = trigger.suffix(time);
                let of = label.strip_suffix(&suffix);
                trigger.labels().any(|own| own == label || Some(own) == of)
            })
        };
        let trigger = self.triggers.iter().find(has)?;
        let is_taken = self.labels.contains(label) || !rounds(self.labels, label).is_empty();
        (!is_taken).then(|| format!("the trigger in line {} did not take {label}", trigger.line))
    }

    fn at(&mut self, figure: &Figure, label: &str) -> state::Figure {
        match figure {
            Figure::Native {
                library,
                function,
                heap,
            } => {
                let directory = self.directory;
                match self.native.get_or_insert_with(|| native::open(directory)) {
                    Ok(opened) => opened.figure(
                        label,
                        library.as_deref(),
                        function.as_deref(),
                        heap.as_deref(),
                    ),
                    Err(why) => state::Figure::missing(why.clone()),
                }
            }
            Figure::Java { class, measure } => self.java.classes(label, class, *measure),
            Figure::Leaks => self.java.leaks(label),
            Figure::Meminfo { row } => others::pss(self.directory, label, row),
            Figure::LiveSet => {
                let directory = self.directory;
                let read = || timeline::beside(directory).timeline;
                others::live_set(self.timeline.get_or_insert_with(read), label)
            }
        }
    }
}

/// Returns the larger of two rounding steps.
pub(super) fn largest(a: Option<f64>, b: Option<f64>) -> Option<f64> {
    a.into_iter().chain(b).reduce(f64::max)
}

/// Returns the growth of each part per round, largest first: over the rounds of the slope.
fn grown(rounds: &[Vec<Excess>]) -> Vec<Excess> {
    let rounds = &rounds[rounds_before_half(rounds.len())..];
    let (Some(first), Some(last)) = (rounds.first(), rounds.last()) else {
        return Vec::new();
    };
    let before = |what: &str| first.iter().find(|part| part.what == what);
    let mut grown: Vec<Excess> = last
        .iter()
        .map(|part| {
            let was = before(&part.what).map_or(0.0, |part| part.value);
            let steps = (rounds.len() - 1).max(1) as f64;
            Excess::new(&part.what, (part.value - was) / steps)
        })
        .filter(|part| part.value > 0.0)
        .collect();
    grown.sort_by(|a, b| b.value.total_cmp(&a.value));
    grown
}

/// Returns the labels of the iterations of a snapshot: `round-1`, `round-2`.
fn rounds(labels: &[String], of: &str) -> Vec<String> {
    let is_round = |label: &&String| {
        let number = label
            .strip_prefix(of)
            .and_then(|rest| rest.strip_prefix('-'));
        number.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    };
    labels.iter().filter(is_round).cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_growth_are_what_grew() {
        let round = |parts: &[(&str, f64)]| -> Vec<Excess> {
            let parts = parts.iter();
            parts
                .map(|&(what, value)| Excess::new(what, value))
                .collect()
        };
        let rounds = [
            round(&[("steady", 90.0), ("leak", 10.0)]),
            round(&[("steady", 90.0), ("leak", 14.0), ("new", 1.0)]),
            round(&[("steady", 89.0), ("leak", 18.0), ("new", 1.0)]),
        ];
        assert_eq!(grown(&rounds), round(&[("leak", 4.0), ("new", 0.5)]));
        assert!(grown(&[]).is_empty());
        // As the slope, without the first of four.
        let leak = [0.0, 10.0, 10.0, 18.0].map(|value| round(&[("leak", value)]));
        assert_eq!(grown(&leak), round(&[("leak", 4.0)]));
    }

    #[test]
    fn rounds_are_the_numbered_labels() {
        let labels = [
            "before", "round-1", "round-2", "round-x", "round", "rounds-1",
        ];
        let labels = labels.map(str::to_owned);
        assert_eq!(rounds(&labels, "round"), ["round-1", "round-2"]);
        assert!(rounds(&labels, "before").is_empty());
    }
}
