//! What is told while an app is provoked. Times are of the phone's BOOTTIME, ns.

use serde::Serialize;

use super::trend::Trend;

/// Something happened.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// What an earlier run had left was put back first.
    PutBackFirst(PutBack),
    /// The screen was switched on, and unlocked where it was locked.
    Woke {
        /// Whether there was a lock screen.
        unlocked: bool,
    },
    /// The app was brought to the front before the first action.
    BroughtToFront(Launch),
    /// A round begins.
    Round {
        /// Which, from 1.
        round: u32,
        /// Of how many.
        of: u32,
    },
    /// One doing of an action is done.
    Step(Step),
    /// The app came to rest, or not in time.
    Settled {
        /// Which round.
        round: u32,
        /// Whether it did.
        settled: bool,
        /// How long that took on the phone's clock, ms.
        after_ms: u64,
        /// What still moved, in words.
        why: Option<String>,
    },
    /// The app's process is gone, though nothing was done to end it.
    Died(Death),
    /// The phone is away, and is waited for.
    Lost {
        /// What was lost.
        what: String,
        /// Whether the plan goes on where it stood once it is back; else what was changed is
        /// put back.
        goes_on: bool,
    },
    /// It is back, and the plan goes on.
    Returned {
        /// How long it was away on this host's clock, ms.
        after_ms: u64,
    },
    /// The phone is as it was.
    PutBack(PutBack),
}

/// One doing of an action.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Step {
    /// Which round, from 1.
    pub round: u32,
    /// The action as it is written.
    pub action: String,
    /// Which doing of it, from 1.
    pub time: u32,
    /// Of how many.
    pub of: u32,
    /// It was begun before, and cut by a lost cable: it may have been done twice.
    pub again: bool,
    /// When it began.
    pub begin_ns: u64,
    /// When its effect was seen, or given up.
    pub end_ns: u64,
    /// The process afterwards; `None` where there is none.
    pub pid: Option<u32>,
    /// RssAnon of the process afterwards, bytes.
    pub rss_anon: Option<u64>,
    /// What came of it.
    pub effects: Vec<Effect>,
}

impl Step {
    /// What it is in a timeline: `provoke rotate:10 (3 of 10)`.
    pub fn what(&self) -> String {
        match self.of {
            1 => format!("provoke {}", self.action),
            of => format!("provoke {} ({} of {of})", self.action, self.time),
        }
    }

    /// Whether something was to happen and did not.
    pub fn is_in_vain(&self) -> bool {
        self.effects.iter().any(Effect::is_in_vain)
    }
}

/// What came of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "effect", rename_all = "kebab-case")]
pub enum Effect {
    /// The activity in front was created anew.
    Recreated {
        /// `package/.Activity`.
        activity: String,
    },
    /// It was not: nothing was provoked.
    NotRecreated {
        /// `package/.Activity`.
        activity: String,
        /// Why, as far as the phone tells.
        why: String,
    },
    /// Nothing told whether it was.
    Unknown {
        /// Why.
        why: String,
    },
    /// The app left the front.
    InBackground,
    /// It stayed in front.
    StillInFront,
    /// The app was started, or came to the front.
    Launched(Launch),
    /// The app was asked for memory.
    Trimmed {
        /// The level's name.
        level: &'static str,
    },
    /// The phone refused to ask it.
    TrimRefused {
        /// The level's name.
        level: &'static str,
        /// Why, in words.
        why: String,
    },
    /// Random events were sent.
    Monkey {
        /// How many were to be.
        events: u32,
        /// How many were; `None` where it does not say.
        injected: Option<u32>,
        /// From which they follow.
        seed: u32,
        /// Why it ended early.
        aborted: Option<String>,
    },
    /// The processes that were to end did.
    Ended,
    /// They did not.
    StillRuns {
        /// Why, as far as is known.
        why: String,
    },
}

impl Effect {
    /// Whether something was to happen and did not.
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

/// How a start ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Launch {
    /// `COLD`, `WARM`, `HOT`; `None` before Android 10, or where there was none.
    pub state: Option<String>,
    /// The activity.
    pub activity: Option<String>,
    /// Until it was drawn, ms.
    pub total_ms: Option<u64>,
    /// It only came to the front, or was there: nothing was launched.
    pub only_to_front: bool,
    /// What is in front of it all the same: another app, a question of the system's.
    pub behind: Option<String>,
}

/// A process that ended by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Death {
    /// Its pid.
    pub pid: u32,
    /// Its name.
    pub process: String,
    /// The one after it, where there is one.
    pub next_pid: Option<u32>,
    /// Why, in the phone's words: `APP CRASH(EXCEPTION)`, `ANR`, `LOW_MEMORY` …
    pub reason: Option<String>,
    /// What the log says of it.
    pub log: Vec<String>,
}

impl Death {
    /// In words.
    pub fn why(&self) -> String {
        match (&self.reason, self.log.first()) {
            (Some(reason), Some(line)) => format!("{reason}: {line}"),
            (Some(reason), None) => reason.clone(),
            (None, Some(line)) => line.clone(),
            (None, None) => "the phone does not say why".to_owned(),
        }
    }
}

/// What came of all of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Doings.
    pub steps: u32,
    /// Of these, in vain.
    pub in_vain: u32,
    /// Processes that ended by themselves.
    pub deaths: Vec<Death>,
    /// Rounds that did not come to rest in time.
    pub unsettled: u32,
    /// Cables that were lost while it went on.
    pub lost: u32,
    /// What the process's anonymous memory did from round to round; `None` where nothing was
    /// repeated, or the plan was not done to its end.
    pub trend: Option<Trend>,
    /// What is in front at the end, as `package/.Activity`.
    pub front: Option<String>,
    /// What was put back.
    pub put_back: Option<PutBack>,
    /// The user ended it.
    pub interrupted: bool,
}

/// What was put back.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct PutBack {
    /// The phone.
    pub serial: String,
    /// Settings, each as `name=value`, or `name deleted`.
    pub settings: Vec<String>,
    /// A monkey that still ran was ended.
    pub monkey_ended: bool,
    /// The screen was switched off again.
    pub screen_off: bool,
}
