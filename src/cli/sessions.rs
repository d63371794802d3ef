//! `heaptap snapshot`, `status`, `stop` and `collect`: act on a recording that another
//! process started, perhaps on another day.

use std::time::Duration;

use serde_json::json;

use super::progress::{self, Show};
use super::signals::watch_signals;
use super::{Context, Outcome, Style};
use crate::app::sessions::{self, SessionStatus, State, Stopped};
use crate::error::Failure;
use crate::session::{SessionError, Store};
use crate::units::{ByteSize, HumanDuration};

/// Flags of `snapshot`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap snapshot --label after-login")]
pub struct SnapshotArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The name of the snapshot
    #[arg(long, value_name = "LABEL")]
    pub label: Option<String>,
}

/// Takes a snapshot; returns once the dump is complete on the device.
///
/// # Errors
/// Where the phone does not allow it, or no dump came in time.
pub async fn snapshot(ctx: &Context, args: SnapshotArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let (session, taken) =
        sessions::snapshot(&store, None, args.session.as_deref(), args.label).await?;
    let console = &ctx.console;
    if console.is_json() {
        console.json(&json!({ "session": session, "snapshot": taken }));
        return Ok(Outcome::Done);
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
        progress::snapshot_times(
            Duration::from_millis(taken.lag_ms),
            Duration::from_millis(taken.waited_ms),
            taken.dumps
        )
    ));
    Ok(Outcome::Done)
}

/// Flags of `status`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap status")]
pub struct StatusArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
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
        if let Some(next) = next_command(session) {
            let label = console.on_stderr(Style::Help, "next");
            console.say(format_args!("          {label}: {next}"));
        }
    }
    Ok(Outcome::Done)
}

fn status_line(session: &SessionStatus) -> String {
    let state = match session.state {
        State::Recording => "recording",
        State::Detached => "recording, detached",
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

fn next_command(session: &SessionStatus) -> Option<String> {
    let id = &session.session;
    match session.state {
        State::Detached => Some(format!("heaptap stop {id}")),
        State::Uncollected | State::Fetched | State::Lost => Some(format!("heaptap collect {id}")),
        State::Recording | State::Collecting | State::Away => None,
    }
}

/// Flags of `stop`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap stop")]
pub struct StopArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
}

/// Stops a recording, then collects it.
///
/// # Errors
/// Where the device does not hand it over; it stays there.
pub async fn stop(ctx: &Context, args: StopArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let signals = watch_signals()?;
    let stopped = Show::new(ctx, false)
        .during(signals, async |controls, tell| {
            let (wanted, output) = (args.session.as_deref(), args.output.as_deref());
            sessions::stop(&store, None, wanted, output, controls, tell).await
        })
        .await?;
    match stopped {
        Stopped::Finished(finished) => Ok(progress::finished(ctx, &finished)),
        Stopped::LeftToRecorder { session, output } => {
            if ctx.console.is_json() {
                ctx.console
                    .json(&json!({ "session": session, "output": output }));
            } else {
                ctx.console.data(output.display());
            }
            Ok(Outcome::Done)
        }
    }
}

/// Flags of `collect`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  heaptap collect -o out")]
pub struct CollectArgs {
    /// Which recording: its id or the start of it [default: the only one there is]
    #[arg(value_name = "SESSION")]
    pub session: Option<String>,
    /// The folder to write to [default: the one the recording was started with]
    #[arg(short, long, value_name = "DIR")]
    pub output: Option<std::path::PathBuf>,
}

/// Fetches a recording that is still on its device, and converts it.
///
/// # Errors
/// Where the device does not hand it over; it stays there.
pub async fn collect(ctx: &Context, args: CollectArgs) -> Result<Outcome, Failure> {
    let store = Store::of_user()?;
    let signals = watch_signals()?;
    let finished = Show::new(ctx, false)
        .during(signals, async |controls, tell| {
            let device = async || ctx.device().await.cloned();
            let (wanted, output) = (args.session.as_deref(), args.output.as_deref());
            sessions::collect(&store, device, wanted, output, controls, tell).await
        })
        .await?;
    Ok(progress::finished(ctx, &finished))
}
