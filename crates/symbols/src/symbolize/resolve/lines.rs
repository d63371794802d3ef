//! Lines of one library's addresses in compact form: each text is stored once, and an address costs
//! a few numbers. Defines the form in memory and the bytes in the cache.

use crate::symbolize::file::SourceLine;
use heaptap_model::profile::index::{Index, Seed};
use heaptap_model::profile::interned::{next_id, span};
use heaptap_model::varint::put;

/// Maximum number of inlined calls at one address; outer ones beyond it are left out, as when
/// symbols are read from a trace.
const DEEPEST: usize = 256;

/// One line; texts are positions in [`Texts`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) function: u32,
    pub(super) linkage: u32,
    pub(super) file: u32,
    pub(super) line: u32,
}

/// Lines of one address: a range of [`AddressLines::lines`], and the index of the library's file
/// that they come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
        if u32::try_from(start + DEEPEST).is_err() {
            return;
        }
        for line in innermost_first.iter().take(DEEPEST) {
            let line = Line {
                function: self.texts.intern(line.function),
                linkage: self.texts.intern(line.linkage),
                file: self.texts.intern(line.file),
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
        self.texts.ends.len()
    }

    /// Appends the encoded lines to `out`.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put(out, self.texts.ends.len() as u64);
        let mut start = 0;
        for &end in &self.texts.ends {
            put(out, (end - start) as u64);
            start = end;
        }
        out.extend_from_slice(self.texts.text.as_bytes());
        for at in 0..self.rows.len() {
            let lines = self.lines(at);
            put(out, lines.len() as u64);
            if lines.is_empty() {
                continue;
            }
            out.push(self.rows[at].file);
            for line in lines {
                for number in [line.function, line.linkage, line.file, line.line] {
                    put(out, u64::from(number));
                }
            }
        }
    }

    /// Decodes the lines of `addresses` addresses from the output of [`AddressLines::encode`];
    /// `None` for other input.
    pub(super) fn decode(input: &mut Input<'_>, addresses: usize) -> Option<AddressLines> {
        let count = input.number()?;
        let mut ends = Vec::new();
        let mut end = 0usize;
        for _ in 0..count {
            end = end.checked_add(usize::try_from(input.number()?).ok()?)?;
            ends.push(end);
        }
        let text = std::str::from_utf8(input.bytes(end)?).ok()?;
        if !ends.iter().all(|&end| text.is_char_boundary(end)) {
            return None;
        }
        let mut decoded = AddressLines {
            texts: Texts {
                text: text.to_owned(),
                ends,
                ..Texts::default()
            },
            lines: Vec::new(),
            rows: Vec::with_capacity(addresses),
        };
        for _ in 0..addresses {
            let count = input.number()?;
            if count == 0 {
                decoded.rows.push(Row::default());
                continue;
            }
            let file = *input.bytes(1)?.first()?;
            let start = u32::try_from(decoded.lines.len()).ok()?;
            for _ in 0..count {
                let mut numbers = [0; 4];
                for number in &mut numbers {
                    *number = u32::try_from(input.number()?).ok()?;
                }
                let [function, linkage, source, line] = numbers;
                let texts = [function, linkage, source];
                if texts
                    .iter()
                    .any(|&text| u64::from(text) >= count_of(&decoded))
                {
                    return None;
                }
                decoded.lines.push(Line {
                    function,
                    linkage,
                    file: source,
                    line,
                });
            }
            let end = u32::try_from(decoded.lines.len()).ok()?;
            decoded.rows.push(Row { start, end, file });
        }
        Some(decoded)
    }
}

fn count_of(lines: &AddressLines) -> u64 {
    lines.texts.ends.len() as u64
}

/// Texts without duplicates.
#[derive(Debug, Clone, Default)]
struct Texts {
    seed: Seed,
    index: Index,
    text: String,
    ends: Vec<usize>,
}

impl Texts {
    fn intern(&mut self, text: &str) -> u32 {
        let hash = self.seed.bytes(text.as_bytes());
        let next = next_id(self.ends.len());
        let (all, ends) = (&self.text, &self.ends);
        let (id, there) = self
            .index
            .find_or_insert(hash, next, |id| all[span(ends, id)] == *text);
        if !there {
            self.text.push_str(text);
            self.ends.push(self.text.len());
        }
        id
    }

    fn get(&self, id: u32) -> &str {
        &self.text[span(&self.ends, id)]
    }
}

/// Input read from the front; numbers in it never cause allocations.
pub(super) struct Input<'a>(pub(super) &'a [u8]);

impl<'a> Input<'a> {
    /// Reads the next `length` bytes.
    pub(super) fn bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (head, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(head)
    }

    /// Reads the next LEB128 number.
    pub(super) fn number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes(1)?.first()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
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
    fn what_is_encoded_reads_back() {
        let lines = some();
        let mut bytes = Vec::new();
        lines.encode(&mut bytes);
        let mut input = Input(&bytes);
        let back = AddressLines::decode(&mut input, 4).unwrap();
        assert!(input.0.is_empty());
        assert_eq!(shown(&back), shown(&lines));
        assert_eq!(back.rows()[2].file, 1);
        assert!(!back.rows()[1].is_known());
        assert_eq!(back.text_count(), 5, "inner, a.cc, outer, ünïcode, none");
    }

    #[test]
    fn every_damage_is_told_or_harmless() {
        let mut bytes = Vec::new();
        some().encode(&mut bytes);
        for at in 0..bytes.len() {
            assert!(AddressLines::decode(&mut Input(&bytes[..at]), 4).is_none());
            for bit in 0..8 {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << bit;
                if let Some(lines) = AddressLines::decode(&mut Input(&damaged), 4) {
                    // Whatever the result is, it can be read.
                    assert_eq!(shown(&lines).len(), 4);
                }
            }
        }
    }

    #[test]
    fn an_endless_chain_of_inlined_calls_is_cut() {
        let mut lines = AddressLines::unknown(1);
        lines.set(0, 0, &vec![line("f", "", 1); 10_000]);
        assert_eq!(lines.lines(0).len(), DEEPEST);
    }
}
