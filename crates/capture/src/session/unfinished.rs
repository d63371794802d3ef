//! Unfinished files next to their final path. Owns their permissions on each system;
//! independent of their content.

use std::fs::File;
use std::io;
use std::path::Path;
use std::time::Duration;

use heaptap_model::folder::UNFINISHED_PREFIX;
use heaptap_model::patience::patiently;
use tempfile::TempPath;

/// Age from which a file without a lock is that of a killed process: it is locked once it exists.
/// Windows denies access to a locked file, so there it is a file that nothing was written to.
const ABANDONED_AGE: Duration = Duration::from_secs(if cfg!(unix) { 60 } else { 24 * 3600 });

/// Creates a temporary file in `folder`, with a name that begins with `prefix`. Temporary files are
/// private by default; this one has the usual permissions, because it will get its final name.
/// While it is open, [`remove_abandoned`] leaves it.
///
/// # Errors
/// Returns an error if the file cannot be created.
pub fn file_in(folder: &Path, prefix: &str) -> io::Result<tempfile::NamedTempFile> {
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        // The umask still applies.
        builder.permissions(std::fs::Permissions::from_mode(0o666));
    }
    let file = builder.tempfile_in(folder)?;
    hold(file.as_file());
    Ok(file)
}

/// Shows other processes that this one writes the file, until it is closed.
pub fn hold(file: &File) {
    // Not every file system supports locks. There, a file that is old enough is removed.
    #[cfg(unix)]
    let _ = fs4::FileExt::try_lock(file);
    #[cfg(not(unix))]
    let _ = file;
}

/// Removes the temporary files of exports into `folder` that were killed.
pub fn remove_abandoned(folder: &Path) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if !name.to_string_lossy().starts_with(UNFINISHED_PREFIX) {
            continue;
        }
        let path = entry.path();
        let metadata = path.symlink_metadata();
        let is_old = metadata.is_ok_and(|it| {
            let age = it.modified().ok().and_then(|at| at.elapsed().ok());
            it.is_file() && age.is_some_and(|age| age >= ABANDONED_AGE)
        });
        if is_old && !is_held(&path) {
            let _ = std::fs::remove_file(path);
        }
    }
}

#[cfg(unix)]
fn is_held(path: &Path) -> bool {
    File::open(path).is_ok_and(|file| {
        let locked = fs4::FileExt::try_lock(&file);
        matches!(locked, Err(fs4::TryLockError::WouldBlock))
    })
}

/// Windows does not remove a file that is mapped or opened without sharing.
#[cfg(not(unix))]
fn is_held(_path: &Path) -> bool {
    false
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
    pub fn of(goal: &Path) -> ExistingFile {
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

    #[test]
    fn only_what_a_killed_process_left_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let held = file_in(dir.path(), UNFINISHED_PREFIX).unwrap();
        let path = |name: &str| dir.path().join(name);
        let [left, young] = ["left", "young"].map(|end| path(&format!("{UNFINISHED_PREFIX}{end}")));
        let users = path("mine");
        for path in [&left, &young, &users] {
            std::fs::write(path, "some").unwrap();
        }
        let long_ago = std::time::SystemTime::now() - 2 * ABANDONED_AGE;
        for path in [&left, &users] {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(long_ago).unwrap();
        }
        if cfg!(unix) {
            held.as_file().set_modified(long_ago).unwrap();
        }
        remove_abandoned(dir.path());
        assert!(!left.exists());
        assert!(
            [held.path(), &young, &users]
                .iter()
                .all(|path| path.exists())
        );
    }
}
