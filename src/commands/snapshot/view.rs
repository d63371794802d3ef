//! `heaptap snapshot`: takes a snapshot in a recording that another process started.

use super::args::Args;
use crate::commands::shared::progress::{self};
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::session::selector;
use crate::recording::sessions::{self};
use heaptap_base::error::Failure;
use heaptap_capture::session::{SessionId, Store};
use serde_json::json;
use std::time::Duration;

/// Takes a snapshot; returns once the dump is complete on the device.
///
/// # Errors
/// Returns an error if the device does not allow it, or no dump was written in time.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let word = args.session.clone();
    let selector = selector(ctx, &store, args.session).await?;
    let is_named = args.label.is_some();
    let device = async || ctx.device_at_hand().await.cloned();
    let on_wait = |session: &SessionId| {
        let console = &ctx.console;
        console.say(format_args!("waiting for the start of session {session} …"));
        console.event(&json!({ "event": "waiting-for-start", "session": session }));
    };
    let told = sessions::snapshot(&store, device, &selector, args.label, on_wait).await;
    let told = told.map_err(|failure| match (failure.kind, word) {
        ("no-such-session", Some(word)) if !is_named => with_hint(
            failure,
            format!("for a snapshot with that label: `--label {word}`"),
        ),
        _ => failure,
    })?;
    let (session, taken) = (told.session, told.snapshot);
    let console = &ctx.console;
    if told.repeated {
        progress::warn_of_repeated(console, &taken.label);
    }
    if console.is_json() {
        let mut told_of = json!({ "session": session, "snapshot": taken });
        if !told.untaken.is_empty() {
            told_of["not_captured"] = json!(told.untaken);
        }
        console.json(&told_of);
        return Ok(Outcome::Done);
    }
    if !told.untaken.is_empty() {
        let words: Vec<&str> = told.untaken.iter().map(|source| source.word()).collect();
        console.warn(format_args!(
            "{}: heaptap took only the heap dump. No heaptap process follows session {session} \
             anymore, so `--with {}` is missing in this snapshot.",
            taken.label,
            words.join(",")
        ));
    }
    if !taken.missing_pids.is_empty() {
        let pids: Vec<String> = taken.missing_pids.iter().map(u32::to_string).collect();
        console.warn(format_args!(
            "no dump from process {}: not attached, frozen or exited",
            pids.join(", ")
        ));
    }
    let words = match &taken.no_dump {
        Some(why) => progress::without_dump(why),
        None => progress::snapshot_times(
            Duration::from_millis(taken.lag_ms),
            Duration::from_millis(taken.waited_ms),
            taken.dumps,
            taken.unreleased_bytes,
        ),
    };
    let line = format!("{}: {words}", taken.label);
    match (console.is_quiet(), &taken.no_dump) {
        (false, _) => console.data(line),
        (true, Some(_)) => console.warn(line),
        // A script does not know the default label.
        (true, None) if !is_named => console.data(&taken.label),
        (true, None) => {}
    }
    Ok(Outcome::Done)
}

fn with_hint(mut failure: Failure, hint: String) -> Failure {
    failure.hints.push(hint);
    failure
}
