//! Splits the output of a command into whole lines.

/// Maximum length of a line; the rest is cut off.
const MAX_LINE_BYTES: usize = 64 << 10;

/// Splitter of blocks of bytes into lines. Overlong lines are cut off.
#[derive(Debug, Default)]
pub struct Lines {
    rest: Vec<u8>,
}

impl Lines {
    /// Returns the lines completed by `bytes`, without their line ends.
    pub fn push(&mut self, bytes: &[u8]) -> Vec<String> {
        let mut lines = Vec::new();
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let (body, ends) = match piece.strip_suffix(b"\n") {
                Some(body) => (body, true),
                None => (piece, false),
            };
            let room = MAX_LINE_BYTES.saturating_sub(self.rest.len());
            self.rest.extend_from_slice(&body[..body.len().min(room)]);
            if ends {
                let line = self.rest.strip_suffix(b"\r").unwrap_or(&self.rest);
                lines.push(String::from_utf8_lossy(line).into_owned());
                self.rest.clear();
            }
        }
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_whole_however_the_bytes_come() {
        let mut lines = Lines::default();
        let mut all = Vec::new();
        for byte in b"one\ntwo \r\n\nthree" {
            all.extend(lines.push(&[*byte]));
        }
        all.extend(lines.push(b"\nfour\nfi"));
        assert_eq!(all, ["one", "two ", "", "three", "four"]);
    }

    #[test]
    fn a_line_without_end_takes_no_more_than_its_room() {
        let mut lines = Lines::default();
        for _ in 0..1000 {
            assert!(lines.push(&[b'x'; 1024]).is_empty());
        }
        assert_eq!(lines.push(b"\n")[0].len(), MAX_LINE_BYTES);
    }
}
