//! The flags of `heaptap doctor`.

use std::path::PathBuf;

/// Flags of `doctor`.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit code 3: the phone's side is not ready; 11: this computer's.\n\n\
                  Example:\n  heaptap doctor"
)]
pub struct Args {
    /// Check that recordings can be written here
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub output: PathBuf,
}
