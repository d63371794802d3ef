//! Unfinished files next to their final path. Owns their permissions on each system;
//! independent of their content.

use std::io;
use std::path::Path;

use heaptap_model::patience::patiently;
use tempfile::TempPath;

/// Creates a temporary file in `folder`, with a name that begins with `prefix`. Temporary files are
/// private by default; this one has the usual permissions, because it will get its final name.
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
    builder.tempfile_in(folder)
}

/// What happens to a file that already has the final name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExistingFile {
    Stays,
    IsReplaced,
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
