//! Actions as plain values with their parameters, and as text.

use std::fmt;
use std::time::Duration;

use super::trim::Trim;

/// Default duration of a swipe.
pub(super) const SWIPE: Duration = Duration::from_millis(300);

/// Default pause of a monkey after each event.
pub(super) const THROTTLE: Duration = Duration::from_millis(100);

/// Action on an app. The number of an action is its repetitions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Rotate the screen; each time the foreground activity is recreated.
    Rotate(u32),
    /// Press HOME and return.
    HomeAndBack(u32),
    /// Open another app (the system settings) and return.
    SwitchApps(u32),
    /// Leave the app with BACK and start it with an empty task.
    RestartActivity(u32),
    /// Ask the app to release memory.
    Trim(Trim),
    /// Send random events.
    Monkey(Monkey),
    /// Open a link in the app.
    DeepLink(String),
    Tap(Point),
    Swipe(Swipe),
    Key(Key),
    Text(String),
    /// Do nothing, by the device's clock.
    Wait(Duration),
    /// Start the app, or bring it to the foreground.
    Start,
    Home,
    /// End all processes of the app, and its tasks.
    ForceStop,
    /// End the app's process like the system does to save memory; it must be in the background.
    Kill,
    /// Crash the app's process.
    Crash,
    /// Make the kernel move the app's pages to swap.
    Compact,
}

/// Random events of Android's `monkey`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Monkey {
    /// Number of events.
    pub events: u32,
    /// Seed; equal seeds generate equal events.
    pub seed: Option<u32>,
    /// Pause after each event.
    pub throttle: Duration,
}

/// A point of the screen, in pixels from the top left corner of the rotated screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Point {
    /// Distance from the left edge.
    pub x: u32,
    /// Distance from the top edge.
    pub y: u32,
}

/// A movement of a finger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swipe {
    /// Start point.
    pub from: Point,
    /// End point.
    pub to: Point,
    /// Duration.
    pub takes: Duration,
}

/// A key by its name without `KEYCODE_`, or by its number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key(String);

impl Key {
    /// Creates a key from its name (`BACK`, `KEYCODE_BACK`, `back`) or number.
    pub fn new(text: &str) -> Option<Key> {
        let upper = text.to_ascii_uppercase();
        let plain = upper.strip_prefix("KEYCODE_").unwrap_or(&upper);
        let fits = |c: char| c.is_ascii_uppercase() || c.is_ascii_digit() || c == '_';
        let known = (1..=48).contains(&plain.len()) && plain.chars().all(fits);
        known.then(|| Key(plain.to_owned()))
    }

    /// Returns the key for `input keyevent`.
    pub fn code(&self) -> String {
        let number = self.0.parse::<u32>();
        number.map_or_else(
            |_| format!("KEYCODE_{}", self.0),
            |number| number.to_string(),
        )
    }
}

impl Action {
    /// Returns the name before the colon.
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

    /// Returns the value after the colon; `None` if there is none.
    fn value(&self) -> Option<String> {
        match self {
            Action::Trim(Trim::All) => Some("all".to_owned()),
            Action::Trim(Trim::Level(level)) => Some(level.name().to_owned()),
            Action::Monkey(m) => Some(m.to_string()),
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
            repeated => repeated.count().map(|n| n.to_string()),
        }
    }

    /// Returns the number of repetitions of an action that has one.
    pub(in crate::provoke) fn count(&self) -> Option<u32> {
        match self {
            Action::Rotate(n)
            | Action::HomeAndBack(n)
            | Action::SwitchApps(n)
            | Action::RestartActivity(n) => Some(*n),
            _ => None,
        }
    }

    /// Returns the number of repetitions.
    pub fn times(&self) -> u32 {
        self.count().unwrap_or(1)
    }

    /// Returns whether the screen must be on; actions on the app's process do not need it.
    pub fn needs_screen(&self) -> bool {
        !matches!(
            self,
            Action::Wait(_) | Action::ForceStop | Action::Crash | Action::Compact
        )
    }
}

impl fmt::Display for Monkey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.events)?;
        if let Some(seed) = self.seed {
            write!(f, ",seed={seed}")?;
        }
        match self.throttle {
            THROTTLE => Ok(()),
            throttle => write!(f, ",throttle={}ms", throttle.as_millis()),
        }
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
