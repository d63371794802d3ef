//! Advice about a recording that could not be finished, and its removal when the device is no
//! longer available.

use std::path::Path;

use heaptap_base::directory::RAW_TRACE;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::session::{SessionId, SessionState, SnapshotMethod, Store};
use heaptap_results::lists::join_list;
use heaptap_results::output::is_own;

/// Returns whether a text advises the user to collect a recording.
pub(crate) fn names_collect(text: &str) -> bool {
    text.contains("heaptap stop")
}

/// Returns whether a failure advises the user to collect the recording.
pub(crate) fn advises_collect(failure: &Failure) -> bool {
    let mut texts = failure.help.iter().chain(&failure.hints);
    texts.any(|text| names_collect(text))
}

/// Removes that advice.
pub(crate) fn remove_collect(failure: &mut Failure) {
    failure.hints.retain(|hint| !names_collect(hint));
    failure.help.take_if(|help| names_collect(help));
}

/// Returns the failure of a device that is gone, and did not return in time.
pub(crate) fn device_away(message: impl Into<String>, help: &str) -> Failure {
    Failure::new(ErrorClass::NoDevice, "device-away", message).with_help(help)
}

/// Adds advice for a session whose results could not be written.
pub(super) fn with_stop_hint(
    mut failure: Failure,
    store: &Store,
    id: &SessionId,
    output: &Path,
) -> Failure {
    if failure.class != ErrorClass::HostWrite {
        return failure;
    }
    // A journal that cannot be read now is kept, too.
    let has = |known: &[SessionState]| known.iter().any(|known| known.header.id == *id);
    let is_kept = store.list().map_or(true, |(known, _)| has(&known));
    if !is_kept {
        let hint = trace_is_here(output, id).or_else(|| {
            // Only the device knows the recording now.
            let is_journal = failure.kind == "journal-unwritable";
            is_journal.then(|| format!("run `heaptap stop {id} -o DIR` to end and fetch it"))
        });
        failure.hints.extend(hint);
    } else if !advises_collect(&failure) {
        let hint = format!("what was recorded is not lost; run `heaptap stop {id} -o DIR`");
        failure.hints.push(hint);
    }
    failure
}

/// Returns advice for a session whose trace is gone, perhaps to another host, which does not know
/// the labels. `None` if there are none, or if they do not select dumps.
pub(super) fn of_lost_labels(state: &SessionState) -> Option<String> {
    if state.labels.is_empty() || state.header.snapshots == SnapshotMethod::Impossible {
        return None;
    }
    let labels = state.labels.iter();
    let each = labels.map(|label| format!("`{}` from {} ns", label.label, label.from_ns()));
    Some(format!(
        "only this host knows the labels: {}. Each selects the first dump whose `written_ns` in the \
         manifest is not earlier.",
        join_list(each)
    ))
}

/// Returns advice for a fetched trace whose session cannot be finished.
pub(super) fn trace_is_here(output: &Path, id: &SessionId) -> Option<String> {
    let is_here = is_own(output, id) && output.join(RAW_TRACE).is_file();
    is_here.then(|| {
        let directory = quoted_path(output);
        format!(
            "the complete trace is on the host; run `heaptap convert {directory}` (labels will be \
             missing)"
        )
    })
}
