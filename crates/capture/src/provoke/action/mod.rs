//! Actions as plain values: what may be done, with which numbers.
//!
//! | module | owns |
//! |---|---|
//! | `parse` | an action as it is typed, and what is wrong with what is none |
//! | `trim` | the levels of requests to give memory back |
//! | `yaml` | an action in YAML and JSON |

mod parse;
mod trim;
mod yaml;

use std::fmt;
use std::time::Duration;

pub use self::parse::ActionError;
pub use self::trim::{Trim, TrimLevel};

/// How long a finger moves where nothing else is said.
const SWIPE: Duration = Duration::from_millis(300);
/// How long a monkey rests after each event where nothing else is said.
const THROTTLE: Duration = Duration::from_millis(100);

/// Something to be done to an app.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Turn the screen so often: each time the activity in front is created anew.
    Rotate(u32),
    /// Press HOME and come back, so often.
    HomeAndBack(u32),
    /// Open another app (the system's settings) and come back, so often.
    SwitchApps(u32),
    /// Back out of the app and start it with an empty task, so often.
    RestartActivity(u32),
    /// Ask the app to give memory back.
    Trim(Trim),
    /// Send random events.
    Monkey(Monkey),
    /// Open a link in the app.
    DeepLink(String),
    /// Touch a point.
    Tap(Point),
    /// Move a finger.
    Swipe(Swipe),
    /// Press a key.
    Key(Key),
    /// Type.
    Text(String),
    /// Do nothing, on the phone's clock.
    Wait(Duration),
    /// Start the app, or bring it to the front.
    Start,
    /// Press HOME.
    Home,
    /// End all of the app's processes, and what it shows.
    ForceStop,
    /// End the app's process as the system does to save memory: it has to be in the background.
    Kill,
    /// Let the app's process crash.
    Crash,
    /// Let the kernel move the app's pages to swap.
    Compact,
}

/// Random events of Android's `monkey`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monkey {
    /// How many.
    pub events: u32,
    /// From which they follow: the same seed gives the same events.
    pub seed: Option<u32>,
    /// Pause after each.
    pub throttle: Duration,
}

/// A point of the screen, pixels from its top left corner as it is turned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// To the right.
    pub x: u32,
    /// Down.
    pub y: u32,
}

/// A movement of a finger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swipe {
    /// Where it begins.
    pub from: Point,
    /// Where it ends.
    pub to: Point,
    /// How long it takes.
    pub takes: Duration,
}

/// A key by its name without `KEYCODE_`, or by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// A key by its name (`BACK`, `KEYCODE_BACK`, `back`) or number.
    pub fn new(text: &str) -> Option<Key> {
        let upper = text.to_ascii_uppercase();
        let plain = upper.strip_prefix("KEYCODE_").unwrap_or(&upper);
        let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let known = (1..=48).contains(&plain.len()) && plain.chars().all(fits);
        known.then(|| Key(plain.to_owned()))
    }

    /// As `input keyevent` takes it.
    pub fn code(&self) -> String {
        match self.0.parse::<u32>() {
            Ok(number) => number.to_string(),
            Err(_) => format!("KEYCODE_{}", self.0),
        }
    }
}

impl Action {
    /// The word before the colon.
    pub fn name(&self) -> &'static str {
        match self {
            Action::Rotate(_) => "rotate",
            Action::HomeAndBack(_) => "home-and-back",
            Action::SwitchApps(_) => "switch-apps",
            Action::RestartActivity(_) => "restart-activity",
            Action::Trim(_) => "trim",
            Action::Monkey(_) => "monkey",
            Action::DeepLink(_) => "deep-link",
            Action::Tap(_) => "tap",
            Action::Swipe(_) => "swipe",
            Action::Key(_) => "key",
            Action::Text(_) => "text",
            Action::Wait(_) => "wait",
            Action::Start => "start",
            Action::Home => "home",
            Action::ForceStop => "force-stop",
            Action::Kill => "kill",
            Action::Crash => "crash",
            Action::Compact => "compact",
        }
    }

    /// What stands behind the colon; `None` where there is none.
    fn value(&self) -> Option<String> {
        match self {
            Action::Rotate(n)
            | Action::HomeAndBack(n)
            | Action::SwitchApps(n)
            | Action::RestartActivity(n) => Some(n.to_string()),
            Action::Trim(Trim::All) => Some("all".to_owned()),
            Action::Trim(Trim::Level(level)) => Some(level.name().to_owned()),
            Action::Monkey(m) => {
                let mut text = m.events.to_string();
                if let Some(seed) = m.seed {
                    text.push_str(&format!(",seed={seed}"));
                }
                if m.throttle != THROTTLE {
                    text.push_str(&format!(",throttle={}ms", m.throttle.as_millis()));
                }
                Some(text)
            }
            Action::DeepLink(uri) => Some(uri.clone()),
            Action::Tap(at) => Some(format!("{},{}", at.x, at.y)),
            Action::Swipe(s) => {
                let mut text = format!("{},{},{},{}", s.from.x, s.from.y, s.to.x, s.to.y);
                if s.takes != SWIPE {
                    text.push_str(&format!(",{}", s.takes.as_millis()));
                }
                Some(text)
            }
            Action::Key(key) => Some(key.0.clone()),
            Action::Text(text) => Some(text.clone()),
            Action::Wait(long) => Some(format!("{}ms", long.as_millis())),
            _ => None,
        }
    }

    /// How often it is done.
    pub fn times(&self) -> u32 {
        match self {
            Action::Rotate(n)
            | Action::HomeAndBack(n)
            | Action::SwitchApps(n)
            | Action::RestartActivity(n) => *n,
            _ => 1,
        }
    }

    /// Whether it is about the app's process alone, so that the screen need not be on.
    pub fn needs_screen(&self) -> bool {
        !matches!(
            self,
            Action::Wait(_) | Action::ForceStop | Action::Crash | Action::Compact
        )
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Some(value) => write!(f, "{}:{value}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}
