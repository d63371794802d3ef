//! Events of provoking an app. Times are of the device's BOOTTIME, ns.

use serde::Serialize;

use super::trend::Trend;

/// Event of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// Settings that an earlier run had changed were restored first.
    #[serde(rename = "restored-first")]
    PutBackFirst(PutBack),
    /// The screen was switched on, and unlocked if it was locked.
    Woke {
        /// There was a lock screen.
        unlocked: bool,
    },
    /// The app was brought to the foreground before the first action.
    #[serde(rename = "brought-to-foreground")]
    BroughtToFront(Launch),
    /// An iteration begins.
    #[serde(rename = "iteration")]
    Round {
        /// Iteration, from 1.
        #[serde(rename = "iteration")]
        round: u32,
        /// Number of iterations.
        #[serde(rename = "iterations")]
        of: u32,
    },
    /// Report of one repetition of an action.
    Step(Step),
    /// The app became idle, or did not in time.
    Settled {
        /// Iteration, from 1.
        #[serde(rename = "iteration")]
        round: u32,
        /// It became idle.
        settled: bool,
        /// Waiting time by the device's clock, ms.
        after_ms: u64,
        /// Text about what still changed.
        why: Option<String>,
    },
    /// The app's process is gone, without an action that ends it.
    Died(Death),
    /// The device is disconnected, and the run waits for it.
    #[serde(rename = "connection-lost")]
    Lost {
        /// The error.
        what: String,
        /// The plan continues when the device is back; otherwise the changed settings are
        /// restored.
        #[serde(rename = "continues")]
        goes_on: bool,
    },
    /// The device is back, and the plan continues.
    #[serde(rename = "reconnected")]
    Returned {
        /// Duration of the disconnection by this host's clock, ms.
        after_ms: u64,
    },
    /// The device is restored.
    #[serde(rename = "restored")]
    PutBack(PutBack),
}

/// One repetition of an action.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Step {
    /// Iteration, from 1.
    #[serde(rename = "iteration")]
    pub round: u32,
    /// The action in its text form.
    pub action: String,
    /// Repetition, from 1.
    #[serde(rename = "repetition")]
    pub time: u32,
    /// Number of repetitions.
    #[serde(rename = "repetitions")]
    pub of: u32,
    /// A disconnection interrupted an earlier attempt: it might have been done twice.
    #[serde(rename = "retried")]
    pub again: bool,
    /// Start.
    pub begin_ns: u64,
    /// End: the effect was observed, or given up.
    pub end_ns: u64,
    /// PID of the process afterwards; `None` if there is none.
    pub pid: Option<u32>,
    /// RssAnon of the process afterwards, bytes.
    pub rss_anon: Option<u64>,
    /// Effects of its commands.
    pub effects: Vec<Effect>,
}

impl Step {
    /// Returns the name of the repetition in a timeline: `provoke rotate:10 (3 of 10)`.
    pub fn what(&self) -> String {
        match self.of {
            1 => format!("provoke {}", self.action),
            of => format!("provoke {} ({} of {of})", self.action, self.time),
        }
    }

    /// Returns whether an expected effect did not occur.
    pub fn is_in_vain(&self) -> bool {
        self.effects.iter().any(Effect::is_in_vain)
    }
}

/// Effect of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "effect", rename_all = "kebab-case")]
pub enum Effect {
    /// The foreground activity was recreated.
    Recreated {
        /// `package/.Activity`.
        activity: String,
    },
    /// It was not recreated, so nothing was provoked.
    NotRecreated {
        /// `package/.Activity`.
        activity: String,
        /// Reason, as far as the device shows it.
        why: String,
    },
    /// It is unknown whether it was recreated.
    Unknown { why: String },
    /// The app left the foreground.
    InBackground,
    /// The app stayed in the foreground.
    #[serde(rename = "still-in-foreground")]
    StillInFront,
    /// The app was started or brought to the foreground.
    Launched(Launch),
    /// The app received the trim request.
    Trimmed {
        /// Name of the level.
        level: &'static str,
    },
    /// The device refused the trim request.
    TrimRefused {
        /// Name of the level.
        level: &'static str,
        /// Reason.
        why: String,
    },
    /// Random events were sent.
    Monkey {
        /// Requested number of events.
        events: u32,
        /// Number of events sent; `None` if monkey did not print it.
        injected: Option<u32>,
        /// Seed of the events.
        seed: u32,
        /// Reason for an early end.
        aborted: Option<String>,
    },
    /// The processes have ended.
    Ended,
    /// The processes are still running.
    StillRuns {
        /// Reason, if known.
        why: String,
    },
}

impl Effect {
    /// Returns whether an expected effect did not occur.
    pub fn is_in_vain(&self) -> bool {
        match self {
            Effect::NotRecreated { .. }
            | Effect::StillInFront
            | Effect::TrimRefused { .. }
            | Effect::StillRuns { .. } => true,
            Effect::Monkey { aborted, .. } => aborted.is_some(),
            Effect::Launched(launch) => launch.behind.is_some(),
            _ => false,
        }
    }
}

/// Result of a start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Launch {
    /// `COLD`, `WARM`, `HOT`; `None` before Android 10, or if nothing was launched.
    pub state: Option<String>,
    pub activity: Option<String>,
    /// Time until it was drawn, ms.
    pub total_ms: Option<u64>,
    /// It was only brought to the foreground, or already there: nothing was launched.
    #[serde(rename = "only_to_foreground")]
    pub only_to_front: bool,
    /// Activity in front of it nevertheless: of another app, or a system dialog.
    #[serde(rename = "covered_by")]
    pub behind: Option<String>,
}

/// A process that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Death {
    pub pid: u32,
    pub process: String,
    /// PID of its successor, if there is one.
    pub next_pid: Option<u32>,
    /// Reason given by the device: `APP CRASH(EXCEPTION)`, `ANR`, `LOW_MEMORY` …
    pub reason: Option<String>,
    /// Log lines about it.
    pub log: Vec<String>,
}

impl Death {
    /// Formats the reason for people.
    pub fn why(&self) -> String {
        match (&self.reason, self.log.first()) {
            (Some(reason), Some(line)) => format!("{reason}: {line}"),
            (Some(reason), None) => reason.clone(),
            (None, Some(line)) => line.clone(),
            (None, None) => "the device does not report a reason".to_owned(),
        }
    }
}

/// Summary of a run.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Number of repetitions.
    pub steps: u32,
    /// Number of repetitions without their expected effect.
    pub without_effect: u32,
    /// Number of times that a rotation recreated the foreground activity, including by restoring.
    pub recreations: u32,
    /// Restoring the rotation recreated it: the screen was turned at the end.
    pub recreated_by_restoring: bool,
    /// Processes that ended by themselves.
    pub deaths: Vec<Death>,
    /// Number of iterations after which the app did not become idle in time.
    pub unsettled: u32,
    /// Number of disconnections during the run.
    #[serde(rename = "disconnections")]
    pub lost: u32,
    /// Change of the process's anonymous memory; `None` if nothing was repeated, or if the plan did
    /// not finish.
    pub trend: Option<Trend>,
    /// Foreground activity at the end, as `package/.Activity`.
    #[serde(rename = "foreground")]
    pub front: Option<String>,
    /// Restored settings.
    pub restored: Option<PutBack>,
    /// The user interrupted it.
    pub interrupted: bool,
}

/// Restored settings.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PutBack {
    pub serial: String,
    /// Settings, each as `name=value`, or `name deleted`.
    pub settings: Vec<String>,
    /// A running monkey was ended.
    pub monkey_ended: bool,
    /// The screen was switched off again.
    pub screen_off: bool,
}
