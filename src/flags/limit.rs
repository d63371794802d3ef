//! Maximum number of rows.

/// The number of rows of a table or list.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct LimitArgs {
    /// Maximum number of rows; 0 means no limit
    ///
    /// By default a terminal gets what fits a page. JSON and CSV get all rows, but only 1,000
    /// callsites or objects, and 100 entries of each list of `leaks`.
    #[arg(short, long, value_name = "N")]
    pub limit: Option<usize>,
}
