//! The flags of `heaptap stop`.

use crate::console::flags::names::NamesArgs;
use crate::console::flags::no_report::NoReportArgs;

/// Flags of `stop`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap stop                     the recording that runs, or the one that waits\n  \
    heaptap stop k3v9xq2m -o out     this one, into out/\n  \
    heaptap stop --all               every recording of this host\n  \
    heaptap stop --forget k3v9xq2m   its device is gone for good")]
pub struct Args {
    /// Session ID, or the start of it [default: the only one]
    ///
    /// `--forget` does not have a default.
    #[arg(value_name = "SESSION", value_parser = crate::console::flags::session::id)]
    pub session: Option<String>,
    /// Forget SESSION; its device is not touched and keeps the trace
    #[arg(long, requires = "session")]
    pub forget: bool,
    /// End and fetch all recordings of this host, each into its directory
    ///
    /// A failure does not end the others. The exit code is the first of theirs by precedence.
    #[arg(long, conflicts_with_all = ["session", "forget", "output"])]
    pub all: bool,
    /// A directory other than that of the start of the recording
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<std::path::PathBuf>,
    #[command(flatten)]
    pub leave: NoReportArgs,
    #[command(flatten)]
    pub names: NamesArgs,
}
