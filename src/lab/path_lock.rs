//! Locks of paths, each for one process of this host. They are next to the journals of recordings: a
//! baseline is replaced as a whole, and an output directory has to be empty, so neither can be its own
//! lock.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use heaptap_base::directory;
use heaptap_base::units;
use heaptap_capture::session::{self, Store};

/// Directory of the locks, next to the journals.
const DIRECTORY: &str = "locks";
/// Maximum number of attempts at a lock. Each can end at a file that its last owner removes.
const MAX_ATTEMPTS: usize = 1000;

/// A path that no other process of this host uses while this lives.
#[derive(Debug)]
pub(crate) struct PathLock {
    file: Option<File>,
    path: PathBuf,
    /// Whether the file system holds the lock.
    pub(super) is_held: bool,
}

impl PathLock {
    /// Opens the lock of `path`, without taking it.
    fn open(store: &Store, path: &Path) -> io::Result<PathLock> {
        let sessions = store.directory();
        let locks = sessions.parent().unwrap_or(sessions).join(DIRECTORY);
        directory::create(&locks)?;
        PathLock::open_file(locks.join(name(path)))
    }

    pub(super) fn open_file(path: PathBuf) -> io::Result<PathLock> {
        let mut options = OpenOptions::new();
        let file = options
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)?;
        Ok(PathLock {
            file: Some(file),
            path,
            is_held: false,
        })
    }

    /// Returns whether this is the file that others find: its last owner removes it.
    fn is_still(&self) -> bool {
        let is_there = |file| session::is_still(file, &self.path);
        self.file.as_ref().is_some_and(is_there)
    }

    /// Tries to take the lock. Without locks in the file system, one job at a time has it.
    fn take(&mut self) -> bool {
        let taken = self.file.as_ref().map(fs4::FileExt::try_lock);
        self.is_held = matches!(taken, Some(Ok(())));
        !matches!(taken, Some(Err(fs4::TryLockError::WouldBlock)))
    }

    /// Tries to take the lock of the file that others find. Otherwise, dropping this removes nothing of
    /// another's.
    pub(super) fn acquire(&mut self) -> bool {
        let is_acquired = self.take() && self.is_still();
        if !is_acquired {
            self.file = None;
        }
        is_acquired
    }

    /// Removes the locks of processes that were killed.
    fn sweep(&self) {
        let others = std::fs::read_dir(directory::of(&self.path))
            .into_iter()
            .flatten();
        for other in others.flatten().map(|entry| entry.path()) {
            if other != self.path
                && let Ok(mut left) = PathLock::open_file(other)
            {
                left.acquire();
            }
        }
    }
}

impl Drop for PathLock {
    fn drop(&mut self) {
        let Some(file) = self.file.take() else {
            return;
        };
        // Windows cannot remove an open file. Elsewhere, the name goes while the lock is held.
        let _held = (!cfg!(windows)).then_some(file);
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Waits until no other process has the lock of `path`, and takes it. A file system without locks has
/// one job at a time.
///
/// # Errors
/// Returns an error if the state directory cannot be written.
pub(super) fn wait(store: &Store, path: &Path) -> io::Result<PathLock> {
    for _ in 0..MAX_ATTEMPTS {
        let mut lock = PathLock::open(store, path)?;
        let _ = lock.file.as_ref().map(fs4::FileExt::lock);
        if lock.is_still() {
            return Ok(lock);
        }
        lock.file = None;
    }
    Err(unstable())
}

/// Returns the error of a file system that does not recognize an open file.
fn unstable() -> io::Error {
    io::Error::other(
        "the file system of the state directory changes the identity of open files; set \
         HEAPTAP_STATE_DIR to a local directory",
    )
}

/// Takes the lock of `path`; `None` if another process has it.
///
/// # Errors
/// Returns an error if the state directory cannot be written.
pub(super) fn take(store: &Store, path: &Path) -> io::Result<Option<PathLock>> {
    for _ in 0..MAX_ATTEMPTS {
        let mut lock = PathLock::open(store, path)?;
        let is_free = lock.take();
        if is_free && lock.is_still() {
            lock.sweep();
            return Ok(Some(lock));
        }
        lock.file = None;
        if !is_free {
            return Ok(None);
        }
    }
    Err(unstable())
}

/// Returns the name of a lock, which does not depend on the spelling of the path.
fn name(path: &Path) -> String {
    let new = || {
        let directory = directory::of(path);
        let directory = directory
            .canonicalize()
            .unwrap_or_else(|_| directory.to_owned());
        directory.join(path.file_name().unwrap_or_default())
    };
    let whole = path.canonicalize().unwrap_or_else(|_| new());
    let hash = Sha256::digest(whole.as_os_str().as_encoded_bytes());
    format!("{}.lock", units::hex(&hash))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn one_job_at_a_time_has_the_lock() {
        const JOBS: usize = 8;
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(&dir.path().join("sessions")).unwrap();
        let path = dir.path().join("baseline.json");
        std::fs::write(&path, "").unwrap();
        let add = || {
            let _lock = wait(&store, &path).unwrap();
            assert!(take(&store, &path).unwrap().is_none());
            let before = std::fs::read_to_string(&path).unwrap();
            std::thread::sleep(Duration::from_millis(2));
            std::fs::write(&path, before + "x").unwrap();
        };
        std::thread::scope(|scope| {
            for _ in 0..JOBS {
                scope.spawn(add);
            }
        });
        assert_eq!(std::fs::read(&path).unwrap(), [b'x'; JOBS]);
        assert!(take(&store, &path).unwrap().is_some());
    }

    #[test]
    fn locks_of_ended_and_killed_processes_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::in_directory(&dir.path().join("state")).unwrap();
        let locks = dir.path().join("state").join(DIRECTORY);
        let names = || -> Vec<_> {
            let entries = std::fs::read_dir(&locks).unwrap();
            entries.map(|entry| entry.unwrap().file_name()).collect()
        };
        let path = dir.path().join("night");
        let held = take(&store, &path).unwrap().unwrap();
        // A killed process leaves its file, without a lock.
        std::fs::write(locks.join("left.lock"), "").unwrap();
        let other = take(&store, &dir.path().join("other")).unwrap().unwrap();
        assert_eq!(names().len(), 2, "{:?}", names());
        assert!(take(&store, &path).unwrap().is_none(), "it is still held");
        drop((held, other));
        assert!(names().is_empty(), "{:?}", names());
    }

    #[test]
    fn a_directory_has_one_lock_however_it_is_spelled() {
        let dir = tempfile::tempdir().unwrap();
        let night = dir.path().join("night");
        let before = name(&night);
        std::fs::create_dir(&night).unwrap();
        assert_eq!(name(&night), before);
        assert_eq!(name(&night.join(".")), before);
        assert_eq!(name(&night.join("../night")), before);
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink(&night, dir.path().join("link")).unwrap();
            assert_eq!(name(&dir.path().join("link")), before);
        }
    }
}
