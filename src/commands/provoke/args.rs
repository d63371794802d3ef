//! The flags of `heaptap provoke`.

use crate::provoke::Action;
use crate::units::parse_duration;
use clap::ValueHint;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `provoke`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap provoke com.example.app rotate:10            ten times, each checked\n  \
    heaptap provoke com.example.app rotate:5 home-and-back:5 --rounds 3 --settle\n  \
    heaptap provoke com.example.app trim:all monkey:500 --seed 7\n  \
    heaptap provoke com.example.app deep-link:https://www.example.com/item/7 key:BACK\n  \
    heaptap provoke com.example.app rotate:2 --dry-run   the exact commands, none sent\n  \
    heaptap provoke --list                               all actions\n  \
    heaptap provoke --restore                            put back what a killed run left\n\n\
    Rotation, autorotate, stay-awake and the screen are put back at the end, also after Ctrl-C\n\
    or an error. A lost cable is waited for, a minute at most, and the plan goes on. Exit code 6\n\
    where the app died by itself, 12 where an action had no effect or the app did not come to\n\
    rest.")]
pub struct Args {
    /// The app: a package, or one of its processes (com.example.app:service)
    #[arg(value_name = "TARGET", required_unless_present_any = ["list", "restore"])]
    pub target: Option<String>,
    /// What to do, in this order: rotate:10, home-and-back:5, trim:all, tap:X,Y …; see --list
    #[arg(value_name = "ACTION", required_unless_present_any = ["list", "restore"])]
    pub actions: Vec<Action>,
    /// Do all of it N times
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// After each round wait until the app has come to rest, for this long at most [20s where it is
    /// not said]
    #[arg(long, value_name = "DURATION", num_args = 0..=1, require_equals = true, default_missing_value = "20s", value_parser = time)]
    pub settle: Option<Duration>,
    /// Seed of monkey actions that name none; each round adds 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Print the exact commands, send none of them
    #[arg(long)]
    pub dry_run: bool,
    /// Add each step to this timeline, or to that of this recording's folder
    #[arg(long, value_name = "FILE|FOLDER", value_hint = ValueHint::AnyPath)]
    pub timeline: Option<PathBuf>,
    /// List the actions
    #[arg(long, conflicts_with_all = ["target", "restore", "dry_run"])]
    pub list: bool,
    /// Put back what a run had changed that was killed, or lost its phone
    #[arg(long, conflicts_with_all = ["target", "dry_run"])]
    pub restore: bool,
}

/// Bare numbers are milliseconds, as everywhere.
pub(super) fn time(text: &str) -> Result<Duration, crate::units::ParseUnitError> {
    parse_duration(text, Duration::from_millis(1))
}
