//! Names in text formats: removes frame separators, escapes terminal control characters, and writes
//! JSON piece by piece.

use heaptap_base::untrusted::{is_unsafe, sanitize};
use serde::Serialize;
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, BufWriter, Write};

/// Substitute for a missing name.
pub(super) const UNNAMED: &str = "[unknown]";

/// Formats a name as a frame of a folded stack, in which `;` separates frames and a line end ends
/// the stack.
pub(super) fn folded_name(name: &str) -> Cow<'_, str> {
    let name = named(name);
    let odd = |c: char| c == ';' || is_unsafe(c);
    match name.contains(odd) {
        false => Cow::Borrowed(name),
        true => Cow::Owned(
            name.chars()
                .map(|c| match c {
                    ';' => ':',
                    '\n' | '\r' | '\t' => ' ',
                    c if is_unsafe(c) => '\u{fffd}',
                    c => c,
                })
                .collect(),
        ),
    }
}

/// Returns a name, or [`UNNAMED`] if it is empty.
pub(super) fn named(name: &str) -> &str {
    match name.trim().is_empty() {
        true => UNNAMED,
        false => name,
    }
}

/// Escapes text for XML elements and attributes. Characters that XML does not allow become U+FFFD.
pub(super) fn xml(text: &str) -> String {
    let text = sanitize(text);
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&#39;"),
            '\u{fffe}' | '\u{ffff}' => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}

/// Writes a value as JSON. Characters that control a terminal or change the writing direction are
/// escaped, which does not change the parsed value.
pub(super) fn put_json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    Ok(serde_json::to_writer(EscapedJson(out), value)?)
}

/// Writes a document and a line end, as it is made: a document can be as large as the input.
pub fn put_document(
    out: &mut impl Write,
    value: &impl Serialize,
    is_pretty: bool,
) -> io::Result<()> {
    // Its parts end between two writes of serde_json, so they have whole characters.
    let mut buffer = BufWriter::new(EscapedJson(out));
    let written = match is_pretty {
        true => serde_json::to_writer_pretty(&mut buffer, value),
        false => serde_json::to_writer(&mut buffer, value),
    };
    let written = written.map_err(io::Error::from);
    let written = written.and_then(|()| buffer.write_all(b"\n"));
    let written = written.and_then(|()| buffer.flush());
    if written.is_err() {
        // Dropping it would write the rest once more.
        let _rest = buffer.into_parts();
    }
    written
}

/// Escapes those characters in what serde_json writes, which is never a part of a character.
struct EscapedJson<W>(W);

impl<W: Write> Write for EscapedJson<W> {
    fn write(&mut self, json: &[u8]) -> io::Result<usize> {
        let text = std::str::from_utf8(json).map_err(io::Error::other)?;
        self.0.write_all(escaped_json(text).as_bytes())?;
        Ok(json.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush()
    }
}

/// Returns JSON with those characters escaped. They occur in strings only, where an escape is
/// equivalent. Line ends occur between values only.
pub fn escaped_json(text: &str) -> Cow<'_, str> {
    let is_unsafe = |c: char| c != '\n' && is_unsafe(c);
    // Scanning bytes is many times as fast as scanning characters, and most documents contain only
    // such bytes.
    let is_plain = |byte: u8| byte == b'\n' || (b' '..=b'~').contains(&byte);
    if text.bytes().all(is_plain) || !text.contains(is_unsafe) {
        return Cow::Borrowed(text);
    }
    let mut safe = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_unsafe(c) {
            let mut units = [0; 2];
            for unit in c.encode_utf16(&mut units) {
                // Writing to a String cannot fail.
                let _ = write!(safe, "\\u{unit:04x}");
            }
        } else {
            safe.push(c);
        }
    }
    Cow::Owned(safe)
}

/// Writes items separated by commas.
pub(super) fn put_list<W: Write, T>(
    out: &mut W,
    items: impl IntoIterator<Item = T>,
    mut put: impl FnMut(&mut W, T) -> io::Result<()>,
) -> io::Result<()> {
    for (at, item) in items.into_iter().enumerate() {
        if at > 0 {
            out.write_all(b",")?;
        }
        put(out, item)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_place() {
        assert_eq!(folded_name("a;b\nc 12"), "a:b c 12");
        assert_eq!(folded_name("\x1b[31m\u{202e}"), "\u{fffd}[31m\u{fffd}");
        assert_eq!(folded_name("  "), UNNAMED);
        assert!(matches!(folded_name("operator new"), Cow::Borrowed(_)));
        assert_eq!(
            xml("</title><script>\"'&\u{0}\u{ffff}"),
            "&lt;/title&gt;&lt;script&gt;&quot;&#39;&amp;\u{fffd}\u{fffd}"
        );
    }

    #[test]
    fn json_shows_what_it_holds() {
        let name = "é\u{9b}\u{202e}\u{e0041}\"\n";
        let mut out = Vec::new();
        put_json(&mut out, &name).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, r#""é\u009b\u202e\udb40\udc41\"\n""#);
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), name);
        let mut pretty = Vec::new();
        put_document(&mut pretty, &[name, "\u{7f}"], true).unwrap();
        assert_eq!(
            String::from_utf8(pretty).unwrap(),
            "[\n  \"é\\u009b\\u202e\\udb40\\udc41\\\"\\n\",\n  \"\\u007f\"\n]\n"
        );
    }

    #[test]
    fn json_of_plain_characters_stays_as_it_is() {
        let plain = serde_json::to_string_pretty(&["a\n b~\u{1b}", "c"]).unwrap();
        assert!(matches!(escaped_json(&plain), Cow::Borrowed(same) if same == plain));
        for (c, escaped) in [("\u{7f}", r"\u007f"), ("\u{9b}", r"\u009b")] {
            let text = plain.replace('c', c);
            assert_eq!(escaped_json(&text), plain.replace('c', escaped));
        }
    }
}
