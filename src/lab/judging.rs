//! Judges the budgets of a scenario from the figures so far.

use heaptap_lab::baseline::Baseline;
use heaptap_lab::excess::{account_for, mean_parts};
use heaptap_lab::results::{BudgetResult, Build, Excess};
use heaptap_lab::scenario::{Budget, DEFAULT_CLASS, Figure, Limit, Scenario, Step, What};
use heaptap_lab::verdict::{self, InterimAnalyses, Judgement, Measured, PairedChange, Verdict};

use super::figures::largest;
use super::state::{self, Progress};

/// Size of a page: the smallest step of PSS.
const PAGE: f64 = 4096.0;

/// What verdicts depend on besides the figures.
pub(super) struct Judging<'a> {
    pub scenario: &'a Scenario,
    /// Sampling interval, bytes.
    pub interval: u64,
    pub baseline: &'a Baseline,
    /// The figures are added to the baseline.
    pub updates_baseline: bool,
}

impl Judging<'_> {
    /// Judges all budgets; `last` if no run follows. A budget without a verdict has the reason.
    pub(super) fn all(&self, progress: &Progress, last: bool) -> Vec<Result<Judgement, String>> {
        let repeats = self.scenario.repeats;
        let looks = InterimAnalyses::new(repeats.min, repeats.max);
        let looks = if last { looks.last() } else { looks };
        let mut all: Vec<_> = (self.scenario.budgets.iter().enumerate())
            .map(|(at, budget)| self.one(budget, at, progress, looks))
            .collect();
        verdict::holm(all.iter_mut().filter_map(|judged| judged.as_mut().ok()));
        all
    }

    /// Judges a budget. Of runs without the figure nothing is known: the others can prove an excess,
    /// and not its absence.
    fn one(
        &self,
        budget: &Budget,
        at: usize,
        progress: &Progress,
        looks: InterimAnalyses,
    ) -> Result<Judgement, String> {
        let mut figures: Box<dyn Iterator<Item = &state::Figure>> = match budget.limit {
            Limit::Change(_) => Box::new(progress.figures.get(at).into_iter().flatten()),
            Limit::Value(_) => Box::new(progress.figures(at)),
        };
        let missing = figures.find_map(|figure| figure.missing.clone());
        let judged = self.measured(budget, at, progress, looks);
        match (missing, judged) {
            (Some(_), Ok(judged)) if judged.verdict == Verdict::Over => Ok(judged),
            (Some(why), _) => Err(why),
            (None, judged) => judged,
        }
    }

    fn measured(
        &self,
        budget: &Budget,
        at: usize,
        progress: &Progress,
        looks: InterimAnalyses,
    ) -> Result<Judgement, String> {
        let runs = progress.measured(at);
        if runs.is_empty() {
            return Err("no run was completed".to_owned());
        }
        let class = progress.device_class.as_str();
        let floor = self.floor(budget, at, progress);
        let nights = (self.baseline).nights(&budget.name, class, &progress.started);
        let limit = match &budget.limit {
            Limit::Change(_) if progress.two_builds => {
                let compared = self.compared(budget, at, progress, looks);
                let (judgement, _) = compared.ok_or("no pair of runs was completed")?;
                return Ok(judgement);
            }
            Limit::Change(change) => {
                let serial = &progress.device.serial;
                let past = (self.baseline).past(&budget.name, class, &progress.started, serial);
                return match past.is_empty() {
                    true if self.updates_baseline => Ok(first(&runs, *change, floor, looks)),
                    true => Err(format!(
                        "the baseline has no figure of it for the device class {class}; \
                         `--update-baseline` adds it"
                    )),
                    false => Ok(verdict::judge_change(&runs, &past, *change, floor, looks)),
                };
            }
            Limit::Value(limits) => {
                let of = |name: &str| limits.iter().find(|(class, _)| class == name);
                let limit = of(class).or_else(|| of(DEFAULT_CLASS));
                limit
                    .ok_or_else(|| format!("it has no limit for the device class {class}"))?
                    .1
            }
        };
        Ok(match budget.per {
            Some(_) => verdict::judge_growth(&runs, &nights, limit, floor, looks),
            None => verdict::judge(&runs, &nights, limit, floor, looks),
        })
    }

    /// Returns the least step of a budget's values; of a growth, that of its slope.
    fn floor(&self, budget: &Budget, at: usize, progress: &Progress) -> f64 {
        let steps = progress.figures.get(at).into_iter().flatten();
        let rounding = steps.fold(None, |step, figure| largest(step, figure.step));
        let step = match budget.figure {
            Figure::LiveSet => rounding.unwrap_or(1.0),
            Figure::Meminfo { .. } => PAGE,
            Figure::Native { .. } => self.interval as f64,
            _ => 1.0,
        };
        match &budget.per {
            None => step,
            // Triggers can act in fewer rounds, so that those do not count.
            Some(label) => {
                let rounds = rounds(&self.scenario.steps, label).unwrap_or_default();
                verdict::slope_step(step, rounds)
            }
        }
    }

    /// Compares two builds; nothing without pairs of their runs, or a budget for the change.
    fn compared(
        &self,
        budget: &Budget,
        at: usize,
        progress: &Progress,
        looks: InterimAnalyses,
    ) -> Option<(Judgement, Option<PairedChange>)> {
        let Limit::Change(change) = budget.limit else {
            return None;
        };
        let pairs = progress.pairs(at);
        (!pairs.is_empty())
            .then(|| verdict::judge_builds(&pairs, change, self.floor(budget, at, progress), looks))
    }

    /// Returns the results of all budgets after the last run.
    pub(super) fn results(&self, progress: &Progress) -> Vec<BudgetResult> {
        let judged = self.all(progress, true).into_iter();
        let class = progress.device_class.as_str();
        let budgets = self.scenario.budgets.iter().enumerate();
        std::iter::zip(budgets, judged)
            .map(|((at, budget), judged)| {
                let pairs = match budget.limit {
                    Limit::Change(_) => progress.pairs(at),
                    Limit::Value(_) => Vec::new(),
                };
                let looks =
                    InterimAnalyses::new(self.scenario.repeats.min, self.scenario.repeats.max);
                let compared = self.compared(budget, at, progress, looks.last());
                let kind = (self.floor(budget, at, progress), budget.per.is_some());
                let history = (self.baseline).history(&budget.name, class, &progress.started, kind);
                let parts = parts(progress.figures(at));
                let excess = match &judged {
                    Ok(judged) if judged.verdict == Verdict::Over => {
                        let (before, growth) = match pairs.is_empty() {
                            true => {
                                let last = history.last().map_or(judged.mean, |night| night.mean);
                                (self.baseline.parts(&budget.name, class), judged.mean - last)
                            }
                            false => {
                                let growth = pairs.iter().map(|(old, new)| new.value - old.value);
                                let growth = growth.sum::<f64>() / pairs.len() as f64;
                                (parts_of_old(progress, at), growth)
                            }
                        };
                        account_for(&parts, &before, growth)
                    }
                    _ => Vec::new(),
                };
                let (judgement, why) = match judged {
                    Ok(judgement) => (Some(judgement), None),
                    Err(why) => (None, Some(why)),
                };
                BudgetResult {
                    judgement,
                    missing: why,
                    figures: progress.measured(at),
                    pairs: (pairs.iter())
                        .map(|(old, new)| (old.value, new.value))
                        .collect(),
                    change: compared.and_then(|(_, change)| change),
                    parts,
                    excess,
                    history,
                    ..unmeasured(budget, "")
                }
            })
            .collect()
    }
}

/// Returns the judgement of the first figure of a baseline: later ones are compared with it.
fn first(runs: &[Measured], change: f64, floor: f64, looks: InterimAnalyses) -> Judgement {
    let mean = runs.iter().map(|run| run.value).sum::<f64>() / runs.len() as f64;
    let judged = verdict::judge(runs, &[], mean * (1.0 + change), floor, looks);
    if judged.confidence == 0.0 {
        return judged;
    }
    Judgement {
        verdict: Verdict::Within,
        why: Some("it is the first figure of the baseline".to_owned()),
        // Nothing was tested: `holm` then tests the other budgets as if this one did not exist.
        p_over: 0.0,
        ..judged
    }
}

/// Returns the result of a budget that no run measured, and why.
pub(super) fn unmeasured(budget: &Budget, why: &str) -> BudgetResult {
    BudgetResult {
        name: budget.name.clone(),
        what: budget.describe(),
        unit: budget.figure.unit(),
        line: budget.line,
        judgement: None,
        missing: Some(why.to_owned()),
        figures: Vec::new(),
        pairs: Vec::new(),
        change: None,
        parts: Vec::new(),
        excess: Vec::new(),
        history: Vec::new(),
    }
}

/// Returns the number of rounds of the `repeat` that contains a label.
fn rounds(steps: &[Step], label: &str) -> Option<usize> {
    steps.iter().find_map(|step| {
        let What::Repeat { times, steps } = &step.what else {
            return None;
        };
        let has = |step: &Step| step.what.label() == Some(label);
        match steps.iter().any(has) {
            true => Some(*times as usize),
            false => rounds(steps, label),
        }
    })
}

/// Returns the largest parts of a budget's figure in all runs that have it.
fn parts<'a>(figures: impl Iterator<Item = &'a state::Figure>) -> Vec<Excess> {
    let measured = figures.filter(|figure| figure.measured.is_some());
    let runs: Vec<&[Excess]> = measured.map(|figure| figure.parts.as_slice()).collect();
    mean_parts(&runs)
}

/// Returns the parts of a budget's figure in the runs of the old build, of two.
fn parts_of_old(progress: &Progress, budget: usize) -> Vec<Excess> {
    let figures = progress.figures.get(budget).into_iter().flatten();
    let is_old = |figure: &&state::Figure| progress.build_of(figure.run) == Some(Build::Old);
    parts(figures.filter(is_old))
}

#[cfg(test)]
mod tests {
    use super::*;
    use heaptap_lab::results::{Run, RunState};
    use heaptap_lab::scenario::Actions;

    fn scenario(budget: &str) -> Scenario {
        let text = format!(
            "version: 1\nname: a\ntarget: {{name: com.a}}\nmeasure: [native, java, meminfo, \
             gc]\nsteps: [start, {{repeat: 20, steps: [snapshot: round]}}]\nbudgets:\n- {budget}\n"
        );
        let actions = Actions {
            all: &[("start", "starts")],
            check: &|_| Ok(()),
        };
        Scenario::parse(&text, "a.yaml", &|_| None, &actions)
            .unwrap()
            .remove(0)
    }

    /// Figures of one budget; `None` is a run without it.
    fn progress(figures: &[Option<f64>]) -> Progress {
        let mut progress = Progress::new(String::new(), String::new(), 1);
        progress.device_class = DEFAULT_CLASS.to_owned();
        let figure = |(at, value): (usize, &Option<f64>)| state::Figure {
            run: at + 1,
            measured: value.map(|value| Measured {
                value,
                samples: None,
            }),
            step: None,
            missing: value.is_none().then(|| "no dump".to_owned()),
            parts: Vec::new(),
        };
        progress.figures[0] = figures.iter().enumerate().map(figure).collect();
        progress
    }

    /// The verdict of one budget from these figures.
    fn verdict(budget: &str, figures: &[Option<f64>]) -> Result<Verdict, String> {
        let (scenario, progress) = (scenario(budget), progress(figures));
        let judging = Judging {
            scenario: &scenario,
            interval: 4096,
            baseline: &Baseline::default(),
            updates_baseline: false,
        };
        let mut all = judging.all(&progress, true);
        all.remove(0).map(|judged| judged.verdict)
    }

    #[test]
    fn runs_without_the_figure_prevent_within_and_not_over() {
        let leaks = "{name: leaks, leaks: {}, limit: 0}";
        let none = Err("no dump".to_owned());
        assert_eq!(verdict(leaks, &[Some(3.0), None]), Ok(Verdict::Over));
        assert_eq!(
            verdict(leaks, &[Some(0.0), Some(0.0), None, Some(0.0)]),
            none
        );
        let all = [Some(0.0); 3];
        assert_eq!(verdict(leaks, &all), Ok(Verdict::Within));
    }

    #[test]
    fn a_growth_has_the_step_of_its_slope() {
        // Slopes of pages and samples of 4 KiB over 10 of 20 rounds.
        for figure in ["native: {}", "meminfo: {row: Graphics}"] {
            let budget = format!("{{name: a, {figure}, per: round, limit: 4KiB}}");
            let of = |values: [f64; 3]| verdict(&budget, &values.map(Some));
            assert_eq!(of([1000.0, 1100.0, 900.0]), Ok(Verdict::Within));
            assert_eq!(of([8000.0, 8200.0, 7900.0]), Ok(Verdict::Over));
            assert_eq!(of([4000.0, 4100.0, 4050.0]), Ok(Verdict::Undecided));
        }
        let scenario = scenario("{name: a, leaks: {}, limit: 0}");
        assert_eq!(rounds(&scenario.steps, "round"), Some(20));
        assert_eq!(rounds(&scenario.steps, "other"), None);
    }

    #[test]
    fn a_live_set_that_is_rounded_down_is_not_exact() {
        let verdict = |limit: &str, step| {
            let scenario = scenario(&format!("{{name: a, live-set: {{}}, limit: {limit}}}"));
            let mut progress = progress(&[Some(f64::from(25 << 20)); 3]);
            for figure in &mut progress.figures[0] {
                figure.step = Some(step);
            }
            let judging = Judging {
                scenario: &scenario,
                interval: 4096,
                baseline: &Baseline::default(),
                updates_baseline: false,
            };
            judging.all(&progress, true).remove(0).unwrap().verdict
        };
        // 25 MB in the log can be almost 26 MB.
        let megabyte = f64::from(1 << 20);
        assert_eq!(verdict("25.5MiB", megabyte), Verdict::Undecided);
        assert_eq!(verdict("30MiB", megabyte), Verdict::Within);
        assert_eq!(verdict("20MiB", megabyte), Verdict::Over);
        assert_eq!(verdict("25.5MiB", 1.0), Verdict::Within);
    }

    #[test]
    fn the_parts_of_two_builds_grew_by_the_mean_of_the_pairs() {
        let scenario = scenario("{name: a, native: {}, change: 2%}");
        let mut progress = progress(&[]);
        progress.two_builds = true;
        let part = |what: &str, value| Excess::new(what, value);
        for pair in 0..3 {
            for (build, cache, code) in [(Build::Old, 1e6, 1e6), (Build::New, 2e6, 1.1e6)] {
                let number = 2 * pair + if build == Build::Old { 1 } else { 2 };
                progress.runs.push(Run {
                    build: Some(build),
                    ..Run::new(number, RunState::Done)
                });
                progress.figures[0].push(state::Figure {
                    run: number,
                    measured: Some(Measured {
                        value: cache + code,
                        samples: None,
                    }),
                    step: None,
                    missing: None,
                    parts: vec![part("cache", cache), part("code", code)],
                });
            }
        }
        let judging = Judging {
            scenario: &scenario,
            interval: 4096,
            baseline: &Baseline::default(),
            updates_baseline: false,
        };
        let result = judging.results(&progress).remove(0);
        // 0.1 MB is 9% of the growth of a pair, and 3% of that of all.
        let named: Vec<&str> = result
            .excess
            .iter()
            .map(|part| part.what.as_str())
            .collect();
        assert_eq!(named, ["cache", "code"], "{result:?}");
    }

    #[test]
    fn a_change_without_a_baseline_says_how_to_write_one() {
        let change = "{name: all, native: {}, change: 2%}";
        let why = verdict(change, &[Some(1.0); 3]).unwrap_err();
        assert!(why.contains("--update-baseline"), "{why}");
    }
}
