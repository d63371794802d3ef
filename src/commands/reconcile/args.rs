//! The flags of `heaptap reconcile`.

use std::ffi::OsString;

/// Flags of `reconcile`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap record -n com.example.app --with meminfo,smaps -o rec\n  \
    heaptap reconcile rec                    at the end of the recording\n  \
    heaptap reconcile rec@after-login        at a label\n  \
    heaptap reconcile rec --all --json       at each label\n  \
    heaptap reconcile com.example.app        what a running process can tell without a recording\n\n\
    docs/reconcile.md says what the figures are and what their differences mean.")]
pub struct Args {
    /// A recording's folder, FOLDER@LABEL, FOLDER@N (beside dump N), FOLDER@last, FOLDER@end; an
    /// allocator's XML (also gzip, zstd, xz), `-` for one on stdin; or a running process (name or pid)
    #[arg(value_name = "FOLDER|FILE|TARGET")]
    pub input: OsString,
    /// All labels of the recording
    #[arg(long)]
    pub all: bool,
    /// Which process of a recording
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,
}
