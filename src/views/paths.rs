//! Paths as one would type them.

use std::path::Path;

/// The path as one would type it here: relative where it lies below the current folder.
pub(crate) fn near(path: &Path) -> &Path {
    std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok())
        .filter(|rest| !rest.as_os_str().is_empty())
        .unwrap_or(path)
}
