//! Locks of paths, each for one process of this host. They are next to the journals of recordings: a
//! baseline is replaced as a whole, and an output directory has to be empty, so neither can be its own
//! lock.

use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::folder;
use crate::session::Store;
use crate::units;

/// Directory of the locks, next to the journals.
const FOLDER: &str = "locks";

/// Opens the lock of `path`, without taking it.
fn open(store: &Store, path: &Path) -> io::Result<File> {
    let sessions = store.folder();
    let locks = sessions.parent().unwrap_or(sessions).join(FOLDER);
    folder::create(&locks)?;
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false);
    options.open(locks.join(name(path)))
}

/// Waits until no other process has the lock of `path`, and takes it. A file system without locks has
/// one job at a time.
///
/// # Errors
/// Returns an error if the state directory cannot be written.
pub(super) fn wait(store: &Store, path: &Path) -> io::Result<File> {
    let file = open(store, path)?;
    let _ = fs4::FileExt::lock(&file);
    Ok(file)
}

/// Takes the lock of `path`; `None` if another process has it.
///
/// # Errors
/// Returns an error if the state directory cannot be written.
pub(super) fn take(store: &Store, path: &Path) -> io::Result<Option<File>> {
    let file = open(store, path)?;
    Ok(match fs4::FileExt::try_lock(&file) {
        Err(fs4::TryLockError::WouldBlock) => None,
        Ok(()) | Err(fs4::TryLockError::Error(_)) => Some(file),
    })
}

/// Returns the name of a lock, which does not depend on the spelling of the path.
fn name(path: &Path) -> String {
    let new = || {
        let folder = folder::of(path);
        let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
        folder.join(path.file_name().unwrap_or_default())
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
        let store = Store::in_folder(&dir.path().join("sessions")).unwrap();
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
