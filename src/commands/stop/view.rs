//! `heaptap stop`: ends a recording that another process started, if it runs, and fetches it.

use super::args::Args;
use crate::commands::shared::page;
use crate::commands::shared::progress::{self, Show};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::session::{scope_of_all, selector};
use crate::console::render;
use crate::console::signals::watch_signals;
use crate::names::options::NameOptions;
use crate::names::r8_mappings::R8Mappings;
use crate::recording::sessions::{self, Stopped};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_capture::session::{CaptureError, SessionId, Store};
use serde_json::{Value, json};
use std::path::Path;

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
    if args.all {
        return all(ctx, &store, &args, &names).await;
    }
    match stop(ctx, &store, &args, args.session.clone(), &names).await? {
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
                ctx.console.json(&left(&session, &output));
            } else {
                ctx.console.laid_out(output.display());
            }
            Ok(class.into())
        }
    }
}

fn left(session: &SessionId, output: &Path) -> Value {
    json!({ "session": session, "output": output.to_string_lossy() })
}

async fn stop(
    ctx: &Context,
    store: &Store,
    args: &Args,
    session: Option<String>,
    names: &NameOptions,
) -> Result<Stopped, Failure> {
    let selector = selector(ctx, store, session).await?;
    let signals = watch_signals()?;
    let output = args.output.as_deref();
    Show::new(ctx, false)
        .during(signals, async |controls, on_event| {
            let device = async || ctx.device().await.cloned();
            sessions::stop(
                store,
                device,
                &selector,
                output,
                Some(names),
                controls,
                on_event,
            )
            .await
        })
        .await
}

/// Ends and fetches all recordings, one after another. A signal ends the rest.
async fn all(
    ctx: &Context,
    store: &Store,
    args: &Args,
    names: &NameOptions,
) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let (sessions, unreadable) = sessions::all(store, &scope_of_all(ctx).await)?;
    if sessions.is_empty() && unreadable.is_empty() {
        console.say("no recordings");
    }
    let mut signals = watch_signals()?;
    let mut classes = Vec::new();
    let mut documents = Vec::new();
    let failed = |id: &str, failure: &Failure, documents: &mut Vec<Value>| {
        let mut document = render::document(failure);
        document["session"] = json!(id);
        documents.push(document);
        render::in_words(console, failure);
    };
    for (path, source) in unreadable {
        let id = path
            .file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let failure = Failure::from(CaptureError::state(&path, source));
        classes.push(failure.class);
        failed(&id, &failure, &mut documents);
    }
    for state in sessions {
        let id = state.header.id.to_string();
        let stopped = match signals.try_recv() {
            Ok(_) => Err(CaptureError::interrupted().into()),
            Err(_) => {
                console.say(format_args!("session {id}:"));
                stop(ctx, store, args, Some(id.clone()), names).await
            }
        };
        // A device that is gone takes nothing from complete results.
        let stopped = stopped.or_else(|failure| sessions::completed(&state).ok_or(failure));
        match stopped {
            Ok(Stopped::Finished(mut finished)) => {
                let page = page::leave(ctx, args.leave, &mut finished).await;
                documents.push(progress::document(&finished, page.as_deref()));
                if !console.is_json() {
                    progress::finished(ctx, &finished, page.as_deref(), args.names.asked());
                }
                classes.extend(finished.class);
            }
            Ok(Stopped::LeftToRecorder {
                session,
                output,
                class,
            }) => {
                documents.push(left(&session, &output));
                console.laid_out(output.display());
                classes.extend(class);
            }
            Err(failure) => {
                classes.push(failure.class);
                failed(&id, &failure, &mut documents);
                if failure.class == ErrorClass::Interrupted {
                    break;
                }
            }
        }
    }
    if console.is_json_lines() {
        documents.iter().for_each(|document| console.json(document));
    } else if console.is_json() {
        console.json(&json!({ "sessions": documents }));
    }
    Ok(Outcome::from_classes(classes))
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
