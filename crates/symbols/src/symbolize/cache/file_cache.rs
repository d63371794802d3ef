//! Cache of files by name, with a limit on their total size. Writes files under a temporary name
//! and renames them, and removes the oldest if there are too many. Does not interpret their
//! contents.

use std::fs::{File, FileTimes};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// Name prefix of files that are being written.
const UNFINISHED: &str = ".unfinished-";
/// Age at which an unfinished file is considered left over from a dead process.
const STALE: Duration = Duration::from_secs(24 * 3600);
/// Space of the smallest file, because file systems allocate whole blocks.
const BLOCK: u64 = 4096;
/// Minimum time between two updates of a file's time of use, because each one is a write.
const NOTE: Duration = Duration::from_secs(3600);

/// Directory of files with hexadecimal names, spread over 256 subdirectories.
#[derive(Debug, Clone)]
pub(super) struct FileCache {
    directory: PathBuf,
    most: u64,
    /// Bytes stored since the total was last counted; `u64::MAX` before the first count.
    since_count: Arc<AtomicU64>,
}

impl FileCache {
    pub(super) fn new(directory: PathBuf, most: u64) -> Self {
        FileCache {
            directory,
            most,
            since_count: Arc::new(AtomicU64::new(u64::MAX)),
        }
    }

    /// Returns the path of the file with this name, which begins with two hex digits.
    pub(super) fn path(&self, name: &str) -> PathBuf {
        let (first, rest) = name.split_at(2);
        self.directory.join(first).join(rest)
    }

    /// Creates a file to fill and then [keep](FileCache::keep).
    pub(super) fn unfinished(&self) -> io::Result<tempfile::NamedTempFile> {
        std::fs::create_dir_all(&self.directory)?;
        tempfile::Builder::new()
            .prefix(UNFINISHED)
            .tempfile_in(&self.directory)
    }

    /// Gives a filled file its name and replaces an existing one.
    pub(super) fn keep(&self, file: tempfile::NamedTempFile, name: &str) -> io::Result<PathBuf> {
        let size = file.as_file().metadata()?.len();
        let path = self.path(name);
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory)?;
        }
        if let Err(error) = file.persist(&path) {
            // Windows cannot replace a mapped file, but the existing one is equivalent.
            if !path.is_file() {
                return Err(error.error);
            }
        }
        self.bound(size.max(BLOCK), &path);
        Ok(path)
    }

    /// Records that the file at `path` was used.
    pub(super) fn note_use(&self, path: &Path) {
        let now = SystemTime::now();
        let recent = |file: &File| {
            let last = file.metadata()?.modified()?;
            io::Result::Ok(now.duration_since(last).is_ok_and(|since| since < NOTE))
        };
        // If the update fails, the file is only removed earlier than necessary.
        if let Ok(file) = File::open(path)
            && !recent(&file).unwrap_or(true)
        {
            let writable = File::options().append(true).open(path);
            let _ = writable.and_then(|f| f.set_times(FileTimes::new().set_modified(now)));
        }
    }

    /// Removes the oldest files if there are too many, but never `kept`, which is about to be used.
    /// Counting reads the metadata of every file, so it runs once, and again whenever an eighth of
    /// the limit was added.
    fn bound(&self, added: u64, kept: &Path) {
        let before = self.since_count.fetch_add(added, Ordering::Relaxed);
        if before != u64::MAX && before.saturating_add(added) < self.most / 8 {
            return;
        }
        self.since_count.store(0, Ordering::Relaxed);
        let mut files = self.files();
        let mut total: u64 = files.iter().map(|file| file.size).sum();
        files.sort_by_key(|file| file.used);
        for file in files {
            if total <= self.most {
                break;
            }
            if file.path == kept {
                continue;
            }
            // Another process might have removed it, or Windows might have it locked.
            if std::fs::remove_file(&file.path).is_ok() {
                total -= file.size;
            }
        }
    }

    /// Returns all finished files. Removes unfinished ones that are left over.
    fn files(&self) -> Vec<Kept> {
        let mut files = Vec::new();
        let now = SystemTime::now();
        let entries =
            |directory: &Path| std::fs::read_dir(directory).into_iter().flatten().flatten();
        for entry in entries(&self.directory) {
            if entry.file_name().to_string_lossy().starts_with(UNFINISHED) {
                let age = entry.metadata().and_then(|m| m.modified());
                let age = age.ok().and_then(|time| now.duration_since(time).ok());
                if age.is_some_and(|age| age > STALE) {
                    let _ = std::fs::remove_file(entry.path());
                }
                continue;
            }
            for entry in entries(&entry.path()) {
                let Ok(metadata) = entry.metadata() else {
                    continue;
                };
                files.push(Kept {
                    path: entry.path(),
                    size: metadata.len().max(BLOCK),
                    used: metadata.modified().unwrap_or(SystemTime::UNIX_EPOCH),
                });
            }
        }
        files
    }
}

/// File in the cache.
struct Kept {
    path: PathBuf,
    size: u64,
    used: SystemTime,
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write as _;

    fn put(cache: &FileCache, name: &str, size: usize) -> PathBuf {
        let mut file = cache.unfinished().unwrap();
        file.write_all(&vec![7; size]).unwrap();
        cache.keep(file, name).unwrap()
    }

    fn age(path: &Path, seconds: u64) {
        let time = SystemTime::now() - Duration::from_secs(seconds);
        let file = File::options().append(true).open(path).unwrap();
        file.set_modified(time).unwrap();
    }

    #[test]
    fn what_was_used_longest_ago_goes_first() {
        let directory = tempfile::tempdir().unwrap();
        let cache = FileCache::new(directory.path().join("files"), 10_000);
        let old = put(&cache, "aa01", 4000);
        let used = put(&cache, "aa02", 4000);
        age(&old, 7200);
        age(&used, 9000);
        cache.note_use(&used);
        let new = put(&cache, "bb03", 400);
        assert!(!old.exists() && used.exists() && new.exists());
    }

    #[test]
    fn a_file_larger_than_the_bound_outlives_its_own_keeping() {
        let directory = tempfile::tempdir().unwrap();
        let cache = FileCache::new(directory.path().join("files"), 10_000);
        let old = put(&cache, "aa01", 4000);
        age(&old, 7200);
        let huge = put(&cache, "aa02", 20_000);
        assert!(!old.exists() && huge.exists());
    }

    #[test]
    fn small_files_count_as_what_they_take() {
        let directory = tempfile::tempdir().unwrap();
        let cache = FileCache::new(directory.path().join("files"), 10_000);
        let names = ["aa01", "aa02", "aa03", "aa04"];
        let paths = names.map(|name| put(&cache, name, 1));
        let left = paths.iter().filter(|path| path.exists()).count();
        assert_eq!(left, 2);
    }

    #[test]
    fn what_a_dead_process_left_is_taken_away() {
        let directory = tempfile::tempdir().unwrap();
        let cache = FileCache::new(directory.path().join("files"), 10_000);
        let (_, left) = cache.unfinished().unwrap().keep().unwrap();
        let (_, young) = cache.unfinished().unwrap().keep().unwrap();
        age(&left, 2 * 24 * 3600);
        put(&cache, "aa01", 1);
        assert!(!left.exists() && young.exists());
    }

    #[test]
    fn the_same_file_may_be_put_twice() {
        let directory = tempfile::tempdir().unwrap();
        let cache = FileCache::new(directory.path().join("files"), 10_000);
        put(&cache, "aa01", 5);
        let path = put(&cache, "aa01", 5);
        assert_eq!(std::fs::read(path).unwrap(), [7; 5]);
    }
}
