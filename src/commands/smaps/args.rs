//! The flags of `heaptap smaps`.

use crate::console::flags::limit::LimitArgs;
use crate::console::flags::moment::MomentArgs;
use crate::console::flags::target::TargetArgs;
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `smaps`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap smaps -n com.example.app               by the rows of meminfo\n  \
    heaptap smaps -n com.example.app --by library\n  \
    heaptap smaps rec@after-login --by mapping     of `record --with smaps`\n  \
    heaptap smaps -n com.example.app --save before.smaps\n  \
    heaptap diff before.smaps after.smaps",
    after_long_help = "On a device, the app must be debuggable, or adb must run as root. docs/guide/meminfo.md says what the figures mean."
)]
pub struct Args {
    /// Text of smaps or showmap, bug report, trace, or recording; - for stdin
    ///
    /// Texts and traces may be packed with gzip, zstd or xz, bug reports also a ZIP. -n or -p
    /// chooses a process of several. INPUT@MOMENT chooses a moment of a recording, and FILE@N a
    /// process that the text does not name. With -n instead of INPUT, heaptap asks the device.
    #[arg(value_name = "INPUT", required_unless_present = "TargetArgs")]
    pub input: Option<OsString>,
    /// Kind of rows
    #[arg(long, value_name = "WHAT", value_enum, default_value_t)]
    pub by: ByArg,
    #[command(flatten)]
    pub rows: LimitArgs,
    /// Print comma-separated values to stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Save the text of the device to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub save: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "save")]
    pub force: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub moment: MomentArgs,
}

/// Meaning of a row.
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
