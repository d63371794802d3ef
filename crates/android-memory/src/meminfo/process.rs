//! A process in `dumpsys meminfo`: its sections in their original order.

use super::line::{Lines, is_trouble};
use super::pairs::Pairs;
use super::table::{self, Headings, Table};

#[derive(Debug, Clone, PartialEq, Default)]
pub struct Process {
    /// Process ID; `None` if the text does not have one (native processes without `-a` or `-s`).
    pub pid: Option<u32>,
    /// Process name; `None` if the text does not have one.
    pub name: Option<String>,
    pub sections: Vec<Section>,
}

/// A section of a process: its heading, if any, and its lines.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Heading without the leading space; `None` for the table and the text before it.
    pub title: Option<String>,
    pub body: Body,
}

/// Content of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Body {
    /// Table of memory mappings by kind.
    Table(Table),
    /// Parts of the Dalvik rows: subsets that must not be added.
    Details(Table),
    Summary(Pairs),
    /// Objects, SQL, Native Allocations: counts by name.
    Counts(Pairs),
    Databases(super::databases::Databases),
    /// Free text: Asset Allocations, Unreachable memory, and unknown sections.
    Text(Lines<()>),
}

/// Headings of sections, without the leading space.
pub(super) const DALVIK_DETAILS: &str = "Dalvik Details";
pub(super) const APP_SUMMARY: &str = "App Summary";
pub(super) const OBJECTS: &str = "Objects";
pub(super) const SQL: &str = "SQL";
pub(super) const NATIVE_ALLOCATIONS: &str = "Native Allocations";
pub(super) const DATABASES: &str = "DATABASES";

/// Returns the title if a line is a section heading: one space, then only words.
pub(super) fn title(line: &str) -> Option<&str> {
    let name = line.strip_prefix(' ')?;
    let begins = name.chars().next().is_some_and(char::is_alphabetic);
    let words = name.chars().all(|c| c.is_alphabetic() || c == ' ');
    (begins && words && name.len() <= 64 && !name.ends_with(' ')).then_some(name)
}

/// Parses the first line of a process: `** MEMINFO in pid 42 [name] **`.
pub(super) fn heading(line: &str) -> Option<(u32, &str)> {
    let rest = line.trim().strip_prefix("** MEMINFO in pid ")?;
    let (pid, rest) = rest.split_once(' ')?;
    let name = rest.strip_prefix('[')?.strip_suffix("**")?.trim_end();
    Some((pid.parse().ok()?, name.strip_suffix(']')?))
}

/// Returns the number of header lines of a table at the start of `lines`, including dashes.
pub(super) fn table_head(lines: &[&str]) -> Option<usize> {
    let at = lines
        .iter()
        .take(4)
        .position(|line| table::is_dashes(line))?;
    let words = |line: &&str| {
        !line.trim().is_empty() && line.starts_with("      ") && !line.contains([':', '*'])
    };
    let headers = at > 0 && lines[..at].iter().all(words);
    headers.then_some(at + 1)
}

impl Process {
    /// Parses the lines under the heading.
    pub(super) fn read(&mut self, lines: &[&str]) {
        let mut headings = Headings::default();
        let mut at = 0;
        while at < lines.len() {
            let title = title(lines[at]);
            let head = match title {
                Some(_) => 1,
                None => table_head(&lines[at..]).unwrap_or(0),
            };
            let body = at + head;
            let rest = &lines[body..];
            let ends = |(offset, line): (usize, &&str)| {
                self::title(line).is_some()
                    || (line.starts_with("      ") && table_head(&rest[offset..]).is_some())
            };
            // A section without a heading has at least its first line.
            let skip = usize::from(head == 0);
            let end = rest.iter().enumerate().skip(skip).position(ends);
            let end = end.map_or(lines.len(), |found| body + skip + found);
            let section = section(title, &lines[at..body], &lines[body..end], &mut headings);
            self.sections.push(section);
            at = end;
        }
    }

    /// Returns the first section of a kind.
    fn first<'a, T>(&'a self, of: impl FnMut(&'a Section) -> Option<&'a T>) -> Option<&'a T> {
        self.sections.iter().find_map(of)
    }

    /// Returns the table of memory mappings by kind.
    pub fn table(&self) -> Option<&Table> {
        self.first(|section| match &section.body {
            Body::Table(table) => Some(table),
            _ => None,
        })
    }

    /// Returns the parts of the Dalvik rows.
    pub fn details(&self) -> Option<&Table> {
        self.first(|section| match &section.body {
            Body::Details(table) => Some(table),
            _ => None,
        })
    }

    /// Returns App Summary.
    pub fn summary(&self) -> Option<&Pairs> {
        self.first(|section| match &section.body {
            Body::Summary(pairs) => Some(pairs),
            _ => None,
        })
    }

    /// Returns the counts under a heading: `Objects`, `SQL`, `Native Allocations`.
    pub fn counts(&self, title: &str) -> Option<&Pairs> {
        self.first(|section| match &section.body {
            Body::Counts(pairs) if section.title.as_deref() == Some(title) => Some(pairs),
            _ => None,
        })
    }

    /// Returns the number of instances that the app counted.
    pub fn object(&self, name: &str) -> Option<i64> {
        self.counts(OBJECTS)?.value(name)
    }

    pub fn databases(&self) -> Option<&super::databases::Databases> {
        self.first(|section| match &section.body {
            Body::Databases(databases) => Some(databases),
            _ => None,
        })
    }

    /// Returns the free text and all unknown lines, each with its heading.
    pub fn texts(&self) -> impl Iterator<Item = (Option<&str>, &str)> {
        self.sections.iter().flat_map(|section| {
            let title = section.title.as_deref();
            section.unknown().into_iter().map(move |line| (title, line))
        })
    }

    /// Returns the device's message if it could not report everything: the app died or did not
    /// respond.
    pub fn trouble(&self) -> Option<&str> {
        self.texts()
            .map(|(_, line)| line)
            .find(|line| is_trouble(line))
    }
}

/// Parses one section.
fn section(title: Option<&str>, head: &[&str], lines: &[&str], shared: &mut Headings) -> Section {
    let body = match title {
        None if !head.is_empty() => match Headings::read(head) {
            Some(headings) => {
                shared.clone_from(&headings);
                Body::Table(table_of(headings, lines))
            }
            None => Body::Text(text_of(head.iter().chain(lines))),
        },
        // A process has the details once: repeated ones in a text must not multiply the columns.
        Some(DALVIK_DETAILS) if !shared.columns.is_empty() => {
            Body::Details(table_of(std::mem::take(shared), lines))
        }
        Some(APP_SUMMARY) => Body::Summary(Pairs::read(lines)),
        Some(OBJECTS | SQL | NATIVE_ALLOCATIONS) => Body::Counts(Pairs::read(lines)),
        Some(DATABASES) => Body::Databases(super::databases::Databases::read(lines)),
        _ => Body::Text(text_of(lines.iter())),
    };
    Section::new(title, body)
}

fn table_of(headings: Headings, lines: &[&str]) -> Table {
    let mut table = Table::new(headings);
    for line in lines {
        table.line(line);
    }
    table
}

fn text_of<'a>(lines: impl Iterator<Item = &'a &'a str>) -> Lines<()> {
    let mut text = Lines::default();
    lines.for_each(|line| text.text(line));
    text
}

impl Section {
    pub(super) fn new(title: Option<&str>, body: Body) -> Section {
        Section {
            title: title.map(str::to_owned),
            body,
        }
    }

    /// Returns the unknown lines.
    pub fn unknown(&self) -> Vec<&str> {
        match &self.body {
            Body::Table(table) | Body::Details(table) => table.rows.unknown().collect(),
            Body::Summary(pairs) | Body::Counts(pairs) => pairs
                .lines
                .unknown()
                .filter(|line| !is_ornament(line))
                .collect(),
            Body::Databases(databases) => databases.unknown(),
            Body::Text(lines) => lines.unknown().collect(),
        }
    }
}

/// Returns whether a line has only headers and dashes above numbers.
fn is_ornament(line: &str) -> bool {
    let ornament = |word: &str| {
        word.bytes().all(|byte| byte == b'-')
            || word == "Count"
            || word.to_ascii_lowercase().ends_with("(kb)")
    };
    line.split_whitespace().all(ornament)
}
