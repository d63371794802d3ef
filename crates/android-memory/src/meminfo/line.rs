//! Lines that were read, and lines that were not: nothing of a text is dropped. What a layout
//! prints differently than the phone did (a vendor's spacing) keeps its own words beside its
//! values, so that any text comes back as it was.

/// One line (or several that were not understood) of a section.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<T> {
    /// Understood, and printed alike by the section's layout.
    Read(T),
    /// Understood, but spaced otherwise.
    Odd(T, String),
    /// Not understood, or blank: lines without the last newline.
    Text(String),
}

/// The lines of a section, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines<T>(Vec<Line<T>>);

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Lines(Vec::new())
    }
}

impl<T> Lines<T> {
    /// What was understood.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().filter_map(|line| match line {
            Line::Read(value) | Line::Odd(value, _) => Some(value),
            Line::Text(_) => None,
        })
    }

    /// What was not understood; blank lines left out.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.0
            .iter()
            .filter_map(|line| match line {
                Line::Text(text) => Some(text.split('\n')),
                _ => None,
            })
            .flatten()
            .filter(|line| !line.trim().is_empty())
    }

    /// How many lines no layout of ours prints.
    pub fn odd(&self) -> usize {
        self.0
            .iter()
            .filter(|line| matches!(line, Line::Odd(..)))
            .count()
    }

    /// Adds a value that stood in `raw` and that the layout prints as `printed`.
    pub fn push(&mut self, value: T, printed: &str, raw: &str) {
        self.0.push(match printed == raw {
            true => Line::Read(value),
            false => Line::Odd(value, raw.to_owned()),
        });
    }

    /// Adds a value of which there is no text yet.
    pub fn add(&mut self, value: T) {
        self.0.push(Line::Read(value));
    }

    /// Adds a line that was not understood.
    pub fn text(&mut self, raw: &str) {
        match self.0.last_mut() {
            Some(Line::Text(text)) => {
                text.push('\n');
                text.push_str(raw);
            }
            _ => self.0.push(Line::Text(raw.to_owned())),
        }
    }

    /// Whether there is nothing.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Prints all lines.
    pub(super) fn write(&self, out: &mut Vec<String>, print: impl Fn(&T) -> String) {
        for line in &self.0 {
            match line {
                Line::Read(value) => out.push(print(value)),
                Line::Odd(_, text) | Line::Text(text) => {
                    out.extend(text.split('\n').map(str::to_owned));
                }
            }
        }
    }
}

/// A word of a line, and where it stands in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    /// The word.
    pub text: &'a str,
    /// Where it begins, in bytes.
    pub from: usize,
    /// The column behind its last character.
    pub end: usize,
}

/// The words of a line.
pub(super) fn words(line: &str) -> Vec<Word<'_>> {
    let mut words = Vec::new();
    let mut start = None;
    let mut column = 0;
    for (at, c) in line.char_indices() {
        if c == ' ' {
            if let Some(from) = start.take() {
                words.push(word(line, from, at, column));
            }
        } else {
            start.get_or_insert(at);
        }
        column += 1;
    }
    if let Some(from) = start {
        words.push(word(line, from, line.len(), column));
    }
    words
}

fn word(line: &str, from: usize, to: usize, end: usize) -> Word<'_> {
    Word {
        text: &line[from..to],
        from,
        end,
    }
}

/// Prints fields right-aligned, each a space behind the one before; one that is too wide pushes
/// the others on, as `%8s` does.
pub(super) fn fields<'a>(fields: impl IntoIterator<Item = (usize, &'a str)>) -> String {
    let mut text = String::new();
    for (at, (width, field)) in fields.into_iter().enumerate() {
        if at > 0 {
            text.push(' ');
        }
        let blank = width.saturating_sub(field.chars().count());
        text.extend(std::iter::repeat_n(' ', blank));
        text.push_str(field);
    }
    text
}
