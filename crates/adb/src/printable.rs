//! Sanitizes texts of a device or server for one line of output.

use heaptap_base::untrusted::sanitize;

/// Converts bytes of a device or server to one line that is safe for terminals: newlines and tabs
/// become spaces, other unsafe characters U+FFFD.
pub(super) fn printable(bytes: &[u8]) -> String {
    sanitize(&String::from_utf8_lossy(bytes).replace(['\n', '\t'], " ")).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_device_names_itself_in_one_line_and_hides_nothing() {
        let told = printable(b"Pixel\n9\t\x1b[2J\xe2\x80\xae3 \xff");
        assert_eq!(told, "Pixel 9 \u{fffd}[2J\u{fffd}3 \u{fffd}");
    }
}
