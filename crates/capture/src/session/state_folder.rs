//! The user's state folder: where heaptap keeps what has to outlive its processes.

use std::io;
use std::path::PathBuf;

use etcetera::AppStrategy as _;

/// Environment variable that names the state folder.
pub const STATE_DIR_VAR: &str = "HEAPTAP_STATE_DIR";

/// The folder that [`STATE_DIR_VAR`] names, else that of the user.
///
/// # Errors
/// Where there is no home folder.
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
