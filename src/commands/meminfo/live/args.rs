//! The flags of `heaptap meminfo --every`.

use crate::console::flags::time::{period, positive_time};
use std::time::Duration;

/// Flags of the live view.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Live view")]
pub struct LiveArgs {
    /// Sample repeatedly with this period
    #[arg(
        long,
        value_name = "TIME",
        value_parser = period,
        conflicts_with_all = ["system", "save", "explain", "wide", "details"],
    )]
    pub every: Option<Duration>,
    /// End after this time, such as 30s
    #[arg(short, long, value_name = "TIME", requires = "every", value_parser = positive_time)]
    pub duration: Option<Duration>,
}
