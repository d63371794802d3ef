//! The page of a run.

use std::path::Path;

use crate::heaps::input::LookOptions;
use crate::heaps::java::{JavaOptions, ProgressReporter};
use crate::page::report::{self, PagePlace, ReportFile, ReportRequest};
use heaptap_base::error::Failure;

/// Writes the page of a run next to its directory. The results are complete without it.
///
/// # Errors
/// Returns an error if the recording cannot be read, or the page not be written.
pub(super) fn write(directory: &Path, page: &Path) -> Result<(), Failure> {
    let request = ReportRequest::of_all(directory, LookOptions::default(), JavaOptions::default());
    let place = PagePlace::Named(page.to_owned());
    let progress = ProgressReporter::default();
    let file = ReportFile::create(&place, &[directory], true)?;
    report::write(&request, &progress, report::Target::File(file))?;
    Ok(())
}
