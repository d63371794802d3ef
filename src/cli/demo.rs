//! `heaptap demo`: the main job on the virtual phone.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap demo -o out")]
pub struct Args {
    /// The folder to write to; must be empty or new
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`demo` is not built yet",
    ))
}
