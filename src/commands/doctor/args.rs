//! The flags of `heaptap doctor`.

use std::path::PathBuf;

/// Flags of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Example:\n  heaptap doctor",
    after_long_help = "Exit code 3: the device is not ready; 11: this host is not."
)]
pub struct Args {
    /// Check that recordings can be created in this directory
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
}
