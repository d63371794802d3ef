//! What a scenario has done so far, in its output directory, so that a later `--resume` goes on.
//! Rewritten as a whole after each run.

use std::path::Path;

use heaptap_lab::results::{Build, Device, Excess, Run, RunState, TriggerRecord};
use heaptap_lab::verdict::Measured;
use heaptap_model::conditions::Conditions;
use serde::{Deserialize, Serialize};

use super::files::{self, PROGRESS};
use heaptap_base::error::Failure;

/// Schema version.
const VERSION: u32 = 1;
/// Maximum number of parts of a figure that are read.
pub(super) const PARTS: usize = 100;

/// What is done so far.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub version: u32,
    /// SHA-256 of the scenario with its variables replaced: figures of another do not mix.
    pub scenario_sha256: String,
    /// Start of the first run, RFC 3339.
    pub started: String,
    pub device: Device,
    pub device_class: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Directory of the installed app. Each installation has a random one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_code_path: Option<String>,
    /// The app is installed and the setup done.
    pub is_set_up: bool,
    /// Two builds alternate: each run installs its own. The request tells.
    #[serde(skip)]
    pub two_builds: bool,
    /// The build on the device, of two.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub installed: Option<Build>,
    /// Version of the old build.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_app_version: Option<String>,
    /// A run that has begun and is not in `runs`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub begun: Option<Begun>,
    pub runs: Vec<Run>,
    /// Number of runs of the commands before this one.
    #[serde(skip)]
    pub earlier: usize,
    /// Figures of the budgets, by budget and run; only of runs that count.
    pub figures: Vec<Vec<Figure>>,
}

/// Makes the run that is going on in a directory count no more: its recording does not end with its
/// steps. Without the file, nothing of it counts.
pub(super) fn void_begun(directory: &Path) {
    let read = || -> Option<Progress> {
        let text = std::fs::read(directory.join(PROGRESS)).ok()?;
        serde_json::from_slice(&text).ok()
    };
    if let Some(mut progress) = read()
        && let Some(begun) = &mut progress.begun
    {
        begun.performed = None;
        // If it cannot be written, the host's disk is full, and `--resume` reports that.
        let _ = progress.write(directory);
    }
}

/// A run that is going on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Begun {
    pub run: usize,
    /// Present when all steps are done, and only the recording is not finished.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub performed: Option<Performed>,
}

/// What the recording of a run does not contain.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Performed {
    /// Labels of its snapshots.
    pub labels: Vec<String>,
    /// Duration so far.
    pub seconds: f64,
    /// Triggers that acted.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerRecord>,
    /// Conditions of the device before the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before: Option<Conditions>,
}

/// Figure of a budget in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    pub run: usize,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Measured>,
    /// Rounding step of the value; absent if the kind of the figure determines it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<f64>,
    /// Reason of a missing figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Excess>,
}

impl Figure {
    /// Creates a figure from its parts, which are disjoint and not sampled.
    pub(super) fn sum_of(parts: Vec<Excess>) -> Figure {
        let value = parts.iter().map(|part| part.value).sum();
        Figure::new(value, None, parts)
    }

    pub(super) fn new(value: f64, samples: Option<f64>, mut parts: Vec<Excess>) -> Figure {
        parts.sort_by(|a, b| b.value.total_cmp(&a.value));
        parts.truncate(PARTS);
        Figure {
            run: 0,
            measured: Some(Measured { value, samples }),
            step: None,
            missing: None,
            parts,
        }
    }

    pub(super) fn missing(why: impl Into<String>) -> Figure {
        Figure {
            run: 0,
            measured: None,
            step: None,
            missing: Some(why.into()),
            parts: Vec::new(),
        }
    }
}

impl Progress {
    /// Creates the progress of a scenario that has just begun.
    pub fn new(scenario_sha256: String, started: String, budgets: usize) -> Progress {
        Progress {
            version: VERSION,
            scenario_sha256,
            started,
            device: Device::default(),
            device_class: String::new(),
            app_version: None,
            app_code_path: None,
            is_set_up: false,
            two_builds: false,
            installed: None,
            old_app_version: None,
            begun: None,
            runs: Vec::new(),
            earlier: 0,
            figures: vec![Vec::new(); budgets],
        }
    }

    /// Reads the progress of a directory.
    ///
    /// # Errors
    /// Returns an error if there is none, or if it is of another scenario.
    pub fn read(directory: &Path, scenario_sha256: &str) -> Result<Progress, Failure> {
        let path = directory.join(PROGRESS);
        let unusable = |why: String| files::cannot_resume(directory, &why);
        let text = std::fs::read(&path).map_err(|error| unusable(error.to_string()))?;
        let mut read: Progress = serde_json::from_slice(&text)
            .map_err(|error| unusable(format!("{PROGRESS} is damaged: {error}")))?;
        if read.version != VERSION {
            return Err(unusable(format!("{PROGRESS} has version {}", read.version)));
        }
        if read.scenario_sha256 != scenario_sha256 {
            return Err(unusable(
                "the scenario, its variables, its APKs or `--against` changed since it began"
                    .to_owned(),
            ));
        }
        read.earlier = read.runs.len();
        Ok(read)
    }

    /// Writes it.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be written.
    pub fn write(&self, directory: &Path) -> Result<(), Failure> {
        files::write_json(&directory.join(PROGRESS), self)
    }

    /// Notes that a run begins.
    pub fn begin(&mut self, run: usize) -> &mut Begun {
        self.begun.insert(Begun {
            run,
            performed: None,
        })
    }

    /// Returns the number of the next run.
    pub fn next_run(&self) -> usize {
        let done = self.runs.last().map_or(0, |run| run.number);
        done.max(self.begun.as_ref().map_or(0, |begun| begun.run)) + 1
    }

    /// Returns the runs that count, in order.
    fn done(&self) -> Vec<&Run> {
        let runs = self.runs.iter();
        runs.filter(|run| run.state == RunState::Done).collect()
    }

    /// Returns the number of runs of so many repeats: pairs, if two builds alternate.
    pub fn runs_of(&self, repeats: usize) -> usize {
        repeats * if self.two_builds { 2 } else { 1 }
    }

    /// Returns the number of complete repeats, and whether another one has begun.
    pub fn repeats(&self) -> (usize, bool) {
        let (done, one) = (self.done().len(), self.runs_of(1));
        (done / one, done % one != 0)
    }

    /// Returns the build of the next run, of two: old new, new old, old new … A drift of the device
    /// then cancels. Void runs are repeated in their place.
    pub fn next_build(&self) -> Option<Build> {
        let next = match self.done().len() % 4 {
            0 | 3 => Build::Old,
            _ => Build::New,
        };
        self.two_builds.then_some(next)
    }

    /// Returns the build of a run, of two.
    pub fn build_of(&self, number: usize) -> Option<Build> {
        let run = self.runs.iter().find(|run| run.number == number);
        run.and_then(|run| run.build)
    }

    /// Returns the figures of a budget in the runs that count, in order; of two builds, those of the
    /// new one.
    pub fn figures(&self, budget: usize) -> impl DoubleEndedIterator<Item = &Figure> {
        let figures = self.figures.get(budget).into_iter().flatten();
        figures.filter(|figure| self.build_of(figure.run) != Some(Build::Old))
    }

    /// Returns the values of [`Progress::figures`].
    pub fn measured(&self, budget: usize) -> Vec<Measured> {
        let figures = self.figures(budget);
        figures.filter_map(|figure| figure.measured).collect()
    }

    /// Returns a budget's figures of the old and the new build in each complete pair.
    pub fn pairs(&self, budget: usize) -> Vec<(Measured, Measured)> {
        let figures = self.figures.get(budget).map_or(&[][..], Vec::as_slice);
        let measured = |run: &&Run| {
            let figure = figures.iter().find(|figure| figure.run == run.number)?;
            figure.measured
        };
        let pair = |runs: &[&Run]| {
            let of = |build| runs.iter().find(|run| run.build == Some(build));
            let [old, new] = [of(Build::Old), of(Build::New)];
            Some((measured(old?)?, measured(new?)?))
        };
        self.done().chunks_exact(2).filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_alternate_and_a_void_run_is_repeated_in_its_pair() {
        let mut progress = Progress::new(String::new(), String::new(), 1);
        assert_eq!(progress.next_build(), None);
        progress.two_builds = true;
        let states = [RunState::Done, RunState::Void, RunState::Done];
        let states = states.into_iter().chain([RunState::Done; 3]);
        for (number, state) in (1..).zip(states) {
            let build = progress.next_build();
            progress.runs.push(Run {
                build,
                ..Run::new(number, state)
            });
            let measured = (state == RunState::Done && number != 6).then_some(Measured {
                value: number as f64,
                samples: None,
            });
            progress.figures[0].push(Figure {
                run: number,
                measured,
                step: None,
                missing: None,
                parts: Vec::new(),
            });
        }
        use Build::{New, Old};
        let builds: Vec<Build> = progress.runs.iter().filter_map(|run| run.build).collect();
        assert_eq!(builds, [Old, New, New, New, Old, Old]);
        assert_eq!(progress.repeats(), (2, true));
        assert_eq!(progress.next_build(), Some(New));
        let values = |pairs: Vec<(Measured, Measured)>| -> Vec<(f64, f64)> {
            pairs.iter().map(|(a, b)| (a.value, b.value)).collect()
        };
        assert_eq!(values(progress.pairs(0)), [(1.0, 3.0), (5.0, 4.0)]);
        let new: Vec<f64> = progress.measured(0).iter().map(|m| m.value).collect();
        assert_eq!(new, [3.0, 4.0]);
    }

    #[test]
    fn progress_is_read_back_and_only_for_its_scenario() {
        let directory = tempfile::tempdir().unwrap();
        let mut progress = Progress::new("ab".to_owned(), "2026-01-01T00:00:00Z".to_owned(), 2);
        progress.begin(3);
        progress.write(directory.path()).unwrap();
        assert_eq!(Progress::read(directory.path(), "ab").unwrap(), progress);
        assert_eq!(progress.next_run(), 4);
        let other = Progress::read(directory.path(), "cd").unwrap_err();
        assert_eq!(other.kind, "cannot-resume");
        std::fs::write(directory.path().join(PROGRESS), "{\"version\":1").unwrap();
        let damaged = Progress::read(directory.path(), "ab").unwrap_err();
        assert!(damaged.message.contains("damaged"), "{damaged}");
    }
}
