//! The page of a run.

use std::path::Path;

use super::events::{LabEvent, LabEvents};
use crate::heaps::input::LookOptions;
use crate::heaps::java::{JavaOptions, ProgressReporter};
use crate::pages::{self, PagePlace, ReportFile, ReportRequest};

/// Writes the page of a run next to its directory. The results are complete without it.
pub(super) fn write(folder: &Path, page: &Path, tell: &LabEvents) {
    let request = ReportRequest::of_all(folder, LookOptions::default(), JavaOptions::default());
    let place = PagePlace::Named(page.to_owned());
    let progress = ProgressReporter::default();
    let written = ReportFile::create(&place, &[folder], true)
        .and_then(|file| pages::write(&request, &progress, pages::Target::File(file)));
    if let Err(error) = written {
        tell(LabEvent::Warning {
            text: format!("cannot write {}: {error}", page.display()),
        });
    }
}
