//! The user's state directory, for data that must outlive heaptap's processes.

use std::io;
use std::path::PathBuf;

use heaptap_base::host::Host;

/// Environment variable for the state directory.
pub const STATE_DIR_VAR: &str = "HEAPTAP_STATE_DIR";

/// Returns the directory in [`STATE_DIR_VAR`], otherwise the user's state directory.
///
/// # Errors
/// Returns an error if there is no home directory.
pub(super) fn of_user() -> io::Result<PathBuf> {
    if let Some(directory) = std::env::var_os(STATE_DIR_VAR).filter(|v| !v.is_empty()) {
        return std::path::absolute(directory);
    }
    Ok(Host::CURRENT.user_directories()?.state)
}
