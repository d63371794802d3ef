//! What was found for the frames of a trace or of a recording, and what is missing.

use crate::console::Console;
use crate::conversion::symbolize::{Refreshed, Symbolized};
use crate::exit::Outcome;
use crate::pages::PAGE;
use crate::units::ByteSize;
use crate::untrusted::shell::quoted_path;
use crate::views::missing::{self, Remedy};
use crate::views::paths::near;
use crate::views::summary;
use crate::views::summary::Wrote;
use serde_json::json;
use std::path::Path;

/// What the status line says before there is more to say.
pub(crate) const READING: &str = "reading …";

/// Shows what came of a recording's folder.
pub(crate) fn refreshed_shown(console: &Console, folder: &Path, refreshed: &Refreshed) -> Outcome {
    let again = crate::views::progress::again(folder);
    let (outcome, is_renamed) = match refreshed {
        Refreshed::Symbols(symbolized) => {
            show(console, &again, Some(folder), symbolized);
            (symbolized.class().into(), symbolized.written.addresses > 0)
        }
        Refreshed::Recording(recording) => {
            summary::show(
                console,
                folder,
                &recording.manifest,
                &Wrote::packets(&recording.packets),
                &recording.heaps,
                Remedy::Again(&again),
            );
            let is_renamed = !recording.packets.is_empty() || recording.names_allocations;
            (recording.class.into(), is_renamed)
        }
    };
    // The manifest knows no page that was written where it could not be.
    if is_renamed && folder.join(PAGE).is_file() {
        console.say(format_args!(
            "{PAGE} still has the names of before; to write it again: heaptap report {}",
            quoted_path(near(folder))
        ));
    }
    outcome
}

/// Says what was written where, and what is missing; in a JSON mode as a document of both.
pub(crate) fn show(console: &Console, again: &str, goal: Option<&Path>, symbolized: &Symbolized) {
    let Symbolized {
        written,
        files,
        wanted,
        symbolization,
        findings,
    } = symbolized;
    if console.is_json() {
        console.json(&json!({
            "output": goal,
            "packets": written.packets,
            "addresses": written.addresses,
            "bytes": written.bytes,
            "symbolization": symbolization,
        }));
    }
    for finding in findings {
        console.finding(finding.kind, &finding.message, finding.help.as_deref());
    }
    missing::tell(console, symbolization, Remedy::Again(again));
    if written.addresses == 0 {
        match wanted {
            0 => console.say("nothing to look up: no frame of a library is without symbols"),
            _ => console.warn("no symbols were found that the trace does not have already"),
        }
    }
    let names = format!(
        "{} of {} frames have names, {} files and lines",
        symbolization.frames_named,
        symbolization.frames_named + symbolization.frames_unnamed,
        symbolization.frames_with_lines
    );
    let goal = match goal {
        Some(goal) => near(goal).display().to_string(),
        None => "standard output".to_owned(),
    };
    let files = match files.as_deref() {
        None => String::new(),
        Some([]) => {
            console.say(format_args!("nothing was written to {goal}; {names}"));
            return;
        }
        Some(files) => format!("{}, ", files.join(", ")),
    };
    console.say(format_args!(
        "wrote {goal}: {files}symbols of {} addresses ({}); {names}",
        written.addresses,
        ByteSize(written.bytes)
    ));
}
