//! The flags of `heaptap snapshot`.

use crate::heaps::selector::{LabelError, check_label};

/// Flags of `snapshot`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap snapshot --label after-login")]
pub struct Args {
    /// Session ID, or the start of it [default: the only one]
    #[arg(value_name = "SESSION", value_parser = crate::console::flags::session::id)]
    pub session: Option<String>,
    /// Name of the snapshot, for INPUT@LABEL [default: snapshot-N]
    #[arg(long, value_name = "LABEL", value_parser = label)]
    pub label: Option<String>,
}

fn label(typed: &str) -> Result<String, LabelError> {
    check_label(typed).map(|()| typed.to_owned())
}
