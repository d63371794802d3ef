//! Maximum number of rows.

/// The number of rows of a table or list.
#[derive(Debug, Clone, Copy, Default, clap::Args)]
pub struct LimitArgs {
    /// Maximum number of rows; 0 means no limit
    ///
    /// By default a terminal gets what fits a page. JSON and CSV get all rows, of `diff` those that
    /// changed, but only 1,000 callsites, objects or threads, and 100 entries of each list of `leaks`.
    #[arg(short, long, value_name = "N", value_parser = unless_zero)]
    pub limit: Option<usize>,
}

/// Parses a limit; 0 becomes [`usize::MAX`].
///
/// # Errors
/// Returns an error if it is not a number.
pub fn unless_zero(typed: &str) -> Result<usize, String> {
    match typed.parse() {
        Ok(0) => Ok(usize::MAX),
        Ok(limit) => Ok(limit),
        Err(_) => Err(format!("{typed:?} is not a whole number")),
    }
}
