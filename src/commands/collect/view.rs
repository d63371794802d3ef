//! `heaptap collect`: fetches a recording that is still on its device.

use serde_json::json;

use super::args::Args;
use crate::console::signals::watch_signals;
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::session::selector;
use crate::recording::sessions::{self};
use crate::session::Store;
use crate::views::page;
use crate::views::progress::{self, Show};

/// Fetches a recording that is still on its device, and converts it.
///
/// # Errors
/// Where the device does not hand it over; it stays there.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    if let (true, Some(id)) = (args.forget, &args.session) {
        return forget(ctx, &store, id);
    }
    let selector = selector(ctx, &store, args.session).await?;
    let names = args.names.options(&ctx.console)?;
    let signals = watch_signals()?;
    let mut finished = Show::new(ctx, false)
        .during(signals, async |controls, on_event| {
            let device = async || ctx.device().await.cloned();
            let output = args.output.as_deref();
            sessions::collect(
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
    let page = page::leave(ctx, args.leave, &mut finished).await;
    Ok(progress::finished(
        ctx,
        &finished,
        page.as_deref(),
        args.names.asked(),
    ))
}

fn forget(ctx: &Context, store: &Store, id: &str) -> Result<Outcome, Failure> {
    let gone = sessions::forget(store, id)?;
    if ctx.console.is_json() {
        ctx.console.json(&json!({
            "forgotten": gone.id,
            "serial": gone.serial,
            "remote_path": gone.remote_path,
        }));
    } else {
        ctx.console.say(format_args!(
            "forgot {}; its device ({}) was not touched: a trace may stand there as {}",
            gone.id, gone.serial, gone.remote_path
        ));
    }
    Ok(Outcome::Done)
}
