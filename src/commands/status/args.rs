//! The flags of `heaptap status`.

/// Flags of `status`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Example:\n  heaptap status")]
pub struct Args {
    /// Session ID, or the start of it [default: all]
    #[arg(value_name = "SESSION", value_parser = crate::flags::session::id)]
    pub session: Option<String>,
}
