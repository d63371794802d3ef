//! The whole device, as printed by `dumpsys meminfo` without a process. It has lists of processes
//! by size, by OOM adjustment and by category, and lines about the device's RAM.

use super::line::Lines;
use super::number;

/// Measure of a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Proportional: shared pages are divided among their processes.
    Pss,
    /// Resident: shared pages count fully.
    Rss,
}

/// A list: `Total PSS by process:` and its items.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    pub measure: Measure,
    /// Criterion: `process`, `OOM adjustment`, `category`.
    pub by: String,
    pub items: Lines<Item>,
}

/// An item of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// Nesting depth below the items of which it is a member.
    pub depth: usize,
    pub bytes: i64,
    /// Text after the size.
    pub label: String,
}

/// A line about the device's memory, such as `Free RAM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    pub name: String,
    /// Text after the name.
    pub text: String,
}

impl Item {
    pub(super) fn read(line: &str) -> Option<Item> {
        let (size, label) = line.split_once(": ")?;
        // Android 6 and older print sizes without separators.
        let (number, width) = match size.strip_suffix(" kB") {
            Some(number) => (number, 7),
            None => (size.strip_suffix('K')?, 9),
        };
        let digits = number.trim_start();
        let indent = number.len().checked_sub(digits.len().max(width))?;
        Some(Item {
            depth: indent.saturating_sub(2) / 4,
            bytes: number::bytes(number::grouped(digits)?)?,
            label: label.to_owned(),
        })
    }

    /// Returns the name of the process or category.
    pub fn name(&self) -> &str {
        let label = match self.label.rfind(" (pid ") {
            Some(at) => &self.label[..at],
            None => self.label.split("  ").next().unwrap_or_default(),
        };
        label.trim_end()
    }

    /// Returns the process ID.
    pub fn pid(&self) -> Option<u32> {
        let rest = &self.label[self.label.rfind(" (pid ")? + " (pid ".len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    }

    /// Returns the swapped part, bytes.
    pub fn swap(&self) -> Option<i64> {
        let before = &self.label[..self.label.rfind("K in swap")?];
        let number = before[before.rfind('(')? + 1..].trim();
        number::bytes(number::grouped(number)?)
    }
}

impl List {
    /// Creates the list for a heading such as `Total RSS by process:`.
    pub(super) fn headed(line: &str) -> Option<List> {
        let rest = line.strip_prefix("Total ")?.strip_suffix(':')?;
        let (measure, by) = rest.split_once(" by ")?;
        let measure = match measure {
            "PSS" => Measure::Pss,
            "RSS" => Measure::Rss,
            _ => return None,
        };
        Some(List {
            measure,
            by: by.to_owned(),
            items: Lines::default(),
        })
    }

    pub(super) fn read(&mut self, line: &str) -> bool {
        match Item::read(line) {
            Some(item) => {
                self.items.push(item);
                true
            }
            None => false,
        }
    }

    /// Returns the sum of the items, without members of other items.
    pub fn sum(&self) -> i64 {
        let top = self.items.values().filter(|item| item.depth == 0);
        top.fold(0, |sum, item| sum.saturating_add(item.bytes))
    }
}

impl Fact {
    /// Parses a line; `begins` if no such line precedes it.
    pub(super) fn read(line: &str, begins: bool) -> Option<Fact> {
        let (name, text) = line.split_once(": ")?;
        let name = name.trim_start();
        let known = matches!(
            name,
            "Total RAM" | "Free RAM" | "Used RAM" | "Lost RAM" | "ZRAM" | "Total PSS"
        );
        let word = |c: char| c.is_ascii_alphabetic() || c == ' ' || c == '-' || c == '/';
        let fits = !name.is_empty() && name.len() <= 32 && name.chars().all(word);
        let counts = text.contains(|c: char| c.is_ascii_digit());
        ((known || !begins) && fits && counts).then(|| Fact {
            name: name.to_owned(),
            text: text.to_owned(),
        })
    }

    /// Returns the first number of the line, bytes.
    pub fn bytes(&self) -> Option<i64> {
        amounts(&self.text).next().map(|(bytes, _)| bytes)
    }

    /// Returns each number of the line with the text after it: `(209011 KiB, "cached pss")`.
    pub fn amounts(&self) -> impl Iterator<Item = (i64, &str)> {
        amounts(&self.text)
    }
}

/// Returns the kB numbers in a line about RAM as bytes, with their names.
fn amounts(text: &str) -> impl Iterator<Item = (i64, &str)> {
    let mut rest = text;
    std::iter::from_fn(move || {
        loop {
            let begin = rest.find(|c: char| c.is_ascii_digit())?;
            let negative = rest[..begin].ends_with('-');
            let number = &rest[begin..];
            let end = number.find(|c: char| !c.is_ascii_digit() && c != ',');
            let end = end.unwrap_or(number.len());
            let digits = number[..end].trim_end_matches(',');
            rest = &number[end..];
            let behind = rest
                .strip_prefix('K')
                .or(rest.strip_prefix(" kB"))
                .unwrap_or(rest);
            let words = behind.find(['+', '(', ')', ',']).unwrap_or(behind.len());
            let name = behind[..words].trim().trim_end_matches(" for");
            if let Some(bytes) = number::grouped(digits).and_then(number::bytes) {
                return Some((if negative { -bytes } else { bytes }, name));
            }
        }
    })
}
