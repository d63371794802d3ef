//! Failures of writing a page.

use std::io;
use std::path::Path;

use heaptap_base::error::Failure;
use heaptap_results::destination;

/// Returns the failure to write a page.
pub fn unwritable(path: &Path, source: &io::Error) -> Failure {
    let help = match source.kind() {
        io::ErrorKind::NotFound => {
            "the directory does not exist; create it, or choose another file with `-o`"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            "choose a writable file with `-o`"
        }
        io::ErrorKind::IsADirectory => "it is a directory; choose a file in it with `-o`",
        _ => "free space there, or choose another file with `-o`",
    };
    destination::unwritable(path.display(), source).with_help(help)
}
