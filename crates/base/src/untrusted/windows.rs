//! File names that mean something else on Windows: devices, streams of a file, wildcards.

/// Returns whether Windows opens a device for this file name, whatever follows its first dot.
pub fn is_device(name: &str) -> bool {
    let stem = name.split('.').next().unwrap_or(name).trim_end();
    let stem = stem.to_ascii_uppercase();
    let port = |prefix: &str| {
        let mut number = stem.strip_prefix(prefix).unwrap_or("").chars();
        // Windows counts the superscripts among the digits here.
        let digit = |c: char| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³');
        number.next().is_some_and(digit) && number.next().is_none()
    };
    let named = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str());
    named || port("COM") || port("LPT")
}

/// Returns whether a file name means a plain file on Windows.
pub fn is_plain(name: &str) -> bool {
    let is_special = name.contains([':', '*', '?', '"', '<', '>', '|']);
    !is_special && !name.ends_with([' ', '.']) && !is_device(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_streams_and_wildcards_are_no_plain_names() {
        for name in [
            "nul", "COM1.so", "aux .so", "a:b", "x.", "LPT¹", "CONIN$", "a?",
        ] {
            assert!(!is_plain(name), "{name}");
        }
        for name in [
            "libc.so",
            "com10.so",
            "console.so",
            "base.apk!liba.so",
            "LPTx",
        ] {
            assert!(is_plain(name), "{name}");
        }
    }
}
