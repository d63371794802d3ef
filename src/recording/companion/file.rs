//! Line files while they are written (`memory.jsonl`, `logcat.txt`): each line is written
//! atomically, so all earlier lines survive the end of the writer. A full disk loses nothing that
//! fits into memory: unwritten lines are retried with the next one.
//!
//! Several processes can write at once, such as a recording and `provoke`. Each line goes to the
//! current end of the file, which is locked while the end is read and the line is written.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use heaptap_base::parallel::lock;
use heaptap_model::timeline::{self, Entry, Observation};
use heaptap_results::whole_file::unless_link;

/// Maximum size of unwritten data, in bytes; further lines are lost, and counted.
const WAITING: usize = 4 << 20;

/// The timeline of a recording while it is written, shared by all observers.
pub type TimelineFile = LinesFile;

/// A line file in a recording directory, shared by all its writers.
#[derive(Debug, Clone)]
pub struct LinesFile {
    path: PathBuf,
    inner: Arc<Mutex<Inner>>,
}

#[derive(Debug)]
struct Inner {
    file: File,
    lock: Lock,
    waiting: Vec<u8>,
    lost: u64,
    failed: Option<io::Error>,
    unlocked: Unlocked,
}

/// Function that locks the file.
type Lock = fn(&File) -> io::Result<()>;

/// State of file locking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unlocked {
    No,
    /// Locks are not supported, which was not reported yet.
    Untold,
    Told,
}

impl LinesFile {
    /// Opens the timeline in `directory`, as [`LinesFile::inside`] does its file.
    ///
    /// # Errors
    /// Returns an error if the host cannot write there.
    pub fn timeline_in(directory: &Path) -> io::Result<TimelineFile> {
        LinesFile::inside(directory, timeline::FILE)
    }

    /// Opens the file `name` in `directory`, creating it if necessary, and removes an incomplete line
    /// left by another process.
    pub(super) fn inside(directory: &Path, name: &str) -> io::Result<LinesFile> {
        let path = directory.join(name);
        unless_link(&path)?;
        let file = LinesFile::append(&path)?;
        file.lock().cut_torn()?;
        Ok(file)
    }

    /// Opens a file for appending, creating it if necessary. Removes nothing, because the file can
    /// contain anything.
    ///
    /// # Errors
    /// Returns an error if the host cannot write there.
    pub fn append(path: &Path) -> io::Result<LinesFile> {
        let file = opened(path)?;
        Ok(LinesFile {
            path: path.to_owned(),
            inner: Arc::new(Mutex::new(Inner::from_file(file))),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its size on the disk, in bytes.
    pub(super) fn size(&self) -> io::Result<u64> {
        Ok(self.lock().file.metadata()?.len())
    }

    /// Returns its last `most` bytes on the disk, beginning at a line start.
    pub(super) fn tail(&self, most: u64) -> io::Result<String> {
        let inner = self.lock();
        let mut file = &inner.file;
        let end = file.seek(SeekFrom::End(0))?;
        let from = end.saturating_sub(most);
        file.seek(SeekFrom::Start(from))?;
        let mut bytes = Vec::new();
        file.take(most).read_to_end(&mut bytes)?;
        let text = String::from_utf8_lossy(&bytes);
        let torn = match from {
            0 => 0,
            _ => text.find('\n').map_or(text.len(), |at| at + 1),
        };
        Ok(text[torn..].to_owned())
    }

    /// Adds a line with its line ending.
    pub(super) fn add_line(&self, line: &str) {
        self.lock().add(line.as_bytes());
    }

    /// Adds observations.
    pub fn add(&self, entry: &Entry) {
        self.add_line(&entry.line());
    }

    /// Adds an observation of `pid` (0: the whole device) at `boot_ns`, with unknown cost.
    pub fn see(&self, boot_ns: u64, pid: u32, seen: Observation) {
        self.add(&Entry {
            boot_ns,
            pid,
            cost: None,
            seen,
        });
    }

    /// Returns why the last line could not be written, once per failure.
    pub fn failure(&self) -> Option<io::Error> {
        self.lock().failed.take()
    }

    /// Returns whether locks are not supported, so that other writers are not prevented; once.
    pub fn is_unlocked(&self) -> bool {
        let mut inner = self.lock();
        let untold = inner.unlocked == Unlocked::Untold;
        if untold {
            inner.unlocked = Unlocked::Told;
        }
        untold
    }

    /// Writes buffered lines and syncs the file. Returns the number of lost lines.
    ///
    /// # Errors
    /// Returns an error if the buffered lines could not be written.
    pub fn finish(&self) -> io::Result<u64> {
        let mut inner = self.lock();
        inner.write()?;
        inner.file.sync_data()?;
        Ok(inner.lost)
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A writer that panicked has left complete lines in the buffer.
        lock(&self.inner)
    }
}

impl Inner {
    fn from_file(file: File) -> Inner {
        Inner {
            file,
            lock: fs4::FileExt::lock,
            waiting: Vec::new(),
            lost: 0,
            failed: None,
            unlocked: Unlocked::No,
        }
    }

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
        let mut file = &self.file;
        let alone = Alone::with(file, self.lock)?;
        if alone.is_none() && self.unlocked == Unlocked::No {
            self.unlocked = Unlocked::Untold;
        }
        let end = file.seek(SeekFrom::End(0))?;
        // A writer that was killed left an incomplete line: continue on the next line.
        let torn = end > 0 && last_byte(file, end)? != b'\n';
        let mut lines = Vec::new();
        if torn {
            lines.push(b'\n');
        }
        lines.extend_from_slice(&self.waiting);
        if let Err(error) = file.write_all(&lines) {
            // A full disk truncates a line.
            let _ = file.set_len(end);
            return Err(error);
        }
        self.waiting.clear();
        Ok(())
    }

    /// Removes an incomplete line of another process.
    fn cut_torn(&mut self) -> io::Result<()> {
        let file = &self.file;
        let alone = Alone::with(file, self.lock)?;
        if alone.is_none() {
            self.unlocked = Unlocked::Untold;
        }
        file.set_len(whole_lines(file)?)
    }
}

/// Returns whether a lock failed because locks are not supported, as on some network file systems
/// (`nolock`, a server without a lock daemon).
fn knows_no_locks(error: &io::Error) -> bool {
    #[cfg(unix)]
    if rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::NOLCK) {
        return true;
    }
    error.kind() == io::ErrorKind::Unsupported
}

/// Opens a file for appending. If append mode prevents truncation, each line is still written at
/// the end while the file is locked.
fn opened(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).create(true);
    match cfg!(unix) {
        true => options.append(true),
        false => options.write(true).truncate(false),
    };
    options.open(path)
}

/// The file, locked until dropped.
struct Alone<'a>(&'a File);

impl Alone<'_> {
    /// Returns `None` if locks are not supported: appended lines are still complete, but truncation
    /// could remove lines of another writer.
    fn with(file: &File, lock: Lock) -> io::Result<Option<Alone<'_>>> {
        match lock(file) {
            Ok(()) => Ok(Some(Alone(file))),
            Err(error) if knows_no_locks(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Alone<'_> {
    fn drop(&mut self) {
        // A process that continues without unlocking releases the lock when it ends.
        let _ = fs4::FileExt::unlock(self.0);
    }
}

fn last_byte(mut file: &File, end: u64) -> io::Result<u8> {
    let mut last = [0];
    file.seek(SeekFrom::Start(end.saturating_sub(1)))?;
    file.read_exact(&mut last)?;
    let [last] = last;
    Ok(last)
}

/// Returns the end of the last complete line of `file`.
fn whole_lines(mut file: &File) -> io::Result<u64> {
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
    use heaptap_model::timeline::Timeline;

    #[test]
    fn lines_are_there_once_they_were_added_and_a_torn_one_is_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let file = TimelineFile::timeline_in(dir.path()).unwrap();
        file.see(1, 7, Observation::Gone);
        let path = dir.path().join("memory.jsonl");
        let whole = std::fs::read(&path).unwrap();
        for cut in 0..=whole.len() {
            let torn = [&whole[..], &whole[..cut]].concat();
            std::fs::write(&path, torn).unwrap();
            TimelineFile::timeline_in(dir.path())
                .unwrap()
                .see(2, 7, Observation::Gone);
            let text = std::fs::read_to_string(&path).unwrap();
            let (timeline, strange) = Timeline::parse(&text);
            let expected = if cut == whole.len() { 3 } else { 2 };
            assert_eq!((timeline.entries.len(), strange), (expected, 0), "{cut}");
        }
    }

    #[test]
    fn two_writers_lose_nothing_of_one_another() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        let write = |writer: u32| {
            // Each opens it for itself, as another process would.
            let file = TimelineFile::append(&path).unwrap();
            (0..500).for_each(|n| file.see(n, writer, Observation::Gone));
            assert_eq!(file.finish().unwrap(), 0);
        };
        std::thread::scope(|scope| {
            (1..=3).for_each(|writer| drop(scope.spawn(move || write(writer))));
        });
        let (timeline, strange) = Timeline::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(strange, 0);
        for writer in 1..=3 {
            let own = timeline.entries.iter().filter(|e| e.pid == writer);
            let own: Vec<u64> = own.map(|e| e.boot_ns).collect();
            assert_eq!(own, (0..500).collect::<Vec<_>>());
        }
    }

    #[test]
    fn who_adds_begins_below_a_torn_line_and_cuts_nothing_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("notes.txt");
        std::fs::write(&path, "not ended").unwrap();
        TimelineFile::append(&path)
            .unwrap()
            .see(1, 7, Observation::Gone);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("not ended\n{"), "{text}");
        let (timeline, strange) = Timeline::parse(&text);
        assert_eq!((timeline.entries.len(), strange), (1, 1));
    }

    #[test]
    fn a_long_torn_line_is_found_by_blocks() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        std::fs::write(&path, [b"{}\n".as_slice(), &[b'x'; 9000]].concat()).unwrap();
        drop(TimelineFile::timeline_in(dir.path()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"{}\n");
    }

    #[cfg(unix)]
    #[test]
    fn where_a_directory_knows_no_locks_lines_are_written_and_that_is_told_once() {
        let refusals: [Lock; 2] = [
            |_| Err(rustix::io::Errno::NOLCK.into()),
            |_| Err(io::ErrorKind::Unsupported.into()),
        ];
        for lock in refusals {
            let dir = tempfile::tempdir().unwrap();
            let file = TimelineFile::timeline_in(dir.path()).unwrap();
            assert!(!file.is_unlocked(), "this folder has locks");
            std::fs::write(file.path(), "torn").unwrap();
            file.lock().lock = lock;
            file.lock().cut_torn().unwrap();
            file.see(1, 7, Observation::Gone);
            assert!(file.failure().is_none());
            assert!(file.is_unlocked());
            file.see(2, 7, Observation::Gone);
            assert!(!file.is_unlocked(), "told once");
            assert_eq!(file.finish().unwrap(), 0);
            let (timeline, strange) =
                Timeline::parse(&std::fs::read_to_string(file.path()).unwrap());
            assert_eq!((timeline.entries.len(), strange), (2, 0));
        }
        let dir = tempfile::tempdir().unwrap();
        let file = TimelineFile::timeline_in(dir.path()).unwrap();
        file.lock().lock = |_| Err(rustix::io::Errno::IO.into());
        file.see(1, 7, Observation::Gone);
        assert!(file.failure().is_some() && !file.is_unlocked());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_once_and_what_waits_is_bounded() {
        let file = opened(Path::new("/dev/full")).unwrap();
        let full = TimelineFile {
            path: PathBuf::from("/dev/full"),
            inner: Arc::new(Mutex::new(Inner::from_file(file))),
        };
        full.see(1, 1, Observation::Gone);
        assert!(full.failure().is_some());
        full.see(2, 1, Observation::Gone);
        assert!(full.failure().is_none(), "told once");
        // There is space again, and nothing is missing.
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("memory.jsonl");
        full.lock().file = opened(&path).unwrap();
        assert_eq!(full.finish().unwrap(), 0);
        let (timeline, _) = Timeline::parse(&std::fs::read_to_string(&path).unwrap());
        assert_eq!(timeline.entries.len(), 2);
    }
}
