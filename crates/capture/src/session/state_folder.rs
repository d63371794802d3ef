//! The user's state directory, for data that must outlive heaptap's processes.

use std::io;
use std::path::PathBuf;

use etcetera::AppStrategy as _;

/// Environment variable for the state directory.
pub const STATE_DIR_VAR: &str = "HEAPTAP_STATE_DIR";

/// Returns the directory in [`STATE_DIR_VAR`], otherwise the user's state directory.
///
/// # Errors
/// Returns an error if there is no home directory.
pub(super) fn of_user() -> io::Result<PathBuf> {
    if let Some(folder) = std::env::var_os(STATE_DIR_VAR).filter(|v| !v.is_empty()) {
        return std::path::absolute(folder);
    }
    let strategy = etcetera::choose_app_strategy(etcetera::AppStrategyArgs {
        top_level_domain: String::new(),
        author: String::new(),
        app_name: "heaptap".to_owned(),
    })
    .map_err(io::Error::other)?;
    Ok(strategy.state_dir().unwrap_or_else(|| strategy.data_dir()))
}
