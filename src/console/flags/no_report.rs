//! Option to skip the page of a recording.

/// Option to skip the page of a recording.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct NoReportArgs {
    /// Do not write report.html
    #[arg(long, hide_short_help = true)]
    pub no_report: bool,
}
