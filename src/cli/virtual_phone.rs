//! `heaptap virtual-phone`: serves the virtual phone until ended.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `virtual-phone`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap virtual-phone --port 5038 android=14,build=user")]
pub struct Args {
    /// The port to listen on; 0 lets the system choose
    #[arg(long, value_name = "PORT", default_value_t = 0)]
    pub port: u16,
    /// Which phone: a list such as android=14,build=user
    #[arg(value_name = "SPEC", default_value = "")]
    pub spec: String,
}

/// Runs the command.
///
/// # Errors
/// Always, until it is built.
pub async fn run(_ctx: &Context, _args: Args) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`virtual-phone` is not built yet",
    ))
}
