//! Actions as plain values: what may be done, with which numbers, and how it is written:
//! `rotate:10` on a command line, `rotate: 10` or `monkey: {events: 500, seed: 7}` in YAML.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::units::parse_duration;

/// Something to be done to an app.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
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

/// Which request to give memory back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trim {
    /// One.
    Level(TrimLevel),
    /// All of them, rising.
    All,
}

impl Trim {
    /// Whether the app has to be in front when it is asked first.
    pub fn begins_in_front(self) -> bool {
        match self {
            Trim::All => true,
            Trim::Level(level) => !level.is_for_background(),
        }
    }
}

/// A level of `ComponentCallbacks2.onTrimMemory`, in rising order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TrimLevel {
    /// 5: in front; the system begins to run short.
    RunningModerate,
    /// 10: in front; it runs short.
    RunningLow,
    /// 15: in front; it can't keep others alive.
    RunningCritical,
    /// 20: nothing of the app is visible any more.
    Hidden,
    /// 40: just out of sight.
    Background,
    /// 60: half way to being killed.
    Moderate,
    /// 80: next to be killed.
    Complete,
}

impl TrimLevel {
    /// All, rising.
    pub const ALL: [TrimLevel; 7] = [
        TrimLevel::RunningModerate,
        TrimLevel::RunningLow,
        TrimLevel::RunningCritical,
        TrimLevel::Hidden,
        TrimLevel::Background,
        TrimLevel::Moderate,
        TrimLevel::Complete,
    ];

    /// As it is typed.
    pub fn name(self) -> &'static str {
        match self {
            TrimLevel::RunningModerate => "running-moderate",
            TrimLevel::RunningLow => "running-low",
            TrimLevel::RunningCritical => "running-critical",
            TrimLevel::Hidden => "hidden",
            TrimLevel::Background => "background",
            TrimLevel::Moderate => "moderate",
            TrimLevel::Complete => "complete",
        }
    }

    /// As `am send-trim-memory` of every release takes it.
    pub fn word(self) -> &'static str {
        match self {
            TrimLevel::RunningModerate => "RUNNING_MODERATE",
            TrimLevel::RunningLow => "RUNNING_LOW",
            TrimLevel::RunningCritical => "RUNNING_CRITICAL",
            TrimLevel::Hidden => "HIDDEN",
            TrimLevel::Background => "BACKGROUND",
            TrimLevel::Moderate => "MODERATE",
            TrimLevel::Complete => "COMPLETE",
        }
    }

    /// As the app gets it.
    pub fn number(self) -> u32 {
        match self {
            TrimLevel::RunningModerate => 5,
            TrimLevel::RunningLow => 10,
            TrimLevel::RunningCritical => 15,
            TrimLevel::Hidden => 20,
            TrimLevel::Background => 40,
            TrimLevel::Moderate => 60,
            TrimLevel::Complete => 80,
        }
    }

    /// Whether it is for apps that are out of sight: refused for one in front.
    pub fn is_for_background(self) -> bool {
        self >= TrimLevel::Hidden
    }

    fn parse(text: &str) -> Option<TrimLevel> {
        let plain = text.to_ascii_lowercase().replace('_', "-");
        let plain = plain.strip_prefix("trim-memory-").unwrap_or(&plain);
        let fits = |level: &TrimLevel| {
            level.name() == plain
                || level.number().to_string() == plain
                || (*level == TrimLevel::Hidden && plain == "ui-hidden")
        };
        TrimLevel::ALL.into_iter().find(fits)
    }
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

/// Most repetitions of anything.
pub const MOST: u32 = 10_000;
/// Most events of one monkey.
pub const MOST_EVENTS: u32 = 10_000_000;
/// The largest coordinate.
const FARTHEST: u32 = 32_767;
/// Longest pause.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Longest text or link.
const LONGEST_TEXT: usize = 4_096;
const SWIPE: Duration = Duration::from_millis(300);
const THROTTLE: Duration = Duration::from_millis(100);

/// Why a text is no action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is no action: {why}")]
pub struct ActionError {
    /// What was given.
    pub text: String,
    /// What is wrong with it.
    pub why: String,
}

impl FromStr for Action {
    type Err = ActionError;

    fn from_str(text: &str) -> Result<Action, ActionError> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name.trim(), Some(value)),
            None => (text.trim(), None),
        };
        Action::of(name, value).map_err(|why| ActionError {
            text: text.chars().take(200).collect(),
            why,
        })
    }
}

impl Action {
    /// The action of a name with what stands behind its colon.
    fn of(name: &str, value: Option<&str>) -> Result<Action, String> {
        let value = value.filter(|v| !v.trim().is_empty());
        let times = || count(value, MOST).map(|n| n.unwrap_or(1));
        let needed = |what: &str| value.ok_or_else(|| format!("write {name}:{what}"));
        let nothing = |action: Action| match value {
            None => Ok(action),
            Some(_) => Err(format!("{name} takes nothing behind it")),
        };
        match name {
            "rotate" => Ok(Action::Rotate(times()?)),
            "home-and-back" => Ok(Action::HomeAndBack(times()?)),
            "switch-apps" => Ok(Action::SwitchApps(times()?)),
            "restart-activity" => Ok(Action::RestartActivity(times()?)),
            "trim" => {
                let text = needed("LEVEL")?;
                if text.trim() == "all" {
                    return Ok(Action::Trim(Trim::All));
                }
                let levels = TrimLevel::ALL.map(TrimLevel::name).join(", ");
                let level = TrimLevel::parse(text.trim());
                let level = level.ok_or_else(|| format!("the levels are {levels}, and all"))?;
                Ok(Action::Trim(Trim::Level(level)))
            }
            "monkey" => monkey(needed("EVENTS")?),
            "deep-link" => link(needed("URI")?),
            "tap" => match numbers(needed("X,Y")?)?[..] {
                [x, y] => Ok(Action::Tap(point(x, y)?)),
                _ => Err("a point is X,Y in pixels".to_owned()),
            },
            "swipe" => swipe(needed("X1,Y1,X2,Y2[,MS]")?),
            "key" => {
                let text = needed("NAME")?.trim();
                let key = Key::new(text);
                let key = key.ok_or("a key is a name such as BACK or MENU, or a number")?;
                Ok(Action::Key(key))
            }
            "text" => typed(value.unwrap_or_default()),
            "wait" => {
                let text = needed("DURATION")?.trim();
                let long = parse_duration(text, Duration::from_secs(1));
                let long = long.map_err(|e| e.to_string())?;
                match long <= LONGEST {
                    true => Ok(Action::Wait(whole_ms(long))),
                    false => Err("that is more than a day".to_owned()),
                }
            }
            "start" => nothing(Action::Start),
            "home" => nothing(Action::Home),
            "force-stop" => nothing(Action::ForceStop),
            "kill" => nothing(Action::Kill),
            "crash" => nothing(Action::Crash),
            "compact" => nothing(Action::Compact),
            _ => Err(format!(
                "the actions are {}",
                super::catalog::ALL.map(|entry| entry.name).join(", ")
            )),
        }
    }

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

fn count(value: Option<&str>, most: u32) -> Result<Option<u32>, String> {
    let Some(value) = value else { return Ok(None) };
    let number = value.trim().parse().ok();
    match number.filter(|n| (1..=most).contains(n)) {
        Some(n) => Ok(Some(n)),
        None => Err(format!("how often is a number from 1 to {most}")),
    }
}

fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let numbers: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
    numbers.ok_or_else(|| "write whole numbers with commas between them".to_owned())
}

/// What is written in milliseconds has no smaller part.
fn whole_ms(long: Duration) -> Duration {
    long - Duration::from_nanos(u64::from(long.subsec_nanos() % 1_000_000))
}

fn point(x: u32, y: u32) -> Result<Point, String> {
    match x.max(y) <= FARTHEST {
        true => Ok(Point { x, y }),
        false => Err(format!("no screen has more than {FARTHEST} pixels a side")),
    }
}

fn swipe(text: &str) -> Result<Action, String> {
    let all = numbers(text)?;
    let ([x1, y1, x2, y2] | [x1, y1, x2, y2, _]) = all[..] else {
        return Err("a swipe is X1,Y1,X2,Y2 and, if wanted, milliseconds".to_owned());
    };
    let takes = all
        .get(4)
        .map_or(SWIPE, |ms| Duration::from_millis((*ms).into()));
    if takes > Duration::from_secs(60) {
        return Err("a swipe takes a minute at most".to_owned());
    }
    Ok(Action::Swipe(Swipe {
        from: point(x1, y1)?,
        to: point(x2, y2)?,
        takes,
    }))
}

/// `500,seed=7,throttle=50ms`.
fn monkey(text: &str) -> Result<Action, String> {
    let mut parts = text.split(',').map(str::trim);
    let events = count(parts.next(), MOST_EVENTS)?.unwrap_or(1);
    let mut monkey = Monkey {
        events,
        seed: None,
        throttle: THROTTLE,
    };
    for part in parts {
        match part.split_once('=') {
            Some(("seed", seed)) => {
                let seed = seed
                    .trim()
                    .parse()
                    .map_err(|_| "a seed is a whole number")?;
                monkey.seed = Some(seed);
            }
            Some(("throttle", pause)) => {
                let pause = parse_duration(pause.trim(), Duration::from_millis(1));
                monkey.throttle = pause.map(whole_ms).map_err(|e| e.to_string())?;
            }
            _ => return Err("write monkey:EVENTS,seed=N,throttle=MS".to_owned()),
        }
    }
    if monkey.throttle > Duration::from_secs(60) {
        return Err("a pause between events is a minute at most".to_owned());
    }
    Ok(Action::Monkey(monkey))
}

/// A URI: a scheme, a colon, and nothing that a URI has to encode.
fn link(text: &str) -> Result<Action, String> {
    let uri = text.trim();
    let (scheme, rest) = uri.split_once(':').ok_or("a link begins with a scheme")?;
    let mut letters = scheme.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
        return Err("a link begins with a scheme such as https:".to_owned());
    }
    if rest.is_empty() || uri.len() > LONGEST_TEXT {
        return Err(format!("a link has 1 to {LONGEST_TEXT} characters"));
    }
    if let Some(odd) = uri.chars().find(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("{odd:?} has to be encoded in a link"));
    }
    Ok(Action::DeepLink(uri.to_owned()))
}

/// What `input text` can type: it maps characters to keys, and takes `%s` for a space.
fn typed(text: &str) -> Result<Action, String> {
    if text.is_empty() || text.len() > LONGEST_TEXT {
        return Err(format!("a text has 1 to {LONGEST_TEXT} characters"));
    }
    if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err("a phone's shell can only type what an English keyboard has".to_owned());
    }
    if text.contains("%s") {
        return Err("a phone's shell types %s as a space: type it in two parts".to_owned());
    }
    Ok(Action::Text(text.to_owned()))
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.value() {
            Some(value) => write!(f, "{}:{value}", self.name()),
            None => f.write_str(self.name()),
        }
    }
}

/// A map of one entry, or a bare word: `rotate: 10`, `start`.
impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeMap as _;
        let Some(value) = self.value() else {
            return serializer.serialize_str(self.name());
        };
        let mut map = serializer.serialize_map(Some(1))?;
        match self {
            Action::Monkey(monkey) => {
                map.serialize_entry(self.name(), &MonkeyForm::from(monkey))?;
            }
            _ => match value.parse::<u32>() {
                Ok(number) if !matches!(self, Action::Key(_) | Action::Text(_)) => {
                    map.serialize_entry(self.name(), &number)?;
                }
                _ => map.serialize_entry(self.name(), &value)?,
            },
        }
        map.end()
    }
}

/// `monkey: {events: 500, seed: 7, throttle: 50ms}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MonkeyForm {
    events: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    seed: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    throttle: Option<String>,
}

impl From<&Monkey> for MonkeyForm {
    fn from(monkey: &Monkey) -> MonkeyForm {
        let throttle = (monkey.throttle != THROTTLE).then_some(monkey.throttle);
        MonkeyForm {
            events: monkey.events,
            seed: monkey.seed,
            throttle: throttle.map(|t| format!("{}ms", t.as_millis())),
        }
    }
}

impl MonkeyForm {
    fn text(&self) -> String {
        let mut text = self.events.to_string();
        if let Some(seed) = self.seed {
            text.push_str(&format!(",seed={seed}"));
        }
        if let Some(throttle) = &self.throttle {
            text.push_str(&format!(",throttle={throttle}"));
        }
        text
    }
}

/// What may stand behind an action's name.
#[derive(Deserialize)]
#[serde(untagged)]
enum Form {
    Nothing(()),
    Number(u64),
    Text(String),
    Numbers(Vec<u32>),
    Monkey(MonkeyForm),
}

impl Form {
    fn text(self) -> Option<String> {
        match self {
            Form::Nothing(()) => None,
            Form::Number(n) => Some(n.to_string()),
            Form::Text(text) => Some(text),
            Form::Numbers(all) => {
                let all: Vec<String> = all.iter().map(u32::to_string).collect();
                Some(all.join(","))
            }
            Form::Monkey(form) => Some(form.text()),
        }
    }
}

/// An action as a map of one entry, or as text.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Text(String),
    Map(std::collections::BTreeMap<String, Form>),
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Action, D::Error> {
        use serde::de::Error as _;
        match Written::deserialize(deserializer)? {
            Written::Text(text) => text.parse().map_err(D::Error::custom),
            Written::Map(map) if map.len() == 1 => {
                let Some((name, form)) = map.into_iter().next() else {
                    return Err(D::Error::custom("an action has a name"));
                };
                let is_monkey = matches!(form, Form::Monkey(_));
                if is_monkey && name != "monkey" {
                    return Err(D::Error::custom(format!("{name} takes no map")));
                }
                let value = form.text();
                Action::of(&name, value.as_deref())
                    .map_err(|why| D::Error::custom(format!("{name}: {why}")))
            }
            Written::Map(_) => Err(D::Error::custom(
                "an action is a map with one entry, such as `rotate: 10`",
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WRITTEN: [&str; 20] = [
        "rotate:10",
        "home-and-back:5",
        "switch-apps:3",
        "restart-activity:5",
        "trim:running-critical",
        "trim:all",
        "monkey:500,seed=7",
        "monkey:500,seed=7,throttle=50ms",
        "deep-link:https://www.example.com/a?b=1&c='2'",
        "tap:100,200",
        "swipe:1,2,3,4",
        "swipe:1,2,3,4,900",
        "key:BACK",
        "key:4",
        "text:it's 5 o'clock",
        "wait:2000ms",
        "start",
        "home",
        "force-stop",
        "compact",
    ];

    #[test]
    fn what_is_written_is_read_back_in_all_forms() {
        for text in WRITTEN {
            let action: Action = text.parse().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(action.to_string(), text);
            let yaml = serde_yaml::to_string(&action).unwrap();
            let back: Action =
                serde_yaml::from_str(&yaml).unwrap_or_else(|e| panic!("{yaml}: {e}"));
            assert_eq!(back, action, "{yaml}");
            let json = serde_json::to_string(&action).unwrap();
            assert_eq!(
                serde_json::from_str::<Action>(&json).unwrap(),
                action,
                "{json}"
            );
            let plain: Action = serde_json::from_value(text.into()).unwrap();
            assert_eq!(plain, action, "{text}");
        }
    }

    #[test]
    fn yaml_is_as_one_would_write_it() {
        let text = "- rotate: 10\n- monkey: {events: 500, seed: 7}\n- tap: [100, 200]\n- start\n- trim: all\n- key: back\n- wait: 2s\n";
        let all: Vec<Action> = serde_yaml::from_str(text).unwrap();
        let all: Vec<String> = all.iter().map(Action::to_string).collect();
        let wanted = [
            "rotate:10",
            "monkey:500,seed=7",
            "tap:100,200",
            "start",
            "trim:all",
            "key:BACK",
            "wait:2000ms",
        ];
        assert_eq!(all, wanted);
        for wrong in [
            "rotate: 0",
            "{rotate: 1, start: }",
            "dance: 1",
            "rotate: {events: 1}",
        ] {
            assert!(serde_yaml::from_str::<Action>(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let why = |text: &str| text.parse::<Action>().unwrap_err().to_string();
        assert!(why("dance").contains("the actions are rotate,"));
        assert!(why("rotate:0").contains("from 1 to"));
        assert!(why("rotate:-1").contains("from 1 to"));
        assert!(why("trim:lots").contains("running-moderate"));
        assert!(why("trim").contains("trim:LEVEL"));
        assert!(why("monkey:5,seed=x").contains("whole number"));
        assert!(why("deep-link:no scheme").contains("scheme"));
        assert!(why("deep-link:a:b c").contains("encoded"));
        assert!(why("tap:1").contains("X,Y"));
        assert!(why("tap:1,99999").contains("pixels"));
        assert!(why("key:a;b").contains("name such as BACK"));
        assert!(why("text:größe").contains("English keyboard"));
        assert!(why("text:50%s").contains("two parts"));
        assert!(why("start:now").contains("nothing behind"));
        assert_eq!(
            "trim:UI_HIDDEN".parse(),
            Ok(Action::Trim(Trim::Level(TrimLevel::Hidden)))
        );
        assert_eq!("rotate".parse(), Ok(Action::Rotate(1)));
    }

    proptest! {
        #[test]
        fn no_text_panics_and_what_is_understood_is_stable(text in "\\PC{0,40}") {
            for text in [text.clone(), format!("monkey:{text}"), format!("deep-link:a:{text}"), format!("text:{text}"), format!("swipe:{text}")] {
                if let Ok(action) = text.parse::<Action>() {
                    let shown = action.to_string();
                    prop_assert_eq!(shown.parse::<Action>(), Ok(action), "{}", shown);
                }
            }
        }
    }
}
