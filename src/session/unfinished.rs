//! Files that are not whole yet, beside their goal. Owns how readable they are on each system;
//! knows nothing of what goes into them.

use std::io;
use std::path::Path;

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
