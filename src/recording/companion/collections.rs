//! `gc.jsonl`: the collections of a recording, each once, what log and trace tell of it joined.
//! `memory.jsonl` has the log's lines of them among all else; here is what `gc FOLDER` counts.

use std::path::Path;

use crate::recording::companion_options::CompanionOptions;
use crate::results::timeline;
use crate::results::whole_file::write_named;
use crate::timeline::Observation;

/// Name of the file in a recording's folder.
pub(crate) const FILE: &str = "gc.jsonl";

/// Writes the file of the recording in `folder`, whose trace is at `trace`, into `goal` where
/// collections were asked for and seen; its name if it was written. Blocks.
///
/// # Errors
/// Where it cannot be written, in words. A trace that cannot be read has had its own words.
pub(crate) fn write(
    folder: &Path,
    goal: &Path,
    companions: CompanionOptions,
    trace: &Path,
) -> Result<Option<String>, String> {
    if !companions.gc {
        return Ok(None);
    }
    let mut known = timeline::beside(folder);
    // What is known without the trace is worth a file.
    let _ = timeline::add_traces(&mut known, trace);
    let entries = known.timeline.entries.iter();
    let text: String = entries
        .filter(|entry| matches!(entry.seen, Observation::Collection(_)))
        .map(crate::timeline::Entry::line)
        .collect();
    if text.is_empty() {
        return Ok(None);
    }
    match write_named(&goal.join(FILE), text.as_bytes()) {
        Ok(()) => Ok(Some(FILE.to_owned())),
        Err(error) => Err(format!("{FILE} could not be written: {error}")),
    }
}
