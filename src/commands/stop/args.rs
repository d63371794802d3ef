//! The flags of `heaptap stop`.

use crate::flags::names::NamesArgs;
use crate::flags::no_report::NoReportArgs;

/// Flags of `stop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap stop")]
pub struct Args {
    /// Which recording: its id or the start of it [default: the only one that runs]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
    /// Whether a page is left.
    #[command(flatten)]
    pub leave: NoReportArgs,
    /// Where names come from, beside what the recording was started with.
    #[command(flatten)]
    pub names: NamesArgs,
}
