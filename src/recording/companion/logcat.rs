//! `logcat.txt`: unmodified log output of the targets during the recording. Garbage collections are
//! read from it, and the surrounding lines help to explain jumps in memory.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::file::LinesFile;

/// File name in a recording directory.
pub(crate) const FILE: &str = "logcat.txt";
/// Maximum size, in bytes, for processes that log without end.
const MAX_SIZE: u64 = 256 << 20;
/// Maximum size of lines that can be repeated, in bytes.
const TAIL: u64 = 256 << 10;

/// The log file while it is written.
#[derive(Debug, Clone)]
pub(super) struct LogcatFile {
    file: LinesFile,
    /// Its current size, in bytes.
    written: Arc<AtomicU64>,
    /// Its maximum size, in bytes.
    largest: u64,
}

impl LogcatFile {
    /// Opens the file in `directory`, creating it if necessary.
    pub(super) fn open(directory: &Path) -> std::io::Result<LogcatFile> {
        let file = LinesFile::inside(directory, FILE)?;
        Ok(LogcatFile {
            written: Arc::new(AtomicU64::new(file.size()?)),
            file,
            largest: MAX_SIZE,
        })
    }

    /// Adds an unmodified line without its ending; returns whether it fit.
    pub(super) fn add(&self, line: &str) -> bool {
        let length = line.len() as u64 + 1;
        let before = self.written.fetch_add(length, Ordering::Relaxed);
        if before.saturating_add(length) > self.largest {
            self.written.fetch_sub(length, Ordering::Relaxed);
            return false;
        }
        self.file.add_line(&format!("{line}\n"));
        true
    }

    /// Adds lines that are not among the last ones already: the previous writer might have been
    /// interrupted within the lines that the device still has.
    pub(super) fn add_missing(&self, lines: &[String]) {
        let known = self.file.tail(TAIL).unwrap_or_default();
        let known: HashSet<&str> = known.lines().collect();
        for line in lines {
            if !known.contains(line.as_str()) && !self.add(line) {
                return;
            }
        }
    }

    /// Writes buffered lines. Returns a message about an error or lost lines.
    pub(super) fn finish(&self) -> Result<(), String> {
        let path = self.file.path().display();
        match self.file.finish() {
            Ok(0) => Ok(()),
            Ok(lost) => Err(format!(
                "{} did not fit in {path}",
                heaptap_base::units::counted(lost, "line", "lines")
            )),
            Err(error) => Err(format!("cannot write {path}: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_ring_still_has_comes_once() {
        let dir = tempfile::tempdir().unwrap();
        let file = LogcatFile::open(dir.path()).unwrap();
        for line in ["a", "b", "c"] {
            file.add(line);
        }
        let ring: Vec<String> = ["b", "c", "d"].map(str::to_owned).into();
        LogcatFile::open(dir.path()).unwrap().add_missing(&ring);
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert_eq!(text, "a\nb\nc\nd\n");
    }

    #[test]
    fn lines_are_kept_as_they_come_up_to_a_size() {
        let dir = tempfile::tempdir().unwrap();
        let mut file = LogcatFile::open(dir.path()).unwrap();
        file.largest = 8;
        assert!(file.add("one"));
        assert!(!file.add("too long"));
        assert!(file.add("two"));
        assert!(!file.add(""));
        file.finish().unwrap();
        let text = std::fs::read_to_string(dir.path().join(FILE)).unwrap();
        assert_eq!(text, "one\ntwo\n");
    }
}
