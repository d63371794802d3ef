//! Events of a scenario, for display.

use std::sync::Arc;

use heaptap_lab::results::{Build, RunError, RunState};
use serde::Serialize;

use crate::recording::events::RecordEvent;

/// An event of a scenario.
#[derive(Debug, Clone, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum LabEvent {
    /// A scenario begins on a device.
    Scenario { scenario: String },
    ScenarioEnded {
        scenario: String,
        /// As in its result.
        exit_code: u8,
    },
    /// A run begins.
    Run {
        /// Number, from 1.
        run: usize,
        /// Number of runs after which the budgets are decided at the latest.
        at_most: usize,
        /// The build that it measures, if two alternate.
        #[serde(skip_serializing_if = "Option::is_none")]
        build: Option<Build>,
    },
    /// A step begins.
    Step {
        run: usize,
        /// `steps[2]`.
        step: String,
        /// What it does: `rotate:2`, `snapshot before`.
        what: String,
    },
    /// A step failed and is repeated.
    StepRetry {
        run: usize,
        step: String,
        /// The error.
        why: String,
    },
    /// A trigger acts: its steps follow.
    Trigger {
        run: usize,
        /// `triggers[0]`.
        trigger: String,
        /// What happened: `OutOfMemoryError of com.example.app`.
        cause: String,
    },
    /// Warning for the user.
    Warning { text: String },
    /// A run is over.
    RunEnded {
        run: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        build: Option<Build>,
        state: RunState,
        seconds: f64,
        #[serde(skip_serializing_if = "Option::is_none")]
        error: Option<RunError>,
    },
    /// The number of budgets by verdict after a run.
    Budgets {
        run: usize,
        within: usize,
        over: usize,
        undecided: usize,
    },
    /// An event of the run's recording.
    #[serde(untagged)]
    Recording(RecordEvent),
}

/// An event of a scenario on one of several devices.
#[derive(Debug, Clone, Serialize)]
pub struct DeviceEvent {
    /// Serial number of the device.
    pub serial: String,
    #[serde(flatten)]
    pub event: LabEvent,
}

/// Handles the events of a scenario; must return immediately.
pub type LabEvents = Arc<dyn Fn(LabEvent) + Send + Sync>;
