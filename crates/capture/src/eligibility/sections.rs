//! Splits the output of one shell call with many answers: a script prints a marker line before
//! each answer. The parser tolerates all line ends that shells produce.

use std::collections::BTreeMap;

/// Marker before each answer, followed by the answer's name.
const MARKER: &str = "@@heaptap ";

/// Answers by name; each is the bytes between two marker lines.
#[derive(Debug, Default)]
pub struct Sections<'a> {
    by_name: BTreeMap<String, &'a [u8]>,
}

impl<'a> Sections<'a> {
    /// Splits the output of a script. Text before the first marker (shell greetings, linker
    /// warnings) is dropped; the first of two answers with one name counts.
    pub fn read(output: &'a [u8]) -> Self {
        let mut by_name = BTreeMap::new();
        let mut open: Option<(String, usize)> = None;
        let mut at = 0;
        for line in output.split_inclusive(|&b| b == b'\n') {
            let start = at;
            at += line.len();
            let Some(name) = marker_name(line) else {
                continue;
            };
            if let Some((name, from)) = open.replace((name, at)) {
                by_name.entry(name).or_insert(&output[from..start]);
            }
        }
        if let Some((name, from)) = open {
            by_name.entry(name).or_insert(&output[from..]);
        }
        Sections { by_name }
    }

    /// Returns the bytes of one answer; empty if the script did not reach it.
    pub fn bytes(&self, name: &str) -> &'a [u8] {
        self.by_name.get(name).copied().unwrap_or(&[])
    }

    /// Returns the lines of one answer: trimmed, without empty ones and without the warnings
    /// that a dynamic linker prints before a program's output.
    pub fn lines(&self, name: &str) -> Vec<String> {
        text_lines(self.bytes(name))
    }

    /// Returns the first line of an answer.
    pub fn line(&self, name: &str) -> Option<String> {
        self.lines(name).into_iter().next()
    }

    /// Returns the first line that is a number.
    pub fn number<N: std::str::FromStr>(&self, name: &str) -> Option<N> {
        self.lines(name).iter().find_map(|l| l.parse().ok())
    }

    /// Returns every name in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.by_name.keys().map(String::as_str)
    }
}

fn marker_name(line: &[u8]) -> Option<String> {
    let line = line.trim_ascii();
    let name = line.strip_prefix(MARKER.as_bytes())?;
    Some(String::from_utf8_lossy(name).into_owned())
}

/// Splits text of a device into lines: see [`Sections::lines`].
pub fn text_lines(bytes: &[u8]) -> Vec<String> {
    String::from_utf8_lossy(bytes)
        .lines()
        .map(str::trim)
        .filter(|l| !l.is_empty() && !l.starts_with("WARNING: linker"))
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_survive_crlf_warnings_and_missing_line_ends() {
        let out = b"welcome\r\n@@heaptap id\r\nWARNING: linker: x\r\n2000\r\n\r\n@@heaptap raw\n\x00\xff\n@@heaptap last\n7";
        let s = Sections::read(out);
        assert_eq!(s.number::<u32>("id"), Some(2000));
        assert_eq!(s.bytes("raw"), b"\x00\xff\n");
        assert_eq!(s.line("last").as_deref(), Some("7"));
        assert_eq!(s.bytes("never"), b"");
        assert_eq!(Sections::read(b"").names().count(), 0);
    }

    #[test]
    fn the_first_of_two_answers_counts() {
        let s = Sections::read(b"@@heaptap a\n1\n@@heaptap a\n2\n");
        assert_eq!(s.line("a").as_deref(), Some("1"));
    }
}
