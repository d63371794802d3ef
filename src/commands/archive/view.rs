//! Shows what `heaptap archive` added.

use serde_json::json;

use super::args::Args;
use super::run::{self, ArchiveRequest, Archived};
use crate::commands::shared::blocking;
use crate::commands::shared::paths::near;
use crate::console::Console;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use heaptap_base::error::Failure;
use heaptap_base::units::counted;
use heaptap_results::output::OutputDirectory;

/// Runs the command.
///
/// # Errors
/// Returns an error if nothing can be read, or the archive cannot be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    OutputDirectory::check(&args.to)?;
    let request = ArchiveRequest {
        inputs: args.recordings,
        store: args.to,
        build: args.build,
        compact: args.compact,
    };
    let store = request.store.clone();
    // A signal ends it at any step: a recording is in the archive as a whole or not at all.
    let work = move |progress: &_| run::archive(&request, progress);
    let archived = blocking::stepwise(ctx, work).await?;
    ctx.console.findings(&archived.findings);
    if ctx.console.is_json() {
        ctx.console.json(&json!({
            "store": store.to_string_lossy(),
            "added": archived.added,
            "known": archived.known,
            "recordings": archived.recordings,
            "compacted": archived.compacted.map(|done| json!({
                "written": done.written,
                "replaced": done.replaced,
                "removed": done.removed,
            })),
        }));
    } else {
        show(&ctx.console, &archived, &near(&store).display().to_string());
    }
    Ok(Outcome::from_classes(archived.class))
}

fn show(console: &Console, archived: &Archived, store: &str) {
    let recordings = |n: usize| counted(n as u64, "recording", "recordings");
    let (added, known) = (archived.added.len(), archived.known.len());
    if added + known > 0 {
        let known = match known {
            0 => String::new(),
            n => format!("; {} known already", recordings(n)),
        };
        console.say(format_args!("added {}{known}", recordings(added)));
    }
    if let Some(done) = archived.compacted {
        let files = |n: u64| counted(n, "file", "files");
        console.say(format_args!(
            "merged {} into {}; removed {} of earlier compactions",
            files(done.replaced),
            done.written,
            files(done.removed),
        ));
    }
    let all = recordings(archived.recordings);
    console.say(format_args!("{store} has {all}"));
}
