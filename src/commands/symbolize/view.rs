//! `heaptap symbolize`: shows what was found for the frames of a trace, and what is missing.

use super::args::Args;
use crate::conversion::convert::Input;
use crate::conversion::symbolize::{self};
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::goal;
use crate::untrusted::shell::quoted_path;
use crate::views::blocking;
use crate::views::symbolized::{READING, refreshed_shown, show};

/// Runs the command.
///
/// # Errors
/// Where the input holds no trace, or the output can't be written.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let names = args.names.options(&ctx.console)?;
    let phone = crate::views::progress::phone_asked(ctx, &args.names).await;
    let (input, scope, named) = args.packets.places();
    if let (Input::Path(folder), None) = (&input, &named)
        && folder.is_dir()
    {
        let folder = folder.clone();
        let refreshed = blocking::watched(ctx, READING, phone, {
            let folder = folder.clone();
            move |control| symbolize::refresh(&folder, names, control)
        })
        .await?;
        return Ok(refreshed_shown(console, &folder, &refreshed));
    }
    let goal = goal::asked(console, &input, named, ".symbols")?;
    let (symbolized, goal) = {
        let (sink, goal) = goal.open(console, args.packets.force);
        let task = blocking::watched(ctx, READING, phone, move |control| {
            symbolize::symbolize(&input, scope, sink, names, control)
        });
        (task.await?, goal)
    };
    let again = format!("heaptap symbolize {}", quoted_path(&args.packets.input));
    show(console, &again, goal.as_deref(), &symbolized);
    Ok(symbolized.class().into())
}
