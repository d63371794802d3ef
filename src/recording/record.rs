//! `record`: repeats attempts until the buffer does not overrun, up to a limit.

use super::attempt::record_once;
use super::capture_kind::CaptureKind;
use super::dump;
use super::events::{EventHandler, RecordEvent, Step};
use super::options::RecordOptions;
use super::outcome::Recorded;
use heaptap_adb::Device;
use heaptap_base::error::Failure;
use heaptap_capture::session::{Controls, Store};

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
    let mut earlier = None;
    loop {
        let recorded = record_once(
            device,
            store,
            &options,
            dump::for_label(),
            controls,
            on_event,
        );
        let mut recorded = match recorded.await {
            Ok(recorded) => recorded,
            Err(failure) => return dump::or_earlier(failure, earlier),
        };
        let Recorded::Finished(finished) = &mut recorded else {
            return Ok(recorded);
        };
        let overran = finished.manifest.has_overrun();
        let CaptureKind::Native(spec) = &mut options.kind else {
            return Ok(recorded);
        };
        let may_repeat = options.retry_overrun && finished.manifest.outcome.ended_as_planned();
        if !may_repeat || !overran || attempt == OVERRUN_ATTEMPTS {
            return Ok(recorded);
        }
        spec.interval_bytes = spec.interval_bytes.saturating_mul(4);
        let interval_bytes = spec.interval_bytes;
        // Its directory is renamed, so its session ends here.
        finished.journal.forget()?;
        let kept = finished.output.clone();
        // A default name has the session's ID, so the next one differs.
        let (kept, next) = match &options.output {
            Some(_) => {
                let (kept, next) = dump::rename_attempt(store, kept, attempt);
                (kept, Some(next))
            }
            None => (kept, None),
        };
        options.output = next;
        attempt += 1;
        finished.output.clone_from(&kept);
        if let Recorded::Finished(finished) = recorded {
            earlier = Some(*finished);
        }
        on_event(RecordEvent::Step(Step::Again {
            interval_bytes,
            kept,
        }));
    }
}

/// Maximum number of recordings with an overrun buffer; the last one is kept.
const OVERRUN_ATTEMPTS: u32 = 4;
