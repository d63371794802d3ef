//! Display of paths.

use std::path::Path;

/// Returns the path as a user would type it: relative if it is in the current directory.
pub(crate) fn near(path: &Path) -> &Path {
    std::env::current_dir()
        .ok()
        .and_then(|here| path.strip_prefix(here).ok())
        .filter(|rest| !rest.as_os_str().is_empty())
        .unwrap_or(path)
}
