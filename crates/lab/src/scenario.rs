//! The YAML language of scenarios: what to do with an app, what to measure, and what it may use.
//!
//! | module | contents |
//! |---|---|
//! | `yaml` | a file as a tree of nodes with their places |
//! | `variables` | `${NAME}` in values |
//! | `matrix` | one scenario for each combination of values |
//! | `shape`, `forms` | the language as data: keys, values, descriptions |
//! | `check`, `actions` | check of a file against it; the actions of `provoke` |
//! | `problems`, `report` | errors with their places |
//! | `parse` | conversion to the types below |
//! | `schema` | the language as a JSON Schema |
//! | `init` | a first scenario for an app |

mod actions;
mod check;
mod forms;
mod init;
mod matrix;
mod parse;
mod problems;
mod report;
mod schema;
mod shape;
mod variables;
mod yaml;

#[cfg(test)]
mod tests;

use std::time::Duration;

pub use self::actions::Actions;
pub use self::forms::{Compare, DEFAULT_CLASS, END};
pub use self::init::first_scenario;
pub use self::problems::{Problem, Problems};
pub use self::schema::schema;
pub use self::yaml::MAX_BYTES;
use crate::results::Unit;

/// A scenario, checked: names, sizes, times and references are valid, variables are replaced.
#[derive(Debug, Clone, PartialEq)]
pub struct Scenario {
    /// Stable name; the history of its figures depends on it. With a matrix, the values of the
    /// cell follow: `login[locale=ar-EG]`.
    pub name: String,
    /// Values of its cell of the matrix; empty without a matrix.
    pub cell: Vec<(String, String)>,
    pub target: Target,
    /// The app to install before the first run.
    pub install: Option<Install>,
    pub record: Record,
    pub conditions: Conditions,
    pub measure: Measure,
    pub repeats: Repeats,
    /// Time limit of one run.
    pub timeout: Duration,
    /// Setup before the first run: each `shell` and action once, not recorded.
    pub setup: Vec<Step>,
    /// The steps of one run, in order.
    pub steps: Vec<Step>,
    /// Steps that run when something happens during a run.
    pub triggers: Vec<Trigger>,
    pub budgets: Vec<Budget>,
    pub keep: Keep,
    /// Device classes by name, in order; the first whose predicates hold names the device.
    pub devices: Vec<DeviceClass>,
}

/// The app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// One process, as `-n`.
    Name(String),
    /// All processes of a package, as `--package`.
    Package(String),
}

/// An app to install.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Install {
    /// APK files on the host, as written; relative to the scenario's file.
    pub apk: Vec<String>,
    /// Keep the app's data, or remove them by uninstalling first.
    pub keep_data: bool,
}

/// Options of the recording.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Record {
    /// Preset or config file, as `--config`.
    pub config: Option<String>,
    /// Sampling interval in bytes.
    pub interval: Option<u64>,
    /// Heaps, as `--heaps`.
    pub heaps: Vec<String>,
    /// Buffer between the app and heapprofd, bytes.
    pub shmem_size: Option<u64>,
    /// Record although the check says no, as `--no-check`.
    pub no_check: bool,
    /// Maximum size of the recording's file on the device, bytes.
    pub max_file: Option<u64>,
}

/// Conditions of the device during a run; its settings are restored afterwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Conditions {
    /// Keep the screen on.
    pub awake: bool,
    /// Switch animations off.
    pub no_animations: bool,
    /// Disable doze.
    pub no_doze: bool,
    /// Time for a hot device to cool down before a run.
    pub cool: Duration,
}

/// What to measure at each snapshot.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Measure {
    pub native: bool,
    pub java: bool,
    pub meminfo: bool,
    pub smaps: bool,
    pub gc: bool,
}

/// Number of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Repeats {
    pub min: usize,
    pub max: usize,
}

/// What becomes of the recordings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Keep {
    #[default]
    Always,
    /// Keep the recordings if a budget is not within its limit, or a run failed.
    OnFailure,
}

/// A step with its options.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    pub what: What,
    /// Time limit of the step; a default by action otherwise.
    pub timeout: Option<Duration>,
    /// Number of retries if the step fails.
    pub retry: u32,
    /// Line in the file, from 1.
    pub line: usize,
    /// Place in the file: `steps[4].steps[0]`.
    pub path: String,
}

/// What a step does.
#[derive(Debug, Clone, PartialEq)]
pub enum What {
    /// An action of `provoke`, as its text: `rotate:2`, `monkey:50,seed=7`.
    Act(String),
    /// Wait until the activity, a class name or its end such as `.MainActivity`, is in the foreground.
    WaitForActivity(String),
    /// Wait for a line of the app's log that matches the regular expression.
    WaitForLog(String),
    /// Wait until the app has been idle for this long.
    WaitForQuiet(Duration),
    /// A command on the device, by words: none is interpreted by a shell.
    Shell(Vec<String>),
    /// Do nothing.
    Sleep(Duration),
    /// Take a snapshot with this label.
    Snapshot(String),
    /// Dump the Java heap with this label.
    Dump { kind: DumpKind, label: String },
    /// Repeat steps; labels within get the iteration: `round-1`.
    Repeat { times: u32, steps: Vec<Step> },
}

impl What {
    /// Returns the label of a snapshot or dump.
    pub fn label(&self) -> Option<&str> {
        match self {
            What::Snapshot(label) | What::Dump { label, .. } => Some(label),
            _ => None,
        }
    }
}

/// Kind of a dump of the Java heap.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DumpKind {
    /// Heap graph by Perfetto.
    Java,
    /// HPROF by `am dumpheap`.
    Hprof,
}

impl DumpKind {
    /// Returns the word of the language.
    pub fn word(self) -> &'static str {
        match self {
            DumpKind::Java => "java",
            DumpKind::Hprof => "hprof",
        }
    }
}

/// Steps that run when something happens during a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Trigger {
    pub condition: Condition,
    /// Snapshots, dumps and commands; those of the run go on meanwhile.
    pub steps: Vec<Step>,
    /// Maximum number of times that it acts in a run; labels get the number if it exceeds 1.
    pub times: u32,
    /// Line in the file, from 1.
    pub line: usize,
    /// Place in the file: `triggers[0]`.
    pub path: String,
}

/// What a trigger waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// A line of the device's log that matches the regular expression.
    Log(String),
    /// An OutOfMemoryError of the app.
    OutOfMemory,
    /// PSS of a row of meminfo above this number of bytes.
    Meminfo { row: String, over: u64 },
    /// A trigger of Perfetto with this name.
    Perfetto(String),
}

impl Trigger {
    /// Returns the suffix of its labels when it acts for the `time`-th time, from 1.
    pub fn suffix(&self, time: u32) -> String {
        match self.times {
            1 => String::new(),
            _ => format!("-{time}"),
        }
    }

    /// Returns the labels of its steps, without suffixes.
    pub fn labels(&self) -> impl Iterator<Item = &str> {
        self.steps.iter().filter_map(|step| step.what.label())
    }
}

/// A budget.
#[derive(Debug, Clone, PartialEq)]
pub struct Budget {
    pub name: String,
    pub figure: Figure,
    /// Label at which the figure is read: the last snapshot with this label.
    pub at: String,
    /// The figure is its growth per iteration of a `repeat`, over the snapshots `LABEL-1` … of this label.
    pub per: Option<String>,
    pub limit: Limit,
    /// Line in the file, from 1.
    pub line: usize,
}

/// What a budget measures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Figure {
    /// Unreleased native bytes; of a library (file name), or of functions (regular expression).
    Native {
        library: Option<String>,
        function: Option<String>,
        heap: Option<String>,
    },
    /// Java objects of classes by name with `*`.
    Java { class: String, measure: JavaMeasure },
    /// Leaks of Java rules.
    Leaks,
    /// A row of meminfo: PSS in bytes.
    Meminfo { row: String },
    /// Bytes in use after the last collection.
    LiveSet,
}

/// Measure of Java objects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JavaMeasure {
    Instances,
    Shallow,
    Retained,
}

/// Limit of a budget.
#[derive(Debug, Clone, PartialEq)]
pub enum Limit {
    /// A value in the figure's unit, by device class; the last entry `default` if there is one.
    Value(Vec<(String, f64)>),
    /// Accepted growth over the baseline: 0.02 for `2%`.
    Change(f64),
}

/// A class of devices: all predicates hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeviceClass {
    pub name: String,
    /// `model: "Pixel*"`.
    pub model: Option<String>,
    /// `sdk: ">=31"`.
    pub sdk: Option<(Compare, u64)>,
    /// `ram: "<3GiB"`, in bytes.
    pub ram: Option<(Compare, u64)>,
}

impl Scenario {
    /// Returns whether a step starts the app.
    pub fn starts_app(&self) -> bool {
        self.has_act(&["start"])
    }

    /// Returns whether a step ends the app's process.
    pub fn ends_app(&self) -> bool {
        self.has_act(&["force-stop", "kill", "crash"])
    }

    fn has_act(&self, acts: &[&str]) -> bool {
        let is_one =
            |step: &&Step| matches!(&step.what, What::Act(text) if acts.contains(&text.trim()));
        all(&self.steps).iter().any(is_one)
    }

    /// Returns whether a step acts on the app, so that it must be one.
    pub fn needs_app(&self) -> bool {
        let acts = |step: &&Step| matches!(step.what, What::Act(_) | What::WaitForQuiet(_));
        let mut steps = all(&self.setup).into_iter().chain(all(&self.steps));
        steps.any(|step| acts(&step)) || self.install.is_some()
    }
}

/// Returns steps with those that they repeat.
fn all(steps: &[Step]) -> Vec<&Step> {
    let mut found: Vec<&Step> = steps.iter().collect();
    for step in steps {
        if let What::Repeat { steps, .. } = &step.what {
            found.extend(all(steps));
        }
    }
    found
}

impl Budget {
    /// Describes the figure: `native bytes of libapp.so at end`.
    pub fn describe(&self) -> String {
        let figure = match &self.figure {
            Figure::Native {
                library,
                function,
                heap,
            } => {
                let of = library.as_ref().or(function.as_ref());
                let of = of.map(|name| format!(" of {name}")).unwrap_or_default();
                let heap = heap.as_ref().map(|heap| format!(" in {heap}"));
                format!("unreleased native bytes{of}{}", heap.unwrap_or_default())
            }
            Figure::Java { class, measure } => match measure {
                JavaMeasure::Instances => format!("instances of {class}"),
                JavaMeasure::Shallow => format!("shallow bytes of {class}"),
                JavaMeasure::Retained => format!("bytes retained by {class}"),
            },
            Figure::Leaks => "Java leaks".to_owned(),
            Figure::Meminfo { row } => format!("PSS of {row} in meminfo"),
            Figure::LiveSet => "live set of the Java heap".to_owned(),
        };
        match &self.per {
            Some(label) => format!("growth of {figure} per {label}"),
            None => format!("{figure} at {}", self.at),
        }
    }
}

impl Figure {
    /// Returns the unit of the values.
    pub fn unit(&self) -> Unit {
        match self {
            Figure::Java {
                measure: JavaMeasure::Instances,
                ..
            } => Unit::Objects,
            Figure::Leaks => Unit::Leaks,
            _ => Unit::Bytes,
        }
    }
}
