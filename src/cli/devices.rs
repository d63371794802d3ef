//! `heaptap devices`: shows the devices that the adb server lists.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `devices`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap devices --json")]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`devices` is not built yet",
    ))
}
