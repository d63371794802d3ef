//! Lines found for each address, collected until the lookup ends. Names and files are stored once.

use heaptap_model::names::demangle;
use heaptap_model::profile::interned::Texts;
use std::collections::HashMap;

/// One line found for an address: a function, inlined or not, and its location.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceLine<'text> {
    /// Function, demangled; empty if only file and line are known.
    pub function: &'text str,
    /// Linkage name of the function, as in the symbol table. If there is none, as in C, its name in
    /// the source.
    pub linkage: &'text str,
    /// Source file: the path passed to the compiler, appended to its working directory. Empty if
    /// unknown.
    pub file: &'text str,
    /// Line; 0 if unknown.
    pub line: u32,
    /// Column; 0 if unknown.
    pub column: u32,
}

/// Lines of some addresses.
#[derive(Debug, Default)]
pub(super) struct Answers {
    texts: Texts,
    /// Demangled text of each linkage name.
    demangled: HashMap<u32, u32>,
    lines: Vec<Line>,
    found: Vec<Found>,
    /// Start of the lines of the current address.
    start: usize,
    /// Unit of the current address.
    unit: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
struct Line {
    function: u32,
    linkage: u32,
    file: u32,
    line: u32,
    column: u32,
}

/// Range of lines of one address.
#[derive(Debug, Clone, Copy)]
struct Found {
    at: usize,
    unit: Option<usize>,
    start: usize,
    end: usize,
}

impl Answers {
    /// Sets the unit that contains the next addresses.
    pub fn begin_unit(&mut self, unit: Option<usize>) {
        self.unit = unit;
    }

    /// Keeps the lines of the addresses for which `is_kept` returns true, by index and unit.
    pub fn keep(&mut self, is_kept: impl Fn(usize, Option<usize>) -> bool) {
        self.found.retain(|found| is_kept(found.at, found.unit));
    }

    /// Adds a line to the current address, innermost first, without demangling.
    pub fn add(&mut self, line: SourceLine<'_>) {
        let line = Line {
            function: self.texts.id(line.function),
            linkage: self.texts.id(line.linkage),
            file: self.texts.id(line.file),
            line: line.line,
            column: line.column,
        };
        self.lines.push(line);
    }

    /// Adds a line for a function with a linkage name, which is demangled.
    pub fn add_mangled(&mut self, linkage: &str, file: &str, line: u32, column: u32) {
        let linkage = self.texts.id(linkage);
        let function = match self.demangled.get(&linkage) {
            Some(function) => *function,
            None => {
                let name = demangle(self.texts.get(linkage)).into_owned();
                let function = self.texts.id(&name);
                self.demangled.insert(linkage, function);
                function
            }
        };
        let file = self.texts.id(file);
        self.lines.push(Line {
            function,
            linkage,
            file,
            line,
            column,
        });
    }

    /// Assigns the lines added since the last call to the address at this index.
    pub fn finish(&mut self, at: usize) {
        let (start, end) = (self.start, self.lines.len());
        if start < end {
            let unit = self.unit;
            self.found.push(Found {
                at,
                unit,
                start,
                end,
            });
        }
        self.start = end;
    }

    /// Drops the lines added since the last address was finished.
    pub fn abandon(&mut self) {
        self.lines.truncate(self.start);
    }
}

/// Calls `sink` with the lines of each address that has any, in the order of addresses.
pub(super) fn for_each(answers: &[Answers], sink: &mut dyn FnMut(usize, &[SourceLine<'_>])) {
    let all = answers.iter().enumerate();
    let mut order: Vec<(usize, usize, usize)> = all
        .flat_map(|(by, answers)| {
            let found = answers.found.iter().enumerate();
            found.map(move |(number, found)| (found.at, by, number))
        })
        .collect();
    order.sort_unstable();
    let mut lines = Vec::new();
    for (at, by, number) in order {
        let answers = &answers[by];
        let found = &answers.found[number];
        let text = |id: u32| answers.texts.get(id);
        lines.clear();
        lines.extend(
            answers.lines[found.start..found.end]
                .iter()
                .map(|line| SourceLine {
                    function: text(line.function),
                    linkage: text(line.linkage),
                    file: text(line.file),
                    line: line.line,
                    column: line.column,
                }),
        );
        sink(at, &lines);
    }
}
