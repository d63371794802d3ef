//! Whether a recording leaves a page.

/// Whether a recording leaves a page.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct NoReportArgs {
    /// Leave no report.html in the folder
    #[arg(long)]
    pub no_report: bool,
}
