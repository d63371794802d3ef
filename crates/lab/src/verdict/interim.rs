//! Numbers of runs after which budgets are judged. Every look at the same budget is a chance of a
//! wrong verdict, so the looks are planned, and each is more confident than 95%.

/// Least number of runs without a history.
pub const MIN_RUNS: usize = 3;
/// Least number of earlier runs with which fewer than [`MIN_RUNS`] runs are judged.
pub(crate) const MIN_EARLIER_RUNS: usize = 10;

/// Plan of the looks of a scenario with a minimum and maximum number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InterimAnalyses {
    min: usize,
    max: usize,
    last: bool,
}

impl InterimAnalyses {
    /// Plans looks after 1 (only with a history), 3, 5, 10, 20, `min` and `max` runs, as far as
    /// they are between `min` and `max`. `min` equal to `max` is one look at 95%.
    pub fn new(min: usize, max: usize) -> Self {
        Self {
            min,
            max,
            last: false,
        }
    }

    /// Makes the next look the last one, which accepts any number of runs from the minimum of the
    /// rule: the remaining runs do not have the figure, or do not take place.
    #[must_use]
    pub fn last(self) -> Self {
        Self { last: true, ..self }
    }

    /// Returns the planned looks in order, for the number of earlier runs.
    pub fn planned(self, earlier_runs: usize) -> Vec<usize> {
        let least = least_runs(earlier_runs).max(self.min);
        let mut looks = vec![1, MIN_RUNS, 5, 10, 20, self.min, self.max];
        looks.retain(|&look| look >= least && look <= self.max);
        looks.sort_unstable();
        looks.dedup();
        looks
    }

    /// Returns the next planned look after `runs` runs.
    pub fn next(self, runs: usize, earlier_runs: usize) -> Option<usize> {
        let looks = self.planned(earlier_runs);
        looks.into_iter().find(|&look| look > runs)
    }

    /// Returns the one-sided confidence of each look. All looks together are wrong in at most 5% of
    /// the budgets exactly at their limit: 4.9% for the looks 3, 5, 10, and 4.8% for 3, 5, 10, 20
    /// (200,000 simulated budgets).
    pub fn confidence(self, earlier_runs: usize) -> f64 {
        match self.planned(earlier_runs).len() {
            0 | 1 => 0.95,
            2 | 3 => 0.98,
            4 => 0.985,
            _ => 0.99,
        }
    }

    /// Returns the reason why no number of runs gives a verdict without earlier runs.
    pub fn never_decides(self) -> Option<String> {
        let is_never = self.planned(0).is_empty();
        self.objection(self.max, 0).filter(|_| is_never)
    }

    /// Returns the reason why there is no look after `runs` runs.
    pub(super) fn objection(self, runs: usize, earlier_runs: usize) -> Option<String> {
        let least = least_runs(earlier_runs);
        if runs < least {
            return Some(format!(
                "{runs} {} too few: a verdict needs {least}, or 1 with {MIN_EARLIER_RUNS} earlier \
                 runs",
                if runs == 1 { "run is" } else { "runs are" }
            ));
        }
        if self.last || self.planned(earlier_runs).contains(&runs) {
            return None;
        }
        Some(match self.next(runs, earlier_runs) {
            Some(next) => format!("the next verdict is after {next} runs"),
            None => format!("no verdict is planned after {runs} runs"),
        })
    }
}

fn least_runs(earlier_runs: usize) -> usize {
    if earlier_runs >= MIN_EARLIER_RUNS {
        1
    } else {
        MIN_RUNS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_within_the_repeats_and_need_a_history_for_one_run() {
        assert_eq!(InterimAnalyses::new(3, 5).planned(0), [3, 5]);
        assert_eq!(InterimAnalyses::new(1, 5).planned(9), [3, 5]);
        assert_eq!(InterimAnalyses::new(1, 5).planned(10), [1, 3, 5]);
        assert_eq!(InterimAnalyses::new(3, 5).planned(10), [3, 5]);
        assert_eq!(
            InterimAnalyses::new(1, 2).never_decides().as_deref(),
            Some("2 runs are too few: a verdict needs 3, or 1 with 10 earlier runs")
        );
        assert_eq!(InterimAnalyses::new(1, 3).never_decides(), None);
        assert_eq!(InterimAnalyses::new(4, 8).planned(0), [4, 5, 8]);
        assert_eq!(InterimAnalyses::new(1, 1).planned(0), [0; 0]);
        assert_eq!(
            InterimAnalyses::new(1, 50).planned(10),
            [1, 3, 5, 10, 20, 50]
        );
        assert_eq!(InterimAnalyses::new(5, 3).planned(10), [0; 0]);
        assert_eq!(InterimAnalyses::new(3, 5).next(3, 0), Some(5));
        assert_eq!(InterimAnalyses::new(3, 5).next(5, 0), None);
    }

    #[test]
    fn confidence_grows_with_the_number_of_looks() {
        assert_eq!(InterimAnalyses::new(5, 5).confidence(0), 0.95);
        assert_eq!(InterimAnalyses::new(3, 5).confidence(0), 0.98);
        assert_eq!(InterimAnalyses::new(1, 5).confidence(10), 0.98);
        assert_eq!(InterimAnalyses::new(1, 10).confidence(10), 0.985);
        assert_eq!(InterimAnalyses::new(1, 80).confidence(10), 0.99);
    }

    #[test]
    fn objection_names_the_number_of_runs_that_is_needed() {
        let looks = InterimAnalyses::new(1, 5);
        assert_eq!(looks.objection(1, 10), None);
        assert_eq!(
            looks.objection(1, 9).unwrap(),
            "1 run is too few: a verdict needs 3, or 1 with 10 earlier runs"
        );
        assert_eq!(
            looks.objection(4, 0).unwrap(),
            "the next verdict is after 5 runs"
        );
        assert_eq!(looks.last().objection(4, 0), None);
        assert!(looks.last().objection(2, 0).is_some());
        assert!(looks.objection(6, 0).is_some());
    }
}
