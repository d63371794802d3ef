//! `heaptap stop`: ends a recording that another process started, if it runs, and fetches it.

use super::args::Args;
use crate::console::signals::watch_signals;
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::session::selector;
use crate::naming::r8_mappings::R8Mappings;
use crate::recording::sessions::{self, Stopped};
use crate::session::Store;
use crate::views::page;
use crate::views::progress::{self, Show};
use serde_json::json;

/// Ends a recording if it runs, then fetches and converts it.
///
/// # Errors
/// Returns an error if the device does not hand over the recording, which then stays there.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    if let (true, Some(id)) = (args.forget, &args.session) {
        ctx.typed.only("`--forget`", &["forget"])?;
        return forget(ctx, &store, id);
    }
    let names = args.names.options(&ctx.console)?;
    // Before a recording is ended.
    R8Mappings::check(&names)?;
    let selector = selector(ctx, &store, args.session).await?;
    let signals = watch_signals()?;
    let stopped = Show::new(ctx, false)
        .during(signals, async |controls, on_event| {
            let device = async || ctx.device().await.cloned();
            let output = args.output.as_deref();
            sessions::stop(
                &store,
                device,
                &selector,
                output,
                Some(&names),
                controls,
                on_event,
            )
            .await
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
                    .json(&json!({ "session": session, "output": output.to_string_lossy() }));
            } else {
                ctx.console.laid_out(output.display());
            }
            Ok(class.into())
        }
    }
}

fn forget(ctx: &Context, store: &Store, id: &str) -> Result<Outcome, Failure> {
    let (gone, enforce) = sessions::forget(store, id)?;
    if ctx.console.is_json() {
        ctx.console.json(&json!({
            "forgotten": gone.id,
            "serial": gone.serial,
            "remote_path": gone.remote_path,
        }));
    } else {
        ctx.console.say(format_args!(
            "forgot {}; its device ({}) was not touched and may still have the trace {}",
            gone.id, gone.serial, gone.remote_path
        ));
    }
    if let Some(command) = enforce {
        let help = format!("run `{command}` to restore it now");
        ctx.console.warn_with_help(
            format_args!(
                "SELinux stays permissive until perfetto has ended session {}",
                gone.id
            ),
            Some(&help),
        );
    }
    Ok(Outcome::Done)
}
