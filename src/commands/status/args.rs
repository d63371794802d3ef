//! The flags of `heaptap status`.

/// Flags of `status`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap status\n  \
    heaptap status --fail            in a CI step: is anything left behind?")]
pub struct Args {
    /// Session ID, or the start of it [default: all]
    #[arg(value_name = "SESSION", value_parser = crate::console::flags::session::id)]
    pub session: Option<String>,
    /// Exit with 9 if a recording waits or is lost
    ///
    /// A recording waits if it is not fetched or not finished, and no heaptap process works on it. One
    /// that still runs after `--detach` does not wait.
    /// Exits with 12 if a state cannot be read: the device or the adb server does not answer, or a
    /// journal is damaged.
    #[arg(long)]
    pub fail: bool,
}
