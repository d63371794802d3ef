//! The files of packets that stand beside a trace: `symbols`, `deobfuscation-packets`, and the
//! `symbolized-trace` that is the trace with both behind it. Owns their names and that each is
//! whole or not there; what is in them is `export`'s.

use std::fs::File;
use std::io::{self, BufWriter, Read as _, Write};
use std::path::{Path, PathBuf};

use super::manifest;
use super::maps::{UsedMap, write_packets};
use crate::export::packets::{Written, write_symbols};
use crate::profile::{FrameId, Recording};

/// Symbols alone.
pub const SYMBOLS: &str = "symbols";
/// What was renamed, alone.
pub const DEOBFUSCATION: &str = "deobfuscation-packets";
/// The trace, symbols, and what was renamed.
pub const SYMBOLIZED_TRACE: &str = "symbolized-trace";

/// A file that has its name only once it is whole; before that, and if it is dropped, it leaves
/// nothing. What is no regular file (a pipe, `/dev/null`) is written as it is.
#[derive(Debug)]
pub struct WholeFile {
    file: BufWriter<File>,
    /// Where it stands meanwhile, and what it will be called.
    unfinished: Option<(tempfile::TempPath, PathBuf)>,
}

impl WholeFile {
    /// Opens a file beside `goal`; where that is a link, beside what it leads to.
    ///
    /// # Errors
    /// Where its folder cannot be written.
    pub fn create(goal: &Path) -> io::Result<WholeFile> {
        let is_special = |metadata: std::fs::Metadata| !metadata.is_file() && !metadata.is_dir();
        if std::fs::metadata(goal).is_ok_and(is_special) {
            return Ok(WholeFile {
                file: BufWriter::new(File::options().write(true).open(goal)?),
                unfinished: None,
            });
        }
        let goal = match goal.is_symlink() {
            true => goal.canonicalize()?,
            false => goal.to_owned(),
        };
        let folder = goal.parent().filter(|f| !f.as_os_str().is_empty());
        let file = manifest::temporary_in(folder.unwrap_or(Path::new(".")))?;
        let (file, path) = file.into_parts();
        Ok(WholeFile {
            file: BufWriter::new(file),
            unfinished: Some((path, goal)),
        })
    }

    /// Gives it its name; what had it before is replaced.
    ///
    /// # Errors
    /// Where what is left cannot be written.
    pub fn finish(self) -> io::Result<()> {
        drop(self.file.into_inner().map_err(|error| error.into_error())?);
        if let Some((path, goal)) = self.unfinished {
            path.persist(goal)?;
        }
        Ok(())
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// The files of a folder while they are written.
#[derive(Debug)]
pub struct PacketFiles {
    folder: PathBuf,
    symbols: Option<WholeFile>,
    deobfuscation: Option<WholeFile>,
}

impl PacketFiles {
    /// For a folder; nothing is written yet.
    pub fn new(folder: &Path) -> PacketFiles {
        PacketFiles {
            folder: folder.to_owned(),
            symbols: None,
            deobfuscation: None,
        }
    }

    /// Adds the symbols of the frames that `chosen` takes.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn add_symbols(
        &mut self,
        recording: &Recording,
        chosen: impl Fn(FrameId) -> bool,
    ) -> io::Result<Written> {
        let mut lazy = Lazy {
            goal: self.folder.join(SYMBOLS),
            file: &mut self.symbols,
        };
        let written = write_symbols(recording, chosen, &mut lazy);
        if written.is_err() {
            // Half of them would be taken for all.
            self.symbols = None;
        }
        written
    }

    /// Adds the maps that were used for a trace, for the apps they are of.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn add_maps(&mut self, maps: &[UsedMap]) -> io::Result<()> {
        let mut lazy = Lazy {
            goal: self.folder.join(DEOBFUSCATION),
            file: &mut self.deobfuscation,
        };
        let written = write_packets(maps, false, &mut lazy);
        if written.is_err() {
            self.deobfuscation = None;
        }
        written.map(drop)
    }

    /// Gives the files their names, and writes the trace with them: behind the first `bytes` of
    /// `raw`, since a reader that finds a cut packet looks for its end in what follows. Adds the
    /// names of what was written to `written`.
    ///
    /// # Errors
    /// Where the folder cannot be written.
    pub fn finish(self, raw: &Path, bytes: u64, written: &mut Vec<&'static str>) -> io::Result<()> {
        for (name, file) in [(SYMBOLS, self.symbols), (DEOBFUSCATION, self.deobfuscation)] {
            if let Some(file) = file {
                file.finish()?;
                written.push(name);
            }
        }
        let parts: Vec<PathBuf> = [SYMBOLS, DEOBFUSCATION]
            .iter()
            .map(|name| self.folder.join(name))
            .filter(|path| path.is_file())
            .collect();
        if parts.is_empty() {
            return Ok(());
        }
        let mut whole = WholeFile::create(&self.folder.join(SYMBOLIZED_TRACE))?;
        let raw = File::open(raw)?.take(bytes);
        append(raw, &mut whole)?;
        for part in parts {
            append(File::open(part)?.take(u64::MAX), &mut whole)?;
        }
        whole.finish()?;
        written.push(SYMBOLIZED_TRACE);
        Ok(())
    }
}

fn append(mut from: io::Take<File>, to: &mut WholeFile) -> io::Result<()> {
    to.file.flush()?;
    // From file to file the system may share the bytes instead of copying them.
    io::copy(&mut from, to.file.get_mut())?;
    Ok(())
}

/// Takes the symbolized trace away, where there is one: it can be made again, and takes as much
/// room as the trace. Whether there is more room now.
pub fn make_room(folder: &Path) -> bool {
    std::fs::remove_file(folder.join(SYMBOLIZED_TRACE)).is_ok()
}

/// A file that is opened with its first byte.
struct Lazy<'a> {
    goal: PathBuf,
    file: &'a mut Option<WholeFile>,
}

impl Write for Lazy<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.file.is_none() {
            *self.file = Some(WholeFile::create(&self.goal)?);
        }
        self.file.as_mut().map_or(Ok(0), |file| file.write(bytes))
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), WholeFile::flush)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listed(folder: &Path) -> Vec<String> {
        let entries = std::fs::read_dir(folder).unwrap();
        let names = entries.map(|e| e.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_that_is_given_up_leaves_nothing_and_keeps_what_was_there() {
        let folder = tempfile::tempdir().unwrap();
        let goal = folder.path().join("symbols");
        std::fs::write(&goal, "before").unwrap();
        let mut file = WholeFile::create(&goal).unwrap();
        file.write_all(b"half").unwrap();
        drop(file);
        assert_eq!(listed(folder.path()), ["symbols"]);
        assert_eq!(std::fs::read(&goal).unwrap(), b"before");
        let mut file = WholeFile::create(&goal).unwrap();
        file.write_all(b"after").unwrap();
        file.finish().unwrap();
        assert_eq!(std::fs::read(&goal).unwrap(), b"after");
        assert_eq!(listed(folder.path()), ["symbols"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_and_a_device_stay_what_they_are() {
        let folder = tempfile::tempdir().unwrap();
        let (real, link) = (folder.path().join("real"), folder.path().join("link"));
        std::fs::write(&real, "before").unwrap();
        std::os::unix::fs::symlink("real", &link).unwrap();
        let mut file = WholeFile::create(&link).unwrap();
        file.write_all(b"after").unwrap();
        file.finish().unwrap();
        assert!(link.is_symlink());
        assert_eq!(std::fs::read(&real).unwrap(), b"after");
        let mut null = WholeFile::create(Path::new("/dev/null")).unwrap();
        null.write_all(b"nothing").unwrap();
        null.finish().unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    fn the_whole_trace_is_the_trace_and_what_is_behind_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("raw-trace"), "trace, cut").unwrap();
        let finished = |files: PacketFiles, bytes| {
            let mut written = Vec::new();
            files
                .finish(&path("raw-trace"), bytes, &mut written)
                .unwrap();
            written
        };
        let files = || PacketFiles::new(folder.path());
        assert_eq!(finished(files(), 99), [""; 0]);
        assert_eq!(listed(folder.path()), ["raw-trace"]);
        std::fs::write(path(DEOBFUSCATION), " renamed").unwrap();
        std::fs::write(path(SYMBOLS), " symbols").unwrap();
        assert_eq!(finished(files(), 99), [SYMBOLIZED_TRACE]);
        let whole = || std::fs::read_to_string(path(SYMBOLIZED_TRACE)).unwrap();
        assert_eq!(whole(), "trace, cut symbols renamed");
        assert_eq!(finished(files(), 5), [SYMBOLIZED_TRACE]);
        assert_eq!(whole(), "trace symbols renamed");
    }
}
