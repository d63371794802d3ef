//! `heaptap check`: shows the eligibility of processes, with reasons and remedies.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `check`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap check com.example.app")]
pub struct Args {
    /// Process names (with *), or process ids
    #[arg(value_name = "TARGET", required_unless_present = "packages")]
    pub targets: Vec<String>,
    /// All processes of this package
    #[arg(long = "package", value_name = "PKG")]
    pub packages: Vec<String>,
}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`check` is not built yet",
    ))
}
