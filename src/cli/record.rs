//! `heaptap record`: shows a recording as it goes: status line, keys, events, summary.

use std::path::PathBuf;
use std::time::Duration;

use super::capture_args::{CaptureArgs, TargetArgs, milliseconds};
use super::{Context, Outcome};
use crate::config::Surroundings;
use crate::error::{ErrorClass, Failure};

/// Flags of `record`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap record -n com.example.app                      until Ctrl-C; `s` takes a snapshot\n  \
    heaptap record -n com.example.app -d 30s -o out        30 seconds into out/\n  \
    heaptap record -n com.example.app --launch --no-running  from the first allocation on\n  \
    heaptap record -n com.example.app --heaps com.android.art  Java allocations")]
pub struct Args {
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,
    /// What to record.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// The folder to write to; must be empty or new [default: heaptap-TARGET-TIME]
    #[arg(short, long, value_name = "DIR", help_heading = "How to record")]
    pub output: Option<PathBuf>,
    /// Record even where the target does not look eligible
    #[arg(long, help_heading = "How to record")]
    pub force: bool,
    /// Force-stop the app, and start it once the recording is armed
    #[arg(long, help_heading = "How to record")]
    pub launch: bool,
    /// Arm snapshots for phones whose shell may not signal heapprofd (user builds)
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = milliseconds,
        help_heading = "How to record"
    )]
    pub snapshots: Option<Duration>,
    /// Start and return; `heaptap status`, `stop` and `collect` go on from there
    #[arg(long, help_heading = "How to record")]
    pub detach: bool,
    /// Where the buffer overran, record again with a longer interval
    #[arg(long, help_heading = "How to record")]
    pub retry_overrun: bool,
    /// Switch SELinux to permissive while recording (needs root; undone afterwards)
    #[arg(long, help_heading = "How to record")]
    pub disable_selinux: bool,
}

/// Runs the command.
///
/// # Errors
/// Where what is asked for is refused; else always, until it is built.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let resolved = args.capture.resolve(&args.target, &ctx.console)?;
    if args.capture.print_config {
        let encoded = resolved.spec.encode(&Surroundings::default())?;
        ctx.console.raw(encoded.text.as_bytes());
        return Ok(Outcome::Done);
    }
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`record` is not built yet",
    ))
}
