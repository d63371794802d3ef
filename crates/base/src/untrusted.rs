//! Sanitized text from a device, a trace, a dump or an archive: without escape sequences, control
//! characters, and invisible characters that reorder or hide the text around them.

pub mod ci;
pub mod shell;
pub mod windows;

use std::borrow::Cow;

/// Returns whether a terminal might interpret `c`, or show the text differently.
pub fn is_unsafe(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}'
            | '\u{e0000}'..='\u{e007f}')
}

/// Returns the text with U+FFFD for each unsafe character.
pub fn sanitize(text: &str) -> Cow<'_, str> {
    match text.contains(is_unsafe) {
        true => Cow::Owned(text.replace(is_unsafe, "\u{fffd}")),
        false => Cow::Borrowed(text),
    }
}

/// Converts bytes to displayable text: each byte sequence that is not UTF-8 and each unsafe
/// character becomes U+FFFD. At most 1024 characters are kept.
pub fn sanitize_bytes(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .take(1024)
        .map(|c| if is_unsafe(c) { '\u{fffd}' } else { c })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_and_direction_marks_do_not_pass() {
        assert_eq!(sanitize_bytes(b"a\x1b[31mb"), "a\u{fffd}[31mb");
        assert_eq!(sanitize("x\u{202e}y\u{9b}z"), "x\u{fffd}y\u{fffd}z");
        assert_eq!(sanitize_bytes(b"\xff\xfe"), "\u{fffd}\u{fffd}");
        assert!(matches!(
            sanitize("Größe 日本"),
            Cow::Borrowed("Größe 日本")
        ));
        assert_eq!(sanitize_bytes(&[b'a'; 5000]).len(), 1024);
    }
}
