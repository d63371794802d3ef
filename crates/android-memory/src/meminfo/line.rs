//! Parsed values of a section, its unknown lines, the words of a line, and lines that report trouble.

/// Beginnings of what dumpsys, the service or adb print instead of an answer.
const NO_ANSWER: [&str; 7] = [
    "*** SERVICE 'meminfo' DUMP TIMEOUT",
    "Can't find service: meminfo",
    "cmd: Can't find service: meminfo",
    "Error with service 'meminfo'",
    "Permission Denial: ",
    "error: ",
    "adb: ",
];

/// Returns whether a line says that the device could not answer, or not for the app. A service
/// other than meminfo does not count.
pub(super) fn is_trouble(line: &str) -> bool {
    let rest = line.trim_start().strip_prefix("Got ");
    let failure = rest.and_then(|rest| rest.split([' ', '!', ':']).next());
    failure.is_some_and(|word| word.ends_with("Exception"))
        || NO_ANSWER.iter().any(|begin| line.starts_with(begin))
}

/// Lines of a section, in order.
#[derive(Debug, Clone, PartialEq)]
pub struct Lines<T> {
    values: Vec<T>,
    /// Unparsed lines, each with a line end.
    unknown: String,
}

impl<T> Default for Lines<T> {
    fn default() -> Self {
        Lines {
            values: Vec::new(),
            unknown: String::new(),
        }
    }
}

impl<T> Lines<T> {
    /// Returns the parsed values.
    pub fn values(&self) -> impl DoubleEndedIterator<Item = &T> {
        self.values.iter()
    }

    /// Returns the unparsed lines without blank ones.
    pub fn unknown(&self) -> impl Iterator<Item = &str> {
        self.unknown
            .split('\n')
            .filter(|line| !line.trim().is_empty())
    }

    /// Adds a value.
    pub fn push(&mut self, value: T) {
        self.values.push(value);
    }

    /// Adds an unparsed line.
    pub fn text(&mut self, raw: &str) {
        self.unknown.push_str(raw);
        self.unknown.push('\n');
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.values.is_empty()
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
