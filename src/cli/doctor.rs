//! `heaptap doctor`: shows what is and is not ready on this host and on the phone.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `doctor`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap doctor")]
pub struct Args {}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`doctor` is not built yet",
    ))
}
