//! `heaptap snapshot`, `status`, `stop` and `collect`: act on a recording that another
//! process started, perhaps on another day.

use std::time::Duration;

use serde_json::json;

use crate::console::Style;
use crate::console::signals::watch_signals;
use crate::device::{Address, Server};
use crate::error::Failure;
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::leave::LeaveArgs;
use crate::flags::names::NamesArgs;
use crate::recording::choice::at_server;
use crate::recording::sessions::{self, SessionStatus, State, Stopped, Wanted};
use crate::session::{SessionError, Store};
use crate::units::{ByteSize, HumanDuration};
use crate::views::page as report;
use crate::views::progress::{self, Show};

/// Flags of `snapshot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap snapshot --label after-login")]
pub struct SnapshotArgs {
    /// Which recording: its id or the start of it [default: the only one that runs]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The name of the snapshot, by which `PATH@LABEL` finds it [default: snapshot-N]
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
}

/// Takes a snapshot; returns once the dump is complete on the device.
///
/// # Errors
/// Where the phone does not allow it, or no dump came in time.
pub async fn snapshot(ctx: &Context, args: SnapshotArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let wanted = wanted(ctx, &store, args.session).await?;
    let told = sessions::snapshot(&store, &wanted, args.label).await?;
    let (session, taken) = (told.session, told.snapshot);
    let console = &ctx.console;
    if told.repeated {
        progress::warn_of_repeated(console, &taken.label);
    }
    if console.is_json() {
        let mut told_of = json!({ "session": session, "snapshot": taken });
        if !told.untaken.is_empty() {
            told_of["untaken"] = json!(told.untaken);
        }
        console.json(&told_of);
        return Ok(Outcome::Done);
    }
    if !told.untaken.is_empty() {
        let words: Vec<&str> = told.untaken.iter().map(|source| source.word()).collect();
        console.warn(format_args!(
            "{}: heaptap took only the heap dump. No heaptap follows session {session} any more, \
             so --with {} is missing at this snapshot.",
            taken.label,
            words.join(",")
        ));
    }
    if !taken.missing_pids.is_empty() {
        let pids: Vec<String> = taken.missing_pids.iter().map(u32::to_string).collect();
        console.warn(format_args!(
            "no dump came of process {}: not attached, frozen or gone",
            pids.join(", ")
        ));
    }
    console.data(format_args!(
        "{}: {}",
        taken.label,
        match &taken.no_dump {
            Some(why) => progress::without_dump(why),
            None => progress::snapshot_times(
                Duration::from_millis(taken.lag_ms),
                Duration::from_millis(taken.waited_ms),
                taken.dumps,
            ),
        }
    ));
    Ok(Outcome::Done)
}

/// Flags of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap status")]
pub struct StatusArgs {
    /// Which recording: its id or the start of it [default: all]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
}

/// Shows the recordings that the journal and the device know.
///
/// # Errors
/// Where the journal cannot be read.
pub async fn status(ctx: &Context, args: StatusArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    // Without a device the journal still tells.
    let device = ctx.device().await.ok();
    let mut all = sessions::status(&store, device).await?;
    if let Some(wanted) = &args.session {
        all.retain(|s| s.session.as_str().starts_with(wanted.as_str()));
        if all.is_empty() {
            return Err(SessionError::NoSuchSession { id: wanted.clone() }.into());
        }
    }
    let console = &ctx.console;
    if console.is_json() {
        console.json(&json!({ "sessions": all }));
        return Ok(Outcome::Done);
    }
    if all.is_empty() {
        console.say("no recordings");
    }
    for session in &all {
        console.data(status_line(session));
        if !session.labels.is_empty() {
            console.data(format_args!(
                "          snapshots: {}",
                session.labels.join(", ")
            ));
        }
        let label = console.on_stderr(Style::Help, "next");
        console.say(format_args!("          {label}: {}", next_step(session)));
    }
    Ok(Outcome::Done)
}

fn status_line(session: &SessionStatus) -> String {
    let state = match session.state {
        State::Recording => "recording",
        State::Detached if !session.in_journal => "recording, started elsewhere",
        State::Detached => "recording, detached",
        State::Unattended => "recording; its heaptap is gone",
        State::Uncollected => "ended, not collected",
        State::Fetched => "fetched, not finished",
        State::Collecting => "being collected",
        State::Away => "device not connected",
        State::Lost => "lost: nothing is left on the device",
    };
    let mut parts = vec![format!("{}  {state}", session.session)];
    if !session.targets.is_empty() {
        parts.push(session.targets.join(", "));
    }
    parts.push(format!("on {}", session.serial));
    if let Some(bytes) = session.trace_bytes {
        parts.push(format!("trace {}", ByteSize(bytes)));
    }
    if let Some(started) = session.started {
        let ago = time::OffsetDateTime::now_utc() - started;
        let ago = Duration::try_from(ago).unwrap_or_default();
        parts.push(format!("since {}", HumanDuration(ago)));
    }
    parts.join("  ")
}

fn next_step(session: &SessionStatus) -> String {
    let id = &session.session;
    match session.state {
        // `stop` works from the journal.
        State::Detached if !session.in_journal => format!("heaptap collect {id}"),
        State::Recording | State::Detached | State::Unattended => format!("heaptap stop {id}"),
        State::Uncollected | State::Fetched => format!("heaptap collect {id}"),
        State::Collecting => "wait: another heaptap is fetching it".to_owned(),
        State::Away => format!(
            "connect the device, then: heaptap collect {id} (or forget it: heaptap collect {id} \
             --forget)"
        ),
        State::Lost => format!("heaptap collect {id} --forget"),
    }
}

/// The session that was named, or what the flags say of it. Its adb server is started where
/// it is the one that these flags mean.
async fn wanted(ctx: &Context, store: &Store, named: Option<String>) -> Result<Wanted, Failure> {
    let flag = ctx.globals.adb_server.as_deref();
    let server = Server::named(flag)?.unwrap_or_else(Address::local);
    let (chronicles, _) = store.list()?;
    if ctx.globals.virtual_phone.is_none()
        && server.is_local()
        && chronicles.iter().any(|c| at_server(&c.opening, &server))
    {
        // What comes of it is told where the session's device is looked for.
        let _ = ctx.server().await;
    }
    Ok(match named {
        Some(id) => Wanted::Id(id),
        None => Wanted::Only(ctx.scope().await?),
    })
}

/// Flags of `stop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap stop")]
pub struct StopArgs {
    /// Which recording: its id or the start of it [default: the only one that runs]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
    /// Whether a page is left.
    #[command(flatten)]
    pub leave: LeaveArgs,
    /// Where names come from, beside what the recording was started with.
    #[command(flatten)]
    pub names: NamesArgs,
}

/// Stops a recording, then collects it.
///
/// # Errors
/// Where the device does not hand it over; it stays there.
pub async fn stop(ctx: &Context, args: StopArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let wanted = wanted(ctx, &store, args.session).await?;
    let names = args.names.options(&ctx.console)?;
    let signals = watch_signals()?;
    let stopped = Show::new(ctx, false)
        .during(signals, async |controls, tell| {
            let output = args.output.as_deref();
            sessions::stop(&store, &wanted, output, Some(&names), controls, tell).await
        })
        .await?;
    match stopped {
        Stopped::Finished(mut finished) => {
            let page = report::leave(ctx, args.leave, &mut finished).await;
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

/// Flags of `collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  heaptap collect -o out\n  \
                  heaptap collect --forget k3v9xq2m   its phone is gone for good")]
pub struct CollectArgs {
    /// Which recording: its id or the start of it [default: the only one that can be fetched]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// Forget this recording instead; its device is not touched, and keeps the trace
    #[arg(long, requires = "session", conflicts_with = "output")]
    pub forget: bool,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
    /// Whether a page is left.
    #[command(flatten)]
    pub leave: LeaveArgs,
    /// Where names come from, beside what the recording was started with.
    #[command(flatten)]
    pub names: NamesArgs,
}

/// Fetches a recording that is still on its device, and converts it.
///
/// # Errors
/// Where the device does not hand it over; it stays there.
pub async fn collect(ctx: &Context, args: CollectArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    if let (true, Some(id)) = (args.forget, &args.session) {
        return forget(ctx, &store, id);
    }
    let wanted = wanted(ctx, &store, args.session).await?;
    let names = args.names.options(&ctx.console)?;
    let signals = watch_signals()?;
    let mut finished = Show::new(ctx, false)
        .during(signals, async |controls, tell| {
            let device = async || ctx.device().await.cloned();
            let output = args.output.as_deref();
            sessions::collect(
                &store,
                device,
                &wanted,
                output,
                Some(&names),
                controls,
                tell,
            )
            .await
        })
        .await?;
    let page = report::leave(ctx, args.leave, &mut finished).await;
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
