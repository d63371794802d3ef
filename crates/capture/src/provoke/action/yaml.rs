//! Actions in YAML and JSON: a map of one entry or a bare word, `rotate: 10`,
//! `monkey: {events: 500, seed: 7}`, `start`.

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Action, Monkey, THROTTLE};

/// Serializes as a map of one entry, or a bare word: `rotate: 10`, `start`.
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

/// Parameters of `monkey: {events: 500, seed: 7, throttle: 50ms}`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct MonkeyForm {
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
    pub(super) fn text(&self) -> String {
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

/// Value after an action's name.
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
                    return Err(D::Error::custom("an action must have a name"));
                };
                let is_monkey = matches!(form, Form::Monkey(_));
                if is_monkey && name != "monkey" {
                    return Err(D::Error::custom(format!("{name} does not accept a map")));
                }
                let value = form.text();
                Action::of(&name, value.as_deref())
                    .map_err(|why| D::Error::custom(format!("{name}: {why}")))
            }
            Written::Map(_) => Err(D::Error::custom(
                "an action must be a map with one entry, such as `rotate: 10`",
            )),
        }
    }
}
