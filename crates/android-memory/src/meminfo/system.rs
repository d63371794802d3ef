//! The whole phone, as `dumpsys meminfo` without a process prints it: lists of processes by
//! size, by how soon they may be killed and by category, and the lines on the phone's RAM.

use super::line::Lines;
use super::number;

/// What a list counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Measure {
    /// Proportional: shared pages by their share.
    Pss,
    /// Resident: shared pages in full.
    Rss,
}

/// A list: `Total PSS by process:` and what follows.
#[derive(Debug, Clone, PartialEq)]
pub struct List {
    /// What it counts.
    pub measure: Measure,
    /// By what: `process`, `OOM adjustment`, `category`.
    pub by: String,
    /// Its items.
    pub items: Lines<Item>,
}

/// A line of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// How deep it lies below others, whose members it is one of.
    pub depth: usize,
    /// Bytes.
    pub bytes: i64,
    /// All that is said behind the size.
    pub label: String,
    /// Whether the size has no separators: Android 6 and older.
    pub plain: bool,
}

/// A line on the phone's memory, such as `Free RAM`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fact {
    /// Its name.
    pub name: String,
    /// All that is said.
    pub text: String,
}

impl Item {
    pub(super) fn read(line: &str) -> Option<Item> {
        let (size, label) = line.split_once(": ")?;
        let (number, plain) = match size.strip_suffix(" kB") {
            Some(number) => (number, true),
            None => (size.strip_suffix('K')?, false),
        };
        let width = if plain { 7 } else { 9 };
        let digits = number.trim_start();
        let indent = number.len().checked_sub(digits.len().max(width))?;
        Some(Item {
            depth: indent.saturating_sub(2) / 4,
            bytes: number::bytes(number::grouped(digits)?)?,
            label: label.to_owned(),
            plain,
        })
    }

    pub(super) fn print(&self) -> String {
        let kb = self.bytes / 1024;
        let indent = " ".repeat(2 + 4 * self.depth.min(64));
        match self.plain {
            true => format!("{indent}{kb:>7} kB: {}", self.label),
            false => format!(
                "{indent}{:>9}K: {}",
                heaptap_model::units::thousands(kb),
                self.label
            ),
        }
    }

    /// The process's or category's name.
    pub fn name(&self) -> &str {
        let label = match self.label.rfind(" (pid ") {
            Some(at) => &self.label[..at],
            None => self.label.split("  ").next().unwrap_or_default(),
        };
        label.trim_end()
    }

    /// The process's id.
    pub fn pid(&self) -> Option<u32> {
        let rest = &self.label[self.label.rfind(" (pid ")? + " (pid ".len()..];
        let end = rest.find(|c: char| !c.is_ascii_digit())?;
        rest[..end].parse().ok()
    }

    /// Whether the process has activities.
    pub fn has_activities(&self) -> bool {
        self.label.contains(" / activities)")
    }

    /// What of it is swapped out, bytes.
    pub fn swap(&self) -> Option<i64> {
        let before = &self.label[..self.label.rfind("K in swap")?];
        let number = before[before.rfind('(')? + 1..].trim();
        number::bytes(number::grouped(number)?)
    }
}

impl List {
    /// The list that a heading begins: `Total RSS by process:`.
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
                let printed = item.print();
                self.items.push(item, &printed, line);
                true
            }
            None => false,
        }
    }

    pub(super) fn write(&self, out: &mut Vec<String>) {
        let measure = match self.measure {
            Measure::Pss => "PSS",
            Measure::Rss => "RSS",
        };
        out.push(format!("Total {measure} by {}:", self.by));
        self.items.write(out, Item::print);
    }

    /// The sum of its items, without those that are members of others.
    pub fn sum(&self) -> i64 {
        let top = self.items.values().filter(|item| item.depth == 0);
        top.fold(0, |sum, item| sum.saturating_add(item.bytes))
    }
}

impl Fact {
    /// Reads a line; `begins` where no such line came before it.
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

    pub(super) fn print(&self) -> String {
        format!("{:>9}: {}", self.name, self.text)
    }

    /// The first number of the line, bytes.
    pub fn bytes(&self) -> Option<i64> {
        amounts(&self.text).next().map(|(bytes, _)| bytes)
    }

    /// Each number of the line with the words behind it: `(209011 KiB, "cached pss")`.
    pub fn amounts(&self) -> impl Iterator<Item = (i64, &str)> {
        amounts(&self.text)
    }
}

/// Numbers of kB in a line on RAM, with what they are of.
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
