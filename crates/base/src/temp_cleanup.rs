//! Temporary files of work that the program abandons. When a signal ends the program, a thread can
//! still be writing a file, and its destructors do not run: the program removes the file.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};

use crate::parallel::lock;

/// Paths of temporary files, also of some that have got their final names since.
static TRACKED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

/// Number of paths from which those without a file are forgotten.
const MANY: usize = 64;

/// Creates a temporary file that [`remove`] removes if it still has its temporary name then.
///
/// # Errors
/// Returns the error of `create`.
pub fn tracked<F>(
    create: impl FnOnce() -> io::Result<F>,
    path: impl FnOnce(&F) -> &Path,
) -> io::Result<F> {
    // Without the lock, `remove` could miss a file that is just being created.
    let mut tracked = lock(&TRACKED);
    let file = create()?;
    if tracked.len() >= MANY {
        tracked.retain(|path| path.exists());
    }
    // The current directory could change.
    tracked.push(std::path::absolute(path(&file))?);
    Ok(file)
}

/// Removes the temporary files, and prevents others: the program ends when this has returned.
/// Windows does not remove open files.
pub fn remove() {
    let mut tracked = lock(&TRACKED);
    remove_all(&mut tracked);
    // An abandoned thread that creates another file waits for the end of the program.
    std::mem::forget(tracked);
}

fn remove_all(tracked: &mut MutexGuard<'_, Vec<PathBuf>>) {
    for path in tracked.drain(..) {
        // Most have their final names.
        let _ = std::fs::remove_file(path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn abandoned_file_is_removed_and_finished_one_is_kept() {
        let directory = tempfile::tempdir().unwrap();
        let create = || {
            tracked(
                || tempfile::NamedTempFile::new_in(directory.path()),
                |file| file.path(),
            )
        };
        let abandoned = create().unwrap();
        let done = directory.path().join("done");
        create().unwrap().persist(&done).unwrap();
        for _ in 0..2 * MANY {
            drop(create().unwrap());
        }
        let mut tracked = lock(&TRACKED);
        assert!(tracked.len() <= MANY + 1, "{}", tracked.len());
        remove_all(&mut tracked);
        assert!(!abandoned.path().exists());
        assert!(done.exists());
    }
}
