//! Files that are not whole yet, beside their goal. Owns how readable they are on each system;
//! knows nothing of what goes into them.

use std::io;
use std::path::Path;

use tempfile::TempPath;

/// A temporary file in `folder`, its name beginning with `prefix`. Temporary files are private
/// by default; this one is as readable as its neighbours once it has its final name.
///
/// # Errors
/// Where the folder does not take a file.
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

/// Gives `file` the name `goal`, unless another file has it.
///
/// # Errors
/// Returns the file with an error: `AlreadyExists` if the name is taken.
pub fn place(file: TempPath, goal: &Path) -> Result<(), (io::Error, TempPath)> {
    match file.persist_noclobber(goal) {
        Ok(()) => Ok(()),
        // Not every file system can do that in one step.
        Err(failed)
            if failed.error.kind() != io::ErrorKind::AlreadyExists
                && std::fs::symlink_metadata(goal)
                    .is_err_and(|error| error.kind() == io::ErrorKind::NotFound) =>
        {
            failed.path.persist(goal).map_err(|e| (e.error, e.path))
        }
        Err(failed) => Err((failed.error, failed.path)),
    }
}
