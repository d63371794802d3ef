//! The flags of `heaptap gc`.

use std::ffi::OsString;
use std::time::Duration;

use crate::console::flags::moment::MomentArgs;
use crate::console::flags::target::TargetArgs;

/// Flags of `gc`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap gc -n com.example.app           the log of the device\n  \
    heaptap gc -n com.example.app --now     force a collection\n  \
    heaptap gc -n com.example.app --follow  from now on, until Ctrl-C\n  \
    heaptap gc logcat.txt                   a saved log, or a bugreport\n  \
    heaptap gc rec@before..after            between two labels\n  \
    adb logcat -d | heaptap gc -\n  \
    heaptap gc bugreport.zip -n com.example.app --by collection",
    after_long_help = "docs/guide/java-leak.md explains the live set, docs/reference/formats.md inputs and JSON."
)]
pub struct Args {
    /// Saved logs, bugreports, a trace or a recording; - for stdin
    ///
    /// Logs in any format of logcat, bugreports as ZIP or text; also packed with gzip, zstd or xz.
    /// INPUT@FROM..TO chooses the time between two labels of a recording. With -n instead of
    /// INPUT, heaptap reads the device's log.
    #[arg(value_name = "INPUT", required_unless_present = "TargetArgs")]
    pub inputs: Vec<OsString>,
    /// Kind of rows: collection
    #[arg(long, value_name = "WHAT", value_enum, hide_possible_values = true)]
    pub by: Option<ByArg>,
    /// Print comma-separated values to stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines", "by"])]
    pub csv: bool,
    /// Only the last TIME of the log, such as 10m
    #[arg(long, value_name = "TIME", value_parser = crate::console::flags::time::positive_time, help_heading = "On the device")]
    pub since: Option<Duration>,
    /// Show collections from now on, until Ctrl-C; then sum up
    #[arg(short, long, conflicts_with = "csv", help_heading = "On the device")]
    pub follow: bool,
    /// End after this time, such as 30s
    ///
    /// Requires --follow.
    #[arg(
        short,
        long,
        value_name = "TIME",
        value_parser = crate::console::flags::time::positive_time,
        requires = "follow",
        help_heading = "On the device"
    )]
    pub duration: Option<Duration>,
    /// Force a collection, by a signal or by `dumpsys meminfo`
    ///
    /// A signal requires root or a debuggable app. Any app collects when meminfo counts its objects.
    #[arg(long, conflicts_with_all = ["since", "by", "csv", "follow"], help_heading = "On the device")]
    pub now: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub moment: MomentArgs,
}

/// Meaning of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ByArg {
    /// A collection.
    Collection,
}
