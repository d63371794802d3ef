//! Unfinished files next to their final path. Owns their permissions on each system;
//! independent of their content.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::Duration;

use crate::directory::{self, RAW_TRACE, UNFINISHED_PREFIX, is_unfinished};
use crate::rename_retry::patiently;
use tempfile::TempPath;

/// Age from which a file that no process has locked is that of a killed one: it is locked once it
/// exists.
const UNLOCKED_AGE: Duration = Duration::from_secs(60);
/// Age from which it is, if locks do not tell: Windows denies access to a locked file, and not every
/// file system supports locks.
const IDLE_AGE: Duration = Duration::from_secs(24 * 3600);

/// Creates a temporary file in `directory`, with a name that begins with `prefix`. Temporary files are
/// private by default; this one has the usual permissions, because it will get its final name.
/// While it is open, [`remove_abandoned`] leaves it.
///
/// # Errors
/// Returns an error if the file cannot be created.
pub fn file_in(directory: &Path, prefix: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask still applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(directory)?;
    hold(file.as_file());
    Ok(file)
}

/// Shows other processes that this one writes the file, until it is closed.
pub fn hold(file: &File) {
    #[cfg(unix)]
    let _ = fs4::FileExt::try_lock(file);
    #[cfg(not(unix))]
    let _ = file;
}

/// Removes the temporary files and directories of exports into `directory` that were killed.
pub fn remove_abandoned(directory: &Path) {
    remove_older(directory, UNLOCKED_AGE, IDLE_AGE);
}

/// Removes the temporary files in a directory in which no other process writes.
pub fn remove_all(directory: &Path) {
    remove_older(directory, Duration::ZERO, Duration::ZERO);
}

/// Removes unlocked temporary files of age `unlocked`, and those of age `idle` if locks are not
/// supported. Old temporary directories go, too, unless they contain a trace: it is a recording.
fn remove_older(directory: &Path, unlocked: Duration, idle: Duration) {
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        if !is_unfinished(&entry.file_name()) {
            continue;
        }
        let path = entry.path();
        let Ok(metadata) = path.symlink_metadata() else {
            continue;
        };
        // A file of the future, by another clock, is new.
        let age = metadata
            .modified()
            .map(|at| at.elapsed().unwrap_or_default());
        let age = age.unwrap_or_default();
        if metadata.is_file() && age >= unlocked && is_abandoned(&path, age >= idle) {
            let _ = std::fs::remove_file(path);
        } else if metadata.is_dir() && age >= IDLE_AGE && !path.join(RAW_TRACE).exists() {
            let _ = std::fs::remove_dir_all(path);
        }
    }
}

#[cfg(unix)]
fn is_abandoned(path: &Path, is_idle: bool) -> bool {
    let Ok(file) = File::open(path) else {
        return false;
    };
    match fs4::FileExt::try_lock(&file) {
        Ok(()) => true,
        Err(fs4::TryLockError::WouldBlock) => false,
        Err(fs4::TryLockError::Error(_)) => is_idle,
    }
}

#[cfg(not(unix))]
fn is_abandoned(_path: &Path, is_idle: bool) -> bool {
    is_idle
}

/// What happens to a file that already has the final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    Stays,
    IsReplaced,
}

impl ExistingFile {
    /// Returns the choice for an output that may replace what is there now: a file that appears
    /// before the output is whole stays.
    pub fn for_goal(goal: &Path) -> ExistingFile {
        match goal.exists() {
            true => ExistingFile::IsReplaced,
            false => ExistingFile::Stays,
        }
    }
}

/// Renames `file` to `goal`.
///
/// # Errors
/// Returns the file with an error: `AlreadyExists` if the name is taken and that file stays.
pub fn publish(
    file: TempPath,
    goal: &Path,
    existing: ExistingFile,
) -> Result<(), (io::Error, TempPath)> {
    match existing {
        ExistingFile::Stays => place(file, goal),
        ExistingFile::IsReplaced => persist(file, goal),
    }
}

/// Renames `file` to `goal`, and replaces a file of that name.
///
/// # Errors
/// Returns the error of the system.
pub fn replace(file: TempPath, goal: &Path) -> io::Result<()> {
    persist(file, goal).map_err(|(error, _)| error)
}

/// Writes a file, or replaces it, so that it is whole even after a power loss. Removes what killed
/// writers left in its directory.
///
/// # Errors
/// Returns an error if the directory cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let directory = directory::of(path);
    remove_abandoned(directory);
    let mut file = file_in(directory, UNFINISHED_PREFIX)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    replace(file.into_temp_path(), path)?;
    directory::sync(directory)
}

fn persist(file: TempPath, goal: &Path) -> Result<(), (io::Error, TempPath)> {
    patiently(file, |file| {
        file.persist(goal).map_err(|e| (e.error, e.path))
    })
}

/// Renames `file` to `goal`, unless that file exists.
///
/// # Errors
/// Returns the file with an error: `AlreadyExists` if the name is taken.
pub fn place(file: TempPath, goal: &Path) -> Result<(), (io::Error, TempPath)> {
    let persist = |file: TempPath| file.persist_noclobber(goal);
    match patiently(file, |file| persist(file).map_err(|e| (e.error, e.path))) {
        Ok(()) => Ok(()),
        // Not every file system supports this in one step.
        Err((error, file))
            if error.kind() != io::ErrorKind::AlreadyExists
                && std::fs::symlink_metadata(goal)
                    .is_err_and(|error| error.kind() == io::ErrorKind::NotFound) =>
        {
            file.persist(goal).map_err(|e| (e.error, e.path))
        }
        Err(failed) => Err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::UNFINISHED_PREFIX;

    #[test]
    fn only_what_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let held = file_in(dir.path(), UNFINISHED_PREFIX).unwrap();
        let path = |name: &str| dir.path().join(name);
        let [left, young] = ["left", "young"].map(|end| path(&format!("{UNFINISHED_PREFIX}{end}")));
        let users = path("mine");
        let inner = path(&format!("{UNFINISHED_PREFIX}inner"));
        std::fs::create_dir(&inner).unwrap();
        for path in [&left, &young, &users] {
            std::fs::write(path, "some").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * IDLE_AGE;
        for path in [&left, &users] {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        if cfg!(unix) {
            held.as_file().set_modified(long_ago).unwrap();
        }
        remove_abandoned(dir.path());
        assert!(!left.exists() && inner.exists());
        #[cfg(unix)]
        {
            let trace = inner.join(RAW_TRACE);
            std::fs::write(&trace, "recorded").unwrap();
            let age = || File::open(&inner).unwrap().set_modified(long_ago).unwrap();
            age();
            remove_abandoned(dir.path());
            assert!(trace.exists());
            std::fs::remove_file(trace).unwrap();
            age();
            remove_abandoned(dir.path());
            assert!(!inner.exists());
        }
        assert!(
            [held.path(), &young, &users]
                .iter()
                .all(|path| path.exists())
        );
    }

    #[test]
    fn in_a_directory_without_other_writers_age_does_not_count() {
        let dir = tempfile::tempdir().unwrap();
        let left = dir.path().join(format!("{UNFINISHED_PREFIX}left"));
        let whole = dir.path().join("01-end.txt");
        for path in [&left, &whole] {
            std::fs::write(path, "some").unwrap();
        }
        remove_all(dir.path());
        assert!(!left.exists() && whole.exists());
    }
}
