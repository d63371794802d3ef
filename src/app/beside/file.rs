//! `memory.jsonl` while it is being written: a line at a time, whole or not at all, so that
//! whatever ends the writer leaves all lines before. A full disk loses nothing that fits into
//! memory: what could not be written is tried again with the next line.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::memory::timeline::{self, Entry, Seen};

/// So much waits for room on the disk; what comes then is lost, and counted.
const WAITING: usize = 4 << 20;

/// The file of a recording, shared by all who see something.
#[derive(Debug, Clone)]
pub struct TimelineFile {
    path: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    /// Where the last whole line ends.
    end: u64,
    waiting: Vec<u8>,
    lost: u64,
    failed: Option<io::Error>,
}

impl TimelineFile {
    /// Opens the file in `folder`, creates it where there is none, and cuts off a line that
    /// another process left torn.
    ///
    /// # Errors
    /// Where this host cannot write there.
    pub fn open(folder: &Path) -> io::Result<TimelineFile> {
        let path = folder.join(timeline::FILE);
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        let end = whole_lines(&mut file)?;
        file.set_len(end)?;
        Ok(TimelineFile {
            path,
            inner: Arc::new(Mutex::new(Inner {
                file,
                end,
                waiting: Vec::new(),
                lost: 0,
                failed: None,
            })),
        })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Adds what was seen.
    pub fn add(&self, entry: &Entry) {
        self.lock().add(entry.line().as_bytes());
    }

    /// Adds something seen of `pid` (0: of the whole phone) at `boot_ns`, its cost unknown.
    pub fn see(&self, boot_ns: u64, pid: u32, seen: Seen) {
        self.add(&Entry {
            boot_ns,
            pid,
            cost: None,
            seen,
        });
    }

    /// Why the last line could not be written, told once for each time it begins.
    pub fn failure(&self) -> Option<io::Error> {
        self.lock().failed.take()
    }

    /// Writes what waits and syncs the file. The number of entries that are lost.
    ///
    /// # Errors
    /// Where something could not be written after all.
    pub fn finish(&self) -> io::Result<u64> {
        let mut inner = self.lock();
        inner.write()?;
        inner.file.sync_data()?;
        Ok(inner.lost)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A writer that panicked has left whole lines: `end` moves only behind them.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn add(&mut self, line: &[u8]) {
        let was_well = self.waiting.is_empty();
        if self.waiting.len().saturating_add(line.len()) > WAITING {
            self.lost = self.lost.saturating_add(1);
            return;
        }
        self.waiting.extend_from_slice(line);
        if let Err(error) = self.write()
            && was_well
        {
            self.failed = Some(error);
        }
    }

    fn write(&mut self) -> io::Result<()> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.file.seek(SeekFrom::Start(self.end))?;
        if let Err(error) = self.file.write_all(&self.waiting) {
            // A full disk takes the beginning of a line.
            let _ = self.file.set_len(self.end);
            return Err(error);
        }
        self.end = self.end.saturating_add(self.waiting.len() as u64);
        self.waiting.clear();
        Ok(())
    }
}

/// Where the last whole line of `file` ends.
fn whole_lines(file: &mut File) -> io::Result<u64> {
    const BLOCK: u64 = 4096;
    let mut end = file.seek(SeekFrom::End(0))?;
    while end > 0 {
        let start = end.saturating_sub(BLOCK);
        let mut block = vec![0; usize::try_from(end - start).unwrap_or(0)];
        file.seek(SeekFrom::Start(start))?;
        file.read_exact(&mut block)?;
        if let Some(at) = block.iter().rposition(|byte| *byte == b'\n') {
            return Ok(start + at as u64 + 1);
        }
        end = start;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::timeline::Timeline;

    #[test]
    fn lines_are_there_once_they_were_added_and_a_torn_one_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let file = TimelineFile::open(dir.path()).unwrap();
        file.see(1, 7, Seen::Gone);
        let path = dir.path().join("memory.jsonl");
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            let torn = [&whole[..], &whole[..cut]].concat();
            std::fs::write(&path, torn).unwrap();
            TimelineFile::open(dir.path())
                .unwrap()
                .see(2, 7, Seen::Gone);
            let text = std::fs::read_to_string(&path).unwrap();
            let (timeline, strange) = Timeline::parse(&text);
            let expected = if cut == whole.len() { 3 } else { 2 };
            assert_eq!((timeline.entries.len(), strange), (expected, 0), "{cut}");
        }
    }

    #[test]
    fn a_long_torn_line_is_found_by_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        std::fs::write(&path, [b"{}\n".as_slice(), &[b'x'; 9000]].concat()).unwrap();
        drop(TimelineFile::open(dir.path()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_once_and_what_waits_is_bounded() {
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .open("/dev/full")
            .unwrap();
        let full = TimelineFile {
            path: PathBuf::from("/dev/full"),
            inner: Arc::new(Mutex::new(Inner {
                file,
                end: 0,
                waiting: Vec::new(),
                lost: 0,
                failed: None,
            })),
        };
        full.see(1, 1, Seen::Gone);
        assert!(full.failure().is_some());
        full.see(2, 1, Seen::Gone);
        assert!(full.failure().is_none(), "told once");
        // Room again: nothing is missing.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        full.lock().file = File::create(&path).unwrap();
        assert_eq!(full.finish().unwrap(), 0);
        let (timeline, _) = Timeline::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(timeline.entries.len(), 2);
    }
}
