//! Parsed and unparsed lines: no part of a text is dropped. If the layout would print a line
//! differently than the device did (a vendor's spacing), the original text is kept with the values.
//! Therefore, any text can be rendered exactly as it was.

/// One line of a section, or several that were not parsed.
#[derive(Debug, Clone, PartialEq)]
pub enum Line<T> {
    /// Parsed, and the section's layout prints it identically.
    Read(T),
    /// Parsed, but with different spacing; contains the original text.
    Odd(T, String),
    /// Unparsed or blank: lines without the last newline.
    Text(String),
}

/// Lines of a section, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines<T>(Vec<Line<T>>);

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Lines(Vec::new())
    }
}

impl<T> Lines<T> {
    /// Returns the parsed values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.0.iter().filter_map(|line| match line {
            Line::Read(value) | Line::Odd(value, _) => Some(value),
            Line::Text(_) => None,
        })
    }

    /// Returns the unparsed lines without blank ones.
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

    /// Returns the number of lines with different spacing.
    pub fn odd(&self) -> usize {
        self.0
            .iter()
            .filter(|line| matches!(line, Line::Odd(..)))
            .count()
    }

    /// Adds a value parsed from `raw`, which the layout prints as `printed`.
    pub fn push(&mut self, value: T, printed: &str, raw: &str) {
        self.0.push(match printed == raw {
            true => Line::Read(value),
            false => Line::Odd(value, raw.to_owned()),
        });
    }

    /// Adds a value that does not have a text yet.
    pub fn add(&mut self, value: T) {
        self.0.push(Line::Read(value));
    }

    /// Adds an unparsed line.
    pub fn text(&mut self, raw: &str) {
        match self.0.last_mut() {
            Some(Line::Text(text)) => {
                text.push('\n');
                text.push_str(raw);
            }
            _ => self.0.push(Line::Text(raw.to_owned())),
        }
    }

    /// Returns whether there are no lines.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Appends all lines to `out`.
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

/// A word of a line and its position.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Word<'a> {
    pub text: &'a str,
    /// Start, in bytes.
    pub from: usize,
    /// Column after its last character, in characters.
    pub end: usize,
}

/// Splits a line into words.
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

/// Prints right-aligned fields separated by a space. A field that is too wide shifts the others, as
/// with `%8s`.
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
