//! Results of symbolizing a trace or a recording, and missing symbols.

use crate::commands::shared::missing::{self, Remedy};
use crate::commands::shared::paths::near;
use crate::commands::shared::summary::{self, Wrote};
use crate::console::Console;
use crate::console::exit::Outcome;
use crate::names::r8_mappings::{Origin, WrittenPackage};
use crate::page::report::PAGE;
use crate::recording::conversion::deobfuscate::Deobfuscated;
use crate::recording::conversion::symbolize::{Refreshed, Symbolized};
use heaptap_base::units::{ByteSize, counted};
use heaptap_base::untrusted::shell::quoted_path;
use serde_json::json;
use std::path::Path;

/// Initial text of the status line.
pub(crate) const READING: &str = "reading …";

/// Shows the results for a recording directory.
pub(crate) fn refreshed_shown(
    console: &Console,
    directory: &Path,
    refreshed: &Refreshed,
) -> Outcome {
    let again = crate::commands::shared::progress::again(directory);
    let (outcome, is_renamed) = match refreshed {
        Refreshed::Symbols(symbolized) => {
            show(console, &again, Some(directory), symbolized);
            (symbolized.class().into(), symbolized.written.addresses > 0)
        }
        Refreshed::Recording(recording) => {
            summary::show(
                console,
                directory,
                &recording.manifest,
                &Wrote::packets(&recording.packets),
                &recording.heaps,
                Remedy::Again(&again),
            );
            let is_renamed = !recording.packets.is_empty() || recording.names_allocations;
            (recording.class.into(), is_renamed)
        }
    };
    // The manifest does not list a page that could not be added to it.
    if is_renamed && directory.join(PAGE).is_file() {
        console.say(format_args!(
            "{PAGE} still has the earlier names; to write it again, run `heaptap report {}`",
            quoted_path(near(directory))
        ));
    }
    outcome
}

/// Prints the written files and missing symbols; in a JSON mode as one document.
pub(crate) fn show(console: &Console, again: &str, goal: Option<&Path>, symbolized: &Symbolized) {
    let Symbolized {
        written,
        files,
        wanted,
        symbolization,
        is_native,
        java,
        findings,
        ..
    } = symbolized;
    if console.is_json() {
        console.json(&json!({
            "output": goal.map(Path::to_string_lossy),
            "packets": written.packets,
            "addresses": written.addresses,
            "bytes": written.bytes,
            "symbolization": symbolization,
            "java": java,
        }));
    }
    console.findings(findings);
    let place = match goal {
        Some(goal) => near(goal).display().to_string(),
        None => "standard output".to_owned(),
    };
    if let Some(java) = java {
        show_java(console, java, &place);
    }
    if !is_native {
        return;
    }
    let remedy = Remedy::Again(again);
    // Only a recording has a manifest.
    missing::tell(console, symbolization, remedy, "the output of `--json`");
    if written.addresses == 0 {
        match wanted {
            0 => console.say("nothing to look up: all frames from libraries have symbols"),
            _ => console.say("found no symbols that the trace does not already have"),
        }
    }
    let names = format!(
        "{} of {} frames have names, {} files and lines",
        symbolization.frames_named,
        symbolization.frames_named + symbolization.frames_unnamed,
        symbolization.frames_with_lines
    );
    let goal = place;
    let files = match files.as_deref() {
        None => String::new(),
        Some([]) => {
            console.say(format_args!("wrote nothing to {goal}; {names}"));
            return;
        }
        Some(files) => format!("{}, ", files.join(", ")),
    };
    console.say(format_args!(
        "wrote {goal}: {files}symbols of {} ({}); {names}",
        counted(written.addresses, "address", "addresses"),
        ByteSize(written.bytes)
    ));
}

fn show_java(console: &Console, java: &Deobfuscated, place: &str) {
    for map in &java.maps {
        console.say(mapping_line(map));
    }
    let bytes: u64 = java.maps.iter().map(|map| map.written.bytes).sum();
    let at_least = if java.classes_counted_in_part {
        "at least "
    } else {
        ""
    };
    let classes = match java.classes_named {
        0 => String::new(),
        1 => format!(", and {at_least}1 class of Java heaps"),
        n => format!(", and {at_least}{n} classes of Java heaps"),
    };
    console.say(format_args!(
        "wrote {place}: {} of Java names; they name {} of {} Java frames{classes}",
        ByteSize(bytes),
        java.frames_named,
        java.java_frames
    ));
}

fn mapping_line(map: &WrittenPackage) -> String {
    let package = match &*map.package {
        "" => "no package",
        package => package,
    };
    let found = match &map.origin {
        Origin::Discovered { variant, older } => {
            let older = match older {
                0 => String::new(),
                older => format!(", the newest of {}", older + 1),
            };
            format!(" ({variant}{older})")
        }
        Origin::Given | Origin::Variable => String::new(),
    };
    format!(
        "{package}: {} of {}{found}",
        counted(map.written.classes, "class", "classes"),
        near(&map.path).display()
    )
}
