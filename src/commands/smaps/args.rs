//! The flags of `heaptap smaps`.

use crate::memory::smaps::By;
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `smaps`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap smaps com.example.app                  by the rows of meminfo, as it is now\n  \
    heaptap smaps com.example.app --by library     whose memory it is\n  \
    heaptap smaps rec@after-login --by mapping     kept by `record --with smaps`\n  \
    heaptap smaps com.example.app --save before.smaps\n  \
    heaptap diff before.smaps after.smaps          what grew\n\n\
    On a phone the app must be debuggable, or there must be root. docs/smaps.md says what the figures mean.")]
pub struct Args {
    /// A running process (name or pid); or a file of smaps or showmap, a trace (each also gzip,
    /// zstd, xz), `-` for one on stdin; or a recording's folder, PATH@LABEL, PATH@N (beside dump
    /// N), PATH@last, PATH@end
    #[arg(value_name = "TARGET|INPUT")]
    pub input: OsString,
    /// What a row stands for
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub by: ByArg,
    /// At most so many rows; 0 is all [default: 30; all in JSON and CSV]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Which process of a recording
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,
    /// Comma-separated values on stdout, bytes
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Keep the text that was read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Overwrite a file that is there
    #[arg(long)]
    pub force: bool,
}

/// What a row stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ByArg {
    /// The rows of meminfo, and their parts
    #[default]
    Kind,
    /// Files and named areas
    Library,
    /// Mappings; those that differ in their address alone are one
    Mapping,
}

impl ByArg {
    /// As the sums have it.
    pub fn by(self) -> By {
        match self {
            ByArg::Kind => By::Kind,
            ByArg::Library => By::Library,
            ByArg::Mapping => By::Mapping,
        }
    }
}
