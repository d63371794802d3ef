//! The flags of `heaptap archive`.

use std::path::PathBuf;

/// Flags of `archive`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap archive rec --to fleet --build 1042     one recording\n  \
    heaptap archive night --to fleet                the runs that `heaptap run` kept\n  \
    heaptap archive --to fleet --compact            once a day")]
pub struct Args {
    /// Directories of recordings, or outputs of `heaptap run`
    ///
    /// Of the latter, the runs that count, with their device class, build and verdict. A recording
    /// that the archive has already is skipped, and keeps its build.
    #[arg(value_name = "REC", required_unless_present = "compact", value_hint = clap::ValueHint::DirPath)]
    pub recordings: Vec<PathBuf>,
    /// Directory of the archive; created if it does not exist
    #[arg(long, value_name = "STORE", required = true, value_hint = clap::ValueHint::DirPath)]
    pub to: PathBuf,
    /// Build of the app, such as its version code [default: that of `heaptap run`]
    ///
    /// Of two builds that `heaptap run --against` compared, the new one.
    #[arg(long, value_name = "BUILD")]
    pub build: Option<String>,
    /// Merge small files into large sorted ones
    ///
    /// Queries can continue meanwhile: the files that this replaces are removed by the next
    /// --compact.
    #[arg(long)]
    pub compact: bool,
}
