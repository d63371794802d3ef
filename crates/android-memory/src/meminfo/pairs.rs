//! Lines of `name: number` pairs, as in App Summary, Objects, SQL and Native Allocations. A line
//! has one to three pairs. If there are headings above, the numbers belong to them.

use super::line::{self, Lines};
use super::number;
use super::table::WIDEST;

/// Maximum number of headings above numbers; every Android version has two. Every name has a number
/// for each.
const MAX_HEADINGS: usize = 8;

/// A name with its numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Name without the colon.
    pub name: String,
    /// Numbers, one for each heading. Exactly one if there are no headings or if the line has
    /// several names.
    pub values: Vec<Option<i64>>,
}

/// A block of lines with pairs.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Pairs {
    /// Headings of the numbers, with the columns where they end; empty if each name has one number.
    pub headings: Vec<(String, usize)>,
    /// Names in the order of the text, with one to three on a line.
    pub lines: Lines<Entry>,
}

impl Pairs {
    /// Parses the lines of a block; lines without pairs are kept as text.
    pub(super) fn read(lines: &[&str]) -> Pairs {
        let headings = lines.iter().find_map(|line| headings(line));
        let mut pairs = Pairs {
            headings: headings.unwrap_or_default(),
            ..Pairs::default()
        };
        for raw in lines {
            match pairs.line(raw) {
                Some(entries) => entries
                    .into_iter()
                    .for_each(|entry| pairs.lines.push(entry)),
                None => pairs.lines.text(raw),
            }
        }
        pairs
    }

    /// Parses the entries of a line.
    fn line(&self, text: &str) -> Option<Vec<Entry>> {
        let words = line::words(text);
        if words.last()?.end > WIDEST {
            return None;
        }
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
        whole.then_some(entries)
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

    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.lines.values()
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
    let few = (1..=MAX_HEADINGS).contains(&words.len());
    let all = few && words.iter().all(|word| known(word.text));
    all.then(|| {
        words
            .iter()
            .map(|word| (word.text.to_owned(), word.end))
            .collect()
    })
}
