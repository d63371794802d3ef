//! The flags of `heaptap collect`.

use crate::flags::names::NamesArgs;
use crate::flags::no_report::NoReportArgs;

/// Flags of `collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  heaptap collect -o out\n  \
                  heaptap collect --forget k3v9xq2m   its phone is gone for good")]
pub struct Args {
    /// Which recording: its id or the start of it [default: the only one that can be fetched]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// Forget this recording instead; its device is not touched, and keeps the trace
    #[arg(long, requires = "session", conflicts_with = "output")]
    pub forget: bool,
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
