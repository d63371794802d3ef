//! The flags of `heaptap meminfo --every`.

use crate::flags::period::period;
use std::time::Duration;

/// Flags of the live view.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Live view")]
pub struct LiveArgs {
    /// Go on, with a sample each PERIOD; meminfo is asked every 10 s at most
    #[arg(
        long,
        value_name = "PERIOD",
        value_parser = period,
        conflicts_with_all = ["file", "system", "save", "explain", "all", "details", "local"],
    )]
    pub every: Option<Duration>,
    /// End after this, by this computer's clock [default: Ctrl-C]
    #[arg(long = "for", value_name = "TIME", requires = "every", value_parser = period)]
    pub duration: Option<Duration>,
    /// Ask the app, too: it collects its garbage for each answer, and counts its heaps
    #[arg(long, requires = "every")]
    pub allow_gc: bool,
}
