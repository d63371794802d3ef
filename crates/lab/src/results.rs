//! Results of a scenario as plain data, and in the formats of CI systems.
//!
//! | module | contents |
//! |---|---|
//! | [`ci_escape`] | text from a device, safe for CI systems; escaping |
//! | [`values`] | values, bounds and verdicts for people |
//! | `names` | names that identify results from one build to the next |
//! | [`junit`] | JUnit XML for Jenkins, GitLab and others |
//! | [`github`] | annotations of GitHub Actions |
//! | [`markdown`] | a summary of a step or a merge request |
//! | [`gitlab`] | GitLab's metrics report |
//! | [`night`] | `index.html` of devices and scenarios |
//! | [`trend`] | picture of a figure by night |

pub mod ci_escape;
pub mod github;
pub mod gitlab;
pub mod junit;
pub mod markdown;
mod names;
pub mod night;
mod trend;
pub mod values;

#[cfg(test)]
pub(crate) mod fixture;

use std::borrow::Cow;
use std::fmt;

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use heaptap_model::conditions::{Conditions, LowMemoryKill};

use crate::verdict::{Judgement, Measured, PairedChange};

/// Schema version of `result.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// Returns the relative path of a run's report page if it has one. Paths that are absolute or
/// contain `..` are not written.
pub type RunPage<'a> = &'a dyn Fn(&ScenarioResult, &Run) -> Option<String>;

/// Returns the JSON Schema of `result.json`: a result, or the list of several.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize();
    let mut generator = settings.into_generator();
    let result = generator.subschema_for::<ScenarioResult>();
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "heaptap results",
        "description": "result.json of heaptap run",
        // Other than `anyOf`, it names the wrong key.
        "if": {"type": "array"},
        "then": {"items": result},
        "else": result,
        "$defs": generator.definitions(),
    })
}

/// Result of a scenario on one device: `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ScenarioResult {
    pub schema_version: u32,
    /// Name of the scenario.
    pub scenario: String,
    /// The scenario's file as typed.
    pub file: String,
    /// Device class; `default` if the scenario names none.
    pub device_class: String,
    /// Facts of the device: serial, model, Android version, build fingerprint.
    pub device: Device,
    /// Version of the app, if known: `versionName (versionCode)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Version of the old build, if two builds alternated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub old_app_version: Option<String>,
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// Duration in seconds.
    pub seconds: f64,
    /// The runs in order, including void and failed ones.
    pub runs: Vec<Run>,
    /// The budgets in the order of the scenario.
    pub budgets: Vec<BudgetResult>,
    /// Exit code of the scenario.
    pub exit_code: u8,
}

/// The device of a result.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Device {
    pub serial: String,
    /// Serial of the device of the same class that stayed away, if this one stands in for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instead_of: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// `Android 14 (SDK 34, user)`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub system: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<String>,
}

impl Device {
    /// Returns the name of the device among those of a scenario.
    pub fn name(&self) -> Cow<'_, str> {
        match &self.instead_of {
            None => Cow::Borrowed(&self.serial),
            Some(away) => Cow::Owned(format!("{} for {away}", self.serial)),
        }
    }
}

/// Returns a short name of a device, stable for its serial number: 6 hexadecimal digits.
pub fn device_id(serial: &str) -> String {
    // FNV-1a: any hash of few bits serves to tell the devices of a class apart.
    let hash = serial.bytes().fold(0x811c_9dc5_u32, |hash, byte| {
        (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193)
    });
    format!("{:06x}", (hash >> 24) ^ (hash & 0xff_ffff))
}

/// One run of the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    /// Number, from 1.
    pub number: usize,
    pub state: RunState,
    /// The build that it measured, if two builds alternated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub build: Option<Build>,
    /// Its directory, relative to that of `result.json`; absent if nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub seconds: f64,
    /// What failed or made the run void, as an error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conditions: Option<RunConditions>,
    /// Triggers that acted, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerRecord>,
}

impl Run {
    /// Returns a run of which nothing is known but its end.
    pub fn new(number: usize, state: RunState) -> Run {
        Run {
            number,
            state,
            build: None,
            output: None,
            seconds: 0.0,
            error: None,
            conditions: None,
            triggers: Vec::new(),
        }
    }
}

/// A trigger that acted during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TriggerRecord {
    /// `triggers[0]`, with its line in the scenario's file, from 1.
    pub trigger: String,
    pub line: usize,
    /// What happened: `TOTAL of meminfo: 412.0 MiB`.
    pub cause: String,
    /// Time since the begin of the run.
    pub seconds: f64,
    /// Labels of its snapshots and dumps.
    pub labels: Vec<String>,
    /// The error that ended its steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// Conditions of the device in a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct RunConditions {
    pub before: Conditions,
    /// Absent if the device was not at hand.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after: Option<Conditions>,
    /// Processes that the system killed meanwhile because memory was low.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub low_memory_kills: Vec<LowMemoryKill>,
}

/// One of two builds of an app.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Build {
    Old,
    New,
}

impl fmt::Display for Build {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Its figures count.
    Done,
    /// A recorded cause spoiled it, such as a reboot; it was repeated.
    Void,
    /// A step or the recording failed.
    Failed,
}

impl fmt::Display for RunState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

/// Error of a run, in the fields of heaptap's other errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// Exit code of its class.
    pub code: u8,
    /// Stable kind: `connection-lost`, `wait-timeout`.
    pub kind: String,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The step, as `steps[3]` with its line in the file; absent outside of the steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<String>,
    /// Line of the step in the scenario's file, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<usize>,
}

/// Unit of a budget's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Bytes,
    /// Instances of a class.
    Objects,
    /// Leaks found.
    Leaks,
}

/// Result of a budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetResult {
    pub name: String,
    /// Description of the figure: `native bytes of libapp.so at end`.
    pub what: String,
    pub unit: Unit,
    /// Line in the scenario's file, from 1.
    pub line: usize,
    /// Verdict; absent if no run measured the figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub judgement: Option<Judgement>,
    /// Reason of a missing figure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
    /// The figure of each run that has one, in order; of two builds, those of the new one.
    pub figures: Vec<Measured>,
    /// The values of the old and the new build in each pair of runs, if they were compared.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<(f64, f64)>,
    /// Change from the old build to the new one; absent if a value is not positive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub change: Option<PairedChange>,
    /// Its largest functions, classes, mappings or rows, as means over the runs, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub parts: Vec<Excess>,
    /// Of a budget over its limit, the parts that account for the excess: those that grew since
    /// the baseline, if it has the figure.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excess: Vec<Excess>,
    /// The figure in the nights of the baseline, the latest last.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub history: Vec<PastFigure>,
}

/// Part of a figure or of an excess.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Excess {
    /// A function, a class, a mapping, or a row of meminfo.
    pub what: String,
    /// Its value, in the budget's unit.
    pub value: f64,
    /// Its growth since the baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub growth: Option<f64>,
    /// The baseline does not list it; if its list is full, it grew by `growth` at least.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_new: bool,
}

impl Excess {
    /// Creates a part.
    pub fn new(what: &str, value: f64) -> Excess {
        Excess {
            what: what.to_owned(),
            value,
            growth: None,
            is_new: false,
        }
    }
}

/// Figure of an earlier night.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct PastFigure {
    /// Start, RFC 3339 in UTC.
    pub started: String,
    /// Short name of the device in the baseline; absent in lines of older versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub app_version: Option<String>,
    /// Mean over the runs.
    pub mean: f64,
    /// One-sided 95% bounds of the mean.
    pub lower: f64,
    pub upper: f64,
}
