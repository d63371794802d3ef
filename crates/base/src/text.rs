//! The plain form of a text, whatever wrote it: UTF-8 without a byte order mark, each line ending in
//! LF. This is the only place that knows about line ends and UTF-16: readers of texts parse the
//! plain form.
//!
//! | written by | bytes | plain |
//! |---|---|---|
//! | Windows, a pseudo-terminal | CR LF | LF |
//! | adb on Windows, behind a pseudo-terminal of the device | CR CR LF | LF |
//! | a serial console | LF CR | LF |
//! | a text whose first bytes have CR, but no LF | CR | LF |
//! | PowerShell's `>` | UTF-16 with a byte order mark | UTF-8 |
//!
//! Another CR inside a line stays: a progress bar writes it, and it does not end the line.

use std::borrow::Cow;
use std::io::{self, Cursor, Read};

/// Bytes at the start of a text that decide about its form.
const HEAD: usize = 64 << 10;
/// Byte order mark of UTF-8.
const UTF8_MARK: &[u8] = b"\xef\xbb\xbf";

type Unit = fn([u8; 2]) -> u16;

/// Returns the conversion of two bytes to a unit, if the text begins with a UTF-16 byte order mark.
fn utf16(head: &[u8]) -> Option<Unit> {
    match head {
        [0xff, 0xfe, ..] => Some(u16::from_le_bytes),
        [0xfe, 0xff, ..] => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// Returns a reader of the plain form of `stream`, whose first bytes are `head`. Without a CR, it
/// passes the bytes through.
///
/// # Errors
/// Returns an error if the byte order mark cannot be read.
pub fn plain_reader<'a>(mut stream: impl Read + 'a, head: &[u8]) -> io::Result<Box<dyn Read + 'a>> {
    let Some(unit) = utf16(head) else {
        if head.starts_with(UTF8_MARK) {
            stream.read_exact(&mut [0; UTF8_MARK.len()])?;
        }
        return Ok(Box::new(LineEnds::new(stream, head)));
    };
    let mut narrow = Vec::new();
    Narrow::new(head, unit).read_to_end(&mut narrow)?;
    Ok(Box::new(LineEnds::new(Narrow::new(stream, unit), &narrow)))
}

/// Returns the plain form of a text in memory; borrowed if it is plain already.
pub fn plain(text: &[u8]) -> Cow<'_, [u8]> {
    if utf16(text).is_none()
        && !text.starts_with(UTF8_MARK)
        && memchr::memchr(b'\r', text).is_none()
    {
        return Cow::Borrowed(text);
    }
    let mut plain = Vec::with_capacity(text.len());
    let head = &text[..text.len().min(HEAD)];
    // Memory can always be read.
    let _ = plain_reader(text, head).and_then(|mut reader| reader.read_to_end(&mut plain));
    Cow::Owned(plain)
}

/// Returns the plain form of a text that is UTF-8 already.
pub fn plain_str(text: &str) -> Cow<'_, str> {
    match plain(text.as_bytes()) {
        Cow::Borrowed(_) => Cow::Borrowed(text),
        Cow::Owned(plain) => Cow::Owned(String::from_utf8_lossy(&plain).into_owned()),
    }
}

/// Returns whether a reader that removes one CR from each line needs the plain form: UTF-16, CR CR
/// LF, or only CR. Looks only at the first bytes, so that a large mapped file stays mapped.
pub fn is_odd(text: &[u8]) -> bool {
    let head = &text[..text.len().min(HEAD)];
    utf16(head).is_some()
        || memchr::memmem::find(head, b"\r\r").is_some()
        || memchr::memchr(b'\r', head).is_some() && memchr::memchr(b'\n', head).is_none()
}

/// A reader that ends each line in LF.
struct LineEnds<R> {
    inner: R,
    /// Whether a lone CR ends a line.
    by_cr: bool,
    /// CRs that were read, and whose next byte was not.
    open: usize,
    /// Whether the next byte begins a line.
    begins: bool,
    ready: Cursor<Vec<u8>>,
}

impl<R> LineEnds<R> {
    fn new(inner: R, head: &[u8]) -> Self {
        LineEnds {
            inner,
            by_cr: memchr::memchr(b'\n', head).is_none(),
            open: 0,
            begins: true,
            ready: Cursor::default(),
        }
    }

    /// Adds text without a CR, after the CRs before it.
    fn add(&mut self, text: &[u8]) {
        let Some(first) = text.first() else { return };
        let open = std::mem::take(&mut self.open);
        let ready = self.ready.get_mut();
        match (*first, self.by_cr) {
            (b'\n', _) => {}
            (_, true) => ready.resize(ready.len() + open, b'\n'),
            (_, false) if open > 0 && !self.begins => ready.push(b'\r'),
            _ => {}
        }
        ready.extend_from_slice(text);
        self.begins = text.ends_with(b"\n");
    }
}

impl<R: Read> Read for LineEnds<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let count = self.inner.read(out)?;
            let mut rest = &out[..count];
            if count == 0 || self.open == 0 && memchr::memchr(b'\r', rest).is_none() {
                self.begins = rest.last().map_or(self.begins, |last| *last == b'\n');
                return Ok(count);
            }
            self.ready.set_position(0);
            self.ready.get_mut().clear();
            while let Some(end) = memchr::memchr(b'\r', rest) {
                self.add(&rest[..end]);
                self.open += 1;
                rest = &rest[end + 1..];
            }
            self.add(rest);
        }
    }
}

/// Replacement for half a character.
const HALF: &str = "\u{fffd}";

/// A reader that converts UTF-16 to UTF-8.
struct Narrow<R> {
    inner: R,
    unit: Unit,
    /// First half of a surrogate pair.
    half: Option<u16>,
    ready: Cursor<Vec<u8>>,
}

impl<R: Read> Narrow<R> {
    fn new(inner: R, unit: Unit) -> Self {
        Narrow {
            inner,
            unit,
            half: None,
            ready: Cursor::default(),
        }
    }
}

impl<R: Read> Read for Narrow<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let count = self.ready.read(out)?;
            if count > 0 || out.is_empty() {
                return Ok(count);
            }
            let mut bytes = Vec::new();
            (&mut self.inner).take(8192).read_to_end(&mut bytes)?;
            self.ready.set_position(0);
            self.ready.get_mut().clear();
            if bytes.is_empty() {
                if self.half.take().is_none() {
                    return Ok(0);
                }
                self.ready.get_mut().extend(HALF.as_bytes());
                continue;
            }
            let units = bytes
                .chunks_exact(2)
                .map(|pair| (self.unit)([pair[0], pair[1]]));
            let mut units: Vec<u16> = self.half.take().into_iter().chain(units).collect();
            if units
                .last()
                .is_some_and(|unit| (0xd800..0xdc00).contains(unit))
            {
                self.half = units.pop();
            }
            let mut text = String::with_capacity(bytes.len());
            for c in char::decode_utf16(units) {
                match c {
                    Ok('\u{feff}') => {}
                    Ok(c) => text.push(c),
                    Err(_) => text.push(char::REPLACEMENT_CHARACTER),
                }
            }
            // Only the last read can have an odd number of bytes.
            if bytes.len() % 2 == 1 {
                text.push(char::REPLACEMENT_CHARACTER);
            }
            self.ready = Cursor::new(text.into_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads in pieces of all lengths, and checks that they agree.
    fn read(text: &[u8]) -> String {
        struct Pieces<'a>(&'a [u8], usize);
        impl Read for Pieces<'_> {
            fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
                let most = out.len().min(self.1);
                self.0.read(&mut out[..most])
            }
        }
        let whole = plain(text).into_owned();
        for length in 1..=text.len().min(9) {
            let mut pieces = Vec::new();
            let mut reader = plain_reader(Pieces(text, length), text).unwrap();
            reader.read_to_end(&mut pieces).unwrap();
            assert_eq!(pieces, whole, "{length}");
        }
        String::from_utf8(whole).unwrap()
    }

    #[test]
    fn line_ends_of_every_writer_become_lf() {
        for end in ["\n", "\r\n", "\r\r\n", "\n\r", "\r"] {
            let text = format!("one{end}two{end}");
            assert_eq!(
                read(text.as_bytes()),
                "one\ntwo\n".trim_end_matches(match end {
                    // Nothing follows the last one.
                    "\r" => "\n",
                    _ => "",
                }),
                "{end:?}"
            );
        }
        assert_eq!(read(b"one\r\n\r\nthree\r\n"), "one\n\nthree\n");
    }

    #[test]
    fn a_cr_inside_a_line_stays() {
        assert_eq!(read(b"10%\r20%\r\r30%\nend\r"), "10%\r20%\r30%\nend");
    }

    #[test]
    fn utf_16_and_marks_become_utf_8() {
        let wide = |text: &str, to: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let units = std::iter::once(0xfeff).chain(text.encode_utf16());
            units.flat_map(to).collect()
        };
        let text = "caf\u{e9} \u{1f600}\r\n2\r\n";
        for bytes in [wide(text, u16::to_le_bytes), wide(text, u16::to_be_bytes)] {
            assert_eq!(read(&bytes), "caf\u{e9} \u{1f600}\n2\n");
            assert!(is_odd(&bytes));
        }
        assert_eq!(read(b"\xef\xbb\xbfa\r\n"), "a\n");
        assert_eq!(read(b""), "");
    }

    #[test]
    fn a_plain_text_is_not_copied() {
        assert!(matches!(plain(b"one\ntwo"), Cow::Borrowed(_)));
        assert!(!is_odd(b"one\r\ntwo\r\n") && is_odd(b"a\r\r\n") && is_odd(b"a\rb"));
    }
}
