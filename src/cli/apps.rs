//! `heaptap apps`: shows packages with what may be profiled.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `apps`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap apps example")]
pub struct Args {
    /// Only packages whose name contains this
    #[arg(value_name = "FILTER")]
    pub filter: Option<String>,
}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`apps` is not built yet",
    ))
}
