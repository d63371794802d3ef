//! The flags of `heaptap demo`.

use crate::console::flags::no_report::NoReportArgs;
use std::path::PathBuf;

/// Flags of `demo`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap demo -o out")]
pub struct Args {
    /// A new or empty directory [default: heaptap-demo-TIME-SESSION]
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub output: Option<PathBuf>,
    #[command(flatten)]
    pub leave: NoReportArgs,
}
