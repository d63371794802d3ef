//! heaptap's YAML configs. The only module that uses serde_yaml.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use serde::de::{self, Deserialize, DeserializeOwned, Deserializer, IgnoredAny, Visitor};

use super::error::bad_file;
use super::fields::FieldSetting;
use heaptap_base::error::Failure;
use heaptap_base::suggest::nearest;
use heaptap_base::units::{ByteSize, parse_duration, parse_time};

/// All keys; `docs/reference/formats.md` lists them.
pub(super) const KEYS: &[&str] = &[
    "description",
    "names",
    "pids",
    "packages",
    "interval",
    "duration",
    "continuous_dump",
    "heaps",
    "all_heaps",
    "shmem_size",
    "block_client",
    "block_client_timeout",
    "no_startup",
    "no_running",
    "dump_at_max",
    "disable_fork_teardown",
    "packages_list",
    "launch",
    "snapshots",
    "heapprofd",
];

/// Parses a YAML config, or the part of it that `T` has.
pub(super) fn parse<T: DeserializeOwned>(text: &str, origin: &str) -> Result<T, Failure> {
    let fail = |error: serde_yaml::Error| {
        let place = error.location().map_or_else(
            || origin.to_owned(),
            |at| format!("{origin}:{}:{}", at.line(), at.column()),
        );
        let why = error.to_string();
        // The origin already contains the location.
        let why = why.split(" at line ").next().unwrap_or(&why);
        bad_file(&place, why)
    };
    if text
        .lines()
        .all(|line| line.trim().is_empty() || line.trim_start().starts_with('#'))
    {
        return Err(bad_file(origin, "the config is empty"));
    }
    if let Some(line) = text.lines().position(is_nested_deeply) {
        let place = format!("{origin}:{}", line + 1);
        let why = format!("lists and maps are nested more than {MAX_DEPTH} deep");
        return Err(bad_file(&place, why));
    }
    // Parse only the keys first, so that an unknown key is reported with its place and suggestion.
    serde_yaml::from_str::<BTreeMap<Key, IgnoredAny>>(text).map_err(fail)?;
    serde_yaml::from_str(text).map_err(fail)
}

/// Maximum depth of lists and maps in one line. The parser takes quadratic time, and more lines need
/// an indentation each.
const MAX_DEPTH: usize = 64;

/// Returns whether a line opens too many lists and maps, if it is not a text.
fn is_nested_deeply(line: &str) -> bool {
    let line = match line.trim_start().starts_with('#') {
        true => "",
        false => line.split(" #").next().unwrap_or_default(),
    };
    let marks = line.bytes().filter(|byte| b"[{-?".contains(byte)).count();
    let (mut depth, mut deepest) = (0usize, 0);
    for byte in line.bytes().filter(|_| marks > MAX_DEPTH) {
        match byte {
            b'[' | b'{' => depth += 1,
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    let items = line.split_ascii_whitespace();
    let items = items.take_while(|word| matches!(*word, "-" | "?")).count();
    deepest.max(items) > MAX_DEPTH
}

/// Reads the settings of single fields below `heapprofd:`.
pub(super) fn settings<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<FieldSetting>, D::Error> {
    let mut settings = Vec::new();
    for (name, value) in BTreeMap::<String, serde_yaml::Value>::deserialize(deserializer)? {
        flatten(name, value, &mut settings).map_err(de::Error::custom)?;
    }
    Ok(settings)
}

/// Flattens a field into settings; nested ones become dotted paths.
fn flatten(
    path: String,
    value: serde_yaml::Value,
    settings: &mut Vec<FieldSetting>,
) -> Result<(), String> {
    use serde_yaml::Value;
    let scalar = |value: &Value| match value {
        Value::Bool(v) => Ok(v.to_string()),
        Value::Number(v) => Ok(v.to_string()),
        Value::String(v) => Ok(v.clone()),
        _ => Err(format!("`{path}` is neither a value nor a list")),
    };
    match &value {
        Value::Mapping(fields) => {
            for (name, inner) in fields {
                let name = name
                    .as_str()
                    .ok_or_else(|| format!("`{path}` has a key that is not a string"))?;
                flatten(format!("{path}.{name}"), inner.clone(), settings)?;
            }
        }
        Value::Sequence(items) => {
            for item in items {
                settings.push(FieldSetting {
                    path: path.clone(),
                    value: scalar(item)?,
                });
            }
        }
        value => settings.push(FieldSetting {
            value: scalar(value)?,
            path,
        }),
    }
    Ok(())
}

/// A known key.
#[derive(Default, PartialEq, Eq, PartialOrd, Ord)]
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // Checked within the visitor, because serde_yaml adds the place of the key there.
        deserializer.deserialize_str(Scalar(|key: &str| {
            if KEYS.contains(&key) {
                return Ok(Key(key.to_owned()));
            }
            let hint = match nearest(key, KEYS.iter().copied()) {
                Some(name) => format!("did you mean `{name}`?"),
                None => format!("the keys are {}", KEYS.join(", ")),
            };
            Err(format!("unknown key `{key}`: {hint}"))
        }))
    }
}

pub(super) fn size<'de, D: Deserializer<'de>>(from: D) -> Result<Option<u64>, D::Error> {
    from.deserialize_any(Scalar(|text: &str| {
        ByteSize::parse(text).map(|size| Some(size.0))
    }))
}

pub(super) fn time<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    from.deserialize_any(Scalar(|text: &str| parse_time(text).map(Some)))
}

pub(super) fn micros<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    from.deserialize_any(Scalar(|text: &str| {
        parse_duration(text, Duration::from_micros(1)).map(Some)
    }))
}

/// A number or a word, parsed from its text.
struct Scalar<F>(F);

impl<T: Default, W: fmt::Display, F: Fn(&str) -> Result<T, W>> Visitor<'_> for Scalar<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a word, or a number with its unit")
    }

    /// An empty value is as if it was not given.
    fn visit_unit<E: de::Error>(self) -> Result<T, E> {
        Ok(T::default())
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<T, E> {
        self.visit_str(&value.to_string())
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<T, E> {
        (self.0)(value).map_err(E::custom)
    }
}
