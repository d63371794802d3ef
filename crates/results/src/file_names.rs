//! Names of files: which names from a device become file names, and which names from a manifest stay
//! within its directory.

use std::path::{Component, Path};

use sha2::{Digest as _, Sha256};
use time::OffsetDateTime;
use time::macros::format_description;

use heaptap_base::units;
use heaptap_base::untrusted::windows;
use heaptap_capture::session::SessionId;

/// Longest part of a name that came from outside, bytes of UTF-8. File systems end at 255.
const MAX_LENGTH: usize = 80;
/// Bytes of the SHA-256 at the end of a name that was cut.
const HASH_BYTES: usize = 4;

/// Returns `heaptap-<target>-<time>-<id>`, with the time as `20261120T074300Z`. The ID
/// distinguishes recordings that begin within the same second.
pub fn default_name(target: &str, at: OffsetDateTime, id: &SessionId) -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let at = at
        .to_offset(time::UtcOffset::UTC)
        .format(format)
        .expect("every date has these fields");
    format!("heaptap-{}-{at}-{id}", file_name(target))
}

/// Returns whether a file name stays within its directory: manifests from elsewhere can contain any
/// path.
pub fn is_below(file: &str) -> bool {
    let is_plain = |part: Component<'_>| match part {
        Component::Normal(name) => !cfg!(windows) || name.to_str().is_some_and(windows::is_plain),
        _ => false,
    };
    !file.is_empty() && Path::new(file).components().all(is_plain)
}

/// Makes `name` valid as part of a file name on every system: `: * / \ < > | ?`, quotes, control
/// characters and Windows device names become `_`. A long name is cut, and ends with a hash of the
/// whole name: names that begin alike stay different.
pub fn file_name(name: &str) -> String {
    let mut clean: String = name
        .chars()
        .map(|c| match c {
            ':' | '*' | '/' | '\\' | '<' | '>' | '|' | '?' | '"' => '_',
            c if c.is_control() || is_invisible(c) => '_',
            c => c,
        })
        .collect();
    if clean.len() > MAX_LENGTH {
        let hash = units::hex(&Sha256::digest(name)[..HASH_BYTES]);
        while clean.len() + 1 + hash.len() > MAX_LENGTH {
            clean.pop();
        }
        clean.push('-');
        clean.push_str(&hash);
    }
    // Windows drops blanks and dots at the end; leading dots hide a file elsewhere.
    while clean.ends_with([' ', '.']) {
        clean.pop();
    }
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    if windows::is_device(&clean) {
        clean.insert(0, '_');
    }
    if clean.is_empty() {
        clean.push('_');
    }
    clean
}

fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn the_default_name_is_safe_everywhere() {
        let at = datetime!(2026-11-20 08:43:00 +1);
        let id = "k3v9xq2m".parse().unwrap();
        assert_eq!(
            default_name("com.example.app:service", at, &id),
            "heaptap-com.example.app_service-20261120T074300Z-k3v9xq2m"
        );
        assert_eq!(file_name("../../etc/passwd"), "_._.._etc_passwd");
        assert_eq!(file_name("a*b?c<d>e|f\\g\"h\ni"), "a_b_c_d_e_f_g_h_i");
        assert_eq!(file_name("con.txt"), "_con.txt");
        assert_eq!(file_name("COM7"), "_COM7");
        assert_eq!(file_name("lpt².log"), "_lpt².log");
        assert_eq!(file_name("nul .x"), "_nul .x");
        assert_eq!(file_name("conin$"), "_conin$");
        assert_eq!(file_name("COM71"), "COM71");
        assert_eq!(file_name("com.example"), "com.example");
        assert_eq!(file_name("..."), "_");
        assert_eq!(file_name(""), "_");
        assert_eq!(file_name(&"x".repeat(500)).len(), MAX_LENGTH);
        assert!(file_name(&"\u{1f9e0}".repeat(500)).len() <= MAX_LENGTH);
    }

    #[test]
    fn names_that_are_cut_stay_different() {
        let long = "x".repeat(MAX_LENGTH);
        assert_eq!(file_name(&long), long, "it fits");
        let [one, other] = ["a", "b"].map(|end| file_name(&format!("{long}{end}")));
        assert_ne!(one, other);
        assert_eq!(one, file_name(&format!("{long}a")));
        assert_eq!(one.len(), MAX_LENGTH);
    }

    #[test]
    fn files_of_a_directory_stay_in_it() {
        assert!(is_below("smaps/01-a.smaps.gz"));
        for outside in ["../a", "/etc/passwd", "a/../../b", "", "./a"] {
            assert!(!is_below(outside), "{outside}");
        }
    }
}
