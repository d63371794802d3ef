//! Parser for the list of system properties that `getprop` prints.

use std::collections::BTreeMap;

/// System properties by name.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Properties(BTreeMap<String, String>);

impl Properties {
    /// Parses `[name]: [value]` lines. A value can contain line ends: it extends to a line
    /// that ends in `]` and is followed by the next `[name]: [` or by the end.
    pub fn read(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let mut map = BTreeMap::new();
        let mut open: Option<(String, String)> = None;
        for line in text.lines() {
            let line = line.trim_end_matches('\r');
            match line
                .strip_prefix('[')
                .and_then(|rest| rest.split_once("]: ["))
            {
                Some((name, value)) => {
                    close(&mut map, open.take());
                    open = Some((name.to_owned(), value.to_owned()));
                }
                None => {
                    if let Some((_, value)) = &mut open {
                        value.push('\n');
                        value.push_str(line);
                    }
                }
            }
        }
        close(&mut map, open);
        Properties(map)
    }

    /// Returns a property's value, or `None` if it is not set or empty (Android does not
    /// distinguish these).
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|v| v.trim()).filter(|v| !v.is_empty())
    }

    /// Returns a property as a number.
    pub fn number(&self, name: &str) -> Option<u32> {
        self.get(name)?.parse().ok()
    }

    /// Parses a property as an Android boolean.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.get(name)? {
            "1" | "y" | "yes" | "on" | "true" => Some(true),
            "0" | "n" | "no" | "off" | "false" => Some(false),
            _ => None,
        }
    }

    /// Returns properties whose name starts with `prefix`, as the rest of the name and the value.
    pub fn under<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.0
            .iter()
            .filter_map(move |(k, v)| Some((k.strip_prefix(prefix)?, v.trim())))
            .filter(|(_, v)| !v.is_empty())
    }

    /// Returns whether no property could be read.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn close(map: &mut BTreeMap<String, String>, open: Option<(String, String)>) {
    if let Some((name, value)) = open {
        let value = value.trim_end();
        let value = value.strip_suffix(']').unwrap_or(value);
        map.insert(name, value.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_may_hold_brackets_line_ends_and_nothing() {
        let p = Properties::read(
            b"[a]: [1]\r\n[multi]: [1.0.20120512\n]\n[b.c]: [x]: [y]\n[empty]: []\n[cut]: [yes",
        );
        assert_eq!(p.number("a"), Some(1));
        assert_eq!(p.get("multi"), Some("1.0.20120512"));
        assert_eq!(p.get("b.c"), Some("x]: [y"));
        assert_eq!(p.get("empty"), None);
        assert_eq!(p.flag("cut"), Some(true));
        assert_eq!(p.under("b.").collect::<Vec<_>>(), [("c", "x]: [y")]);
    }

    #[test]
    fn junk_is_no_property() {
        assert!(Properties::read(b"/system/bin/sh: getprop: not found\n").is_empty());
        assert!(Properties::read(b"\xff\x00[").is_empty());
    }
}
