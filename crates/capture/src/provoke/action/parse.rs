//! Parser of actions as typed: `rotate:10`, `monkey:500,seed=7`. Owns the valid ranges, and the
//! errors for invalid values.

use std::str::FromStr;
use std::time::Duration;

use super::trim::{Trim, TrimLevel};
use super::value::{Action, Key, Monkey, Point, SWIPE, Swipe, THROTTLE};
use crate::provoke::catalog;
use heaptap_base::suggest::nearest;
use heaptap_base::units::parse_duration;

/// Maximum number of repetitions.
const MAX_COUNT: u32 = 10_000;
/// Maximum number of events of one monkey.
const MAX_EVENTS: u32 = 10_000_000;
/// Maximum coordinate.
const MAX_COORDINATE: u32 = 32_767;
/// Maximum pause.
const MAX_LENGTH: Duration = Duration::from_secs(24 * 3600);
/// Maximum length of a text or link.
const MAX_TEXT_LENGTH: usize = 4_096;

/// Error for a text that is not an action.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not an action: {why}")]
pub struct ActionError {
    /// The text as given.
    pub text: String,
    /// The problem.
    pub why: String,
}

impl FromStr for Action {
    type Err = ActionError;

    fn from_str(text: &str) -> Result<Action, ActionError> {
        let (name, value) = match text.split_once(':') {
            Some((name, value)) => (name.trim(), Some(value)),
            None => (text.trim(), None),
        };
        Action::new(name, value).map_err(|why| ActionError {
            text: text.chars().take(200).collect(),
            why,
        })
    }
}

impl Action {
    /// Parses the action with this name and the value after its colon.
    pub(super) fn new(name: &str, value: Option<&str>) -> Result<Action, String> {
        let value = value.filter(|v| !v.trim().is_empty());
        let times = || count(value, MAX_COUNT).map(|n| n.unwrap_or(1));
        let needed = |what: &str| value.ok_or_else(|| format!("use {name}:{what}"));
        let nothing = |action: Action| match value {
            None => Ok(action),
            Some(_) => Err(format!("{name} does not accept a value")),
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
                let level = TrimLevel::parse(text.trim()).ok_or_else(|| {
                    let levels = TrimLevel::ALL.map(TrimLevel::name);
                    let meant = meant(text.trim(), levels.into_iter().chain(["all"]));
                    format!("{meant} levels are {}, and all", levels.join(", "))
                })?;
                Ok(Action::Trim(Trim::Level(level)))
            }
            "monkey" => monkey(needed("EVENTS")?),
            "deep-link" => link(needed("URI")?),
            "tap" => match numbers(needed("X,Y")?)?[..] {
                [x, y] => Ok(Action::Tap(point(x, y)?)),
                _ => Err("a point must be X,Y in pixels".to_owned()),
            },
            "swipe" => swipe(needed("X1,Y1,X2,Y2[,MS]")?),
            "key" => {
                let text = needed("NAME")?.trim();
                let key = Key::new(text);
                let key = key.ok_or("a key must be a name such as BACK or MENU, or a number")?;
                Ok(Action::Key(key))
            }
            "text" => typed(value.unwrap_or_default()),
            "wait" => {
                let text = needed("DURATION")?.trim();
                let long = parse_duration(text, Duration::from_millis(1));
                let long = long.map_err(|e| e.to_string())?;
                match long <= MAX_LENGTH {
                    true => Ok(Action::Wait(whole_ms(long))),
                    false => Err("the maximum is one day".to_owned()),
                }
            }
            "start" => nothing(Action::Start),
            "home" => nothing(Action::Home),
            "force-stop" => nothing(Action::ForceStop),
            "kill" => nothing(Action::Kill),
            "crash" => nothing(Action::Crash),
            "compact" => nothing(Action::Compact),
            _ => {
                let names = catalog::ALL.map(|entry| entry.name);
                Err(format!(
                    "{} actions are {}; `heaptap provoke --list` describes them",
                    meant(name, names),
                    names.join(", ")
                ))
            }
        }
    }
}

/// Returns `did you mean rotate? The`, or `the` if no name is similar enough.
fn meant<'a>(typed: &str, names: impl IntoIterator<Item = &'a str>) -> String {
    let typed = typed.to_ascii_lowercase().replace('_', "-");
    nearest(&typed, names).map_or_else(
        || "the".to_owned(),
        |name| format!("did you mean {name}? The"),
    )
}

fn count(value: Option<&str>, most: u32) -> Result<Option<u32>, String> {
    let Some(value) = value else { return Ok(None) };
    let number = value.trim().parse().ok();
    match number.filter(|n| (1..=most).contains(n)) {
        Some(n) => Ok(Some(n)),
        None => Err(format!("the count must be a number from 1 to {most}")),
    }
}

fn numbers(text: &str) -> Result<Vec<u32>, String> {
    let parts = text.split([',', ' ']).filter(|part| !part.is_empty());
    let numbers: Option<Vec<u32>> = parts.map(|part| part.parse().ok()).collect();
    numbers.ok_or_else(|| "use whole numbers separated by commas".to_owned())
}

/// Rounds to milliseconds, because the text form does not have smaller units.
fn whole_ms(long: Duration) -> Duration {
    long - Duration::from_nanos(u64::from(long.subsec_nanos() % 1_000_000))
}

fn point(x: u32, y: u32) -> Result<Point, String> {
    match x.max(y) <= MAX_COORDINATE {
        true => Ok(Point { x, y }),
        false => Err(format!(
            "coordinates must not exceed {MAX_COORDINATE} pixels"
        )),
    }
}

fn swipe(text: &str) -> Result<Action, String> {
    let all = numbers(text)?;
    let ([x1, y1, x2, y2] | [x1, y1, x2, y2, _]) = all[..] else {
        return Err("a swipe must be X1,Y1,X2,Y2[,MS]".to_owned());
    };
    let takes = all
        .get(4)
        .map_or(SWIPE, |ms| Duration::from_millis((*ms).into()));
    if takes > Duration::from_secs(60) {
        return Err("a swipe must not exceed one minute".to_owned());
    }
    Ok(Action::Swipe(Swipe {
        from: point(x1, y1)?,
        to: point(x2, y2)?,
        takes,
    }))
}

/// Parses `500,seed=7,throttle=50ms`.
fn monkey(text: &str) -> Result<Action, String> {
    let mut parts = text.split(',').map(str::trim);
    let events = count(parts.next(), MAX_EVENTS)?.unwrap_or(1);
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
                    .map_err(|_| "a seed must be a whole number")?;
                monkey.seed = Some(seed);
            }
            Some(("throttle", pause)) => {
                let pause = parse_duration(pause.trim(), Duration::from_millis(1));
                monkey.throttle = pause.map(whole_ms).map_err(|e| e.to_string())?;
            }
            _ => return Err("use monkey:EVENTS[,seed=N][,throttle=MS]".to_owned()),
        }
    }
    if monkey.throttle > Duration::from_secs(60) {
        return Err("the throttle must not exceed one minute".to_owned());
    }
    Ok(Action::Monkey(monkey))
}

/// Parses a URI: a scheme, a colon, and only characters that need no encoding.
fn link(text: &str) -> Result<Action, String> {
    let uri = text.trim();
    let (scheme, rest) = uri
        .split_once(':')
        .ok_or("a link must begin with a scheme")?;
    let mut letters = scheme.chars();
    let begins = letters.next().is_some_and(|c| c.is_ascii_alphabetic());
    if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || "+-.".contains(c)) {
        return Err("a link must begin with a scheme such as https:".to_owned());
    }
    if rest.is_empty() || uri.len() > MAX_TEXT_LENGTH {
        return Err(format!(
            "a link must have 1 to {MAX_TEXT_LENGTH} characters"
        ));
    }
    if let Some(odd) = uri.chars().find(|c| c.is_whitespace() || c.is_control()) {
        return Err(format!("{odd:?} must be encoded in a link"));
    }
    Ok(Action::DeepLink(uri.to_owned()))
}

/// Parses text for `input text`, which maps characters to keys and uses `%s` for a space.
fn typed(text: &str) -> Result<Action, String> {
    if text.is_empty() || text.len() > MAX_TEXT_LENGTH {
        return Err(format!(
            "a text must have 1 to {MAX_TEXT_LENGTH} characters"
        ));
    }
    if !text.bytes().all(|b| (0x20..0x7f).contains(&b)) {
        return Err("a device can only type characters of an English keyboard".to_owned());
    }
    if text.contains("%s") {
        return Err("a device types %s as a space; split the text into two actions".to_owned());
    }
    Ok(Action::Text(text.to_owned()))
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
    fn what_is_written_is_read_back() {
        for text in WRITTEN {
            let action: Action = text.parse().unwrap_or_else(|e| panic!("{e}"));
            assert_eq!(action.to_string(), text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let why = |text: &str| text.parse::<Action>().unwrap_err().to_string();
        assert!(why("dance").contains("is not an action: the actions are rotate,"));
        assert!(why("rotat:3").contains("did you mean rotate? The actions are"));
        assert!(why("Rotate:3").contains("did you mean rotate?"));
        assert!(why("home_and_back:3").contains("did you mean home-and-back?"));
        assert!(why("restart:3").contains("did you mean restart-activity?"));
        assert!(why("dance").contains("heaptap provoke --list"));
        assert!(why("trim:compleet").contains("did you mean complete? The levels"));
        let long = "x".repeat(100_000);
        assert!(!why(&long).contains("did you mean"));
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
        assert!(why("text:50%s").contains("two actions"));
        assert!(why("start:now").contains("does not accept a value"));
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
