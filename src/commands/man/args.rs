//! The flags of `heaptap man`.

use std::path::PathBuf;

/// Flags of `man`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap man -o ~/.local/share/man/man1")]
pub struct Args {
    /// Directory for the pages, one for each command
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: PathBuf,
}
