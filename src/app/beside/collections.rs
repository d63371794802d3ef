//! `gc.jsonl`: the collections of a recording, each once, what log and trace tell of it joined.
//! `memory.jsonl` has the log's lines of them among all else; here is what `gc FOLDER` counts.

use std::path::Path;

use super::with::With;
use crate::app::convert::write_whole;
use crate::app::{gc, timeline};
use crate::memory::timeline::Seen;

/// Name of the file in a recording's folder.
pub(in crate::app) const FILE: &str = "gc.jsonl";

/// Writes the file of a recording whose trace is at `trace`, where collections were asked for and
/// seen. Blocks.
///
/// # Errors
/// Where it cannot be written, in words. A trace that cannot be read has had its own words.
pub(in crate::app) fn write(folder: &Path, with: With, trace: &Path) -> Result<(), String> {
    if !with.gc {
        return Ok(());
    }
    let mut known = timeline::beside(folder);
    // What is known without the trace is worth a file.
    let _ = gc::add_traces(&mut known, trace);
    let entries = known.timeline.entries.iter();
    let text: String = entries
        .filter(|entry| matches!(entry.seen, Seen::Collection(_)))
        .map(crate::memory::timeline::Entry::line)
        .collect();
    if text.is_empty() {
        return Ok(());
    }
    let path = folder.join(FILE);
    write_whole(&path, text.as_bytes())
        .map_err(|error| format!("{} could not be written: {error}", path.display()))
}
