//! Words of a device or server, made safe to show.

/// Bytes of a device or server as text that no terminal acts upon: control characters become
/// U+FFFD.
pub(super) fn printable(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes)
        .chars()
        .map(|c| match c {
            '\n' | '\t' => ' ',
            c if c.is_control() => char::REPLACEMENT_CHARACTER,
            c => c,
        })
        .collect()
}
