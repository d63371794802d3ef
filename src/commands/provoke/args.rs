//! The flags of `heaptap provoke`.

use crate::console::flags::target::TargetArgs;
use crate::console::flags::time::time;
use clap::ValueHint;
use heaptap_capture::provoke::Action;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `provoke`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap provoke -n com.example.app rotate:10\n  \
    heaptap provoke -n com.example.app rotate:5 home-and-back:5 --settle\n  \
    heaptap provoke -n com.example.app rotate:2 --dry-run   only print commands\n  \
    heaptap provoke --list\n  \
    heaptap provoke -n com.example.app trim:all monkey:500 --seed 7\n  \
    heaptap provoke -n com.example.app deep-link:https://www.example.com/item/7\n  \
    heaptap provoke --restore      undo what a killed run left",
    after_long_help = "heaptap restores rotation, auto-rotate, stay-awake and the screen at the end, also after\n\
    Ctrl-C or an error. It waits up to a minute for a lost device. Exit code 6: the app died;\n\
    12: an action had no effect, or the app did not become idle."
)]
pub struct Args {
    /// Actions in order: rotate:10, home-and-back:5, trim:all, tap:X,Y …
    #[arg(value_name = "ACTION", required_unless_present_any = ["list", "restore"])]
    pub actions: Vec<Action>,
    /// Number of iterations
    ///
    /// Iterations of all actions.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub rounds: u32,
    /// Wait until the app is idle after each iteration [default: 20s at most]
    #[arg(long, value_name = "TIME", num_args = 0..=1, require_equals = true, default_missing_value = "20s", value_parser = time)]
    pub settle: Option<Duration>,
    /// Seed of monkey actions; each iteration adds 1
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u32,
    /// Print the commands without running them
    #[arg(long)]
    pub dry_run: bool,
    /// Add each step to this timeline, or to that of a recording
    #[arg(long, value_name = "FILE|DIR", value_hint = ValueHint::AnyPath)]
    pub timeline: Option<PathBuf>,
    /// List the actions
    #[arg(long, conflicts_with_all = ["TargetArgs", "restore", "dry_run"])]
    pub list: bool,
    /// Restore settings that a killed run changed
    #[arg(long, conflicts_with_all = ["TargetArgs", "dry_run"])]
    pub restore: bool,
    #[command(flatten)]
    pub target: TargetArgs,
}
