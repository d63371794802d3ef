//! `heaptap symbolize`: shows what was found for the frames of a trace, and what is missing.

use std::path::Path;

use serde_json::json;

use super::run::{self, Refreshed, Symbolized};
use crate::console::Console;
use crate::conversion::convert::Input;
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::goal;
use crate::flags::names::NamesArgs;
use crate::units::ByteSize;
use crate::untrusted::shell::quoted_path;
use crate::views::missing::{self, Remedy};
use crate::views::summary::Wrote;
use crate::views::{blocking, summary};

/// Flags of `symbolize`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap symbolize out --symbols app/build        a recording's folder: its profiles too\n  \
    heaptap symbolize trace -o syms; cat trace syms > symbolized\n  \
    heaptap symbolize trace --into symbolized        the same in one step")]
pub struct Args {
    /// What is read, and where packets go.
    #[command(flatten)]
    pub packets: goal::PacketsArgs,
    /// Where names come from.
    #[command(flatten)]
    pub names: NamesArgs,
}

/// What the status line says before there is more to say.
pub(crate) const READING: &str = "reading …";

/// Runs the command.
///
/// # Errors
/// Where the input holds no trace, or the output can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let names = args.names.options(&ctx.console)?;
    let phone = crate::views::progress::phone_asked(ctx, &args.names).await;
    let (input, extent, named) = args.packets.places();
    if let (Input::Path(folder), None) = (&input, &named)
        && folder.is_dir()
    {
        let folder = folder.clone();
        let refreshed = blocking::watched(ctx, READING, phone, {
            let folder = folder.clone();
            move |watch| run::refresh(&folder, names, watch)
        })
        .await?;
        return Ok(refreshed_shown(console, &folder, &refreshed));
    }
    let goal = goal::asked(console, &input, named, ".symbols")?;
    let (symbolized, goal) = {
        let (sink, goal) = goal.open(console, args.packets.force);
        let task = blocking::watched(ctx, READING, phone, move |watch| {
            run::symbolize(&input, extent, sink, names, watch)
        });
        (task.await?, goal)
    };
    let again = format!("heaptap symbolize {}", quoted_path(&args.packets.input));
    show(console, &again, goal.as_deref(), &symbolized);
    Ok(symbolized.class().into())
}

/// Shows what came of a recording's folder.
pub(crate) fn refreshed_shown(console: &Console, folder: &Path, refreshed: &Refreshed) -> Outcome {
    let again = crate::views::progress::again(folder);
    match refreshed {
        Refreshed::Symbols(symbolized) => {
            show(console, &again, Some(folder), symbolized);
            symbolized.class().into()
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
            if let Some(page) = &recording.manifest.page {
                console.say(format_args!(
                    "{} has the names of before: heaptap report {} writes it anew",
                    page.file,
                    quoted_path(summary::near(folder))
                ));
            }
            recording.class.into()
        }
    }
}

/// Says what was written where, and what is missing; in a JSON mode as a document of both.
fn show(console: &Console, again: &str, goal: Option<&Path>, symbolized: &Symbolized) {
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
        Some(goal) => summary::near(goal).display().to_string(),
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
