//! The folder of a recording's results: its default name, and the checks before anything is
//! recorded. Owns what a name from a device may become as a file name, and which names that a folder
//! gives of its files are its own.

use std::io;
use std::path::{Component, Path, PathBuf};

use time::OffsetDateTime;
use time::macros::format_description;

use crate::session::SessionError;

/// Longest part of a name that came from outside, bytes of UTF-8. File systems end at 255.
const LONGEST: usize = 80;

/// `heaptap-<target>-<time>`, time as `20261120T074300Z`.
pub fn default_name(target: &str, at: OffsetDateTime) -> String {
    let format = format_description!("[year][month][day]T[hour][minute][second]Z");
    let at = at
        .to_offset(time::UtcOffset::UTC)
        .format(format)
        .expect("every date has these fields");
    format!("heaptap-{}-{at}", file_name(target))
}

/// Whether a name of a file stays in its folder: foreign folders say anything.
pub fn is_below(file: &str) -> bool {
    let mut parts = Path::new(file).components();
    !file.is_empty() && parts.all(|part| matches!(part, Component::Normal(_)))
}

/// `name` as part of a file name on every system: `: * / \ < > | ?`, quotes and control
/// characters become `_`, and so does what Windows takes for a device.
pub fn file_name(name: &str) -> String {
    let mut bytes = 0;
    let mut clean: String = name
        .chars()
        .map(|c| match c {
            ':' | '*' | '/' | '\\' | '<' | '>' | '|' | '?' | '"' => '_',
            c if c.is_control() || is_invisible(c) => '_',
            c => c,
        })
        .take_while(|c| {
            bytes += c.len_utf8();
            bytes <= LONGEST
        })
        .collect();
    // Windows drops blanks and dots at the end; leading dots hide a file elsewhere.
    while clean.ends_with([' ', '.']) {
        clean.pop();
    }
    if clean.starts_with('.') {
        clean.replace_range(..1, "_");
    }
    let stem = clean.split('.').next().unwrap_or("");
    let stem = stem.trim_end().to_ascii_uppercase();
    // Windows counts the superscripts among the digits here.
    let digit = |c: char| c.is_ascii_digit() || matches!(c, '¹' | '²' | '³');
    let port = |prefix: &str| {
        let mut number = stem.strip_prefix(prefix).unwrap_or("").chars();
        number.next().is_some_and(digit) && number.next().is_none()
    };
    let device = ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$"].contains(&stem.as_str());
    if device || port("COM") || port("LPT") {
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

/// A folder that this run made or found empty, and can write to.
#[derive(Debug)]
pub struct OutputFolder {
    path: PathBuf,
    made: bool,
}

impl OutputFolder {
    /// Makes `path` ready: created where it is missing, and tried with a file.
    ///
    /// # Errors
    /// Where it holds something, or cannot be written.
    pub fn prepare(path: &Path) -> Result<Self, SessionError> {
        let output = |source| SessionError::Output {
            path: path.to_owned(),
            source,
        };
        let path = std::path::absolute(path).map_err(output)?;
        let made = match std::fs::read_dir(&path) {
            Ok(mut items) => {
                if items.next().is_some() {
                    return Err(SessionError::OutputNotEmpty { path });
                }
                false
            }
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(&path).map_err(output)?;
                true
            }
            Err(e) => return Err(output(e)),
        };
        let folder = OutputFolder { path, made };
        if let Err(error) = tempfile::tempfile_in(&folder.path) {
            let path = folder.path.clone();
            folder.discard();
            return Err(SessionError::Output {
                path,
                source: error,
            });
        }
        Ok(folder)
    }

    /// Where it is, absolute.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Removes it again where this run made it and nothing is in it.
    pub fn discard(self) {
        if self.made {
            // Not empty, or gone: either way there is nothing to do.
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use time::macros::datetime;

    #[test]
    fn the_default_name_is_safe_everywhere() {
        let at = datetime!(2026-11-20 08:43:00 +1);
        assert_eq!(
            default_name("com.example.app:service", at),
            "heaptap-com.example.app_service-20261120T074300Z"
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
        assert_eq!(file_name(&"x".repeat(500)).len(), LONGEST);
        assert_eq!(file_name(&"\u{1f9e0}".repeat(500)).len(), LONGEST);
    }

    #[test]
    fn a_folder_with_something_in_it_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let sub = dir.path().join("a/b");
        let folder = OutputFolder::prepare(&sub).unwrap();
        assert!(sub.is_dir());
        folder.discard();
        assert!(!sub.exists());
        std::fs::create_dir_all(&sub).unwrap();
        OutputFolder::prepare(&sub).unwrap().discard();
        assert!(sub.exists(), "what was there stays");
        std::fs::write(sub.join("x"), b"").unwrap();
        assert!(matches!(
            OutputFolder::prepare(&sub),
            Err(SessionError::OutputNotEmpty { .. })
        ));
        std::fs::write(dir.path().join("file"), b"").unwrap();
        assert!(matches!(
            OutputFolder::prepare(&dir.path().join("file/x")),
            Err(SessionError::Output { .. })
        ));
    }

    #[test]
    fn files_of_a_folder_stay_in_it() {
        assert!(is_below("smaps/01-a.smaps.gz"));
        for outside in ["../a", "/etc/passwd", "a/../../b", "", "./a"] {
            assert!(!is_below(outside), "{outside}");
        }
    }
}
