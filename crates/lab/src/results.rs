//! Results of a scenario as plain data, and in the formats of CI systems.
//!
//! | module | contents |
//! |---|---|
//! | [`defang`] | text from a device, safe for CI systems; escaping |
//! | [`values`] | values, bounds and verdicts for people |
//! | [`junit`] | JUnit XML for Jenkins, GitLab and others |
//! | [`github`] | annotations of GitHub Actions |
//! | [`markdown`] | a summary of a step or a merge request |
//! | [`gitlab`] | GitLab's metrics report |
//! | [`night`] | `index.html` of devices and scenarios |

pub mod defang;
pub mod github;
pub mod gitlab;
pub mod junit;
pub mod markdown;
mod names;
pub mod night;
pub mod values;

#[cfg(test)]
pub(crate) mod fixture;

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::verdict::{Judgement, Measured};

/// Schema version of `result.json`.
pub const SCHEMA_VERSION: u32 = 1;

/// Returns the relative path of a run's report page if it has one. Paths that are absolute or
/// contain `..` are not written.
pub type RunPage<'a> = &'a dyn Fn(&ScenarioResult, &Run) -> Option<String>;

/// Result of a scenario on one device: `result.json`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
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

/// One run of the steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Number, from 1.
    pub number: usize,
    pub state: RunState,
    /// Its directory, relative to that of `result.json`; absent if nothing was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
    pub seconds: f64,
    /// What failed or made the run void, as an error message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<RunError>,
    /// Triggers that acted, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<TriggerRecord>,
}

/// A trigger that acted during a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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

/// State of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RunState {
    /// Its figures count.
    Done,
    /// A recorded cause spoiled it, such as a reboot; it was repeated.
    Void,
    /// A step or the recording failed.
    Failed,
}

/// Error of a run, in the fields of heaptap's other errors.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    Bytes,
    /// Instances of a class.
    Objects,
    /// Leaks found.
    Leaks,
}

/// Result of a budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
    /// The figure of each run that has one, in order.
    pub figures: Vec<Measured>,
    /// Callsites, classes or rows that account for the excess, largest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub excess: Vec<Excess>,
}

/// Part of an excess.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Excess {
    /// A function with its callers, a class, or a row of meminfo.
    pub what: String,
    /// Its value, in the budget's unit.
    pub value: f64,
}
