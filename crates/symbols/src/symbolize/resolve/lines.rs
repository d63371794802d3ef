//! Lines of one library's addresses in compact form: each text is stored once, and an address costs
//! a few numbers. Defines the form in memory and the bytes in the cache.

use crate::symbolize::file::SourceLine;
use heaptap_model::profile::interned::Texts;
use serde::{Deserialize, Serialize};

/// Maximum number of inlined calls at one address; outer ones beyond it are left out, as when
/// symbols are read from a trace.
const MAX_DEPTH: usize = 256;

/// One line; texts are positions in [`Texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Line {
    pub(super) function: u32,
    pub(super) linkage: u32,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// Lines of one address: a range of [`AddressLines::lines`], and the index of the library's file
/// that they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub(super) struct Row {
    start: u32,
    end: u32,
    pub(super) file: u8,
}

impl Row {
    pub(super) fn is_known(self) -> bool {
        self.start < self.end
    }
}

#[derive(Debug, Clone, Default)]
pub(super) struct AddressLines {
    texts: Texts,
    lines: Vec<Line>,
    /// Parallel to the addresses.
    rows: Vec<Row>,
}

impl AddressLines {
    /// Makes empty lines for a number of addresses.
    pub(super) fn unknown(addresses: usize) -> AddressLines {
        AddressLines {
            rows: vec![Row::default(); addresses],
            ..AddressLines::default()
        }
    }

    /// Sets the lines of the address at `at`, innermost first, from the library's file at index
    /// `file`. Does nothing if there is no space for more.
    pub(super) fn set(&mut self, at: usize, file: u8, innermost_first: &[SourceLine<'_>]) {
        let start = self.lines.len();
        if u32::try_from(start + MAX_DEPTH).is_err() {
            return;
        }
        for line in innermost_first.iter().take(MAX_DEPTH) {
            let line = Line {
                function: self.texts.id(line.function),
                linkage: self.texts.id(line.linkage),
                file: self.texts.id(line.file),
                line: line.line,
            };
            self.lines.push(line);
        }
        self.rows[at] = Row {
            start: start as u32,
            end: self.lines.len() as u32,
            file,
        };
    }

    /// Copies the lines of an address of `other` to the address at `at`.
    pub(super) fn copy(&mut self, at: usize, other: &AddressLines, from: usize) {
        let lines: Vec<SourceLine<'_>> = other
            .lines(from)
            .iter()
            .map(|line| SourceLine {
                function: other.text(line.function),
                linkage: other.text(line.linkage),
                file: other.text(line.file),
                line: line.line,
                column: 0,
            })
            .collect();
        self.set(at, other.rows[from].file, &lines);
    }

    /// Restores an earlier state, given its rows.
    pub(super) fn restore(&mut self, rows: Vec<Row>) {
        self.rows = rows;
    }

    /// Returns the rows of all addresses.
    pub(super) fn rows(&self) -> &[Row] {
        &self.rows
    }

    /// Returns the lines of the address at `at`, innermost first; empty if unknown.
    pub(super) fn lines(&self, at: usize) -> &[Line] {
        let row = self.rows[at];
        &self.lines[row.start as usize..row.end as usize]
    }

    /// Returns whether some line of the address at `at` has a file.
    pub(super) fn has_file(&self, at: usize) -> bool {
        self.lines(at)
            .iter()
            .any(|line| !self.text(line.file).is_empty())
    }

    /// Returns the text at a position in a [`Line`].
    pub(super) fn text(&self, id: u32) -> &str {
        self.texts.get(id)
    }

    /// Returns the number of texts.
    pub(super) fn text_count(&self) -> usize {
        self.texts.len()
    }

    /// Returns texts, lines and rows, as the cache stores them.
    pub(super) fn parts(&self) -> (Vec<&str>, &[Line], &[Row]) {
        let texts = (0..self.texts.len() as u32).map(|id| self.text(id));
        (texts.collect(), &self.lines, &self.rows)
    }

    /// Restores lines from their parts; `None` if these contradict each other.
    pub(super) fn from_parts(
        texts: &[&str],
        lines: Vec<Line>,
        rows: Vec<Row>,
    ) -> Option<AddressLines> {
        let mut known = Texts::default();
        let is_next = |(at, text): (usize, &&str)| known.id(text) as usize == at;
        let is_whole = texts.iter().enumerate().all(is_next)
            && lines.iter().all(|line| {
                let ids = [line.function, line.linkage, line.file];
                ids.iter().all(|&id| (id as usize) < texts.len())
            })
            && rows
                .iter()
                .all(|row| row.start <= row.end && row.end as usize <= lines.len());
        is_whole.then_some(AddressLines {
            texts: known,
            lines,
            rows,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line<'a>(function: &'a str, file: &'a str, line: u32) -> SourceLine<'a> {
        SourceLine {
            function,
            linkage: function,
            file,
            line,
            column: 0,
        }
    }

    fn some() -> AddressLines {
        let mut lines = AddressLines::unknown(4);
        lines.set(
            2,
            1,
            &[line("inner", "a.cc", 3), line("outer", "a.cc", 900)],
        );
        lines.set(0, 0, &[line("ünïcode", "", 0)]);
        lines
    }

    fn shown(lines: &AddressLines) -> Vec<Vec<(String, String, u32)>> {
        (0..lines.rows().len())
            .map(|at| {
                let text = |id| lines.text(id).to_owned();
                lines
                    .lines(at)
                    .iter()
                    .map(|l| (text(l.function), text(l.file), l.line))
                    .collect()
            })
            .collect()
    }

    #[test]
    fn parts_make_the_same_lines() {
        let lines = some();
        let (texts, all, rows) = lines.parts();
        let back = AddressLines::from_parts(&texts, all.to_vec(), rows.to_vec()).unwrap();
        assert_eq!(shown(&back), shown(&lines));
        assert_eq!(back.rows()[2].file, 1);
        assert!(!back.rows()[1].is_known());
        assert_eq!(back.text_count(), 5, "none, inner, a.cc, outer, ünïcode");
    }

    #[test]
    fn parts_that_contradict_each_other_are_refused() {
        let lines = some();
        let (texts, all, rows) = lines.parts();
        let is_whole = |texts: &[&str], lines: usize| {
            AddressLines::from_parts(texts, all[..lines].to_vec(), rows.to_vec()).is_some()
        };
        assert!(is_whole(&texts, all.len()));
        assert!(!is_whole(&texts, all.len() - 1));
        assert!(!is_whole(&texts[..4], all.len()));
        assert!(!is_whole(&["", "", "a", "b", "c"], all.len()));
    }

    #[test]
    fn an_endless_chain_of_inlined_calls_is_cut() {
        let mut lines = AddressLines::unknown(1);
        lines.set(0, 0, &vec![line("f", "", 1); 10_000]);
        assert_eq!(lines.lines(0).len(), MAX_DEPTH);
    }
}
