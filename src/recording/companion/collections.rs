//! `gc.jsonl`: the garbage collections of a recording, each once, with merged data of log and
//! trace, as counted by `gc DIR`. `memory.jsonl` has their log lines among other data.

use std::path::Path;

use crate::recording::companion_options::CompanionOptions;
use heaptap_model::timeline::Observation;
use heaptap_results::findings::Finding;
use heaptap_results::timeline;
use heaptap_results::whole_file::write_named;

/// File name in a recording directory.
pub(crate) const FILE: &str = "gc.jsonl";

/// Writes the file of the recording in `directory`, with the trace at `trace`, into `goal` if
/// collections were requested and observed. Returns its name if it was written, and what it lacks.
/// Blocks.
///
/// # Errors
/// Returns an error text if it cannot be written. An unreadable trace is reported elsewhere.
pub(crate) fn write(
    directory: &Path,
    goal: &Path,
    companions: CompanionOptions,
    trace: &Path,
) -> Result<(Option<String>, Vec<Finding>), String> {
    if !companions.gc {
        return Ok((None, Vec::new()));
    }
    let mut known = timeline::beside(directory);
    // The data from the log is worth a file even without the trace.
    let _ = timeline::add_traces(&mut known, trace);
    let entries = known.timeline.entries.iter();
    let text: String = entries
        .filter(|entry| matches!(entry.seen, Observation::Collection(_)))
        .map(heaptap_model::timeline::Entry::line)
        .collect();
    if text.is_empty() {
        return Ok((None, known.findings));
    }
    match write_named(&goal.join(FILE), text.as_bytes()) {
        Ok(()) => Ok((Some(FILE.to_owned()), known.findings)),
        Err(error) => Err(format!("cannot write {FILE}: {error}")),
    }
}
