//! `heaptap stop`: ends a recording that another process started, and collects it.

use super::args::Args;
use crate::console::signals::watch_signals;
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::session::selector;
use crate::recording::sessions::{self, Stopped};
use crate::session::Store;
use crate::views::page;
use crate::views::progress::{self, Show};
use serde_json::json;

/// Stops a recording, then collects it.
///
/// # Errors
/// Where the device does not hand it over; it stays there.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let selector = selector(ctx, &store, args.session).await?;
    let names = args.names.options(&ctx.console)?;
    let signals = watch_signals()?;
    let stopped = Show::new(ctx, false)
        .during(signals, async |controls, on_event| {
            let output = args.output.as_deref();
            sessions::stop(&store, &selector, output, Some(&names), controls, on_event).await
        })
        .await?;
    match stopped {
        Stopped::Finished(mut finished) => {
            let page = page::leave(ctx, args.leave, &mut finished).await;
            Ok(progress::finished(
                ctx,
                &finished,
                page.as_deref(),
                args.names.asked(),
            ))
        }
        Stopped::LeftToRecorder {
            session,
            output,
            class,
        } => {
            if ctx.console.is_json() {
                ctx.console
                    .json(&json!({ "session": session, "output": output }));
            } else {
                ctx.console.laid_out(output.display());
            }
            Ok(class.into())
        }
    }
}
