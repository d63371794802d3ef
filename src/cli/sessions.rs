//! `heaptap snapshot`, `status`, `stop` and `collect`: act on a recording that another
//! process started, perhaps on another day.

use super::{Context, Outcome};
use crate::error::{ErrorClass, Failure};

/// Flags of `snapshot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap snapshot --label after-login")]
pub struct SnapshotArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The name of the snapshot
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
}

/// Takes a snapshot; returns once the dump is complete on the device.
///
/// # Errors
/// Always, until it is built.
pub async fn snapshot(_ctx: &Context, _args: SnapshotArgs) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`snapshot` is not built yet",
    ))
}

/// Flags of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap status")]
pub struct StatusArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
}

/// Shows the recordings that the journal and the device know.
///
/// # Errors
/// Always, until it is built.
pub async fn status(_ctx: &Context, _args: StatusArgs) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`status` is not built yet",
    ))
}

/// Flags of `stop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap stop")]
pub struct StopArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
}

/// Stops a recording, then collects it.
///
/// # Errors
/// Always, until it is built.
pub async fn stop(_ctx: &Context, _args: StopArgs) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`stop` is not built yet",
    ))
}

/// Flags of `collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap collect -o out")]
pub struct CollectArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
}

/// Fetches a recording that is still on its device, and converts it.
///
/// # Errors
/// Always, until it is built.
pub async fn collect(_ctx: &Context, _args: CollectArgs) -> Result<Outcome, Failure> {
    Err(Failure::new(
        ErrorClass::Bug,
        "not-built",
        "`collect` is not built yet",
    ))
}
