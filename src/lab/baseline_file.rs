//! The file of a baseline: read before the runs, and updated after them.

use std::fs::{File, OpenOptions};
use std::path::Path;

use heaptap_lab::baseline::Baseline;
use heaptap_lab::results::ScenarioResult;
use heaptap_lab::scenario;
use sha2::{Digest as _, Sha256};

use super::files::{unwritable, write_text};
use crate::error::{ErrorClass, Failure};
use crate::folder;
use crate::session::Store;
use crate::units;

/// Maximum size in bytes.
const MAX_BYTES: u64 = scenario::MAX_BYTES as u64;
/// Directory of the locks, next to the journals of recordings: a repository has no place for them.
const FOLDER: &str = "baselines";

/// Reads a baseline. A missing file is empty, unless it `must_exist`.
///
/// # Errors
/// Returns an error if it cannot be read, or is not a baseline.
pub fn read(path: &Path, must_exist: bool) -> Result<Baseline, Failure> {
    let unreadable = |why: String| {
        let message = format!("cannot read {}: {why}", path.display());
        Failure::new(ErrorClass::BadInput, "input-unreadable", message)
            .with_help("`heaptap run SCENARIO --update-baseline` writes it")
    };
    if !path.exists() && !must_exist {
        return Ok(Baseline::default());
    }
    let bytes =
        crate::bytes::Bytes::read(path, MAX_BYTES).map_err(|e| unreadable(e.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    Baseline::parse(text).map_err(|error| unreadable(error.to_string()))
}

/// Adds the figures of a night to what the file has by now: other jobs can have added theirs during
/// the runs.
///
/// # Errors
/// Returns an error if the file is not a baseline any more, or cannot be written.
pub fn update(store: &Store, path: &Path, results: &[&ScenarioResult]) -> Result<(), Failure> {
    let _lock = lock(store, path)?;
    let mut baseline = read(path, false)?;
    baseline.update(results);
    write_text(path, &baseline.text())
}

/// Waits until no other process of this state directory updates the file. The file is replaced as a
/// whole, so it cannot be the lock.
fn lock(store: &Store, path: &Path) -> Result<File, Failure> {
    let sessions = store.folder();
    let locks = sessions.parent().unwrap_or(sessions).join(FOLDER);
    let own = lock_name(path);
    let open = || {
        folder::create(&locks)?;
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false);
        options.open(locks.join(&own))
    };
    let file = open().map_err(|error| unwritable(&locks.join(&own), &error))?;
    // A file system without locks has one job at a time.
    let _ = fs4::FileExt::lock(&file);
    Ok(file)
}

/// Returns the name of a file's lock, which does not depend on the working directory.
fn lock_name(path: &Path) -> String {
    let folder = folder::of(path);
    let folder = folder.canonicalize().unwrap_or_else(|_| folder.to_owned());
    let whole = folder.join(path.file_name().unwrap_or_default());
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
            let _lock = lock(&store, &path).unwrap();
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
    }
}
