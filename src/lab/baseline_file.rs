//! The file of a baseline: read before the runs, and updated after them.

use std::path::Path;

use heaptap_lab::baseline::Baseline;
use heaptap_lab::results::ScenarioResult;
use heaptap_lab::scenario;

use super::files::{unwritable, write_typed};
use super::path_lock;
use crate::error::{ErrorClass, Failure};
use crate::session::Store;

/// Maximum size in bytes.
const MAX_BYTES: u64 = scenario::MAX_BYTES as u64;

/// Reads a baseline. A missing file is empty, unless it `must_exist`.
///
/// # Errors
/// Returns an error if it cannot be read, or is not a baseline.
pub fn read(path: &Path, must_exist: bool) -> Result<Baseline, Failure> {
    let unreadable = |why: String| {
        let message = format!("cannot read {}: {why}", path.display());
        Failure::new(ErrorClass::BadInput, "input-unreadable", message)
            .with_help("`heaptap run SCENARIO --update-baseline` writes it")
    };
    if !path.exists() && !must_exist {
        return Ok(Baseline::default());
    }
    let bytes =
        crate::bytes::Bytes::read(path, MAX_BYTES).map_err(|e| unreadable(e.to_string()))?;
    let text = std::str::from_utf8(&bytes).map_err(|_| unreadable("it is not text".to_owned()))?;
    Baseline::parse(text).map_err(|error| unreadable(error.to_string()))
}

/// Adds the figures of a night to what the file has by now: other jobs can have added theirs during
/// the runs.
///
/// # Errors
/// Returns an error if the file is not a baseline any more, or cannot be written.
pub fn update(store: &Store, path: &Path, results: &[&ScenarioResult]) -> Result<(), Failure> {
    let _lock = path_lock::wait(store, path).map_err(|error| unwritable(store.folder(), &error))?;
    let mut baseline = read(path, false)?;
    baseline.update(results);
    write_typed(path, baseline.text().as_bytes())
}
