//! Lines of `name: number` pairs, as in App Summary, Objects, SQL and Native Allocations. A line
//! has one to three pairs. If there are headings above, the numbers belong to them.

use super::line::{self, Lines};
use super::number::{self, Digits};
use super::table::WIDEST;

/// Maximum number of headings above numbers; every Android version has two. Every name has a number
/// for each.
const MOST_HEADINGS: usize = 8;

/// A name with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name without the colon.
    pub name: String,
    /// Numbers, one for each heading. Exactly one if there are no headings or if the line has
    /// several names.
    pub values: Vec<Option<i64>>,
}

/// A line of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Group {
    pub entries: Vec<Entry>,
    /// Digits in which the line is printed.
    pub digits: Digits,
}

/// A block of lines with pairs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairs {
    /// Headings of the numbers, with the columns where they end; empty if each name has one number.
    pub headings: Vec<(String, usize)>,
    /// Field widths on lines with one name: the name and each number.
    pub single: Vec<usize>,
    /// Field widths on lines with several names: name, number, name, number …
    pub several: Vec<usize>,
    pub groups: Lines<Group>,
}

/// Parts of a line of pairs, with their end columns.
struct Pieces {
    group: Group,
    ends: Vec<usize>,
}

impl Pairs {
    /// Parses the lines of a block; lines without pairs are kept as text.
    pub(super) fn read(lines: &[&str]) -> Pairs {
        let headings = lines.iter().find_map(|line| headings(line));
        let mut pairs = Pairs {
            headings: headings.unwrap_or_default(),
            ..Pairs::default()
        };
        let read: Vec<Option<Pieces>> = lines.iter().map(|line| pairs.pieces(line)).collect();
        let all = || read.iter().flatten();
        let single = all().filter(|pieces| pieces.group.entries.len() == 1);
        let several = all().filter(|pieces| pieces.group.entries.len() > 1);
        pairs.single = widths(longest(single.map(|pieces| &pieces.ends[..])));
        pairs.several = widths(longest(several.map(|pieces| &pieces.ends[..])));
        if pairs.single.len() < 3 && !pairs.several.is_empty() {
            // One format prints both kinds of lines if a name has one number.
            pairs.single = pairs.several.iter().copied().take(2).collect();
        }
        for (raw, pieces) in lines.iter().zip(read) {
            match pieces {
                Some(pieces) => {
                    let printed = pairs.print(&pieces.group);
                    pairs.groups.push(pieces.group, &printed, raw);
                }
                None => pairs.groups.text(raw),
            }
        }
        pairs
    }

    fn pieces(&self, text: &str) -> Option<Pieces> {
        let words = line::words(text);
        if words.last()?.end > WIDEST {
            return None;
        }
        let mut ends = Vec::new();
        let mut entries: Vec<Entry> = Vec::new();
        let mut script = None;
        let mut name: Option<(usize, usize)> = None;
        for word in &words {
            if let Some((value, digits)) = number::integer(word.text)
                && name.is_none()
            {
                let entry = entries.last_mut()?;
                if *script.get_or_insert(digits) != digits {
                    return None;
                }
                let at = self.place(entry, word.end)?;
                *entry.values.get_mut(at)? = Some(value);
                ends.push(word.end);
                continue;
            }
            let from = name.map_or(word.from, |(from, _)| from);
            let to = word.from + word.text.len();
            match text[from..to].strip_suffix(':') {
                Some(found) => {
                    let count = self.headings.len().max(1);
                    entries.push(Entry {
                        name: found.to_owned(),
                        values: vec![None; count],
                    });
                    ends.push(word.end);
                    name = None;
                }
                None => name = Some((from, to)),
            }
        }
        let whole = name.is_none()
            && !entries.is_empty()
            && entries
                .iter()
                .all(|entry| entry.values.iter().any(Option::is_some));
        if entries.len() > 1 {
            for entry in &mut entries {
                entry.values.retain(Option::is_some);
            }
        }
        let whole = whole && (entries.len() == 1 || entries.iter().all(|e| e.values.len() == 1));
        whole.then(|| Pieces {
            group: Group {
                entries,
                digits: script.unwrap_or_default(),
            },
            ends,
        })
    }

    /// Returns the heading to which a number belongs: the nearest one that is still free.
    fn place(&self, entry: &Entry, end: usize) -> Option<usize> {
        if self.headings.is_empty() {
            return entry.values.first()?.is_none().then_some(0);
        }
        let taken = entry.values.iter().rposition(Option::is_some);
        let free = taken.map_or(0, |at| at + 1);
        let open = self.headings.iter().enumerate().skip(free);
        let nearest = open.min_by_key(|(_, (_, heading))| heading.abs_diff(end));
        nearest.map(|(at, _)| at)
    }

    fn print(&self, group: &Group) -> String {
        let mut texts: Vec<String> = Vec::new();
        for entry in &group.entries {
            texts.push(format!("{}:", entry.name));
            let last = entry.values.iter().rposition(Option::is_some);
            for value in entry.values.iter().take(last.map_or(0, |at| at + 1)) {
                texts.push(value.map_or(String::new(), |value| group.digits.write(value)));
            }
        }
        let widths = match group.entries.len() {
            1 => &self.single,
            _ => &self.several,
        };
        let widths = widths.iter().copied().chain(std::iter::repeat(8));
        line::fields(widths.zip(texts.iter().map(String::as_str)))
    }

    pub(super) fn write(&self, out: &mut Vec<String>) {
        self.groups.write(out, |group| self.print(group));
    }

    /// Returns all entries.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.groups.values().flat_map(|group| &group.entries)
    }

    /// Returns the number of a name, from the first column that has one.
    pub fn value(&self, name: &str) -> Option<i64> {
        let entry = self.entries().find(|entry| entry.name == name)?;
        entry.values.iter().copied().find(Option::is_some)?
    }
}

/// Parses headings such as `Pss(KB)   Rss(KB)` or `Count   Total(kB)`.
fn headings(text: &str) -> Option<Vec<(String, usize)>> {
    let words = line::words(text);
    let known = |word: &str| {
        let name = word.strip_suffix("(KB)").or(word.strip_suffix("(kB)"));
        word == "Count" || name.is_some_and(|name| name.chars().all(char::is_alphabetic))
    };
    let few = (1..=MOST_HEADINGS).contains(&words.len());
    let all = few && words.iter().all(|word| known(word.text));
    all.then(|| {
        words
            .iter()
            .map(|word| (word.text.to_owned(), word.end))
            .collect()
    })
}

/// Returns the longest slice. Of equally long ones returns the first, because wide values can shift
/// a later one.
fn longest<'a>(all: impl Iterator<Item = &'a [usize]>) -> &'a [usize] {
    let longest = all.reduce(|best, ends| match ends.len() > best.len() {
        true => ends,
        false => best,
    });
    longest.unwrap_or_default()
}

/// Returns the widths of fields that end in these columns.
fn widths(ends: &[usize]) -> Vec<usize> {
    let mut before = None;
    ends.iter()
        .map(|end| {
            let from = before.map_or(0, |before: usize| before + 1);
            before = Some(*end);
            end.saturating_sub(from)
        })
        .collect()
}
