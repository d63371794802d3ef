//! The flags of `heaptap status`.

/// Flags of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap status")]
pub struct Args {
    /// Which recording: its id or the start of it [default: all]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
}
