//! The flags of `heaptap gc`.

use std::ffi::OsString;
use std::time::Duration;

/// Flags of `gc`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap gc com.example.app             what the phone's log still holds of it\n  \
    heaptap gc com.example.app --now       have it collect: what is live, what was freed\n  \
    heaptap gc logcat.txt                  each process of a saved log\n  \
    adb logcat -d | heaptap gc -           of a log that comes by itself\n  \
    heaptap gc bugreport.zip --process com.example.app --list\n  \
    heaptap gc com.example.app --follow    each from now on; Ctrl-C sums up\n  \
    heaptap gc rec                         of a recording made with `record --with gc`\n  \
    heaptap gc rec@before..after           of it, between two labels; `before..` and `..after`, too\n\n\
    docs/gc.md says what is read, and when something counts as wrong.")]
pub struct Args {
    /// Processes on the phone by name or number; or saved logs of any format of logcat (also gzip,
    /// zstd, xz), `-` for stdin; or bugreports, in their ZIP or as text; or a recording's folder,
    /// FOLDER@LABEL..LABEL
    #[arg(value_name = "TARGET|FILE", required = true)]
    pub inputs: Vec<OsString>,
    /// Only processes of this number, or with this in the name; may be repeated
    #[arg(long = "process", value_name = "NAME|PID")]
    pub processes: Vec<String>,
    /// Each collection in a row of its own
    #[arg(long)]
    pub list: bool,
    /// Each collection as comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines", "list"])]
    pub csv: bool,
    /// Only what was logged in the last TIME, such as 10m; with --follow, begin so much earlier
    #[arg(long, value_name = "TIME", value_parser = crate::flags::period::period, help_heading = "On the phone")]
    pub since: Option<Duration>,
    /// Show what is logged from now on, across a lost cable, until Ctrl-C; then sum up
    #[arg(short, long, conflicts_with = "csv", help_heading = "On the phone")]
    pub follow: bool,
    /// With --follow: end after this time
    #[arg(
        long = "for",
        value_name = "TIME",
        value_parser = crate::flags::period::period,
        requires = "follow",
        help_heading = "On the phone"
    )]
    pub duration: Option<Duration>,
    /// Have the process collect: by a signal, or by `dumpsys meminfo`
    ///
    /// A signal takes root, or a debuggable app; any app collects when meminfo counts its objects.
    #[arg(long, conflicts_with_all = ["since", "list", "csv", "follow"], help_heading = "On the phone")]
    pub now: bool,
}
