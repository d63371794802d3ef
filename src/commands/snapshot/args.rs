//! The flags of `heaptap snapshot`.

use crate::heaps::selector::{LabelError, check_label};

/// Flags of `snapshot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap snapshot --label after-login")]
pub struct Args {
    /// Which recording: its id or the start of it [default: the only one that runs]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The name of the snapshot, by which `PATH@LABEL` finds it [default: snapshot-N]
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub label: Option<String>,
}

fn label(typed: &str) -> Result<String, LabelError> {
    check_label(typed).map(|()| typed.to_owned())
}
