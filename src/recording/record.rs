//! `record`: repeats attempts until the buffer does not overrun, up to a limit.

use std::path::PathBuf;

use super::attempt::{attempt_path, record_once};
use super::capture_kind::CaptureKind;
use super::dump;
use super::events::{EventHandler, RecordEvent, Step};
use super::options::RecordOptions;
use super::outcome::Recorded;
use crate::device::Device;
use crate::error::Failure;
use crate::session::{Controls, Store};

/// Records.
///
/// # Errors
/// Returns the error of the stage that failed; recorded data remain on the device, and the error
/// names the command that fetches them.
pub async fn record(
    device: &Device,
    store: &Store,
    options: &RecordOptions,
    controls: &mut Controls,
    on_event: &EventHandler,
) -> Result<Recorded, Failure> {
    let mut options = options.clone();
    let mut attempt = 1;
    let mut first: Option<PathBuf> = None;
    let mut number = 1;
    loop {
        let mut recorded = match record_once(
            device,
            store,
            &options,
            dump::for_label(),
            controls,
            on_event,
        )
        .await
        {
            Ok(recorded) => recorded,
            // `out-2` is only a default name: if it exists, use the next one.
            Err(failure) if TAKEN.contains(&failure.kind) && first.is_some() => {
                number += 1;
                options.output = first.as_deref().map(|first| attempt_path(first, number));
                continue;
            }
            Err(failure) => return Err(failure),
        };
        let Recorded::Finished(finished) = &mut recorded else {
            return Ok(recorded);
        };
        let overran = finished.manifest.has_overrun();
        let CaptureKind::Native(spec) = &mut options.kind else {
            return Ok(recorded);
        };
        if !options.retry_overrun || !overran || attempt == OVERRUN_ATTEMPTS {
            return Ok(recorded);
        }
        spec.interval_bytes = spec.interval_bytes.saturating_mul(4);
        let interval_bytes = spec.interval_bytes;
        // The results of this attempt are kept.
        finished.journal.forget()?;
        attempt += 1;
        number += 1;
        let first = first.get_or_insert_with(|| finished.output.clone());
        options.output = Some(attempt_path(first, number));
        on_event(RecordEvent::Step(Step::Again { interval_bytes }));
    }
}

/// Maximum number of recordings with an overrun buffer; the last one is kept.
const OVERRUN_ATTEMPTS: u32 = 4;
/// Kinds of failures for an existing directory.
const TAKEN: [&str; 2] = ["output-claimed", "output-not-empty"];
